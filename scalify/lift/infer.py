"""Which axes the dimensions of every value have, before anything is lifted.

One pass over both programs gives dimensions that must be equal the same :class:`Axis` and collects *demands* (products from reshapes,
collectives and aligned slices; boundaries from uneven slices, concatenates and pads); then the demands are met where they admit a common refinement.
A demand that is refused costs only precision: lifting is exact whatever the axes are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scalify.hlo.module import ReplicaGroups, Shape
from scalify.hlo.semantics.collectives import device_groups
from scalify.lift.axes import MOST_SEGMENTS, Axis, find, make_product, make_sum, unify, unify_products
from scalify.lift.custom_calls import batch_of
from scalify.lift.groups import Digits, cuts, fit, group_digits
from scalify.lift.layout import Axes
from scalify.lift.program import Operation, Program


@dataclass
class Demands:
    """What the operations ask of the axes, met together by :meth:`meet`."""

    products: list[tuple[list[Axis], list[Axis]]] = field(default_factory=list)
    boundaries: list[tuple[Axis, int, int, Axis | None]] = field(default_factory=list)

    def product(self, left: Sequence[Axis | None], right: Sequence[Axis | None]) -> None:
        a, b = [x for x in left if x is not None], [x for x in right if x is not None]
        if a and b:
            self.products.append((a, b))

    def part(self, whole: Axis | None, start: int, limit: int, part: Axis | None) -> None:
        """``part`` is the segment ``start:limit`` of ``whole``."""
        if whole is not None and 0 <= start < limit <= whole.size:
            self.boundaries.append((whole, start, limit, part))

    def meet(self) -> None:
        for left, right in self.products:
            unify_products(left, right)
        by_axis: dict[Axis, list[tuple[int, int, Axis | None]]] = {}
        for whole, start, limit, part in self.boundaries:
            by_axis.setdefault(find(whole), []).append((start, limit, part))
        for whole, records in by_axis.items():
            _segment(whole, records)


def _segment(whole: Axis, records: list[tuple[int, int, Axis | None]]) -> None:
    """Cut an axis at the ends of its parts: into a product where all parts are blocks of one size, else into a sum."""
    ends = sorted({0, whole.size, *(e for start, limit, _ in records for e in (start, limit))})
    sizes = [b - a for a, b in itertools.pairwise(ends)]
    if len(set(sizes)) == 1 and all(limit - start == sizes[0] for start, limit, _ in records):
        _blocks(whole, sizes[0], records)
        return
    records = _without_shifts(records)
    ends = sorted({0, whole.size, *(e for start, limit, _ in records for e in (start, limit))})
    if len(ends) > MOST_SEGMENTS:
        return
    pieces = {a: Axis(b - a) for a, b in itertools.pairwise(ends)}
    if len(pieces) > 1 and not make_sum(whole, list(pieces.values())):
        return
    for start, limit, part in records:
        if part is not None:
            make_sum(part, [pieces[e] for e in ends if start <= e < limit])


def _blocks(whole: Axis, size: int, records: list[tuple[int, int, Axis | None]]) -> None:
    if size == 1:
        return
    inner = Axis(size)
    if size < whole.size and not make_product(whole, [Axis(whole.size // size), inner]):
        return
    for _, _, part in records:
        if part is not None:
            unify(part, inner if size < whole.size else whole)


def _without_shifts(records: list[tuple[int, int, Axis | None]]) -> list[tuple[int, int, Axis | None]]:
    """Without parts that are one axis at several overlapping places: cutting along a shift would cut everywhere."""
    places: dict[Axis, set[tuple[int, int]]] = {}
    for start, limit, part in records:
        if part is not None:
            places.setdefault(find(part), set()).add((start, limit))
    shifted = {axis for axis, found in places.items() if _overlap(sorted(found))}
    return [r for r in records if r[2] is None or find(r[2]) not in shifted]


def _overlap(places: list[tuple[int, int]]) -> bool:
    return any(b[0] < a[1] for a, b in itertools.pairwise(places))


class Side:
    """One program with the axes of its values (local dimensions; the device dimension is ``device``)."""

    def __init__(self, program: Program, device: Axis | None, positions: dict[int, int], demands: Demands) -> None:
        self.program = program
        self.device = device
        self.positions = positions
        self.demands = demands
        self.axes: list[Axes] = []

    def of(self, value: int) -> Axes:
        return self.axes[value]

    def infer(self, given: dict[int, Axes] | None = None) -> None:
        """Axes for all values, in order; ``given`` are those of values that are known before (parameters)."""
        given = given or {}
        self.axes = [()] * len(self.program.shapes)
        for operation in self.program.operations:
            if operation.results and operation.results[0] in given:
                self.axes[operation.results[0]] = given[operation.results[0]]
                continue
            if operation.results:
                found = RULES.get(operation.opcode, _fresh)(self, operation)
                for result, shape, axes in zip(operation.results, operation.shapes, found, strict=True):
                    self.axes[result] = axes if _fit(axes, shape) else new_axes(shape)

    def groups(self, operation: Operation) -> Digits | None:
        """The digits of the operation's replica groups; None where they are none."""
        if not isinstance(operation.instruction.attributes.get("replica_groups"), ReplicaGroups):
            return None
        groups = device_groups(operation.instruction, *self.program.counts)
        if operation.opcode in ("all-reduce", "all-reduce-start"):  # the order within a group is of no account
            groups = [sorted(g, key=lambda d: self.positions.get(d, -1)) for g in groups]
        return group_digits(groups, self.positions, self.program.devices)

    def device_axes(self, digits: Digits) -> list[Axis] | None:
        """Axes for digits of the mesh position, demanded of the device axis; major to minor as in ``digits``."""
        if self.device is None:
            return None
        found = cuts(digits, self.device.size)
        if found is None:
            return None
        axes = {stride: Axis(size) for size, stride in found}
        if not make_product(self.device, [axes[stride] for _, stride in found]):
            return None
        return [axes[step] for _, step in digits]


Rule = Callable[[Side, Operation], list[Axes]]
RULES: dict[str, Rule] = {}


def infers(*opcodes: str) -> Callable[[Rule], Rule]:
    """Declares the inference rule of one or several opcodes."""

    def register(rule: Rule) -> Rule:
        for opcode in opcodes:
            RULES[opcode] = rule
        return rule

    return register


def new_axes(shape: Shape) -> Axes:
    """Axes that nothing is known of, one a dimension; None for size 1."""
    return tuple([Axis(n) if n > 1 else None for n in shape.dims])


def _fit(axes: Axes, shape: Shape) -> bool:
    """Whether the axes are those of a value of this shape; rules may be wrong about unusual forms of an opcode."""
    dims = shape.dims
    if len(axes) != len(dims):
        return False
    for axis, n in zip(axes, dims, strict=True):  # noqa: SIM110 - asked for every value: a generator costs twice as much
        if (n > 1) if axis is None else (n != axis.size):
            return False
    return True


def same(a: Axis | None, b: Axis | None) -> None:
    """The two dimensions are one; sizes that differ are left alone."""
    if a is not None and b is not None and a is not b and a.size == b.size:
        unify(a, b)


def _fresh(side: Side, operation: Operation) -> list[Axes]:
    return [new_axes(s) for s in operation.shapes]


def elementwise(side: Side, operation: Operation) -> list[Axes]:
    """All operands of the result's rank share its axes (scalars are broadcast)."""
    result: Axes | None = None
    for operand in operation.operands:
        axes = side.of(operand)
        if len(axes) != len(operation.shapes[0].dims):
            continue
        if result is None:
            result = axes
        elif axes is not result:
            for a, b in zip(result, axes, strict=True):
                same(a, b)
    return [result if result is not None else new_axes(operation.shapes[0])]


def identity(side: Side, operation: Operation) -> list[Axes]:
    """Results are like the operands, one by one."""
    return [side.of(o) for o in operation.operands[: len(operation.results)]]


@infers("broadcast")
def _broadcast(side: Side, operation: Operation) -> list[Axes]:
    axes = list(new_axes(operation.shapes[0]))
    for axis, dim in zip(side.of(operation.operands[0]), operation.instruction.attribute("dimensions", ()), strict=True):
        axes[dim] = axis
    return [tuple(axes)]


@infers("transpose")
def _transpose(side: Side, operation: Operation) -> list[Axes]:
    axes = side.of(operation.operands[0])
    return [tuple([axes[d] for d in operation.instruction.attributes["dimensions"]])]


@infers("reverse")
def _reverse(side: Side, operation: Operation) -> list[Axes]:
    return [side.of(operation.operands[0])]


def reshape_groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The dimensions of a reshape in the smallest groups of equal product; dimensions of size 1 are left out."""
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while True:
        while i < len(before) and before[i] == 1:
            i += 1
        while j < len(after) and after[j] == 1:
            j += 1
        if i >= len(before) or j >= len(after):
            return found
        left, right, a, b = [i], [j], before[i], after[j]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                left.append(i)
                a *= before[i]
                i += 1
            else:
                right.append(j)
                b *= after[j]
                j += 1
        found.append(([d for d in left if before[d] > 1], [d for d in right if after[d] > 1]))


@infers("reshape", "bitcast", "bitcast-convert", "copy")
def _reshape(side: Side, operation: Operation) -> list[Axes]:
    shape = operation.shapes[0]
    before = side.program.shapes[operation.operands[0]]
    axes = side.of(operation.operands[0])
    result = list(new_axes(shape))
    if before.size != shape.size or 0 in shape.dims:
        return [tuple(result)]
    rows = memory_order(operation.opcode, before), memory_order(operation.opcode, shape)
    groups = reshape_groups(*[[s.dims[d] for d in row] for s, row in zip((before, shape), rows, strict=True)])
    for left, right in groups:
        if len(left) == len(right) == 1:
            result[rows[1][right[0]]] = axes[rows[0][left[0]]]
        else:
            side.demands.product([axes[rows[0][d]] for d in left], [result[rows[1][d]] for d in right])
    return [tuple(result)]


def memory_order(opcode: str, shape: Shape) -> tuple[int, ...]:
    """Dimensions from major to minor: as they are written, but for a bitcast of a value with another memory layout."""
    if opcode != "bitcast" or shape.layout is None:
        return tuple(range(shape.rank))
    return shape.layout[::-1]


@infers("slice")
def _slice(side: Side, operation: Operation) -> list[Axes]:
    attributes = operation.instruction.attributes
    axes = side.of(operation.operands[0])
    result = list(new_axes(operation.shapes[0]))
    strides = attributes.get("strides") or (1,) * len(axes)
    for d, (axis, start, limit, stride) in enumerate(zip(axes, attributes["starts"], attributes["limits"], strides, strict=True)):
        if axis is None:
            continue
        if stride == 1 and limit - start == axis.size:
            result[d] = axis
        elif stride == 1:
            side.demands.part(axis, start, limit, result[d])
        elif axis.size % stride == 0 and operation.shapes[0].dims[d] == axis.size // stride:
            side.demands.product([axis], [result[d], Axis(stride)])
    return [tuple(result)]


@infers("pad")
def _pad(side: Side, operation: Operation) -> list[Axes]:
    axes = side.of(operation.operands[0])
    before = side.program.shapes[operation.operands[0]].dims
    result = list(new_axes(operation.shapes[0]))
    for d, (low, high, interior) in enumerate(operation.instruction.attributes["padding"]):
        if low == high == interior == 0:
            result[d] = axes[d]
        elif interior == 0 and low >= 0 and high >= 0:
            side.demands.part(result[d], low, low + before[d], axes[d])
        elif interior > 0 and operation.shapes[0].dims[d] == before[d] * (interior + 1):
            side.demands.product([result[d]], [axes[d], Axis(interior + 1)])
    return [tuple(result)]


@infers("concatenate")
def _concatenate(side: Side, operation: Operation) -> list[Axes]:
    dim = operation.instruction.attributes["dimensions"][0]
    result = list(side.of(operation.operands[0]))
    if len(operation.operands) > 1:
        result[dim] = Axis(operation.shapes[0].dims[dim]) if operation.shapes[0].dims[dim] > 1 else None
    start = 0
    for operand in operation.operands:
        for d, axis in enumerate(side.of(operand)):
            if d != dim:
                same(result[d], axis)
        size = side.program.shapes[operand].dims[dim]
        if len(operation.operands) > 1 and size:
            side.demands.part(result[dim], start, start + size, side.of(operand)[dim])
        start += size
    return [tuple(result)]


@infers("dot")
def _dot(side: Side, operation: Operation) -> list[Axes]:
    attributes = operation.instruction.attributes
    left, right = side.of(operation.operands[0]), side.of(operation.operands[1])
    batch = attributes["lhs_batch_dims"], attributes["rhs_batch_dims"]
    inner = attributes["lhs_contracting_dims"], attributes["rhs_contracting_dims"]
    for a, b in (*zip(*batch, strict=True), *zip(*inner, strict=True)):
        same(left[a], right[b])
    free_left = [x for d, x in enumerate(left) if d not in batch[0] and d not in inner[0]]
    free_right = [x for d, x in enumerate(right) if d not in batch[1] and d not in inner[1]]
    return [tuple([left[d] for d in batch[0]] + free_left + free_right)]


@infers("reduce")
def _reduce(side: Side, operation: Operation) -> list[Axes]:
    count = len(operation.results)
    dims = operation.instruction.attributes["dimensions"]
    first = side.of(operation.operands[0])
    for operand in operation.operands[1:count]:
        for a, b in zip(first, side.of(operand), strict=True):
            same(a, b)
    kept = tuple([x for d, x in enumerate(first) if d not in dims])
    return [kept] * count


@infers("sort", "reduce-precision", "cumsum")
def _like_operands(side: Side, operation: Operation) -> list[Axes]:
    first = side.of(operation.operands[0])
    for operand in operation.operands[1 : len(operation.results)]:
        for a, b in zip(first, side.of(operand), strict=True):
            same(a, b)
    return [first] * len(operation.results)


@infers("topk")
def _topk(side: Side, operation: Operation) -> list[Axes]:
    axes = side.of(operation.operands[0])
    last = operation.shapes[0].dims[-1]
    chosen = (*axes[:-1], Axis(last) if last > 1 else None)
    return [chosen] * len(operation.results)


@infers("custom-call")
def _custom_call(side: Side, operation: Operation) -> list[Axes]:
    batch = batch_of(operation.instruction) or ()
    results = [list(new_axes(s)) for s in operation.shapes]
    for operand, pairs in zip(operation.operands, batch, strict=False):
        axes = side.of(operand)
        for d, r in pairs:
            for result in results:
                same(axes[d], result[r])
    return [tuple(r) for r in results]


@infers("gather")
def _gather(side: Side, operation: Operation) -> list[Axes]:
    a = operation.instruction.attributes
    operand, indices = side.of(operation.operands[0]), side.of(operation.operands[1])
    sizes = side.program.shapes[operation.operands[0]].dims
    batch = [x for d, x in enumerate(indices) if d != a["index_vector_dim"]]
    kept = [d for d in range(len(operand)) if d not in a["collapsed_slice_dims"] and d not in a["operand_batching_dims"]]
    result = list(new_axes(operation.shapes[0]))
    for d, source in zip(a["offset_dims"], kept, strict=True):
        if a["slice_sizes"][source] == sizes[source]:
            result[d] = operand[source]
    others = [d for d in range(len(result)) if d not in a["offset_dims"]]
    for d, axis in zip(others, batch, strict=True):
        result[d] = axis
    for od, sd in zip(a["operand_batching_dims"], a["start_indices_batching_dims"], strict=True):
        same(operand[od], indices[sd])
    return [tuple(result)]


@infers("scatter")
def _scatter(side: Side, operation: Operation) -> list[Axes]:
    a = operation.instruction.attributes
    count = len(operation.results)
    operand, indices = side.of(operation.operands[0]), side.of(operation.operands[count])
    sizes = side.program.shapes[operation.operands[0]].dims
    batch = [x for d, x in enumerate(indices) if d != a["index_vector_dim"]]
    kept = [d for d in range(len(operand)) if d not in a["inserted_window_dims"] and d not in a["input_batching_dims"]]
    for update in operation.operands[count + 1 :]:
        axes = side.of(update)
        for d, source in zip(a["update_window_dims"], kept, strict=True):
            if axes[d] is not None and axes[d].size == sizes[source]:
                same(operand[source], axes[d])
        for d, axis in zip([d for d in range(len(axes)) if d not in a["update_window_dims"]], batch, strict=True):
            same(axes[d], axis)
    for od, sd in zip(a["input_batching_dims"], a["scatter_indices_batching_dims"], strict=True):
        same(operand[od], indices[sd])
    return [side.of(o) for o in operation.operands[:count]]


def _window(side: Side, axes: Axes, sizes: Sequence[int], starts: Sequence[int], part: list[Axis | None]) -> None:
    """A window of known start in each dimension; ``part`` are the window's own axes."""
    if len(starts) != len(axes) or any(side.program.shapes[s].dims for s in starts):
        return  # old files give one vector of starts
    for d, axis in enumerate(axes):
        known = side.program.known.get(starts[d])
        if axis is None or known is None or sizes[d] == axis.size:
            continue
        table = [min(max(int(v), 0), axis.size - sizes[d]) for v in known.reshape(known.shape[0])]
        if len(set(table)) == 1:
            side.demands.part(axis, table[0], table[0] + sizes[d], part[d])
        else:
            _device_window(side, axis, sizes[d], table, part[d])


def _device_window(side: Side, axis: Axis, size: int, table: Sequence[int], part: Axis | None) -> None:
    """Windows whose start is a digit expansion of the mesh position: the dimension has the device's digits as factors."""
    digits = fit(table)
    if digits is None or any(step < 0 for _, step in digits):
        return
    strides, stride = [], 1
    for n, _ in reversed(digits):
        strides.append((n, stride))
        stride *= n
    used = [(n, s, step) for (n, s), (_, step) in zip(strides[::-1], digits, strict=True) if step]
    used.sort(key=lambda u: -u[2])
    layout = cuts(tuple([(n, step) for n, _, step in used]), axis.size)
    found = side.device_axes(tuple([(n, s) for n, s, _ in used]))
    if layout is None or found is None or used[-1][2] != size:
        return
    by_step = {step: a for (_, _, step), a in zip(used, found, strict=True)}
    inner: Axis | None = part if size > 1 else None
    parts = [by_step.get(step) or (inner if step < size else None) or Axis(n) for n, step in layout]
    side.demands.product([axis], parts)


@infers("dynamic-slice")
def _dynamic_slice(side: Side, operation: Operation) -> list[Axes]:
    axes = side.of(operation.operands[0])
    sizes = operation.shapes[0].dims
    part = list(new_axes(operation.shapes[0]))
    for d, axis in enumerate(axes):
        if axis is not None and sizes[d] == axis.size:
            part[d] = axis
    _window(side, axes, sizes, operation.operands[1:], part)
    return [tuple(part)]


@infers("dynamic-update-slice")
def _dynamic_update_slice(side: Side, operation: Operation) -> list[Axes]:
    axes, update = side.of(operation.operands[0]), side.of(operation.operands[1])
    sizes = side.program.shapes[operation.operands[1]].dims
    for a, b in zip(axes, update, strict=True):
        same(a, b)
    _window(side, axes, sizes, operation.operands[2:], list(update))
    return [axes]


# -- collectives ---------------------------------------------------------------------------------------------------------
@infers("all-reduce")
def _all_reduce(side: Side, operation: Operation) -> list[Axes]:
    digits = side.groups(operation)
    if digits:
        side.device_axes(digits)
    return identity(side, operation)


@infers("all-gather")
def _all_gather(side: Side, operation: Operation) -> list[Axes]:
    dim = operation.instruction.attributes["dimensions"][0]
    digits = side.groups(operation)
    found = side.device_axes(digits) if digits else None
    results = []
    for operand, shape in zip(operation.operands, operation.shapes[-len(operation.operands) :], strict=True):
        axes = list(side.of(operand))
        if shape.dims[dim] != side.program.shapes[operand].dims[dim]:
            whole = Axis(shape.dims[dim])
            if found is not None:
                side.demands.product([whole], [*found, axes[dim]])
            axes[dim] = whole
        results.append(tuple(axes))
    return results


@infers("reduce-scatter")
def _reduce_scatter(side: Side, operation: Operation) -> list[Axes]:
    dim = operation.instruction.attributes["dimensions"][0]
    digits = side.groups(operation)
    found = side.device_axes(digits) if digits else None
    results = []
    for operand, shape in zip(operation.operands, operation.shapes, strict=True):
        axes = list(side.of(operand))
        if shape.dims[dim] != side.program.shapes[operand].dims[dim]:
            part = Axis(shape.dims[dim]) if shape.dims[dim] > 1 else None
            if found is not None:
                side.demands.product([axes[dim]], [*found, part])
            axes[dim] = part
        results.append(tuple(axes))
    return results


@infers("all-to-all")
def _all_to_all(side: Side, operation: Operation) -> list[Axes]:
    digits = side.groups(operation)
    found = side.device_axes(digits) if digits else None
    dims = operation.instruction.attribute("dimensions")
    if len(operation.results) > 1 or not dims:
        first = side.of(operation.operands[0])
        for operand in operation.operands[1:]:
            for a, b in zip(first, side.of(operand), strict=True):
                same(a, b)
        return [first] * len(operation.results)
    axes = side.of(operation.operands[0])
    axis = axes[dims[0]]
    if found is not None and axis is not None:
        count = 1
        for a in found:
            count *= a.size
        if axis.size % count == 0:
            side.demands.product([axis], [*found, Axis(axis.size // count) if axis.size > count else None])
    return [axes]


for _opcode in ("collective-permute", "collective-broadcast"):
    RULES[_opcode] = identity

for _opcode in [
    "abs",
    "negate",
    "sign",
    "floor",
    "ceil",
    "round-nearest-afz",
    "round-nearest-even",
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "logistic",
    "sqrt",
    "rsqrt",
    "cbrt",
    "tanh",
    "tan",
    "sine",
    "cosine",
    "erf",
    "not",
    "is-finite",
    "convert",
    "add",
    "subtract",
    "multiply",
    "divide",
    "remainder",
    "power",
    "maximum",
    "minimum",
    "and",
    "or",
    "xor",
    "shift-left",
    "shift-right-logical",
    "shift-right-arithmetic",
    "atan2",
    "compare",
    "select",
    "clamp",
    "popcnt",
    "count-leading-zeros",
    "real",
    "imag",
    "complex",
]:
    RULES[_opcode] = elementwise
