"""Writing sums and extrema out over short axes, where one graph has an axis and the other has copies.

A pipeline, a ring or a loop over experts computes one after the other what the baseline computes along an axis. Both sides then meet
instance by instance: all device axes fixed at each device, sums over axes of that length written out.
"""

from __future__ import annotations

from itertools import product as combinations
from typing import TYPE_CHECKING

from scalify.lift import functions, product
from scalify.lift.atoms import opaque
from scalify.lift.compare import at_least_zero, equals_zero
from scalify.lift.einsum import total
from scalify.lift.extremum import greatest, product_over
from scalify.lift.instance import OPERANDS, substitute
from scalify.lift.linear import combine, scale
from scalify.lift.terms import BOUND, LimitReached, Number, Store, Term, View, number

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

MOST_COPIES = 64


class Unroller:
    """Rewrites terms with their sums and extrema over axes of certain lengths written out.

    ``keep`` are terms left as they are (both sides have them). ``budget`` bounds the terms rewritten and made.

    :raises LimitReached: (from :meth:`view`) over the budget.
    """

    def __init__(self, store: Store, lengths: Collection[int], keep: Collection[Term], budget: int) -> None:
        self.store = store
        self.lengths = set(lengths)
        self.keep = keep
        self.budget = budget
        self.stop = len(store.terms) + budget
        self.done: dict[Term, View] = {}

    def view(self, view: View) -> View:
        """The view rewritten."""
        for term in self._cone(view.term):
            self.done[term] = self._rewritten(term)
            if len(self.store.terms) > self.stop:
                raise LimitReached("instances", self.budget)
        return self._placed(view)

    def _cone(self, term: Term) -> list[Term]:
        """The terms below (and with) ``term`` that are not done, operands first."""
        found: dict[Term, None] = {}
        pending = [term]
        while pending:
            top = pending.pop()
            if top in found or top in self.done:
                continue
            found[top] = None
            if len(found) > self.budget:
                raise LimitReached("instances", self.budget)
            if top not in self.keep:
                pending.extend(t for t, _ in OPERANDS[top.kind](top))
        return sorted(found, key=lambda t: t.id)

    def _placed(self, view: View) -> View:
        done = self.done[view.term]
        if done.term is view.term and done.coef == 1 and done.at == tuple(range(len(view.at))):
            return view
        placed = substitute(self.store, done, dict(enumerate(view.at)))
        return scale(self.store, placed, view.coef)

    def operand(self, term: Term, slots: Sequence[int], coef: Number = 1) -> View:
        return self._placed(View(coef, term, tuple(slots)))

    def _rewritten(self, term: Term) -> View:
        same = View(1, term, tuple(range(len(term.sizes))))
        if term in self.keep:
            return same
        make = _MAKERS.get(term.kind)
        if make is None:
            return same
        changed = any(self.done[t] != View(1, t, tuple(range(len(t.sizes)))) for t, _ in OPERANDS[term.kind](term))
        if not changed and not self._has_length(term):
            return same
        return make(self, term)

    def _has_length(self, term: Term) -> bool:
        sizes = term.data[1] if term.kind == "sum" else term.data[4] if term.kind == "red" else ()
        return any(n in self.lengths for n in sizes)

    def split(self, slots: Sequence[int], sizes: Sequence[int]) -> tuple[dict[int, int], list[int]]:
        """The bound slots to keep, and those to write out (as many as the number of copies allows)."""
        kept: dict[int, int] = {}
        written: list[int] = []
        copies = 1
        for slot, n in zip(slots, sizes, strict=True):
            if n in self.lengths and copies * n <= MOST_COPIES:
                written.append(slot)
                copies *= n
            else:
                kept[slot] = n
        return kept, written

    def copies(self, view: View, slots: Sequence[int], sizes: dict[int, int]) -> list[View]:
        """The view at each combination of constants for the slots."""
        picks = combinations(*[range(sizes[s]) for s in slots])
        return [substitute(self.store, view, {s: -1 - k for s, k in zip(slots, pick, strict=True)}) for pick in picks]


def _bound(unroller: Unroller, sizes: Sequence[int]) -> list[int]:
    return [unroller.store.fresh() for _ in sizes]


def _slots(labels: Sequence[int], bound: Sequence[int]) -> list[int]:
    return [bound[i - BOUND] if i >= BOUND else i for i in labels]


def _lin(unroller: Unroller, term: Term) -> View:
    entries, constant = term.data
    return combine(unroller.store, [(c, unroller.operand(t, labels)) for t, c, labels in entries], constant)


def _mul(unroller: Unroller, term: Term) -> View:
    return product.multiply(unroller.store, [(unroller.operand(t, labels), e) for t, e, labels in term.data])


def _sum(unroller: Unroller, term: Term) -> View:
    factors, sizes = term.data
    bound = _bound(unroller, sizes)
    kept, written = unroller.split(bound, sizes)
    parts = [(unroller.operand(t, _slots(labels, bound)), e) for t, e, labels in factors]
    by_size = dict(zip(bound, sizes, strict=True))
    summed = total(unroller.store, product.multiply(unroller.store, parts), kept)
    for slot in [s for s in written if s not in summed.at]:
        summed = scale(unroller.store, summed, by_size[slot])
    used = [s for s in written if s in summed.at]
    return combine(unroller.store, [(1, v) for v in unroller.copies(summed, used, by_size)])


def _red(unroller: Unroller, term: Term) -> View:
    name, sign, inner, labels, sizes = term.data
    store = unroller.store
    bound = _bound(unroller, sizes)
    by_size = dict(zip(bound, sizes, strict=True))
    view = unroller.operand(inner, _slots(labels, bound), sign)
    if name != "max":
        return product_over(store, view, by_size)
    kept, written = unroller.split(bound, sizes)
    reduced = greatest(store, view, kept)
    copies = unroller.copies(reduced, [s for s in written if s in reduced.at], by_size)
    result = copies[0]
    for copy in copies[1:]:
        result = functions.maximum(store, result, copy)
    return result


def _fn(unroller: Unroller, term: Term) -> View:
    name, attribute, arguments = term.data
    return functions.make(unroller.store, name, attribute, [unroller.operand(t, labels, c) for c, t, labels in arguments])


def _ge(unroller: Unroller, term: Term) -> View:
    sign, inner, labels = term.data
    return at_least_zero(unroller.store, unroller.operand(inner, labels, sign))


def _eq(unroller: Unroller, term: Term) -> View:
    inner, labels = term.data
    return equals_zero(unroller.store, unroller.operand(inner, labels))


def _at(unroller: Unroller, term: Term) -> View:
    base, content, where, limits = term.data
    if not content:
        return View(1, term, tuple(range(len(term.sizes))))
    arguments = []
    for c, t, labels, core in content:
        bound = _bound(unroller, core)
        view = unroller.operand(t, _slots(labels, bound))
        arguments.append((View(number(c * view.coef), view.term, view.at), list(zip(bound, core, strict=True))))
    return opaque(unroller.store, base, arguments, where, dict(enumerate(term.sizes)), limits)


_MAKERS: dict[str, Callable[[Unroller, Term], View]] = {
    "lin": _lin,
    "mul": _mul,
    "sum": _sum,
    "red": _red,
    "fn": _fn,
    "ge0": _ge,
    "eq0": _eq,
    "at": _at,
}


def cone(term: Term, most: int) -> set[Term]:
    """All terms below (and with) a term; stops growing at ``most``."""
    found: set[Term] = set()
    pending = [term]
    while pending and len(found) < most:
        top = pending.pop()
        if top not in found:
            found.add(top)
            pending.extend(t for t, _ in OPERANDS[top.kind](top))
    return found
