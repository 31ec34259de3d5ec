"""Where the elements of a block are found in the blocks of another value: the one mechanism of all data movement.

``locate`` answers, for one source dimension (or several taken together row-major) and an index that is affine in the slots of the target
block: which alternatives of the source hold these elements, at which digits, and under which condition. Aligned slices become
constants and slots; whatever is not aligned becomes exact tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from scalify.lift.atoms import from_array
from scalify.lift.instance import constant_index, make_index
from scalify.lift.terms import Index, LimitReached, Store, View

if TYPE_CHECKING:
    from scalify.lift.layout import Alternative

MOST_ENTRIES = 1 << 20

Digits = Sequence[tuple[int, int, int]]  # (slot, size, coefficient)


class Place(NamedTuple):
    """A source alternative, an index for each of its digits, and the 0/1 view that says where it applies (None = everywhere)."""

    choice: int
    indices: tuple[Index, ...]
    condition: View | None


def locate(store: Store, source: Sequence[Alternative], base: int, digits: Digits) -> list[Place]:
    """Where elements ``base + sum of coefficient * slot`` of the source are; elements outside of it are in no place."""
    for choice, alternative in enumerate(source):
        indices = _aligned(alternative, base, digits)
        if indices is not None:
            return [Place(choice, indices, None)]
    sizes = [n for _, n, _ in digits]
    count = 1
    for n in sizes:
        count *= n
    if count > MOST_ENTRIES:
        raise LimitReached("table", MOST_ENTRIES)
    store.charge_table(count)
    values = np.full(sizes, base, dtype=np.int64)
    for d, (_, n, c) in enumerate(digits):
        values += c * np.arange(n).reshape([-1 if i == d else 1 for i in range(len(sizes))])
    return locate_table(store, source, values, [s for s, _, _ in digits])


def _aligned(alternative: Alternative, base: int, digits: Digits) -> tuple[Index, ...] | None:
    """The indices when each target digit is a whole source digit and the rest is constant."""
    left = base - alternative.offset
    if left < 0:
        return None
    free = {c: (slot, n) for slot, n, c in digits}
    if len(free) != len(digits):
        return None
    indices: list[Index] = []
    for n, stride in alternative.digits:
        k, left = divmod(left, stride)
        if stride in free and free[stride][1] == n:
            if k:
                return None
            indices.append(free.pop(stride)[0])
        elif k < n:
            indices.append(constant_index(k))
        else:
            return None
    return tuple(indices) if not left and not free else None


def locate_table(store: Store, source: Sequence[Alternative], values: npt.NDArray[np.int64], slots: Sequence[int]) -> list[Place]:
    """The same for indices given one by one, as an array with a dimension for each slot."""
    places = []
    for choice, alternative in enumerate(source):
        store.charge_table(values.size)
        inside, parts = _digits_of(alternative, values)
        if not inside.any():
            continue
        indices = tuple([make_index(store, part, slots, n) for part, (n, _) in zip(parts, alternative.digits, strict=True)])
        places.append(Place(choice, indices, None if inside.all() else from_array(store, inside, slots)))
    return places


def _digits_of(alternative: Alternative, values: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.bool_], list[npt.NDArray[np.int64]]]:
    """Which elements the alternative holds, and their digits; those of the others are wrapped into range, as their value is masked."""
    left = values - alternative.offset
    inside = left >= 0
    parts = []
    for n, stride in alternative.digits:
        k = left // stride
        left = left - k * stride
        inside &= (k >= 0) & (k < n)
        parts.append(k % n)
    inside &= left == 0
    return inside, parts
