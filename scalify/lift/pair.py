"""Both graphs and their relation in one term store: what the prover works on."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scalify.hlo.module import Instruction, Module, Shape
from scalify.lift.axes import Axis
from scalify.lift.collate import collate
from scalify.lift.infer import Demands, Side, new_axes, same
from scalify.lift.known_calls import BUILT_IN
from scalify.lift.layout import Axes, Block, Layout, Value
from scalify.lift.lifter import Layouts, Lifter
from scalify.lift.linear import combine
from scalify.lift.moves import Source, move
from scalify.lift.product import multiply
from scalify.lift.program import MOST_OPERATIONS, Operation, Program, flatten
from scalify.lift.terms import Laws, LimitReached, Store, View
from scalify.lift.transfer.collective import reduce_devices
from scalify.lift.transfer.movement import inside
from scalify.relation.execute import apply
from scalify.relation.model import Broadcast, Pad, Piece, Recipe, Relation, Reshape, Slice, Step, Transpose
from scalify.relation.modules import module_positions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.lift.custom_calls import Registry

Array = npt.NDArray[Any]


@dataclass
class Claim:
    """One thing to prove: a distributed output (or a region of it) equals what the relation makes of a baseline output."""

    output: int
    piece: Piece
    expected: int  # value of the baseline program, mesh dimensions in front
    actual: int  # value of the distributed program


Prepared = tuple[
    dict[int, list[tuple[Piece, int]]], list[Claim], int
]  # what makes up each parameter, the claims, where the relation starts


@dataclass
class Pair:
    """The lifted pair; the baseline's program ends with the relation's own operations (from ``own``)."""

    store: Store
    relation: Relation
    baseline: Lifter
    distributed: Lifter
    own: int = 0
    claims: list[Claim] = field(default_factory=list)
    places: Sequence[Sequence[int]] = ()  # mesh positions of each distributed module
    again: Callable[[Program], Pair] | None = None  # the pair with another distributed program, its axes inferred anew


def lift_pair(
    baseline: Module,
    distributed: Sequence[Module],
    relation: Relation,
    laws: Laws | None = None,
    limit: int = 2_000_000,
    registry: Registry = BUILT_IN,
    *,
    exact: bool = False,
    operations: int = MOST_OPERATIONS,
) -> Pair:
    """Both modules lifted into one store, the baseline first; ``registry`` gives the meaning of custom calls.

    :raises HloError: a module that cannot be inlined. :raises RelationError: a relation that contradicts the shapes.
    :raises LimitReached: more nodes than ``limit``, or a module of more operations than ``operations``.
    """
    builder = _Builder(baseline, distributed, relation, registry, operations)
    return builder.lift(Store(laws, limit), exact=exact)


class _Builder:
    def __init__(self, baseline: Module, distributed: Sequence[Module], relation: Relation, registry: Registry, most: int) -> None:
        self.relation = relation
        self.most = most
        mesh = relation.mesh
        self.places = module_positions(mesh, len(distributed))
        ids = list(mesh.device_ids)
        positions = {d: p for p, d in enumerate(ids)}
        data = {p: self._on_devices(np.asarray(v)) for p, v in relation.values.items()}
        self.known_inputs = {
            q: self._known(pieces) for q, pieces in relation.inputs.items() if all(not isinstance(p.recipe.source, int) for p in pieces)
        }
        self.demands = Demands()
        device = Axis(mesh.size) if mesh.size > 1 else None
        self.ids = ids if relation.same_mesh else [ids[0] if mesh.size == 1 else 0]
        small = {p: v for p, v in data.items() if _integer(v)}
        left = flatten(baseline, self.ids, small, registry, most)
        right = flatten(collate(distributed, mesh), ids, {q: v for q, v in self.known_inputs.items() if _integer(v)}, registry, most)
        self.data = data
        self.baseline = Side(
            left, device if relation.same_mesh else None, positions if relation.same_mesh else {self.ids[0]: 0}, self.demands
        )
        self.distributed = Side(right, device, positions, self.demands)
        self.mesh_axes: Axes = tuple([Axis(n) if n > 1 else None for n in mesh.shape])
        self.demands.product([device], self.mesh_axes)

    def _on_devices(self, data: Array) -> Array:
        """Known data of a baseline parameter, ``[devices or 1, *dims]``; of a baseline on the mesh it has the mesh dimensions in front."""
        mesh = self.relation.mesh
        return data.reshape(mesh.size, *data.shape[len(mesh.shape) :]) if self.relation.same_mesh else data[None]

    def _known(self, pieces: Sequence[Piece]) -> Array:
        """Known data of a distributed parameter, ``[devices, *local dims]``."""
        mesh = self.relation.mesh
        rank = len(pieces[0].starts)
        dims = [max(p.limits[d] for p in pieces) for d in range(rank)]
        first = apply(pieces[0].recipe, np.asarray(pieces[0].recipe.source))
        whole = np.zeros((mesh.size, *dims), dtype=first.dtype)
        for piece in pieces:
            part = apply(piece.recipe, np.asarray(piece.recipe.source))
            region = tuple([slice(a, b) for a, b in zip(piece.starts, piece.limits, strict=True)])
            for row in range(mesh.size) if piece.module is None else self.places[piece.module]:
                whole[(slice(row, row + 1), *region)] = part.reshape(mesh.size, *part.shape[len(mesh.shape) :])[row]
        return whole if mesh.size > 1 and not (whole == whole[:1]).all() else whole[:1]

    # -- the relation as operations --------------------------------------------------------------------------------------------
    def _run(self, side: Side, opcode: str, operands: Sequence[int], shape: Shape, **attributes: Any) -> int:
        program = side.program
        if len(program.operations) >= 2 * self.most:  # the module's own, and the relation's
            raise LimitReached("operations", self.most)
        value = program.value(shape)
        instruction = Instruction("relation", opcode, shape, (), attributes)
        program.operations.append(Operation(opcode, instruction, tuple(operands), (value,), (shape,)))
        return value

    def _recipe(self, recipe: Recipe, sources: Sequence[int]) -> int:
        assert isinstance(recipe.source, int)
        side = self.baseline
        value = sources[recipe.source]
        if self.relation.same_mesh:
            shape = side.program.shapes[value]
            value = self._run(side, "$devices", [value], Shape(shape.dtype, self.relation.mesh.shape + shape.dims))
        for step in recipe.steps:
            value = self._step(step, value)
        return value

    def _step(self, step: Step, value: int) -> int:
        side = self.baseline
        shape = side.program.shapes[value]
        if isinstance(step, Slice):
            dims = tuple([b - a for a, b in zip(step.starts, step.limits, strict=True)])
            return self._run(
                side, "slice", [value], Shape(shape.dtype, dims), starts=step.starts, limits=step.limits, strides=(1,) * len(dims)
            )
        if isinstance(step, Reshape):
            return self._run(side, "reshape", [value], Shape(shape.dtype, step.dims))
        if isinstance(step, Transpose):
            dims = tuple([shape.dims[d] for d in step.permutation])
            return self._run(side, "transpose", [value], Shape(shape.dtype, dims), dimensions=step.permutation)
        if isinstance(step, Broadcast):
            return self._run(side, "broadcast", [value], Shape(shape.dtype, step.dims), dimensions=step.dimensions)
        assert isinstance(step, Pad)
        zero = self._run(side, "constant", [], Shape(shape.dtype), literal=np.zeros((), dtype=np.int64))
        dims = tuple([n + a + b for n, (a, b) in zip(shape.dims, step.padding, strict=True)])
        return self._run(side, "pad", [value, zero], Shape(shape.dtype, dims), padding=tuple([(a, b, 0) for a, b in step.padding]))

    def prepare(self) -> Prepared:
        """Appends the relation's operations; what makes up each distributed parameter, and the claims."""
        own = len(self.baseline.program.operations)
        inputs: dict[int, list[tuple[Piece, int]]] = {}
        for q, pieces in self.relation.inputs.items():
            if q not in self.known_inputs:
                inputs[q] = [(p, self._piece(p)) for p in pieces]
        claims = []
        for q, pieces in sorted(self.relation.outputs.items()):
            for piece in pieces:
                expected = self._recipe(piece.recipe, self.baseline.program.outputs)
                claims.append(Claim(q, piece, expected, self._region(piece, q)))
        return inputs, claims, own

    def _piece(self, piece: Piece) -> int:
        if isinstance(piece.recipe.source, int):
            return self._recipe(piece.recipe, self.baseline.program.parameters)
        data = apply(piece.recipe, np.asarray(piece.recipe.source))
        dtype = "s64" if _integer(data) else "f64"
        return self._run(self.baseline, "constant", [], Shape(dtype, data.shape), literal=data)

    def _region(self, piece: Piece, output: int) -> int:
        value = self.distributed.program.outputs[output]
        shape = self.distributed.program.shapes[value]
        if piece.starts == (0,) * len(shape.dims) and piece.limits == shape.dims:
            return value
        dims = tuple([b - a for a, b in zip(piece.starts, piece.limits, strict=True)])
        return self._run(
            self.distributed, "slice", [value], Shape(shape.dtype, dims), starts=piece.starts, limits=piece.limits, strides=(1,) * len(dims)
        )

    # -- axes --------------------------------------------------------------------------------------------------------------
    def infer(self, inputs: dict[int, list[tuple[Piece, int]]], claims: Sequence[Claim]) -> None:
        self.baseline.infer()
        count = len(self.mesh_axes)
        given: dict[int, Axes] = {}
        for q, value in enumerate(self.distributed.program.parameters):
            if q in inputs:
                given[value] = self._parameter_axes(value, inputs[q], count)
        self.distributed.infer(given)
        for claim in claims:
            axes = self.baseline.of(claim.expected)
            for a, b in zip(axes[:count], self.mesh_axes, strict=True):
                same(a, b)
            for a, b in zip(axes[count:], self.distributed.of(claim.actual), strict=True):
                same(a, b)
        self.demands.meet()

    def _parameter_axes(self, value: int, pieces: Sequence[tuple[Piece, int]], count: int) -> Axes:
        shape = self.distributed.program.shapes[value]
        result = list(new_axes(shape))
        for piece, source in pieces:
            axes = self.baseline.of(source)
            for a, b in zip(axes[:count], self.mesh_axes, strict=True):
                same(a, b)
            for d, axis in enumerate(axes[count:]):
                if len(pieces) == 1 or (piece.starts[d], piece.limits[d]) == (0, shape.dims[d]):
                    if result[d] is not None and axis is not None:
                        same(result[d], axis)
                else:
                    self.demands.part(result[d], piece.starts[d], piece.limits[d], axis)
        return tuple(result)

    # -- lifting -----------------------------------------------------------------------------------------------------------
    def lift(self, store: Store, *, exact: bool) -> Pair:
        return self.lifted(store, self.prepare(), exact=exact)

    def again(self, program: Program, old: Store, prepared: Prepared, *, exact: bool) -> Pair:
        """The pair with another distributed program, whose values have the same numbers, in a store of its own."""
        builder = copy(self)
        builder.demands = Demands()
        device = Axis(self.relation.mesh.size) if self.relation.mesh.size > 1 else None
        left, right = self.baseline, self.distributed
        builder.baseline = Side(left.program, device if left.device else None, left.positions, builder.demands)
        builder.distributed = Side(program, device, right.positions, builder.demands)
        builder.mesh_axes = tuple([Axis(n) if n > 1 else None for n in self.relation.mesh.shape])
        builder.demands.product([device], builder.mesh_axes)
        return builder.lifted(Store(old.laws, old.limit), prepared, exact=exact)

    def lifted(self, store: Store, prepared: Prepared, *, exact: bool) -> Pair:
        inputs, claims, own = prepared
        self.infer(inputs, claims)
        layouts = Layouts()
        left = Lifter(store, self.baseline, layouts, "baseline", self.ids)
        right = Lifter(store, self.distributed, layouts, "distributed", self.relation.mesh.device_ids)
        left.exact = right.exact = exact
        self._ranges()
        self._baseline_parameters(left)
        for operation in left.program.operations:
            if operation.opcode == "parameter":
                continue
            if operation.opcode == "$devices":
                left.values[operation.results[0]] = _expose(left, operation)
            else:
                left.lift(operation)
        right.known_terms = len(store.terms)
        self._distributed_parameters(left, right, inputs)
        for operation in right.program.operations:
            if operation.opcode != "parameter":
                right.lift(operation)
        again = partial(self.again, old=store, prepared=prepared, exact=exact)
        return Pair(store, self.relation, left, right, own, claims, self.places, again)

    def _ranges(self) -> None:
        self.ranges = {(a.side, a.parameter): (a.low, a.high - 1) for a in self.relation.assumptions}

    def _baseline_parameters(self, lifter: Lifter) -> None:
        for p, value in enumerate(lifter.program.parameters):
            if value < 0:
                continue
            if p in self.data:
                lifter.values[value] = lifter.data(value, self.data[p])
            else:
                limits = self.ranges.get(("baseline", p), lifter.integer_limits(value))
                lifter.values[value] = lifter.leaf(value, ("parameter", p), limits)

    def _distributed_parameters(self, left: Lifter, right: Lifter, inputs: dict[int, list[tuple[Piece, int]]]) -> None:
        for q, value in enumerate(right.program.parameters):
            if value < 0:
                continue
            if q in self.known_inputs:
                right.values[value] = right.data(value, self.known_inputs[q])
            elif q in inputs:
                right.values[value] = self._assembled(left, right, right.layout_of(value), inputs[q])
            else:
                limits = self.ranges.get(("distributed", q), right.integer_limits(value))
                right.values[value] = right.leaf(value, ("distributed parameter", q), limits)

    def _assembled(self, left: Lifter, right: Lifter, layout: Layout, pieces: Sequence[tuple[Piece, int]]) -> Value:
        """A distributed parameter put together from its pieces."""
        if len(pieces) == 1 and pieces[0][0].module is None:
            return on_devices(right, left.values[pieces[0][1]], layout)
        store = right.store
        parts: list[list[Any]] = [[] for _ in layout.blocks]
        for piece, source in pieces:
            value = left.values[source]
            count = len(value.layout.dims) - len(layout.dims)
            sources = [Source((0,), ()), Source(tuple(range(1, 1 + count)), (0,))]
            sources += [Source((d + count,), (d,), -piece.starts[d - 1]) for d in range(1, len(layout.dims))]
            for number, view in enumerate(move(store, value, layout, sources)):
                block = layout.blocks[number]
                where = [
                    (inside(right, layout, block, d, piece.starts[d - 1], piece.limits[d - 1] - piece.starts[d - 1]), 1)
                    for d in range(1, len(layout.dims))
                ]
                if piece.module is not None:
                    where.append((_among(right, layout, block, self.places[piece.module]), 1))
                parts[number].append((1, multiply(store, [*where, (view, 1)])))
        return right.value(layout, [combine(store, p) for p in parts])


def relift(pair: Pair, settle: Callable[[Lifter, Operation], None]) -> Pair:
    """The pair with its distributed program lifted anew; ``settle`` is called after each operation and may replace its values by equal ones."""
    old = pair.distributed
    new = Lifter(pair.store, old.side, old.layouts, old.name, old.device_ids)
    new.known_terms, new.exact = old.known_terms, old.exact
    for operation in old.program.operations:
        if operation.opcode == "parameter":
            new.values.update({r: old.values[r] for r in operation.results})
        else:
            new.lift(operation)
            settle(new, operation)
    return replace(pair, distributed=new)


def _integer(array: Array) -> bool:
    return array.dtype.kind in "iub"


def _expose(lifter: Lifter, operation: Operation) -> Value:
    """The device dimension as mesh dimensions: ``result[mesh position, ..] = value[device, ..]``."""
    value = lifter.values[operation.operands[0]]
    target = lifter.result_layout(operation)
    count = len(target.dims) - len(value.layout.dims)
    sources = [Source((0,), tuple(range(1, 1 + count)))]
    sources += [Source((d,), (d + count,)) for d in range(1, len(value.layout.dims))]
    return lifter.value(target, move(lifter.store, value, target, sources))


def on_devices(lifter: Lifter, value: Value, layout: Layout) -> Value:
    """A value with mesh dimensions in front as a value over the device dimension."""
    if value.layout.flat_key == layout.flat_key:
        return Value(layout, value.views)
    count = len(value.layout.dims) - len(layout.dims)
    sources = [Source((0,), ()), Source(tuple(range(1, 1 + count)), (0,))]
    sources += [Source((d + count,), (d,)) for d in range(1, len(layout.dims))]
    return lifter.value(layout, move(lifter.store, value, layout, sources))


def _among(lifter: Lifter, layout: Layout, block: Block, positions: Sequence[int]) -> View:
    """1 on the devices at some consecutive mesh positions."""
    return inside(lifter, layout, block, 0, positions[0], len(positions))


def claimed(pair: Pair, claim: Claim) -> tuple[Value, Value]:
    """(expected, actual) in one layout, partial values summed, 0 where the claim says nothing."""
    right = pair.distributed
    actual = right.values[claim.actual]
    layout = actual.layout
    if claim.piece.partial:
        factors = _mesh_factors(pair, layout, claim.piece.partial)
        actual = right.value(layout, reduce_devices(right, actual, factors, "add"))
    expected = on_devices(right, pair.baseline.values[claim.expected], layout)
    if claim.piece.module is None:
        return expected, actual
    positions = pair.places[claim.piece.module]
    return _restricted(right, expected, positions), _restricted(right, actual, positions)


def _restricted(lifter: Lifter, value: Value, positions: Sequence[int]) -> Value:
    """The value on some devices, 0 on the others."""
    layout = value.layout
    where = [_among(lifter, layout, block, positions) for block in layout.blocks]
    return lifter.value(layout, [multiply(lifter.store, ((w, 1), (v, 1))) for w, v in zip(where, value.views, strict=True)])


def _mesh_factors(pair: Pair, layout: Layout, axes: Sequence[int]) -> list[int]:
    """The device factors of some mesh axes."""
    shape = pair.relation.mesh.shape
    found = []
    for axis in axes:
        stride = int(np.prod(shape[axis + 1 :], dtype=np.int64))
        below = 1
        for f in reversed(layout.range(0)):
            if stride <= below < stride * shape[axis]:
                found.append(f)
            below *= layout.factors[f].size
    return found
