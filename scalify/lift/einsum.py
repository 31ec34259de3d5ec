"""Sums of products: the normal form of dot, reduce-add, all-reduce and one-hot look-ups.

A ``sum`` node is ``(factors, bound sizes)``: the sum over its bound labels (``BOUND + j``) of a product of factors that the bound labels
connect. Sums inside a product under a sum are inlined, factors without a bound label are pulled out, unconnected parts are separate
sums; sums of linear combinations are linear combinations of sums. So matmul associativity and two-step reductions need no search.
Sound over the reals for finite sums.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from scalify.lift import product
from scalify.lift.instance import child, constant_index, rebuilds, substitute
from scalify.lift.linear import arrange, combine, form, from_form, scale, sizes_of
from scalify.lift.onehot import hits, solve
from scalify.lift.terms import BOUND, Index, Labels, Number, Store, Term, View, number, remember

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scalify.lift.product import Factor

MOST_FACTORS = 14  #: a sum of more factors is left nested; only completeness depends on it
MOST_TERMS = 64  #: of a linear combination that is multiplied out


def total(store: Store, view: View, slots: Mapping[int, int]) -> View:
    """Sum of the view over ``slots`` (slot -> size); slots that it does not use multiply by their size."""
    coef, term, at = view
    inside = {s: n for s, n in slots.items() if s in at}
    for s, n in slots.items():
        if s not in inside:
            coef = coef * n
    if coef == 0 or not inside:
        return scale(store, View(1, term, at), number(coef)) if coef else store.constant(0)
    if term.kind == "lin":
        entries, constant = term.data
        for n in inside.values():
            constant = constant * n
        parts = [(coef * c, total(store, View(1, t, tuple([at[i] for i in labels])), inside)) for t, c, labels in entries]
        return combine(store, parts, number(coef * constant))
    return scale(store, _sum(store, product.factors_of(View(1, term, at)), inside), number(coef))


def contract(store: Store, a: View, b: View, slots: Mapping[int, int]) -> View:
    """Sum of ``a * b`` over ``slots``."""
    ones = View(1, a.term, a.at), View(1, b.term, b.at)
    return scale(
        store, remember(store, "contract", ones, lambda v, bound: _contract(store, v[0], v[1], bound), slots), number(a.coef * b.coef)
    )


def _contract(store: Store, a: View, b: View, slots: dict[int, int]) -> View:
    factors = product.merge(product.factors_of(a) + product.factors_of(b))
    used = {s for _, _, at in factors for s in at}
    if not slots or not slots.keys() <= used or "one" in (a.term.kind, b.term.kind) or any(t.boolean for t, _, _ in factors):
        return total(store, product.multiply(store, ((a, 1), (b, 1))), slots)
    store.charge(len(factors))
    return _sum(store, factors, slots)  # the product itself is of no use to anybody


def _sum(store: Store, factors: list[Factor], bound: dict[int, int]) -> View:
    """Sum over ``bound`` of a product of factors, each bound slot being used."""
    by: Number = 1
    if store.laws.einsum:
        factors = _inline(store, factors, bound)
    if product.simplify_guarded and store.laws.guards and len(factors) > 1 and any(t.boolean for t, _, _ in factors):
        found = product.simplify_guarded[0](store, factors)
        if found is not None:
            by, factors = found
            used = {s for _, _, at in factors for s in at}
            for slot in [s for s in bound if s not in used]:
                by = by * bound.pop(slot)
            if by == 0 or not bound:
                return product.from_factors(store, by, factors)
    step = _eliminate(store, factors, bound) or _replace(store, factors, bound) or _distribute(store, factors, bound)
    if step is None:
        step = _components(store, factors, bound)
    return scale(store, step, by)


def expand(store: Store, term: Term, at: tuple[int, ...], bound: dict[int, int]) -> list[Factor]:
    """The factors of a ``sum`` term with new slots for its bound labels, which are added to ``bound``."""
    inner, sizes = term.data
    slots = [store.fresh() for _ in sizes]
    bound.update(zip(slots, sizes, strict=True))
    return [(t, e, tuple([slots[i - BOUND] if i >= BOUND else at[i] for i in labels])) for t, e, labels in inner]


def _inline(store: Store, factors: list[Factor], bound: dict[int, int]) -> list[Factor]:
    found: list[Factor] = []
    changed = False
    room = MOST_FACTORS - len(factors)
    for term, exponent, at in factors:
        if term.kind == "sum" and 0 < exponent <= 2 and any(s in bound for s in at):
            needed = exponent * len(term.data[0]) - 1
            if needed <= room:
                room -= needed
                changed = True
                for _ in range(exponent):
                    found += expand(store, term, at, bound)
                continue
        found.append((term, exponent, at))
    return product.merge(found) if changed else found


def _eliminate(store: Store, factors: list[Factor], bound: dict[int, int]) -> View | None:
    """``sum_v [v = e] f(v) = f(e)`` where e is a constant or a function of labels inside the range of v."""
    if not store.laws.one_hot:
        return None
    for position, (term, exponent, at) in enumerate(factors):
        if exponent < 1:
            continue
        if term.kind == "iota" and term.sizes == (2,) and at[0] in bound:  # [v = 1]
            found: tuple[int, Index | None] | None = at[0], constant_index(1)
        else:
            found = solve(store, term, at, bound) if term.kind == "eq0" else None
        if found is None:
            continue
        slot, index = found
        rest = factors[:position] + factors[position + 1 :]
        if index is None:
            return store.constant(0)
        remaining = {s: n for s, n in bound.items() if s != slot}
        change: dict[int, Index] = {slot: index}
        value = product.multiply(store, [(substitute(store, View(1, t, a), change), e) for t, e, a in rest])
        return total(store, value, remaining)
    return _hit(store, factors, bound) if len(factors) > 1 else None


def _hit(store: Store, factors: list[Factor], bound: dict[int, int]) -> View | None:
    """``sum_v [v = x] f = f`` for a digit v that nothing else uses, where x is always in its range."""
    for position, factor in enumerate(factors):
        if factor[0].kind != "eq0":
            continue
        rest = factors[:position] + factors[position + 1 :]
        used = {s for _, _, at in rest for s in at}
        own = {s: bound[s] for s in factor[2] if s in bound and s not in used}
        if own and hits(store, [factor], own) is not None:
            remaining = {s: n for s, n in bound.items() if s not in own}
            return total(store, product.multiply(store, [(View(1, t, a), e) for t, e, a in rest]), remaining)
    return None


def _replace(store: Store, factors: list[Factor], bound: dict[int, int]) -> View | None:
    """``sum_v [v = x] v f(v) = sum_v [v = x] x f(v)``: a position that is looked up is the value that it was looked up with.

    Also where the position is a part of a linear combination.
    """
    if not store.laws.one_hot or not any(t.kind == "eq0" for t, _, _ in factors):
        return None
    for position, (term, exponent, at) in enumerate(factors):
        if term.kind not in ("iota", "lin") or exponent < 1:
            continue
        entries, constant = form(View(1, term, at))
        for (part, slots), c in entries.items():
            value = _looked(store, factors, slots[0], bound) if part.kind == "iota" and slots[0] in bound else None
            if value is not None:
                rest = {key: k for key, k in entries.items() if key != (part, slots)}
                changed = combine(store, ((1, from_form(store, rest, constant)), (c, value)))
                parts = [(View(1, t, a), e) for t, e, a in factors[:position] + factors[position + 1 :]]
                return total(store, product.multiply(store, [(changed, exponent), *parts]), bound)
    return None


def _looked(store: Store, factors: Sequence[Factor], slot: int, bound: Mapping[int, int]) -> View | None:
    """``x`` of a factor ``[v = x]`` for the slot of v, where no chain of such conditions leads from x back to v."""
    for value in _values_of(store, factors, slot):
        if not _leads_to(store, factors, value, slot, bound):
            return value
    return None


def _values_of(store: Store, factors: Sequence[Factor], slot: int) -> list[View]:
    """Every ``x``, which does not use the slot of v, of the factors ``[v = x]`` over the integers."""
    found = []
    for condition, _, slots in factors:
        if condition.kind != "eq0" or slot not in slots or not condition.data[0].integer:
            continue
        inner, labels = condition.data
        entries, constant = form(View(1, inner, tuple([slots[i] for i in labels])))
        mine = [(key, c) for key, c in entries.items() if slot in key[1]]
        if len(mine) == 1 and mine[0][0][0].kind == "iota" and mine[0][1] in (1, -1):
            rest = {key: c for key, c in entries.items() if key != mine[0][0]}
            found.append(scale(store, from_form(store, rest, constant), -mine[0][1]))
    return found


def _leads_to(store: Store, factors: Sequence[Factor], value: View, slot: int, bound: Mapping[int, int]) -> bool:
    """Whether replacing bound positions in a value by the values that they are looked up with may bring the slot back."""
    pending, seen = [s for s in value.at if s in bound], set()
    while pending:
        top = pending.pop()
        if top == slot:
            return True
        if top not in seen:
            seen.add(top)
            pending += [s for v in _values_of(store, factors, top) for s in v.at if s in bound]
    return False


def _distribute(store: Store, factors: list[Factor], bound: dict[int, int]) -> View | None:
    """Multiply out a linear combination whose parts all select one value of a bound label (a stack of parts), or that is looked up at one."""
    for position, (term, exponent, at) in enumerate(factors):
        if exponent != 1 or term.kind != "lin" or len(term.data[0]) > MOST_TERMS:
            continue
        others = factors[:position] + factors[position + 1 :]
        stack = not term.data[1] and all(_selects(t, tuple([at[i] for i in labels]), bound) for t, _, labels in term.data[0])
        if not stack and not _looked_up(term, at, others, bound):
            continue
        rest = [(View(1, t, a), e) for t, e, a in others]
        parts = []
        for t, c, labels in term.data[0]:
            view = product.multiply(store, [(View(1, t, tuple([at[i] for i in labels])), 1), *rest])
            parts.append((c, total(store, view, bound)))
        if term.data[1]:
            parts.append((term.data[1], total(store, product.multiply(store, rest), bound)))
        return combine(store, parts)
    return None


def _looked_up(term: Term, at: tuple[int, ...], others: list[Factor], bound: Mapping[int, int]) -> bool:
    """Whether a linear combination, some parts of which are the same everywhere, is only read where conditions on its bound labels hold."""
    own = {s for s in at if s in bound}
    if not own or (not term.data[1] and all(own <= {at[i] for i in labels} for _, _, labels in term.data[0])):
        return False
    conditions = [a for t, _, a in others if t.kind in ("eq0", "ge0") and not own.isdisjoint(a)]
    return own <= {s for a in conditions for s in a} and all(t.kind in ("eq0", "ge0") or own.isdisjoint(a) for t, _, a in others)


def _selects(term: Term, at: tuple[int, ...], bound: Mapping[int, int]) -> bool:
    return any(t.kind == "eq0" and len(slots) == 1 and slots[0] in bound for t, _, slots in product.factors_of(View(1, term, at)))


def _components(store: Store, factors: list[Factor], bound: Mapping[int, int]) -> View:
    outside: list[tuple[View, int]] = []
    groups: list[tuple[set[int], list[Factor]]] = []
    for factor in factors:
        mine = {s for s in factor[2] if s in bound}
        if not mine:
            outside.append((View(1, factor[0], factor[2]), factor[1]))
            continue
        joined = [factor]
        apart = []
        for slots, members in groups:
            if slots & mine:
                mine |= slots
                joined = members + joined
            else:
                apart.append((slots, members))
        groups = [*apart, (mine, joined)]
    parts = [(_component(store, members, {s: bound[s] for s in sorted(slots)}), 1) for slots, members in groups]
    if not outside and len(parts) == 1:
        return parts[0][0]
    return product.multiply(store, outside + parts)


def _component(store: Store, factors: list[Factor], bound: Mapping[int, int]) -> View:
    if len(factors) <= 2 and factors[0][0].kind in ("eq0", "ge0") and store.laws.one_hot:
        found = hits(store, factors, bound)
        if found is not None:
            return found
    entries = arrange(factors)  # type: ignore[arg-type]
    free, inner = Labels(), Labels()
    data = tuple([(t, e, tuple([BOUND + inner.label(s) if s in bound else free.label(s) for s in at])) for t, e, at in entries])
    sizes = sizes_of([(t, at) for t, _, at in entries], free)
    term = store.node("sum", (data, tuple([bound[s] for s in inner.slots])), sizes, _facts)
    return View(1, term, tuple(free.slots))


def _facts(term: Term) -> None:
    factors, sizes = term.data
    term.taint = any(t.taint for t, _, _ in factors)
    term.positive = all(t.positive for t, _, _ in factors)
    if not all(t.integer and e > 0 for t, e, _ in factors):
        return
    term.integer = True
    count = _most(factors, sizes)
    low = high = 1
    for t, e, _ in factors:
        if t.low is None or t.high is None:
            return
        ends = [t.low**e, t.high**e] + ([0] if t.low < 0 < t.high else [])
        products = [low * min(ends), low * max(ends), high * min(ends), high * max(ends)]
        low, high = min(products), max(products)
    term.low, term.high = low * count, high * count


def _most(factors: Sequence[Factor], sizes: Sequence[int]) -> int:
    """How many of the summands can differ from 0: a condition ``[x = digit]`` leaves one value of its digit, for any values of the other labels.

    A condition with a label in it that another one has fixed already does not count: ``[a = b][b = a]`` leaves as many as a has values.
    """
    left = {BOUND + j: n for j, n in enumerate(sizes)}
    for term, _, labels in factors:
        bound = {i for i in labels if i >= BOUND}
        if term.kind != "eq0" or not bound <= left.keys():
            continue
        inner, own = term.data
        entries = inner.data[0] if inner.kind == "lin" else ((inner, 1, tuple(range(len(own)))),)
        uses = [labels[own[i]] for _, _, at in entries for i in at]
        fixed = next((labels[own[at[0]]] for t, _, at in entries if t.kind == "iota" and uses.count(labels[own[at[0]]]) == 1), None)
        left.pop(fixed, None)  # type: ignore[arg-type]
    return prod(left.values())


@rebuilds("sum", lambda term: [(t, labels) for t, _, labels in term.data[0]])
def _rebuild(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    slots = [store.fresh() for _ in term.data[1]]
    bound = dict(zip(slots, term.data[1], strict=True))
    indices: dict[int, Index] = dict(enumerate(binding)) | {BOUND + j: s for j, s in enumerate(slots)}
    parts = [(child(store, t, labels, indices), e) for t, e, labels in term.data[0]]
    return total(store, product.multiply(store, parts), bound)


@rebuilds("mul", lambda term: [(t, labels) for t, _, labels in term.data])
def _rebuild_product(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    return product.multiply(store, [(child(store, t, labels, binding), e) for t, e, labels in term.data])


@rebuilds("lin", lambda term: [(t, labels) for t, _, labels in term.data[0]])
def _rebuild_linear(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    entries, constant = term.data
    return combine(store, [(c, child(store, t, labels, binding)) for t, c, labels in entries], constant)


@rebuilds("one", lambda term: [])
def _rebuild_one(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    return View(1, term, ())
