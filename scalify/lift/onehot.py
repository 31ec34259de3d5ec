"""Solving ``[e = 0]`` for a bound label that occurs in the linear form ``e`` with coefficient 1 or -1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scalify.lift.instance import constant_index, make_index
from scalify.lift.terms import Index, Store, Term

MOST_ENTRIES = 1 << 16  #: of a table that a solution may need


def affine(term: Term, at: Sequence[int]) -> tuple[list[tuple[int, int, int]], int] | None:
    """``(slot, size, coefficient)`` of each iota and the constant, when the term is an integer combination of iotas."""
    if term.kind == "iota":
        return [(at[0], term.sizes[0], 1)], 0
    if term.kind != "lin" or not term.integer:
        return None
    entries, constant = term.data
    if any(t.kind != "iota" for t, _, _ in entries):
        return None
    return [(at[labels[0]], t.sizes[0], c) for t, c, labels in entries], constant


def solve(store: Store, term: Term, at: tuple[int, ...], bound: Mapping[int, int]) -> tuple[int, Index | None] | None:
    """For an ``eq0`` term: a bound slot and the index that it must be, an index of None when there is no such value.

    None when no bound slot can be solved for, or when the solution is outside the slot's range for some labels only.
    """
    inner, labels = term.data
    found = affine(inner, [at[i] for i in labels])
    if found is None:
        return None
    entries, constant = found
    for slot, size, c in entries:
        if slot not in bound or c not in (1, -1):
            continue
        index = _index(store, [(s, n, -c * k) for s, n, k in entries if s != slot], -c * constant, size)
        if index is not False:
            return slot, index  # type: ignore[return-value]
    return None


def _index(store: Store, entries: list[tuple[int, int, int]], constant: int, size: int) -> Index | None | bool:
    """``constant + sum of c * slot`` as an index below ``size``; None when always outside; False when it depends."""
    if not entries:
        return constant_index(constant) if 0 <= constant < size else None
    count = 1
    for _, n, _ in entries:
        count *= n
    if len(entries) == 1 and entries[0][2] == 1 and constant == 0 and entries[0][1] == size:
        return entries[0][0]
    low = constant + sum(min(0, c * (n - 1)) for _, n, c in entries)
    high = constant + sum(max(0, c * (n - 1)) for _, n, c in entries)
    if low < 0 or high >= size:
        return None if high < 0 or low >= size else False
    if count > MOST_ENTRIES:
        return False
    values = np.full([n for _, n, _ in entries], constant, dtype=np.int64)
    for d, (_, n, c) in enumerate(entries):
        values += c * np.arange(n).reshape([-1 if i == d else 1 for i in range(len(entries))])
    return make_index(store, values, [s for s, _, _ in entries], size)
