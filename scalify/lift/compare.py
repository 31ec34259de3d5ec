"""Comparisons as 0/1 numbers: ``ge0(e)`` and ``eq0(e)`` of a linear form.

Over the integers a form is first divided by the common factor of its coefficients, decided by its range where possible, freed of
parts too small to matter (``64 p + j >= 0`` for ``0 <= j < 64`` is ``p >= 0``), and oriented so that exactly one of a condition and its negation is a node.
Over the reals only a positive scale is removed. The caller sees to it that integer views are exact (no wrap-around).
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING

from scalify.lift.instance import child, rebuilds
from scalify.lift.linear import combine, form, from_form, scale
from scalify.lift.product import complement, multiply, times
from scalify.lift.terms import Index, Labels, Number, Store, Term, View, absolute, bounds, is_boolean, is_integer, number

if TYPE_CHECKING:
    from collections.abc import Callable

#: set by scalify.lift.atoms: evaluates a condition on known data, None for other terms
on_known_data: list[Callable[[Store, Term, tuple[int, ...], str, int], View | None]] = []


def _boolean(term: Term) -> None:
    term.integer = True
    term.low, term.high = 0, 1
    inner = term.data[0] if term.kind == "eq0" else term.data[1]
    term.taint = inner.taint


def at_least_zero(store: Store, view: View) -> View:
    """``[view >= 0]``."""
    if view.term is store.one or view.coef == 0:
        return store.constant(int(view.coef >= 0))
    if is_integer(view):
        return _integer_at_least_zero(store, view)
    if view.term.positive:
        return store.constant(int(view.coef > 0))
    sign = 1 if view.coef > 0 else -1
    return _ge_node(store, sign, view.term, view.at)


def _ge_node(store: Store, sign: int, term: Term, at: tuple[int, ...]) -> View:
    labels = Labels()
    node = store.node("ge0", (sign, term, labels.labels(at)), term.sizes, _boolean)
    return View(1, node, tuple(labels.slots))


def _integer_at_least_zero(store: Store, view: View) -> View:
    found, constant = form(view)
    view = _reduced(store, found, constant)
    limits = bounds(view)
    if limits is not None:
        if limits[0] >= 0 or limits[1] < 0:
            return store.constant(int(limits[0] >= 0))
        if limits[1] == 0:
            return equals_zero(store, view)
    guarded = _guarded(store, view)
    if guarded is not None:
        return guarded
    _, constant = form(view)
    if constant < 0:  # exactly one of e and -e - 1 has a constant >= 0
        return complement(store, _plain_ge(store, combine(store, ((-1, view),), -1)))
    return _plain_ge(store, view)


def _guarded(store: Store, view: View) -> View | None:
    """``[c g f + k >= 0]`` for a product with a condition g: ``g [c f + k >= 0] + (1 - g) [k >= 0]``, where that turns out to be a constant."""
    entries, constant = form(view)
    if len(entries) != 1:
        return None
    (((term, at), c),) = entries.items()
    if term.kind != "mul":
        return None
    factors = [(t, e, tuple([at[i] for i in labels])) for t, e, labels in term.data]
    rest = [f for f in factors if not f[0].boolean]
    if len(rest) == len(factors) or len(rest) != 1 or rest[0][1] != 1 or not rest[0][0].integer:
        return None
    guard = [(View(1, t, a), 1) for t, _, a in factors if t.boolean]
    holds = at_least_zero(store, combine(store, ((c, View(1, rest[0][0], rest[0][2])),), constant))
    wanted = constant >= 0
    failing = multiply(store, [(complement(store, holds) if wanted else holds, 1), *guard])  # where g holds and the sign is the other one
    return store.constant(int(wanted)) if failing.coef == 0 else None


def _known(store: Store, view: View, relation: str) -> View | None:
    """``[c * data + k >= 0]`` or ``= 0``, evaluated."""
    entries, constant = form(view)
    if len(entries) != 1 or not on_known_data:
        return None
    (((term, at), c),) = entries.items()
    if c not in (1, -1) or type(constant) is not int:
        return None
    if relation == "eq":
        return on_known_data[0](store, term, at, "eq", int(-constant * c))
    return on_known_data[0](store, term, at, "ge" if c > 0 else "le", int(-constant if c > 0 else constant))


def _plain_ge(store: Store, view: View) -> View:
    limits = bounds(view)
    if limits is not None and limits[1] == 0:
        return equals_zero(store, view)
    known = _known(store, view, "ge")
    if known is not None:
        return known
    sign = 1 if view.coef > 0 else -1
    coef = absolute(view.coef)
    if coef != 1:
        view = scale(store, view, Fraction(1, 1) / coef)
    return _ge_node(store, sign, view.term, view.at)


def _reduced(store: Store, found: dict[tuple[Term, tuple[int, ...]], Number], constant: Number) -> View:
    """``e >= 0`` with the common factor taken out and small parts dropped."""
    entries = dict(found)
    changed = True
    while changed and entries:
        changed = False
        divisor = 0
        for c in entries.values():
            divisor = gcd(divisor, int(c))
        if divisor > 1:
            entries = {k: int(c) // divisor for k, c in entries.items()}
            constant = int(constant) // divisor
            changed = True
        small = _droppable(entries, int(constant))
        if small is not None:
            entries, constant = small
            changed = True
    return from_form(store, entries, constant)


def _droppable(
    entries: dict[tuple[Term, tuple[int, ...]], Number], constant: int
) -> tuple[dict[tuple[Term, tuple[int, ...]], Number], int] | None:
    """The form without its parts of smallest coefficient, when these cannot change the sign."""
    sizes = sorted({absolute(int(c)) for c in entries.values()})
    for step in sizes[1:]:
        large = {k: c for k, c in entries.items() if absolute(c) >= step}
        divisor = 0
        for c in large.values():
            divisor = gcd(divisor, int(c))
        if divisor < 2:
            continue
        low = high = constant
        for (term, _), c in entries.items():
            if absolute(c) >= step:
                continue
            ends = bounds(View(c, term, ()))
            if ends is None:
                break
            low, high = low + int(ends[0]), high + int(ends[1])
        else:
            if low // divisor == high // divisor:
                return large, low // divisor * divisor
    return None


def equals_zero(store: Store, view: View) -> View:
    """``[view = 0]``."""
    if view.term is store.one or view.coef == 0:
        return store.constant(int(view.coef == 0))
    if view.term.positive:
        return store.constant(0)
    if is_integer(view):
        return _integer_equals_zero(store, view)
    return _eq_node(store, view.term, view.at)


def _integer_equals_zero(store: Store, view: View) -> View:
    found, constant = form(view)
    divisor = 0
    for c in found.values():
        divisor = gcd(divisor, int(c))
    if constant % divisor:
        return store.constant(0)
    if divisor > 1:
        view = from_form(store, {k: number(Fraction(c, divisor)) for k, c in found.items()}, int(constant) // divisor)
    limits = bounds(view)
    if limits is not None and (limits[0] > 0 or limits[1] < 0):
        return store.constant(0)
    if view.term.boolean and view.term.kind != "iota":
        return complement(store, View(1, view.term, view.at))
    entries, constant = form(view)
    if len(entries) == 1:
        (((term, at), c),) = entries.items()
        if term.boolean and term.kind != "iota":  # [c b + k = 0] for a 0/1 value b
            return View(1, term, at) if constant == -c else store.constant(0)
    found_now = _at_end(store, entries, limits) or _split_digits(store, view) or _known(store, view, "eq")
    if found_now is not None:
        return found_now
    return _eq_node(store, view.term, view.at)


def _at_end(store: Store, entries: dict[tuple[Term, tuple[int, ...]], Number], limits: tuple[Number, Number] | None) -> View | None:
    """``[a + b = 0]`` where 0 is the least or the greatest value that the form can have: each part is at its own end."""
    if limits is None or len(entries) < 2 or 0 not in limits:
        return None
    least = limits[0] == 0
    result = store.constant(1)
    for (term, at), c in entries.items():
        end = term.low if (c > 0) == least else term.high
        if end is None:
            return None
        result = times(store, result, equals_zero(store, combine(store, ((1, View(1, term, at)),), -end)))
    return result


def _split_digits(store: Store, view: View) -> View | None:
    """``[g a + b = 0]`` is ``[a = 0][b = 0]`` where ``b`` lies strictly between ``-g`` and ``g``."""
    entries, constant = form(view)
    for step in sorted({absolute(int(c)) for c in entries.values()})[1:]:
        large = {k: c for k, c in entries.items() if absolute(c) >= step}
        divisor = 0
        for c in large.values():
            divisor = gcd(divisor, int(c))
        if divisor < 2:
            continue
        small = {k: c for k, c in entries.items() if absolute(c) < step}
        low = high = 0
        for (term, _), c in small.items():
            ends = bounds(View(c, term, ()))
            if ends is None:
                break
            low, high = low + int(ends[0]), high + int(ends[1])
        else:
            found = _split_at(store, large, small, int(constant), divisor, (low, high))
            if found is not None:
                return found
    return None


def _split_at(
    store: Store,
    large: dict[tuple[Term, tuple[int, ...]], Number],
    small: dict[tuple[Term, tuple[int, ...]], Number],
    constant: int,
    divisor: int,
    limits: tuple[int, int],
) -> View | None:
    """With the constant shared out as ``divisor * q + r``: possible when only one r keeps ``b + r`` between -g and g at 0."""
    low, high = limits
    q = -(-(low + constant) // divisor)  # smallest q with g q >= low + constant
    if divisor * q > high + constant:
        return store.constant(0)
    if divisor * (q + 1) <= high + constant:
        return None
    upper = equals_zero(store, from_form(store, large, divisor * q))
    return times(store, upper, equals_zero(store, from_form(store, small, constant - divisor * q)))


def _eq_node(store: Store, term: Term, at: tuple[int, ...]) -> View:
    if term.odd:
        at = min(at, form_flipped(store, term, at))
    labels = Labels()
    node = store.node("eq0", (term, labels.labels(at)), term.sizes, _boolean)
    return View(1, node, tuple(labels.slots))


def form_flipped(store: Store, term: Term, at: tuple[int, ...]) -> tuple[int, ...]:
    """Where the slots go when an odd form is negated."""
    flipped = scale(store, View(1, term, at), -1)
    return flipped.at if flipped.term is term else at


def compare(store: Store, direction: str, a: View, b: View) -> View:
    """HLO ``compare`` over the reals or, for integer views, over the integers."""
    if is_boolean(a) and is_boolean(b) and direction in ("EQ", "NE"):
        return _compare_booleans(store, direction, a, b)
    difference = combine(store, ((1, a), (-1, b)))
    if direction == "EQ":
        return equals_zero(store, difference)
    if direction == "NE":
        return complement(store, equals_zero(store, difference))
    if direction == "GE":
        return at_least_zero(store, difference)
    if direction == "LT":
        return complement(store, at_least_zero(store, difference))
    backward = combine(store, ((-1, difference),))
    if direction == "LE":
        return at_least_zero(store, backward)
    return complement(store, at_least_zero(store, backward))


def _compare_booleans(store: Store, direction: str, a: View, b: View) -> View:
    """``[a = b]`` of 0/1 values is ``1 - a - b + 2 a b``."""
    both = times(store, a, b)
    if direction == "EQ":
        return combine(store, ((-1, a), (-1, b), (2, both)), 1)
    return combine(store, ((1, a), (1, b), (-2, both)))


@rebuilds("ge0", lambda term: [(term.data[1], term.data[2])])
def _rebuild_ge(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    sign, inner, labels = term.data
    return at_least_zero(store, scale(store, child(store, inner, labels, binding), sign))


@rebuilds("eq0", lambda term: [(term.data[0], term.data[1])])
def _rebuild_eq(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    inner, labels = term.data
    return equals_zero(store, child(store, inner, labels, binding))
