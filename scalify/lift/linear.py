"""Linear combinations: the normal form of add, subtract, negate and scaling.

A ``lin`` node is ``(entries, constant)`` with entries ``(term, coefficient, labels)``: at least two parts, coefficients integers without common factor, the
sign chosen from the content alone. The common factor is the coefficient of the view, so that ``x``, ``-x`` and ``n * x`` share their term.
Sound over the rationals, hence over the reals; the precondition of cancelling ``x - x`` is that ``x`` is finite (``taint`` is false).
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING

from scalify.lift.terms import Labels, Number, Store, Term, View, check_size, number, quotient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LONG = 8  #: entries of a sum to which others are appended
Entry = tuple[Term, Number, tuple[int, ...]]
Form = dict[tuple[Term, tuple[int, ...]], Number]


def arrange(entries: list[Entry]) -> list[Entry]:
    """Entries in an order that depends on their content and not on slot numbers, as far as colour refinement can tell.

    Entries that it cannot tell apart keep the order of their slots: then equal values may get different views, never the reverse.
    """
    entries.sort(key=_rank)
    for a, b in itertools.pairwise(entries):
        if a[0] is b[0] and a[1] == b[1]:
            break
    else:
        return entries
    colours = _colours(entries, None)
    colours = _colours(entries, colours)
    entries.sort(key=lambda e: (e[0].id, e[1], tuple([colours[s] for s in e[2]]), e[2]))
    return entries


def _rank(entry: Entry) -> tuple[int, Number]:
    return entry[0].id, entry[1]


def _colours(entries: list[Entry], before: dict[int, int] | None) -> dict[int, int]:
    found: dict[int, list[tuple[object, ...]]] = {}
    for term, weight, at in entries:
        around = tuple([before[s] for s in at]) if before else ()
        for position, slot in enumerate(at):
            found.setdefault(slot, []).append((term.id, weight, around, position))
    for uses in found.values():
        uses.sort()
    ranks = {key: rank for rank, key in enumerate(sorted({tuple(uses) for uses in found.values()}))}
    return {slot: ranks[tuple(uses)] for slot, uses in found.items()}


def form(view: View) -> tuple[Form, Number]:
    """The view as ``sum of coefficient * term[slots] + constant``."""
    coef, term, at = view
    if term.kind == "lin":
        entries, constant = term.data
        slots: dict[tuple[int, ...], tuple[int, ...]] = {}  # most entries of a long sum have the same labels
        found: Form = {}
        for t, c, labels in entries:
            there = slots.get(labels)
            if there is None:
                there = slots[labels] = tuple([at[i] for i in labels])
            found[t, there] = c if coef == 1 else number(coef * c)
        return found, number(coef * constant)
    if term.kind == "one":
        return {}, coef
    return {(term, at): coef}, 0


def combine(store: Store, parts: Iterable[tuple[Number, View]], constant: Number = 0) -> View:
    """``constant + sum of c * view``."""
    parts = list(parts)
    appended = _appended(store, parts) if store.laws.linear and not constant else None
    if appended is not None:
        return appended
    found: Form = {}
    nested = not store.laws.linear and sum(view.term is not store.one for _, view in parts) > 1  # switched off: sums stay in sums
    for scale_by, view in parts:
        if scale_by == 0 or view.coef == 0:
            continue
        entries, c = ({(view.term, view.at): view.coef}, 0) if nested and view.term.kind == "lin" else form(view)
        constant += scale_by * c
        for key, value in entries.items():
            found[key] = found.get(key, 0) + scale_by * value
    if store.laws.exponential and factor_exponentials and any(term.scaled for term, _ in found):
        return factor_exponentials[0](store, found, number(constant))
    return from_form(store, found, number(constant))


def _appended(store: Store, parts: list[tuple[Number, View]]) -> View | None:
    """A long sum and newer terms, as the residual stream of a model grows: the normal form is then the sum with these at its end.

    None where the order, the sign or the common factor might be another: where entries are not strictly in the order of their terms or may be negative.
    """
    if not parts:
        return None
    (by, (coef, term, at)), *others = parts
    if by != 1 or coef != 1 or term.kind != "lin" or len(term.data[0]) < LONG:
        return None
    entries, constant = term.data
    labels = Labels(at, term.sizes)
    last = -1
    for t, c, _ in entries:
        if t.id <= last or c < 0 or t.scaled:
            return None
        last = t.id
    found = list(entries)
    for scale_by, (c, t, slots) in others:
        if t.id <= last or t.kind in ("lin", "one") or t.scaled or type(c) is not int or type(scale_by) is not int or c * scale_by <= 0:
            return None
        last = t.id
        found.append((t, c * scale_by, labels.sized(slots, t.sizes)))
    store.charge(len(found))
    node = store.node("lin", (tuple(found), constant), tuple(labels.sizes), _facts)
    return View(1, node, tuple(labels.slots))


#: set by scalify.lift.exponents: takes exponentials that all parts share out of a linear combination
factor_exponentials: list[Callable[[Store, Form, Number], View]] = []


def from_form(store: Store, found: Form, constant: Number) -> View:
    """The normal form of a linear combination of non-``lin`` terms."""
    store.charge(len(found))
    check_size(constant)
    entries = [(term, number(c), at) for (term, at), c in found.items() if c]
    if len(entries) != len(found):
        entries += [_indefinite(store, term, at) for (term, at), c in found.items() if not c and term.taint]
    if not entries:
        return View(constant, store.one, ())
    check_size(entries[0][1])
    if len(entries) == 1 and not constant:
        term, c, at = entries[0]
        return View(c, term, at)
    return _node(store, entries, constant)


def _indefinite(store: Store, term: Term, at: tuple[int, ...]) -> Entry:
    """``x - x`` or ``0 * x`` where x may be infinite: a value of its own, never 0."""
    labels = Labels()
    node = store.node("fn", ("indefinite", None, ((1, term, labels.labels(at)),)), term.sizes, _taint)
    return node, 1, at


def _taint(term: Term) -> None:
    term.taint = True


def content(values: list[Number]) -> Number:
    """Greatest positive rational that divides all values to integers without common factor."""
    if all(v in (1, -1) for v in values):
        return 1
    top, bottom = 0, 1
    for v in values:
        top = gcd(top, v.numerator)
        bottom = lcm(bottom, v.denominator)
    return number(Fraction(top, bottom))


def _node(store: Store, entries: list[Entry], constant: Number) -> View:
    common = content([c for _, c, _ in entries] + ([constant] if constant else []))
    if common != 1:
        entries = [(t, quotient(c, common), at) for t, c, at in entries]
        constant = quotient(constant, common)
    sign, odd = _sign(entries, constant)
    if sign < 0:
        entries = [(t, -c, at) for t, c, at in entries]
        constant, common = -constant, -common
    arrange(entries)
    labels = Labels()
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    parts = []
    for t, c, at in entries:
        own = known.get(at)
        if own is None:
            own = known[at] = labels.sized(at, t.sizes)
        parts.append((t, c, own))
    data = (tuple(parts), constant)
    term = store.node("lin", data, tuple(labels.sizes), _facts)
    term.odd = odd
    return View(common, term, tuple(labels.slots))


def sizes_of(uses: list[tuple[Term, tuple[int, ...]]], labels: Labels) -> tuple[int, ...]:
    """Sizes of the numbered labels, read off the terms that use them."""
    found = {slot: size for term, at in uses for slot, size in zip(at, term.sizes, strict=True)}
    return tuple([found[slot] for slot in labels.slots])


def _sign(entries: list[Entry], constant: Number) -> tuple[int, bool]:
    """Which of the form and its negative is the normal one; True when the content cannot tell."""
    if constant:
        return (1 if constant > 0 else -1), False
    if all(c > 0 for _, c, _ in entries):
        return 1, False
    up = sorted((t.id, c) for t, c, _ in entries)
    down = sorted((t.id, -c) for t, c, _ in entries)
    if up != down:
        return (1 if up > down else -1), False
    return 1, True


def _facts(term: Term) -> None:
    entries, constant = term.data
    term.taint = any(t.taint for t, _, _ in entries)
    term.positive = constant >= 0 and all(t.positive and c > 0 for t, c, _ in entries)
    if type(constant) is not int or not all(t.integer for t, _, _ in entries):
        return
    term.integer = True
    low = high = constant
    for t, c, _ in entries:
        if t.low is None or t.high is None:
            return
        low += c * (t.low if c > 0 else t.high)
        high += c * (t.high if c > 0 else t.low)
    term.low, term.high = low, high


def scale(store: Store, view: View, by: Number) -> View:
    """``by * view``."""
    coef, term, at = view
    if by == 1:
        return view
    if by == 0 or (term.odd and by * coef < 0):
        return combine(store, [(by, view)]) if by else zero_times(store, view)
    return View(number(coef * by), term, at)


def zero_times(store: Store, view: View) -> View:
    """``0 * view``: 0, unless the view may hold an infinity."""
    if not view.term.taint:
        return View(0, store.one, ())
    term, c, at = _indefinite(store, view.term, view.at)
    return View(c, term, at)


def negate(store: Store, view: View) -> View:
    """``-view``."""
    return scale(store, view, -1)


def add(store: Store, a: View, b: View) -> View:
    """``a + b``."""
    return combine(store, ((1, a), (1, b)))


def subtract(store: Store, a: View, b: View) -> View:
    """``a - b``."""
    return combine(store, ((1, a), (-1, b)))
