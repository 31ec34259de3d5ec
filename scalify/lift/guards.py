"""Products with 0/1 factors: what a condition says about the rest of the product.

In ``g * f`` the value of ``f`` matters only where ``g`` holds. So, with integer forms and their known ranges:
    a condition that the others imply is dropped, one that they exclude makes the product 0;
    ``[e >= 0][-e >= 0]`` is ``[e = 0]``;
    ``clamp``, ``select``, wrap-around, remainder, quotient and products with conditions inside another condition take the value that
    they have under ``g``.
Each step only replaces a factor by one of equal value wherever the other factors are not 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scalify.lift import functions, product
from scalify.lift.compare import at_least_zero, compare, equals_zero
from scalify.lift.einsum import total
from scalify.lift.instance import child
from scalify.lift.linear import combine, form, negate, scale, subtract
from scalify.lift.terms import BOUND, Index, Number, Store, Term, View, absolute, bounds, is_integer, number, quotient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scalify.lift.product import Factor

MOST_FACTORS = 24
MOST_NESTED = 6
_RESOLVED = frozenset({"clamp", "wrap", "select", "rem", "quotient"})


class Fact(NamedTuple):
    """``form >= 0``, ``form = 0`` or ``form != 0`` over the integers (``ge``, ``eq``, ``ne``)."""

    kind: str
    form: View


def fact_of(store: Store, factor: Factor) -> Fact | None:
    """What a factor says when it is 1; None when it is not a condition on integers."""
    term, exponent, at = factor
    if exponent != 1:
        return None
    if term.kind in ("ge0", "eq0"):
        return _positive_fact(store, term, at)
    if term.kind != "lin" or term.data[1] != 1 or len(term.data[0]) != 1:
        return None
    inner, c, labels = term.data[0][0]
    if c != -1 or inner.kind not in ("ge0", "eq0"):
        return None
    fact = _positive_fact(store, inner, tuple([at[i] for i in labels]))
    if fact is None:
        return None
    if fact.kind == "ge":
        return Fact("ge", combine(store, ((-1, fact.form),), -1))
    return Fact("ne", fact.form)


def _positive_fact(store: Store, term: Term, at: tuple[int, ...]) -> Fact | None:
    if term.kind == "ge0":
        sign, inner, labels = term.data
        if not inner.integer:
            return None
        return Fact("ge", scale(store, View(1, inner, tuple([at[i] for i in labels])), sign))
    inner, labels = term.data
    return Fact("eq", View(1, inner, tuple([at[i] for i in labels]))) if inner.integer else None


def implied(store: Store, view: View, facts: list[Fact]) -> bool:
    """Whether ``view >= 0`` follows from one of the facts and the known ranges (or from ranges alone)."""
    return _low(view) or any(_follows(store, view, fact) for fact in facts)


def _low(view: View) -> bool:
    found = bounds(view)
    return found is not None and found[0] >= 0


def _follows(store: Store, view: View, fact: Fact) -> bool:
    if fact.kind == "ge":
        return _share(view, fact.form) and _low(subtract(store, view, fact.form))
    if fact.kind != "eq":
        return False
    return any(_low(rest) for rest in _without(store, view, fact.form))


def _share(a: View, b: View) -> bool:
    mine, _ = form(a)
    other, _ = form(b)
    return any(key in other for key in mine)


def _without(store: Store, view: View, zero: View) -> list[View]:
    """``view`` with a multiple of ``zero`` taken away that cancels an entry of both, in each way."""
    mine, _ = form(view)
    other, _ = form(zero)
    ratios: list[Number] = []
    for key, c in mine.items():
        if key in other:
            ratio = quotient(c, other[key])
            if ratio not in ratios:
                ratios.append(ratio)
    return [combine(store, ((1, view), (-ratio, zero))) for ratio in ratios]


def simplify(store: Store, factors: list[Factor]) -> tuple[Number, list[Factor]] | None:
    """The product of the factors in simpler form, as (coefficient, factors); None when nothing changes."""
    if len(factors) > MOST_FACTORS:
        return None
    coef: Number = 1
    changed = False
    facts = [fact_of(store, f) for f in factors]
    if sum(f is not None for f in facts) == 0:
        return None
    progress = True
    while progress:
        progress = False
        for position in range(len(factors)):
            others = [f for i, f in enumerate(facts) if f is not None and i != position]
            if not others:
                continue
            new = _under(store, factors[position], facts[position], others)
            if new is None:
                continue
            coef = number(coef * new.coef)
            if coef == 0:
                return 0, factors
            rest = factors[:position] + factors[position + 1 :] + product.factors_of(View(1, new.term, new.at))
            factors = product.merge(rest)
            facts = [fact_of(store, f) for f in factors]
            progress = changed = True
            break
        else:
            joined = _joined_digits(store, factors, facts)
            if joined is not None:
                factors = product.merge(joined)
                facts = [fact_of(store, f) for f in factors]
                progress = changed = True
    return (coef, factors) if changed else None


def _joined_digits(store: Store, factors: list[Factor], facts: list[Fact | None]) -> list[Factor] | None:
    """``[i = x rem K][q = x div K] = [x = K q + i]`` for ``0 <= i < K`` (both are made of ``x >= 0`` only)."""
    for a, first in enumerate(facts):
        low = _digit(store, first, "rem")
        if low is None:
            continue
        x, divisor, i = low
        found = bounds(i)
        if found is None or found[0] < 0 or found[1] >= divisor:
            continue
        for b, second in enumerate(facts):
            high = _digit(store, second, "quotient")
            if high is None or high[:2] != (x, divisor):
                continue
            joined = equals_zero(store, combine(store, ((1, x), (-divisor, high[2]), (-1, i))))
            rest = [f for n, f in enumerate(factors) if n not in (a, b)]
            return rest + product.factors_of(joined) if joined.coef == 1 else None
    return None


def _digit(store: Store, fact: Fact | None, name: str) -> tuple[View, int, View] | None:
    """``(x, K, e)`` when the fact says ``x name K = e``."""
    if fact is None or fact.kind != "eq":
        return None
    entries, _ = form(fact.form)
    for (term, at), c in entries.items():
        if term.kind == "fn" and term.data[0] == name and c in (1, -1):
            rest = combine(store, ((-c, fact.form), (1, View(1, term, at))))
            return _argument(store, term.data[2][0], at), term.data[1], rest
    return None


def _under(store: Store, factor: Factor, fact: Fact | None, others: list[Fact]) -> View | None:
    """The factor's value where the other facts hold, None when it is no simpler."""
    term, exponent, at = factor
    if fact is not None:
        return _condition_under(store, fact, others)
    if term.kind == "fn" and exponent == 1 and term.data[0] == "select":
        return _resolve(store, term, at, others)
    return None


def _condition_under(store: Store, fact: Fact, others: list[Fact]) -> View | None:
    simpler = _inside(store, fact.form, others)
    if simpler is not None:
        return _again(store, fact.kind, simpler)
    if fact.kind == "ge":
        if implied(store, fact.form, others):
            return store.constant(1)
        if implied(store, combine(store, ((-1, fact.form),), -1), others):
            return store.constant(0)
        return _meets(store, fact.form, others)
    if _excluded(store, fact.form, others):
        return store.constant(0 if fact.kind == "eq" else 1)
    if fact.kind == "ne" and any(o.kind == "eq" and _is_zero(store, fact.form, o.form) for o in others):
        return store.constant(0)
    return None


def _again(store: Store, kind: str, view: View) -> View:
    if kind == "ge":
        return at_least_zero(store, view)
    return equals_zero(store, view) if kind == "eq" else compare(store, "NE", view, store.constant(0))


def _meets(store: Store, view: View, others: list[Fact]) -> View | None:
    """``[e >= 0]`` where also ``-e >= 0`` is known."""
    opposite = negate(store, view)
    if any(o.kind == "ge" and o.form == opposite for o in others):
        return equals_zero(store, view)
    for other in others:  # e >= 0 and e != 0
        if other.kind == "ne" and _is_zero(store, view, other.form):
            return at_least_zero(store, combine(store, ((1, view),), -1))
    return None


def _is_zero(store: Store, view: View, other: View) -> bool:
    """Whether the two forms are multiples of each other."""
    return any(rest.coef == 0 or (rest.term is store.one and rest.coef == 0) for rest in _without(store, view, other))


def _excluded(store: Store, view: View, others: list[Fact]) -> bool:
    """Whether ``view = 0`` contradicts a fact."""
    above = combine(store, ((1, view),), -1)
    below = combine(store, ((-1, view),), -1)
    return implied(store, above, others) or implied(store, below, others)


def _inside(store: Store, view: View, others: list[Fact], depth: int = 0) -> View | None:
    """The linear form with one clamp, wrap-around, select, remainder, quotient or product with conditions in it resolved."""
    if depth > MOST_NESTED:
        return None
    entries, _ = form(view)
    for (term, at), c in entries.items():
        value = _resolve(store, term, at, others, depth)
        if value is not None and is_integer(value):
            return combine(store, ((1, view), (-c, View(1, term, at)), (c, value)))
    return None


def _argument(store: Store, argument: tuple[Number, Term, tuple[int, ...]], at: tuple[int, ...]) -> View:
    coef, term, labels = argument
    return scale(store, View(1, term, tuple([at[i] for i in labels])), coef)


def _resolve(store: Store, term: Term, at: tuple[int, ...], others: list[Fact], depth: int = 0) -> View | None:
    """The value of one entry of a form under the facts, None when they do not decide it."""
    if term.kind == "mul":
        return _resolve_product(store, product.factors_of(View(1, term, at)), others)
    if term.kind == "sum":
        return _resolve_look_up(store, term, at, others)
    if term.kind != "fn" or term.data[0] not in _RESOLVED:
        return None
    op, attribute, arguments = term.data
    views = [_argument(store, a, at) for a in arguments]
    if op == "select":
        return _resolve_select(store, views, others)
    view = views[0]
    while (simpler := _inside(store, view, others, depth + 1)) is not None:
        view = simpler
    if op == "clamp":
        return _resolve_clamp(store, attribute, view, others)
    if op == "wrap":
        low, high = attribute
        return view if _within(store, view, low, high, others) else None
    return _resolve_division(store, op, attribute, view, others)


def _within(store: Store, view: View, low: Number, high: Number, others: list[Fact]) -> bool:
    above = implied(store, combine(store, ((1, view),), -low), others)
    return above and implied(store, combine(store, ((-1, view),), high), others)


def _resolve_product(store: Store, factors: list[Factor], others: list[Fact]) -> View | None:
    """A product without the conditions that hold; 0 where one of them fails."""
    kept = []
    for factor in factors:
        fact = fact_of(store, factor) if factor[0].boolean else None
        if fact is not None and _fails(store, fact, others):
            return store.constant(0)
        if fact is None or not _holds(store, fact, others):
            kept.append(factor)
    return product.from_factors(store, 1, kept) if len(kept) < len(factors) else None


def _resolve_look_up(store: Store, term: Term, at: tuple[int, ...], others: list[Fact]) -> View | None:
    """``sum_t [t = x] f(t)`` is ``f(v)`` where ``v = x`` is known for digits v with as many values as those of t have."""
    factors, sizes = term.data
    for position, (condition, _, labels) in enumerate(factors):
        if condition.kind != "eq0" or not condition.data[0].integer or not any(i >= BOUND for i in labels):
            continue
        for fact in others:
            slots = _same_digits(condition, labels, at, sizes, fact) if fact.kind == "eq" else None
            if slots is not None:
                return _looked_up(store, term, at, position, slots)
    return None


def _same_digits(condition: Term, labels: tuple[int, ...], at: tuple[int, ...], sizes: Sequence[int], fact: Fact) -> dict[int, int] | None:
    """The slots of the digits that the fact sets to the value to which the condition sets its bound labels; None when it is another value.

    The bound labels must be digits, each with a stride that those below it do not reach: then no other values of them meet the condition.
    """
    inner, own = condition.data
    entries, constant = form(View(1, inner, tuple([labels[i] for i in own])))
    known, other = form(fact.form)
    digits = {i[0]: c for (t, i), c in entries.items() if t.kind == "iota" and i[0] >= BOUND}
    if any(s >= BOUND and (len(i) > 1 or s not in digits) for _, i in entries for s in i) or not _unique(digits, sizes):
        return None
    for sign in (1, -1):
        slots: dict[int, int] = {}
        for label, c in digits.items():
            same = [i[0] for (t, i), k in known.items() if t.kind == "iota" and k == sign * c and t.sizes[0] == sizes[label - BOUND]]
            slots.update({label: same[0]} if len(same) == 1 else {})
        wanted = {(t, tuple([slots.get(s, -1) if s >= BOUND else at[s] for s in i])): sign * c for (t, i), c in entries.items()}
        if len(set(slots.values())) == len(digits) and wanted == known and sign * constant == other:
            return slots
    return None


def _unique(digits: Mapping[int, Number], sizes: Sequence[int]) -> bool:
    """Whether different values of the digits give different sums."""
    reached: Number = 0
    for label, c in sorted(digits.items(), key=lambda entry: absolute(entry[1])):
        if absolute(c) <= reached:
            return False
        reached += absolute(c) * (sizes[label - BOUND] - 1)
    return True


def _looked_up(store: Store, term: Term, at: tuple[int, ...], position: int, slots: Mapping[int, int]) -> View:
    """The sum with one condition left out and its bound labels set to slots."""
    factors, sizes = term.data
    fresh = {BOUND + j: store.fresh() for j in range(len(sizes)) if BOUND + j not in slots}
    indices: dict[int, Index] = {**dict(enumerate(at)), **fresh, **slots}
    parts = [(child(store, t, labels, indices), e) for k, (t, e, labels) in enumerate(factors) if k != position]
    return total(store, product.multiply(store, parts), {s: sizes[i - BOUND] for i, s in fresh.items()})


def _resolve_select(store: Store, views: list[View], others: list[Fact]) -> View | None:
    factors = product.factors_of(views[0])
    facts = [fact_of(store, f) for f in factors]
    if any(f is None for f in facts):
        return None
    known = [f for f in facts if f is not None]
    if all(_holds(store, f, others) for f in known):
        return views[1]
    return views[2] if any(_fails(store, f, others) for f in known) else None


def _holds(store: Store, fact: Fact, others: list[Fact]) -> bool:
    if fact.kind == "ge":
        return implied(store, fact.form, others)
    if fact.kind == "eq":
        return any(o.kind == "eq" and _is_zero(store, fact.form, o.form) for o in others)
    return _excluded(store, fact.form, others)


def _fails(store: Store, fact: Fact, others: list[Fact]) -> bool:
    if fact.kind == "ge":
        return implied(store, combine(store, ((-1, fact.form),), -1), others)
    if fact.kind == "eq":
        return _excluded(store, fact.form, others)
    return any(o.kind == "eq" and _is_zero(store, fact.form, o.form) for o in others)


def _resolve_clamp(store: Store, ends: tuple[Number | None, Number | None], view: View, others: list[Fact]) -> View | None:
    low, high = ends
    if not is_integer(view):
        return None
    above = low is None or implied(store, combine(store, ((1, view),), -low), others)
    below = high is None or implied(store, combine(store, ((-1, view),), high), others)
    if above and below:
        return view
    if low is not None and implied(store, combine(store, ((-1, view),), low), others):
        return store.constant(low)
    if high is not None and implied(store, combine(store, ((1, view),), -high), others):
        return store.constant(high)
    return None


def _resolve_division(store: Store, op: str, divisor: int, view: View, others: list[Fact]) -> View | None:
    """``x rem K`` and ``x div K`` where ``K q <= x < K (q + 1)`` is known for some ``q >= 0`` of the facts."""
    for fact in others:
        if fact.kind != "ge" or not _share(view, fact.form):
            continue
        rest = subtract(store, view, fact.form)  # the fact says view >= rest
        entries, constant = form(rest)
        if any(c % divisor for c in entries.values()) or constant % divisor or not _low(rest):
            continue
        top = combine(store, ((1, rest), (-1, view)), divisor - 1)
        if implied(store, top, others):
            if op == "rem":
                return subtract(store, view, rest)
            return scale(store, rest, quotient(1, divisor)) if rest.coef else store.constant(0)
    return None


def assuming(store: Store, view: View, condition: View) -> View:
    """The value where the condition holds: conditions that follow are left out of its products, look-ups at known positions are made."""
    facts = [fact_of(store, f) for f in product.factors_of(condition)]
    known = [f for f in facts if f is not None]
    if len(known) < len(facts):
        return view
    for _ in range(MOST_NESTED):
        entries, _constant = form(view)
        found = ((key, c, _known_entry(store, *key, known)) for key, c in entries.items())
        changed = next(((key, c, value) for key, c, value in found if value is not None), None)
        if changed is None:
            break
        (term, at), c, value = changed
        view = combine(store, ((1, view), (-c, View(1, term, at)), (c, value)))
    return view


def _known_entry(store: Store, term: Term, at: tuple[int, ...], known: list[Fact]) -> View | None:
    factors = product.factors_of(View(1, term, at))
    if any(t.boolean for t, _, _ in factors):
        value = _resolve_product(store, factors, known)
        if value is not None:
            return value
    for position, (t, exponent, slots) in enumerate(factors):
        found = _resolve_look_up(store, t, slots, known) if t.kind == "sum" else None
        if found is not None:
            rest = [(View(1, u, a), e) for u, e, a in factors[:position] + factors[position + 1 :]]
            return product.multiply(store, [(found, exponent), *rest]) if found.coef or exponent > 0 else None
    return None


product.simplify_guarded.append(simplify)
functions.assuming.append(assuming)
