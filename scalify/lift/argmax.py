"""Where the greatest value is: the first index along an axis, digit by digit.

An axis that is cut into digits is searched as a mixed-radix number is compared, the major digit first: the first row that holds the greatest
value is the first whose own greatest value is the greatest of all, and within that row the search goes on. So a search per device, then
among the devices' results, is the search of the whole. Exact in any total order; equal values are told apart by their index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.lift.atoms import iota, opaque
from scalify.lift.compare import equals_zero
from scalify.lift.einsum import total
from scalify.lift.extremum import greatest
from scalify.lift.linear import combine, form
from scalify.lift.product import times
from scalify.lift.terms import Store, View

if TYPE_CHECKING:
    from collections.abc import Sequence

Digit = tuple[int, int, int]  # slot, size, stride


def first_greatest(store: Store, view: View, digits: Sequence[Digit]) -> View:
    """The least ``sum of stride * digit`` at which the view is greatest; ``digits`` are those of one dimension, major to minor."""
    if not digits:
        return store.constant(0)
    (slot, size, stride), rest = digits[0], digits[1:]
    top = _first(store, greatest(store, view, {s: n for s, n, _ in rest}), slot, size)
    inner = first_greatest(store, view, rest)
    if slot not in inner.at:
        return combine(store, ((stride, top), (1, inner)))
    here = equals_zero(store, combine(store, ((1, iota(store, slot, size)), (-1, top))))
    entries, constant = form(inner)
    found = [(c, total(store, times(store, here, View(1, term, at)), {slot: size})) for (term, at), c in entries.items()]
    return combine(store, [(stride, top), *found], constant)


def _first(store: Store, view: View, slot: int, size: int) -> View:
    """Along one slot. A positive factor does not matter; along a slot that the view does not use all are equal."""
    coef, term, at = view
    if slot not in at or coef == 0:
        return store.constant(0)
    unit = View(1 if coef > 0 else -1, term, at)
    return opaque(store, ("argmax",), [(unit, [(slot, size)])], (), {}, (0, size - 1))
