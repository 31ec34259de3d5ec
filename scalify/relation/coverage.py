"""Boxes: pieces must tile a distributed array exactly, and regions must cover a baseline result."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""``(starts, limits)``, one entry a dimension."""

MAX_BOXES = 2_000
_MAX_CELLS = 4_000_000


def volume(box: Box) -> int:
    """Number of elements."""
    return prod(high - low for low, high in zip(*box, strict=True))


def show(box: Box) -> str:
    """A box as slices."""
    return "[" + ", ".join(f"{low}:{high}" for low, high in zip(*box, strict=True)) + "]"


def first_overlap(boxes: Sequence[Box], *, allow_equal: bool = False) -> tuple[int, int] | None:
    """The first two boxes that share an element (``allow_equal``: and are not the same box), or None."""
    if len(boxes) < 2 or not boxes[0][0]:
        same = len(boxes) > 1 and not allow_equal
        return (0, 1) if same else None
    starts = np.array([box[0] for box in boxes], dtype=np.int64)
    limits = np.array([box[1] for box in boxes], dtype=np.int64)
    for i in range(1, len(boxes)):
        meets = (np.maximum(starts[:i], starts[i]) < np.minimum(limits[:i], limits[i])).all(axis=1)
        if allow_equal:
            meets &= ~((starts[:i] == starts[i]) & (limits[:i] == limits[i])).all(axis=1)
        if meets.any():
            return int(meets.argmax()), i
    return None


def uncovered(boxes: Sequence[Box], dims: tuple[int, ...]) -> Box | None:
    """A box of ``dims`` that no box touches, or None when they cover everything.

    Works on the grid of all boundaries; with more than a few million cells the whole array counts as uncovered.
    """
    if any(volume(box) == prod(dims) for box in boxes):
        return None
    edges = [sorted({0, dim, *(e for box in boxes for e in (box[0][d], box[1][d]))}) for d, dim in enumerate(dims)]
    shape = tuple(len(e) - 1 for e in edges)
    whole = ((0,) * len(dims), dims)
    if prod(shape) > _MAX_CELLS or not boxes:
        return whole
    free: npt.NDArray[np.bool_] = np.ones(shape, dtype=np.bool_)
    for starts, limits in boxes:
        free[tuple(slice(e.index(a), e.index(b)) for e, a, b in zip(edges, starts, limits, strict=True))] = False
    if not free.any():
        return None
    cell = [int(i) for i in np.argwhere(free)[0]]
    return tuple(e[i] for e, i in zip(edges, cell, strict=True)), tuple(e[i + 1] for e, i in zip(edges, cell, strict=True))
