"""Indexing by values: gather, scatter, dynamic slices, as exact sums over one-hot conditions.

``take(x, i)[..] = sum_v [v = clamp(i)] x_v``; ``scatter-add = x + sum_t [v = i_t] u_t`` (out of range drops itself). Where the index is
known or affine the sums are eliminated and nothing but a view is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scalify.lift.compare import at_least_zero, equals_zero
from scalify.lift.functions import clamp, select
from scalify.lift.layout import Layout, Value
from scalify.lift.linear import combine
from scalify.lift.moves import Source, move
from scalify.lift.product import all_of, multiply
from scalify.lift.transfer.base import Unsupported, exact_value, lifts
from scalify.lift.transfer.contraction import reduce_last, reducer_opcode
from scalify.lift.transfer.movement import position

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scalify.hlo.module import Computation
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation
    from scalify.lift.terms import View


def _finite(lifter: Lifter, operand: int) -> Value:
    value = lifter.values[operand]
    if any(v.term.taint for v in value.views):
        raise Unsupported("a look-up in data that may hold infinities")
    return value


def one_hot(lifter: Lifter, layout: Layout, parts: Sequence[tuple[int, Sequence[View], int | None]], number: int) -> list[tuple[View, int]]:
    """For each ``(dim, start, offset dim)``: 1 where the index along dim is start plus the index along the offset dimension."""
    store, block = lifter.store, layout.blocks[number]
    found = []
    for dim, starts, offset in parts:
        terms = [(1, position(lifter, layout, block, dim)), (-1, starts[number])]
        if offset is not None:
            terms.append((-1, position(lifter, layout, block, offset)))
        found.append((equals_zero(store, combine(store, terms)), 1))
    return found


def _starts(
    lifter: Lifter, operand: int, layout: Layout, dims: dict[int, int], component: int | None, vector_dim: int | None
) -> list[View]:
    """One component of an index array in the blocks of a layout; ``dims`` says where its batch dimensions are."""
    value = exact_value(lifter, lifter.values[operand], lifter.dtype(operand))
    sources = [Source((0,), (0,))]
    for d in range(1, len(value.layout.dims)):
        if vector_dim is not None and d == vector_dim + 1:
            sources.append(Source((d,), (), component or 0))
        else:
            sources.append(Source((d,), (dims[d - 1] + 1,)))
    return move(lifter.store, value, layout, sources)


@lifts("gather")
def _gather(lifter: Lifter, operation: Operation) -> list[Value]:
    a = operation.instruction.attributes
    operand = _finite(lifter, operation.operands[0])
    sizes = lifter.program.shapes[operation.operands[0]].dims
    rank = len(operation.shapes[0].dims)
    hidden = {*a["collapsed_slice_dims"], *a["operand_batching_dims"]}
    offsets = dict(zip([d for d in range(len(sizes)) if d not in hidden], a["offset_dims"], strict=True))
    batch = [d for d in range(rank) if d not in a["offset_dims"]]
    index_rank = len(lifter.program.shapes[operation.operands[1]].dims)
    index_dims = dict(zip([d for d in range(index_rank) if d != a["index_vector_dim"]], batch, strict=True))
    batching = {o: index_dims[s] for o, s in zip(a["operand_batching_dims"], a["start_indices_batching_dims"], strict=True)}
    picked = [d for d in range(len(sizes)) if d not in batching and a["slice_sizes"][d] != sizes[d]]
    axes = lifter.axes_of(operation.operands[0])
    extended = lifter.extended(operation.results[0], [axes[d] for d in picked])
    where = {d: rank + 1 + k for k, d in enumerate(picked)}
    dims = [0]
    for d in range(len(sizes)):
        if d in where:
            dims.append(where[d])
        elif d in batching:
            dims.append(batching[d] + 1)
        else:
            dims.append(offsets[d] + 1 if d in offsets else -1)
    spread = _spread(lifter, operand, extended, dims)
    parts = []
    for d in picked:
        starts: Sequence[View] = [lifter.store.constant(0)] * extended.count
        if d in a["start_index_map"]:
            found = _starts(lifter, operation.operands[1], extended, index_dims, a["start_index_map"].index(d), a["index_vector_dim"])
            starts = [clamp(lifter.store, v, 0, sizes[d] - a["slice_sizes"][d]) for v in found]
        offset = offsets[d] + 1 if d in offsets and a["slice_sizes"][d] > 1 else None
        parts.append((where[d], starts, offset))
    return [_selected(lifter, operation, spread, parts)]


def _spread(lifter: Lifter, value: Value, target: Layout, dims: Sequence[int]) -> Value:
    """Like :meth:`Lifter.spread`, where a dimension of size 1 may have no place (-1)."""
    if -1 not in dims:
        return lifter.spread(value, target, dims)
    sources = [Source((d,), (t,)) if t >= 0 else Source((d,), ()) for d, t in enumerate(dims)]
    return lifter.value(target, move(lifter.store, value, target, sources))


def _selected(lifter: Lifter, operation: Operation, spread: Value, parts: Sequence[tuple[int, Sequence[View], int | None]]) -> Value:
    extended = spread.layout
    target = lifter.result_layout(operation)
    views = [multiply(lifter.store, [(view, 1), *one_hot(lifter, extended, parts, n)]) for n, view in enumerate(spread.views)]
    return lifter.value(target, reduce_last(lifter.store, Value(extended, tuple(views)), target, "add"))


@lifts("dynamic-slice")
def _dynamic_slice(lifter: Lifter, operation: Operation) -> list[Value]:
    _check_starts(lifter, operation, 1)
    operand = _finite(lifter, operation.operands[0])
    before = lifter.program.shapes[operation.operands[0]].dims
    after = operation.shapes[0].dims
    picked = [d for d in range(len(before)) if before[d] != after[d]]
    axes = lifter.axes_of(operation.operands[0])
    extended = lifter.extended(operation.results[0], [axes[d] for d in picked])
    where = {d: len(after) + 1 + k for k, d in enumerate(picked)}
    spread = lifter.spread(operand, extended, [0, *[where.get(d, d + 1) for d in range(len(before))]])
    parts = []
    for d in picked:
        starts = clamped_starts(lifter, operation.operands[1 + d], extended, before[d] - after[d])
        parts.append((where[d], starts, d + 1 if after[d] > 1 else None))
    return [_selected(lifter, operation, spread, parts)]


def _check_starts(lifter: Lifter, operation: Operation, first: int) -> None:
    if any(lifter.program.shapes[o].dims for o in operation.operands[first:]):
        raise Unsupported("one vector of start indices")


def clamped_starts(lifter: Lifter, operand: int, layout: Layout, last: int) -> list[View]:
    """A scalar start in the blocks of a layout, clamped to ``0 .. last``."""
    value = exact_value(lifter, lifter.values[operand], lifter.dtype(operand))
    views = lifter.spread(value, layout, (0,)).views
    return [clamp(lifter.store, v, 0, last) for v in views]


@lifts("dynamic-update-slice")
def _dynamic_update_slice(lifter: Lifter, operation: Operation) -> list[Value]:
    _check_starts(lifter, operation, 2)
    store = lifter.store
    before = lifter.program.shapes[operation.operands[0]].dims
    sizes = lifter.program.shapes[operation.operands[1]].dims
    target = lifter.result_layout(operation)
    picked = [d for d in range(len(before)) if before[d] != sizes[d]]
    update_axes = lifter.axes_of(operation.operands[1])
    update = lifter.values[operation.operands[1]]
    if any(sizes[d] > 1 for d in picked):
        update = _finite(lifter, operation.operands[1])
    extended = lifter.extended(operation.results[0], [update_axes[d] for d in picked])
    where = {d: len(before) + 1 + k for k, d in enumerate(picked)}
    spread = lifter.spread(update, extended, [0, *[where.get(d, d + 1) for d in range(len(before))]])
    wide = [d for d in picked if sizes[d] > 1]
    starts = {d: clamped_starts(lifter, operation.operands[2 + d], extended, before[d] - sizes[d]) for d in picked}
    views = [
        multiply(store, [(view, 1), *one_hot(lifter, extended, [(d + 1, starts[d], where[d]) for d in wide], n)])
        for n, view in enumerate(spread.views)
    ]
    placed = reduce_last(store, Value(extended, tuple(views)), target, "add")
    own = {d: clamped_starts(lifter, operation.operands[2 + d], target, before[d] - sizes[d]) for d in picked}
    operand = lifter.aligned(operation.operands[0], target)
    found = []
    for n, (new, kept) in enumerate(zip(placed, operand, strict=True)):
        hit = all_of(store, [_within(lifter, target, n, d + 1, own[d][n], sizes[d]) for d in picked])
        found.append(select(store, hit, new, kept))
    return [lifter.value(target, found)]


def _within(lifter: Lifter, layout: Layout, number: int, dim: int, start: View, size: int) -> View:
    store = lifter.store
    index = position(lifter, layout, layout.blocks[number], dim)
    if size == 1:
        return equals_zero(store, combine(store, ((1, index), (-1, start))))
    low = at_least_zero(store, combine(store, ((1, index), (-1, start))))
    return all_of(store, (low, at_least_zero(store, combine(store, ((-1, index), (1, start)), size - 1))))


@lifts("scatter")
def _scatter(lifter: Lifter, operation: Operation) -> list[Value]:
    if len(operation.results) > 1:
        raise Unsupported("a scatter of several operands")
    store = lifter.store
    kind = _scatter_kind(operation.computations[0], lifter.dtype(operation.results[0]))
    a = operation.instruction.attributes
    sizes = lifter.program.shapes[operation.operands[0]].dims
    updates = lifter.program.shapes[operation.operands[2]].dims
    update = _finite(lifter, operation.operands[2])
    target = lifter.result_layout(operation)
    rank = len(sizes)
    index_rank = len(lifter.program.shapes[operation.operands[1]].dims)
    batch = [d for d in range(len(updates)) if d not in a["update_window_dims"]]
    index_dims = dict(zip([d for d in range(index_rank) if d != a["index_vector_dim"]], batch, strict=True))
    hidden = {*a["inserted_window_dims"], *a["input_batching_dims"]}
    window = dict(zip([d for d in range(rank) if d not in hidden], a["update_window_dims"], strict=True))
    batching = {index_dims[s]: o for o, s in zip(a["input_batching_dims"], a["scatter_indices_batching_dims"], strict=True)}
    placed: dict[int, int] = {w: d for d, w in window.items() if updates[w] == sizes[d]} | batching
    loose = [d for d in range(len(updates)) if d not in placed]
    axes = lifter.axes_of(operation.operands[2])
    extended = lifter.extended(operation.results[0], [axes[d] for d in loose])
    where = {d: rank + 1 + k for k, d in enumerate(loose)}
    dims = [0, *[placed[d] + 1 if d in placed else where[d] for d in range(len(updates))]]
    spread = lifter.spread(update, extended, dims)
    at = {d: dims[1 + d] - 1 for d in index_dims.values()}
    places = {k: at[v] for k, v in index_dims.items()}
    conditions = _scatter_conditions(lifter, operation, extended, places, window, where, updates)
    views = [multiply(store, [(view, 1), *conditions[n]]) for n, view in enumerate(spread.views)]
    added = reduce_last(store, Value(extended, tuple(views)), target, "add")
    operand = lifter.aligned(operation.operands[0], target)
    if kind == "add":
        return [lifter.value(target, [combine(store, ((1, x), (1, y))) for x, y in zip(operand, added, strict=True)])]
    widths = [(updates[window[d]] if d in window else 1, sizes[d]) for d in a["scatter_dims_to_operand_dims"]]
    apart = all(width in (1, size) for width, size in widths)  # windows of different starts do not overlap
    free = [at[d] + 1 for d in batch if updates[d] > 1 and d not in batching]
    distinct = apart and (a.get("unique_indices") or _distinct(lifter, operation) or _readable(lifter, operation, extended, places, free))
    if not (_single(updates, batch) or distinct):
        raise Unsupported("a scatter that may write one element several times")
    hits = [multiply(store, conditions[n]) for n in range(extended.count)]
    hit = reduce_last(store, Value(extended, tuple(hits)), target, "add")
    return [lifter.value(target, [select(store, h, y, x) for h, x, y in zip(hit, operand, added, strict=True)])]


def _scatter_conditions(
    lifter: Lifter,
    operation: Operation,
    extended: Layout,
    index_dims: dict[int, int],
    window: Mapping[int, int],
    where: Mapping[int, int],
    updates: Sequence[int],
) -> list[list[tuple[View, int]]]:
    """For each block the 0/1 factors that say that an update lands on the element."""
    a = operation.instruction.attributes
    sizes = lifter.program.shapes[operation.operands[0]].dims
    found: list[list[tuple[View, int]]] = [[] for _ in range(extended.count)]
    for k, d in enumerate(a["scatter_dims_to_operand_dims"]):
        starts = _starts(lifter, operation.operands[1], extended, index_dims, k, a["index_vector_dim"])
        width = updates[window[d]] if d in window else 1
        if width == sizes[d]:
            for n, start in enumerate(starts):
                found[n].append((equals_zero(lifter.store, start), 1))
            continue
        offset = where.get(window[d]) if d in window and width > 1 else None
        for n in range(extended.count):
            found[n] += one_hot(lifter, extended, [(d + 1, starts, offset)], n)
            if width > 1:
                found[n].append((at_least_zero(lifter.store, starts[n]), 1))
                top = combine(lifter.store, ((-1, starts[n]),), sizes[d] - width)
                found[n].append((at_least_zero(lifter.store, top), 1))
    zero = [lifter.store.constant(0)] * extended.count
    for d, size in enumerate(sizes):
        if d in a["scatter_dims_to_operand_dims"] or d in a["input_batching_dims"]:
            continue
        if size > 1 and (d not in window or window[d] in where):  # without an index of its own a window starts at 0
            for n in range(extended.count):
                found[n] += one_hot(lifter, extended, [(d + 1, zero, where[window[d]] if d in window else None)], n)
    return found


def _scatter_kind(computation: Computation, dtype: str) -> str:
    if reducer_opcode(computation) == "add" and dtype != "pred":  # whose addition is a logical or
        return "add"
    root = computation.instructions[computation.root]
    if root.opcode == "parameter" and root.attributes["index"] == 1:
        return "set"
    raise Unsupported("a scatter with another combination than add or overwrite")


def _single(updates: Sequence[int], batch: Sequence[int]) -> bool:
    return all(updates[d] == 1 for d in batch)


def _distinct(lifter: Lifter, operation: Operation) -> bool:
    """Whether the index vectors are known and differ from each other on every device."""
    known = lifter.program.known.get(operation.operands[1])
    if known is None or lifter.program.shapes[operation.operands[0]].rank == 0:
        return False
    a = operation.instruction.attributes
    dim = a["index_vector_dim"] + 1
    vectors = np.moveaxis(known, dim, -1) if dim < known.ndim else known[..., None]
    flat = vectors.reshape(known.shape[0], -1, vectors.shape[-1])
    return all(len(np.unique(rows, axis=0)) == len(rows) for rows in flat) and not a["input_batching_dims"]


def _readable(lifter: Lifter, operation: Operation, extended: Layout, index_dims: dict[int, int], dims: list[int]) -> bool:
    """Whether the index vectors of different updates differ because the update can be read off its vector.

    A component that is the position along one of ``dims`` (dimensions of ``extended``, the batch dimensions of the updates) plus something that depends
    on no other dimension that is still open gives that position: where two vectors are equal, so are the positions found before, hence the
    rest, hence this one. When every dimension is found the vectors are distinct, whatever the other components are.
    """
    a = operation.instruction.attributes
    count = len(a["scatter_dims_to_operand_dims"])
    components = [_starts(lifter, operation.operands[1], extended, index_dims, k, a["index_vector_dim"]) for k in range(count)]
    left = list(dims)
    while left:
        found = next((d for d in left if any(_gives(lifter, extended, starts, d, left) for starts in components)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _gives(lifter: Lifter, layout: Layout, starts: Sequence[View], dim: int, left: Sequence[int]) -> bool:
    """Whether ``starts`` is the position along ``dim`` plus something that depends on none of the dimensions ``left``."""
    rests = [
        combine(lifter.store, ((1, start), (-1, position(lifter, layout, block, dim))))
        for start, block in zip(starts, layout.blocks, strict=True)
    ]
    if not layout.plain:  # slots of different blocks do not compare
        return not rests[0].at and len(set(rests)) == 1
    return not {s for d in left for s in layout.slots(d, layout.blocks[0])}.intersection(rests[0].at)
