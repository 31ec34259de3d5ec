"""The leaves of terms: parameters, iotas, known data, infinities; and opaque operations.

An ``at`` node is ``(base, arguments, index)``: the function ``base``, which is determined by its name and arguments, at an index. Arguments are
``(coefficient, term, labels)``; labels from ``BOUND`` on are *core* axes, which the operation sees, in an order that is part of the content;
all others are batch labels. A parameter has no arguments. Two ``at`` nodes with equal content are equal values.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scalify.lift import compare
from scalify.lift.compare import at_least_zero, equals_zero
from scalify.lift.instance import child, compose, oriented, rebuilds
from scalify.lift.linear import combine, scale
from scalify.lift.product import all_of
from scalify.lift.terms import BOUND, TABLE, Index, Labels, Number, Store, Term, View, number

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence


def iota(store: Store, slot: int, size: int) -> View:
    """The slot's own value as an integer, ``0 .. size - 1``."""

    def fill(term: Term) -> None:
        term.integer = True
        term.low, term.high = 0, size - 1

    return View(1, store.node("iota", (), (size,), fill), (slot,))


@rebuilds("iota", lambda term: [])
def _rebuild_iota(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    (entry,) = binding
    if type(entry) is tuple:
        table = store.tables[entry[0]]
        return from_array(store, table, entry[1:])
    assert isinstance(entry, int)
    return store.constant(-1 - entry) if entry < 0 else iota(store, entry, term.sizes[0])


def _tainted(term: Term) -> None:
    term.taint = True


def infinity(store: Store, sign: int) -> View:
    """An infinity literal; a value of its own, never a coefficient."""
    return View(sign, store.node("infinity", (), (), _tainted), ())


def not_a_number(store: Store) -> View:
    """A NaN literal; a value of its own."""
    return View(1, store.node("nan", (), (), _tainted), ())


@rebuilds("infinity", lambda term: [])
@rebuilds("nan", lambda term: [])
def _rebuild_literal(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    return View(1, term, ())


# -- parameters and opaque operations --------------------------------------------------------------------------------------
def opaque(
    store: Store,
    base: Hashable,
    arguments: Sequence[tuple[View, Sequence[tuple[int, int]]]],
    index: Sequence[Index],
    sizes: Mapping[int, int],
    limits: tuple[int | None, int | None] | None = None,
) -> View:
    """``base(arguments)[index]``.

    Each argument comes with its core axes as (slot, size), in the order in which the operation sees them; slots that the
    argument does not use are still listed. ``sizes`` gives the sizes of the slots of ``index``; ``limits`` the integer range, when the result is one.
    """
    labels = Labels()
    content = []
    known = dict(sizes)
    for view, core in arguments:
        slots = {slot: BOUND + position for position, (slot, _) in enumerate(core)}
        known.update(zip(view.at, view.term.sizes, strict=True))
        inside = tuple([slots[s] if s in slots else labels.label(s) for s in view.at])
        content.append((view.coef, view.term, inside, tuple([n for _, n in core])))
    where = tuple([labels.index(entry) for entry in index])

    def fill(term: Term) -> None:
        term.taint = limits is None and any(view.term.taint for view, _ in arguments)  # an integer is never infinite
        if limits is not None:
            term.integer = True
            term.low, term.high = limits

    term = store.node("at", (base, tuple(content), where, limits), tuple([known[s] for s in labels.slots]), fill)
    return View(1, term, tuple(labels.slots))


def parameter(store: Store, base: Hashable, slots: Sequence[tuple[int, int]], limits: tuple[int | None, int | None] | None) -> View:
    """An unknown array over (slot, size) axes."""
    return opaque(store, base, (), [s for s, _ in slots], dict(slots), limits)


@rebuilds("at", lambda term: [(t, labels) for _, t, labels, _ in term.data[1]])
def _rebuild_at(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    base, content, where, limits = term.data
    if base[0] == "dense":
        return _rebuild_dense(store, term, binding)
    arguments = []
    for c, t, labels, core in content:
        slots = [(store.fresh(), n) for n in core]
        inner = {BOUND + j: s for j, (s, _) in enumerate(slots)} | dict(enumerate(binding))
        view = child(store, t, labels, inner)
        arguments.append((View(number(c * view.coef), view.term, view.at), slots))
    index = [compose(store, entry, binding, _extent(term, entry, store)) for entry in where]
    return opaque(store, base, arguments, index, _sizes(store, term, binding), limits)


def _extent(term: Term, entry: Index, store: Store) -> int:
    """How many values the index position may take; for a constant it does not matter."""
    if type(entry) is tuple:
        return int(store.tables[entry[0]].max()) + 1
    assert isinstance(entry, int)
    return term.sizes[entry] if entry >= 0 else 1


def _sizes(store: Store, term: Term, binding: tuple[Index, ...]) -> dict[int, int]:
    found: dict[int, int] = {}
    for label, entry in enumerate(binding):
        if type(entry) is tuple:
            found.update(zip(entry[1:], store.tables[entry[0]].shape, strict=True))
        elif entry >= 0:  # type: ignore[operator]
            found[entry] = term.sizes[label]  # type: ignore[index]
    return found


# -- known data --------------------------------------------------------------------------------------------------------
Array = npt.NDArray[np.generic]


def exact(value: float | bool | np.generic) -> Number:
    """The rational that a finite machine number is."""
    if isinstance(value, (np.bool_, bool)):
        return int(value)
    if isinstance(value, (np.integer, int)):
        return int(value)
    return number(Fraction(float(value)))


def from_array(store: Store, values: Array, slots: Sequence[int]) -> View:
    """Known data, one dimension a slot, in normal form: axes along which it is constant are dropped; constants, affine
    integers and 0/1 intervals become what they would be if they had been computed; the rest is compared by content.
    """
    values = np.asarray(values)
    slots = list(slots)
    if values.size > TABLE:
        store.charge_table(values.size)
    keep = [d for d in range(values.ndim) if values.shape[d] > 1 and not _constant_along(values, d)]
    values = values[tuple([slice(None) if d in keep else 0 for d in range(values.ndim)])]
    slots = [slots[d] for d in keep]
    if values.ndim == 0:
        return scalar(store, values.flat[0])
    if values.dtype.kind in "iub":
        first, second = (_interval, _affine) if values.dtype.kind == "b" else (_affine, _interval)
        found = first(store, values, slots) or second(store, values, slots)
        if found is not None:
            return found
        return _without_factor(store, values, slots)
    return _dense(store, values, slots)


def _without_factor(store: Store, values: Array, slots: Sequence[int]) -> View:
    """Integers as a multiple of others without a common factor, so that sums with digits below the factor fall apart into digits."""
    if values.dtype.kind != "b" and values.dtype != np.uint64:
        factor = int(np.gcd.reduce(values.astype(np.int64), axis=None))
        if 1 < factor < 1 << 62:
            return scale(store, _dense(store, values.astype(np.int64) // factor, slots), factor)
    return _dense(store, values, slots)


def scalar(store: Store, value: np.generic) -> View:
    """A single known number."""
    if value.dtype.kind == "f" and not np.isfinite(value):
        return not_a_number(store) if np.isnan(value) else infinity(store, -1 if np.signbit(value) else 1)
    return store.constant(exact(value))


def _constant_along(values: Array, dimension: int) -> bool:
    first = values.take([0], axis=dimension)
    return bool((values == first).all())


def _affine(store: Store, data: Array, slots: Sequence[int]) -> View | None:
    values = data.astype(np.int64)
    base = int(values.flat[0])
    if int(values.max()) - int(values.min()) >= 1 << 62 or abs(base) >= 1 << 62:
        return None  # the formula itself would overflow
    expected = np.full(values.shape, base, dtype=np.int64)
    parts = []
    for d, slot in enumerate(slots):
        n = values.shape[d]
        step = int(values[tuple([1 if i == d else 0 for i in range(values.ndim)])]) - base
        expected += step * np.arange(n).reshape([-1 if i == d else 1 for i in range(values.ndim)])
        parts.append((step, iota(store, slot, n)))
    return combine(store, parts, base) if (expected == values).all() else None


def _interval(store: Store, values: Array, slots: Sequence[int]) -> View | None:
    """0/1 data along one axis that is 1 on an interval."""
    if values.ndim != 1 or values.min() < 0 or values.max() > 1:
        return None
    ones = np.flatnonzero(values)
    low, high = int(ones[0]), int(ones[-1])
    if high - low + 1 != len(ones):
        return None
    position = iota(store, slots[0], len(values))
    if low == high:
        return equals_zero(store, combine(store, ((1, position),), -low))
    above = at_least_zero(store, combine(store, ((1, position),), -low))
    return all_of(store, (above, at_least_zero(store, combine(store, ((-1, position),), high))))


def _dense(store: Store, values: Array, slots: Sequence[int]) -> View:
    integer = values.dtype.kind in "iub"
    values, slots = oriented(values.astype(np.int64 if integer else np.float64), slots)
    base = ("dense", values.dtype.char, values.shape, values.tobytes())
    store.memo.setdefault(base, values)
    labels = tuple(range(len(slots)))

    def fill(term: Term) -> None:
        term.taint = not integer and not bool(np.isfinite(values).all())
        term.positive = bool(np.greater(values, 0).all()) and not term.taint
        if integer:
            term.integer = True
            term.low, term.high = int(values.min()), int(values.max())

    term = store.node("at", (base, (), labels, None), values.shape, fill)
    return View(1, term, tuple(slots))


def _rebuild_dense(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    """The data after picking, repeating or permuting along its axes."""
    values: Array = store.memo[term.data[0]]
    sizes = _sizes(store, term, binding)
    names = list(sizes)
    store.charge_table(prod(sizes.values()))
    grids = dict(zip(names, np.meshgrid(*[np.arange(sizes[s]) for s in names], indexing="ij", sparse=True), strict=True)) if names else {}
    picked = values[tuple([_position(store, entry, grids) for entry in binding])]
    return from_array(store, np.broadcast_to(picked, [sizes[s] for s in names]), names)


def _position(store: Store, entry: Index, grids: Mapping[int, npt.NDArray[np.int64]]) -> npt.NDArray[np.int64] | int:
    if type(entry) is tuple:
        return store.tables[entry[0]][tuple([grids[s] for s in entry[1:]])]
    assert isinstance(entry, int)
    return -1 - entry if entry < 0 else grids[entry]


def _compared(store: Store, term: Term, at: tuple[int, ...], relation: str, value: int) -> View | None:
    """``[data = value]``, ``[data >= value]`` or ``[data <= value]`` for known integer data."""
    if term.kind != "at" or term.data[0][0] != "dense" or not term.integer:
        return None
    data = store.memo[term.data[0]]
    holds = data == value if relation == "eq" else data >= value if relation == "ge" else data <= value
    return from_array(store, holds, at)


compare.on_known_data.append(_compared)
