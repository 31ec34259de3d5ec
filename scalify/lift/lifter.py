"""Lifting one program into the term store, operation by operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product as combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scalify.hlo.dtypes import DTYPES
from scalify.lift.atoms import from_array, iota, parameter
from scalify.lift.axes import Axis, find
from scalify.lift.functions import function
from scalify.lift.instance import substitute
from scalify.lift.layout import Axes, Block, Dimension, Grid, Layout, Value, joined
from scalify.lift.linear import combine
from scalify.lift.moves import Source, move, pull
from scalify.lift.place import Place, locate_table
from scalify.lift.product import multiply
from scalify.lift.transfer import TRANSFERS
from scalify.lift.transfer.base import Unsupported, exact_value
from scalify.lift.transfer.empty import lift_empty
from scalify.lift.transfer.opaque import fallback

if TYPE_CHECKING:
    from scalify.hlo.module import Shape
    from scalify.lift.infer import Side
    from scalify.lift.program import Operation
    from scalify.lift.terms import Index, Store, View

Array = npt.NDArray[Any]
Tables = Mapping[int, tuple[Array, Sequence[int]]]


#: opcodes that only move values, or whose results are exact
_NO_ROUNDING = frozenset(
    [
        "parameter",
        "constant",
        "iota",
        "broadcast",
        "reshape",
        "bitcast",
        "transpose",
        "slice",
        "reverse",
        "concatenate",
        "pad",
        "gather",
        "dynamic-slice",
        "dynamic-update-slice",
        "select",
        "all-gather",
        "all-to-all",
        "collective-permute",
        "collective-broadcast",
        "copy",
        "maximum",
        "minimum",
        "clamp",
        "abs",
        "negate",
        "sign",
        "floor",
        "ceil",
        "compare",
        "sort",
        "topk",
        "custom-call",
    ]
)


class Exponential(NamedTuple):
    """An exponential of the program and what it is taken of."""

    operation: Operation
    argument: View


class Layouts:
    """All layouts of a run, each once."""

    def __init__(self) -> None:
        self._by_axes: dict[Axes, Layout] = {}
        self._by_roots: dict[tuple[int, ...], Layout] = {}
        self._by_key: dict[object, Layout] = {}
        self._grids: dict[object, Grid] = {}
        self._dimensions: dict[Axis, Dimension] = {}

    def of(self, axes: Axes) -> Layout:
        """The layout of values with these axes, the device axis first. Inference must be over: the axes no longer change."""
        quick = self._by_axes.get(axes)
        if quick is not None:
            return quick
        roots = tuple([0 if a is None else id(find(a)) for a in axes])
        found = self._by_roots.get(roots)
        if found is None:
            made = Layout(axes, self._grids, self._dimensions)
            found = self._by_roots[roots] = self._by_key.setdefault(made.key, made)
        self._by_axes[axes] = found
        return found


class Lifter:
    """Lifts the operations of one side in order; ``values[v]`` is the lifted value v."""

    def __init__(self, store: Store, side: Side, layouts: Layouts, name: str, device_ids: Sequence[int]) -> None:
        self.store = store
        self.side = side
        self.program = side.program
        self.layouts = layouts
        self.name = name
        self.device_ids = device_ids
        self.values: dict[int, Value] = {}
        self.empty = frozenset([v for v, s in enumerate(side.program.shapes) if 0 in s.dims])
        self.dynamic = frozenset([v for v, s in enumerate(side.program.shapes) if s.dynamic and any(s.dynamic)])
        self.unsupported: list[tuple[Operation, str]] = []
        self.exponentials: list[Exponential] = []
        self.known_terms = 0  # terms below this number belong to the baseline
        self.exact = False  # whether roundings are part of the meaning
        self._scalars: dict[Any, View] = {}
        self._layouts: list[Layout | None] = [None] * len(side.program.shapes)

    # -- what transfer functions ask ----------------------------------------------------------------------------------------
    def dtype(self, value: int) -> str:
        return self.program.shapes[value].dtype

    def limits(self, value: int) -> tuple[int, int]:
        """The integer range of a value's type. (0, 1) for predicates."""
        known = DTYPES[self.dtype(value)]
        assert known.minimum is not None
        assert known.maximum is not None
        return known.minimum, known.maximum

    def axes_of(self, value: int) -> Axes:
        """The local axes of a value."""
        return self.side.of(value)

    def layout_of(self, value: int) -> Layout:
        found = self._layouts[value]
        if found is None:
            found = self._layouts[value] = self.layouts.of((self.side.device, *self.side.of(value)))
        return found

    def adopt(self, shape: Shape, axes: Axes) -> int:
        """The number of a value that the program does not have, for an operation that is only tried."""
        self._layouts.append(None)
        self.side.axes.append(axes)
        return self.program.value(shape)

    def release(self, first: int) -> None:
        """Gives the adopted values from number ``first`` on back."""
        del self._layouts[first:], self.side.axes[first:], self.program.shapes[first:]
        for value in [v for v in self.values if v >= first]:
            del self.values[value]

    def result_layout(self, operation: Operation) -> Layout:
        return self.layout_of(operation.results[0])

    def extended(self, value: int, axes: Sequence[Axis | None]) -> Layout:
        """The layout of a value with more dimensions behind its own."""
        return self.layouts.of((self.side.device, *self.side.of(value), *axes))

    def value(self, layout: Layout, views: Sequence[View]) -> Value:
        return Value(layout, tuple(views))

    def iota(self, slot: int, size: int) -> View:
        return iota(self.store, slot, size)

    def exact_float(self, operand: int, result: int) -> Value:
        """An operand of an operation whose result may have a wider type than it: integers are then taken exactly."""
        value = self.values[operand]
        if self.dtype(operand) == self.dtype(result):
            return value
        return exact_value(self, value, self.dtype(operand))

    def spread(self, value: Value, target: Layout, dims: Sequence[int]) -> Value:
        """``target`` with dimension d of the value at ``dims[d]``; the target's other dimensions repeat it."""
        source = value.layout
        mapping = []
        for d, where in enumerate(dims):
            if source.key[d] != target.key[where]:
                return self.value(target, move(self.store, value, target, [Source((a,), (b,)) for a, b in enumerate(dims)]))
            mapping += list(target.range(where))
        return pull(self.store.memo, value, target, tuple(mapping))

    def permuted(self, operation: Operation, dims: Sequence[int]) -> Value:
        return self.spread(self.values[operation.operands[0]], self.result_layout(operation), dims)

    def aligned(self, operand: int, layout: Layout) -> Sequence[View]:
        """The views of an operand in the blocks of a layout of the same dimensions; scalars are repeated."""
        value = self.values[operand]
        if value.layout is layout:
            return value.views
        if len(value.layout.dims) == 1:
            return self.scalar(operand, layout)
        return self.spread(value, layout, range(len(layout.dims))).views

    def scalar(self, operand: int, layout: Layout) -> Sequence[View]:
        """A scalar operand in the blocks of a layout."""
        value = self.values[operand]
        if value.layout.plain and not value.views[0].at:
            return value.views * layout.count
        return self.spread(value, layout, (0,)).views

    def data(self, value: int, array: Array) -> Value:
        """Known data ``[devices or 1, *dims]`` as a lifted value."""
        layout = self.layout_of(value)
        if array.size == 0:
            return self.nothing(value)
        if array.size == 1:
            return Value(layout, (self._scalar(array.flat[0]),) * layout.count)
        views = []
        for block in layout.blocks:
            picked = array
            indices = [np.zeros(1, dtype=np.int64)] if array.shape[0] == 1 else [_positions(layout, block, 0)]
            indices += [_positions(layout, block, d) for d in range(1, len(layout.dims))]
            if not layout.plain or len(indices[0]) != array.shape[0]:
                picked = array[np.ix_(*indices)]
            own = [] if array.shape[0] == 1 else list(layout.slots(0, block))
            slots = own + [s for d in range(1, len(layout.dims)) for s in layout.slots(d, block)]
            views.append(from_array(self.store, picked.reshape([block.sizes[s] for s in slots]), slots))
        return Value(layout, tuple(views))

    def _scalar(self, value: np.generic) -> View:
        key = (value.dtype.char, value.tobytes())
        found = self._scalars.get(key)
        if found is None:
            found = self._scalars[key] = from_array(self.store, np.asarray(value), ())
        return found

    def by_tables(self, value: Value, target: Layout, block: Block, dims: Tables, factors: Tables | None = None) -> View:
        """The value at indices given as tables over the slots of a target block, for whole dimensions or single factors; other
        dimensions are those of the target.
        """
        source = value.layout
        options: list[list[tuple[tuple[int, ...], Place]]] = []
        for d in range(len(source.dims)):
            if d in dims:
                chosen = tuple(source.range(d))
                options.append([(chosen, p) for p in _located(self.store, source, chosen, *dims[d])])
                continue
            for k, f in enumerate(source.range(d)):
                if factors and f in factors:
                    options.append([((f,), p) for p in locate_table(self.store, source.parts[f], *factors[f])])
                else:
                    t = target.starts[d] + k
                    options.append([((f,), Place(block.choice[t], block.slots[t], None))])
        return combine(self.store, [(1, self._at(value, places)) for places in combinations(*options)])

    def _at(self, value: Value, places: Sequence[tuple[tuple[int, ...], Place]]) -> View:
        source = value.layout
        choice = [0] * len(source.factors)
        order: list[int] = []
        indices: list[Index] = []
        for chosen, place in places:
            left = place.choice
            for f in reversed(chosen):
                left, choice[f] = divmod(left, len(source.parts[f]))
            order += chosen
            indices += place.indices
        where = source.position(choice)
        slots = [s for f in order for s in source.blocks[where].slots[f]]
        view = substitute(self.store, value.views[where], dict(zip(slots, indices, strict=True)))
        conditions = [(p.condition, 1) for _, p in places if p.condition is not None]
        return multiply(self.store, [(view, 1), *conditions]) if conditions else view

    def is_known(self, view: View) -> bool:
        """Whether the baseline has the value, or all parts of a linear combination."""
        term = view.term
        if term.id < self.known_terms:
            return True
        return term.kind == "lin" and all(t.id < self.known_terms for t, _, _ in term.data[0])

    def note_exponential(self, operation: Operation, view: View) -> None:
        self.exponentials.append(Exponential(operation, view))

    # -- lifting ---------------------------------------------------------------------------------------------------------------
    def leaf(self, value: int, base: tuple[Any, ...], limits: tuple[int | None, int | None] | None) -> Value:
        """An unknown array, over the device dimension too if there is one."""
        layout = self.layout_of(value)
        if value in self.empty:
            return self.nothing(value)
        views = []
        for number, block in enumerate(layout.blocks):
            name = base if layout.plain else (*base, number)
            views.append(parameter(self.store, name, list(enumerate(block.sizes)), limits))
        return Value(layout, tuple(views))

    def nothing(self, value: int) -> Value:
        """An array without elements: all of them are equal."""
        layout = self.layout_of(value)
        return Value(layout, (self.store.constant(0),) * layout.count)

    def integer_limits(self, value: int) -> tuple[int | None, int | None] | None:
        known = DTYPES.get(self.dtype(value))
        if known is None or known.minimum is None:
            return None
        return known.minimum, known.maximum

    def lift(self, operation: Operation) -> None:
        """Lift one operation; what cannot be lifted exactly becomes an unknown value of its own."""
        results = operation.results
        if not results:
            return
        known = self.program.known.get(results[0]) if len(results) == 1 else None
        if (
            known is not None and operation.shapes[0].size == 1
        ):  # of arrays the formula is kept: data of another size on the other side would hide it
            self.values[results[0]] = self.data(results[0], known)
            return
        transfer = TRANSFERS.get(operation.opcode)
        try:
            if transfer is None:
                raise Unsupported(f"opcode {operation.opcode} has no lifting")
            if operation.instruction.attributes.get("unknown_fields"):
                raise Unsupported("the file has fields that are not understood")
            if self.dynamic and not self.dynamic.isdisjoint(results):
                raise Unsupported("dynamic dimensions")
            degenerate = self.empty and not self.empty.isdisjoint((*operation.operands, *results))
            values = lift_empty(self, operation) if degenerate else transfer(self, operation)
            self._check(operation, values)
        except Unsupported as reason:
            values = self._fallback(operation, str(reason))
        if self.exact and operation.opcode not in _NO_ROUNDING:
            values = [self._rounded(operation, r, v) for r, v in zip(results, values, strict=True)]
        self.values.update(zip(results, values, strict=True))

    def _check(self, operation: Operation, values: Sequence[Value]) -> None:
        """The values are as many, and have the dimensions, that the operation declares."""
        if len(values) != len(operation.results):
            raise Unsupported(f"{len(operation.results)} results where {len(values)} follow from the operands")
        for result, value in zip(operation.results, values, strict=True):
            if value.layout is not self.layout_of(result):
                raise Unsupported("a result whose dimensions do not follow from the operands")

    def _rounded(self, operation: Operation, result: int, value: Value) -> Value:
        """Every rounding as an uninterpreted function of the exact result: by opcode, as a sum rounds in its own places."""
        dtype = self.dtype(result)
        if not DTYPES[dtype].is_float or (operation.opcode == "convert" and self._widens(operation)):
            return value
        views = [v if v.term is self.store.one else function(self.store, "round", [v], (dtype, operation.opcode)) for v in value.views]
        return self.value(value.layout, views)

    def _widens(self, operation: Operation) -> bool:
        before, after = DTYPES[self.dtype(operation.operands[0])], DTYPES[self.dtype(operation.results[0])]
        return before.is_float and before.bits <= after.bits

    def _fallback(self, operation: Operation, reason: str) -> list[Value]:
        try:
            return fallback(self, operation)
        except Unsupported:
            self.unsupported.append((operation, reason))
            return [self.unknown(r) for r in operation.results]

    def unknown(self, value: int) -> Value:
        """A value of which nothing is known: equal to nothing but itself."""
        return self.leaf(value, ("unknown", self.name, value), self.integer_limits(value))


def _located(store: Store, source: Layout, chosen: tuple[int, ...], table: Array, slots: Sequence[int]) -> list[Place]:
    parts = joined([source.parts[f] for f in chosen], [source.factors[f].size for f in chosen])
    return locate_table(store, parts, table, slots)


def _positions(layout: Layout, block: Block, dim: int) -> npt.NDArray[np.int64]:
    """The indices along a dimension that a block holds, in the order of its digits."""
    offset, digits = layout.alternative((dim,), block)
    index = np.full([n for _, n, _ in digits], offset, dtype=np.int64)
    for k, (_, n, c) in enumerate(digits):
        index += c * np.arange(n).reshape([-1 if i == k else 1 for i in range(len(digits))])
    return index.reshape(-1)
