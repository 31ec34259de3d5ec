"""``sort`` with any comparator, and ``topk``.

Source: XLA's operation semantics. Sorting is always stable here. The comparator is evaluated for all lanes and lines at once: a
bottom-up merge sort where each element finds its place in the neighbouring run by binary search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from scalify.errors import HloError
from scalify.hlo.semantics.values import Array, Handler, Op

Places = npt.NDArray[np.int64]
Less = Callable[[Places, Places], Array]
"""Element at the first place strictly before the element at the second, for places ``[lines, n]`` within each line."""


def _sort(op: Op, operands: Sequence[Array]) -> Any:
    axis = op.attributes["dimensions"][0] + 1 if op.attributes.get("dimensions") else operands[0].ndim - 1
    moved = [np.moveaxis(x, axis, -1) for x in operands]
    shape = moved[0].shape
    lines = [x.reshape(shape[0], math.prod(shape[1:-1]), shape[-1]) for x in moved]
    order = _order(op, lines)
    ordered = [np.moveaxis(np.take_along_axis(x, order, axis=2).reshape(shape), -1, axis) for x in lines]
    return tuple(ordered) if op.shape.is_tuple else ordered[0]


def _order(op: Op, lines: Sequence[Array]) -> Places:
    """The stable permutation ``[lanes, lines, n]`` that sorts every line by the comparator."""

    def less(left: Places, right: Places) -> Array:
        pairs = [np.take_along_axis(x, side, axis=2) for x in lines for side in (left, right)]
        return op.scope.apply(op.instruction.calls[0], pairs)[0]

    shape = lines[0].shape
    order = np.broadcast_to(np.arange(shape[2]), shape)
    width = 1
    while width < shape[2]:
        order = _merge(order, width, less)
        width *= 2
    return order


def _merge(order: Places, width: int, less: Less) -> Places:
    """Merges neighbouring sorted runs of ``width`` elements."""
    length = order.shape[2]
    position = np.arange(length)
    base = position // (2 * width) * (2 * width)
    middle = np.minimum(base + width, length)
    left = position < middle
    low = np.where(left, middle, base)
    high = np.where(left, np.minimum(base + 2 * width, length), middle)
    found = _search(order, low, high, left, less)
    target = np.where(left, position + found - middle, position - middle + found)
    merged = np.full_like(order, -1)
    np.put_along_axis(merged, target, order, axis=2)
    if (merged < 0).any():
        raise HloError("the comparator is not a strict weak order")
    return merged


def _search(order: Places, low: Places, high: Places, left: Array, less: Less) -> Places:
    """For each element the first place in the other run that must come after it (ties: the left run goes first)."""
    low, high = np.broadcast_to(low, order.shape), np.broadcast_to(high, order.shape)
    while (low < high).any():
        probe = np.minimum((low + high) // 2, order.shape[2] - 1)
        other = np.take_along_axis(order, probe, axis=2)
        first, second = np.where(left, other, order), np.where(left, order, other)
        before = less(first, second)
        advance = np.where(left, before, ~before) & (low < high)
        low, high = np.where(advance, probe + 1, low), np.where(advance | (low >= high), high, probe)
    return low


def _topk(op: Op, operands: Sequence[Array]) -> tuple[Array, Array]:
    return top_k(op, operands[0], op.attributes["k"], largest=op.attributes.get("largest", True))


def top_k(op: Op, x: Array, k: int, *, largest: bool = True) -> tuple[Array, Array]:
    """The first ``k`` of the last axis in the total order, and their places; the lower place first among equals."""
    if k > x.shape[-1]:
        raise HloError(f"the top {k} of {x.shape[-1]} elements")
    key = op.domain.order_key(x, op.source)
    order = np.argsort(np.invert(key) if largest else key, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(x, order, axis=-1), order


HANDLERS: dict[str, Handler] = {"sort": _sort, "topk": _topk}
