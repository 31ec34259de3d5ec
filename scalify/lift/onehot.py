"""Solving ``[e = 0]`` for a bound label that occurs in the linear form ``e`` with coefficient 1 or -1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scalify.lift.instance import constant_index, make_index
from scalify.lift.terms import Index, Store, Term, View, bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_ENTRIES = 1 << 16  #: of a table that a solution may need


Part = tuple[int, Term, tuple[int, ...]]  # coefficient, an iota or known data, slots


def _parts(term: Term, at: Sequence[int]) -> tuple[list[Part], int] | None:
    """The term as an integer combination of iotas and known data, None when there is anything else in it."""
    entries, constant = ([(term, 1, tuple(range(len(at))))], 0) if term.kind != "lin" else term.data
    if not term.integer or not all(t.kind == "iota" or (t.kind == "at" and t.data[0][0] == "dense") for t, _, _ in entries):
        return None
    return [(c, t, tuple([at[i] for i in labels])) for t, c, labels in entries], constant


def solve(store: Store, term: Term, at: tuple[int, ...], bound: Mapping[int, int]) -> tuple[int, Index | None] | None:
    """For an ``eq0`` term: a bound slot and the index that it must be, an index of None when there is no such value.

    None when no bound slot can be solved for, or when the solution is outside the slot's range for some labels only.
    """
    inner, labels = term.data
    found = _parts(inner, [at[i] for i in labels])
    if found is None:
        return None
    parts, constant = found
    for c, t, slots in parts:
        if t.kind != "iota" or slots[0] not in bound or c not in (1, -1):
            continue
        rest = [(-c * k, u, where) for k, u, where in parts if where != slots]
        if any(slots[0] in where for _, _, where in rest) or len(rest) != len(parts) - 1:
            continue
        index = _index(store, rest, -c * constant, t.sizes[0])
        if index is not False:
            return slots[0], index
    return None


def _index(store: Store, parts: list[Part], constant: int, size: int) -> Index | bool | None:
    """``constant + sum of c * part`` as an index below ``size``; None when always outside; False when it depends."""
    if not parts:
        return constant_index(constant) if 0 <= constant < size else None
    if len(parts) == 1 and constant == 0 and parts[0][0] == 1 and parts[0][1].kind == "iota" and parts[0][1].sizes[0] == size:
        return parts[0][2][0]
    ends = [bounds(View(c, t, ())) or (0, 0) for c, t, _ in parts]  # iotas and known data have bounds
    low = constant + sum(int(a) for a, _ in ends)
    high = constant + sum(int(b) for _, b in ends)
    if high < 0 or low >= size:
        return None
    sizes = {slot: n for _, t, slots in parts for slot, n in zip(slots, t.sizes, strict=True)}
    count = 1
    for n in sizes.values():
        count *= n
    if count > MOST_ENTRIES or ((low < 0 or high >= size) and len(parts) == 1 and parts[0][1].kind == "iota"):
        return False
    values = _values(store, parts, constant, sizes)
    if values.min() < 0 or values.max() >= size:
        return False
    return make_index(store, values, list(sizes), size)


def _values(store: Store, parts: list[Part], constant: int, sizes: Mapping[int, int]) -> npt.NDArray[np.int64]:
    names = list(sizes)
    values = np.full(list(sizes.values()), constant, dtype=np.int64)
    for c, t, slots in parts:
        data = np.arange(t.sizes[0]) if t.kind == "iota" else store.memo[t.data[0]]
        order = sorted(range(len(slots)), key=lambda d: names.index(slots[d]))
        values += c * data.transpose(order).reshape([sizes[s] if s in slots else 1 for s in names])
    return values
