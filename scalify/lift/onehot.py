"""Solving ``[e = 0]`` for a bound label that occurs in the linear form ``e`` with coefficient 1 or -1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scalify.lift.compare import at_least_zero
from scalify.lift.instance import constant_index, make_index
from scalify.lift.linear import combine, form, from_form, scale
from scalify.lift.product import multiply
from scalify.lift.terms import Index, Store, Term, View, absolute, bounds

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


def hits(store: Store, factors: Sequence[tuple[Term, int, tuple[int, ...]]], bound: Mapping[int, int]) -> View | None:
    """The sum over all bound slots of ``[x = d]``, or of ``[g d <= x][x <= g d + g - 1]``, where that is a constant: 1 or 0.

    ``d`` are digits (iotas of the bound slots) that count from 0 to n - 1, so exactly one of them hits where ``0 <= x < g n``. None when the bound
    slots are no such digits, and where it depends: a sum over the other digits of a position can still meet such a sum.
    """
    views = [_form_of(store, *factor) for factor in factors]
    first = views[0]
    if first is None or (len(views) == 1) != (factors[0][0].kind == "eq0"):
        return None
    step = 1
    if len(views) > 1:
        both = combine(store, ((1, first), (1, views[1]))) if views[1] is not None else first
        if both.term is not store.one or type(both.coef) is not int or both.coef < 0:
            return None
        step = both.coef + 1
        if not _leads(first, bound):
            first = views[1] or first
    entries, constant = form(first)
    digits = sorted([(absolute(c), c, t.sizes[0]) for (t, slots), c in entries.items() if t.kind == "iota" and slots[0] in bound])
    rest = {key: c for key, c in entries.items() if not (key[0].kind == "iota" and key[1][0] in bound)}
    if len(digits) != len(bound) or any(s in bound for _, slots in rest for s in slots) or len({c > 0 for _, c, _ in digits}) != 1:
        return None
    count = step
    for stride, _, size in digits:
        if stride != count:
            return None
        count *= size
    value = scale(store, from_form(store, rest, constant), -1 if digits[0][1] > 0 else 1)
    top = combine(store, ((-1, value),), count - 1)
    found = multiply(store, [(at_least_zero(store, value), 1), (at_least_zero(store, top), 1)])
    return found if found.term is store.one else None


def _form_of(store: Store, term: Term, exponent: int, at: tuple[int, ...]) -> View | None:
    """The integer form e of a factor ``[e = 0]`` or ``[e >= 0]``."""
    if exponent < 1 or term.kind not in ("eq0", "ge0"):
        return None
    sign, inner, labels = term.data if term.kind == "ge0" else (1, *term.data)
    return scale(store, View(1, inner, tuple([at[i] for i in labels])), sign) if inner.integer else None


def _leads(view: View, bound: Mapping[int, int]) -> bool:
    """Whether the digits of a form ``x - g d`` have negative coefficients."""
    entries, _ = form(view)
    return all(c < 0 for (t, slots), c in entries.items() if t.kind == "iota" and slots[0] in bound)


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
