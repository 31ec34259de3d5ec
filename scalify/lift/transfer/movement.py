"""Data movement: nothing but other views of the same terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scalify.lift.atoms import from_array, iota
from scalify.lift.compare import at_least_zero
from scalify.lift.functions import select
from scalify.lift.infer import memory_order, reshape_groups
from scalify.lift.layout import Layout, Value
from scalify.lift.linear import combine
from scalify.lift.moves import Source, move
from scalify.lift.product import multiply
from scalify.lift.transfer.base import Unsupported, lifts

if TYPE_CHECKING:
    import numpy.typing as npt

    from scalify.lift.layout import Block
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation
    from scalify.lift.terms import View


@lifts("constant")
def _constant(lifter: Lifter, operation: Operation) -> list[Value]:
    literal = operation.instruction.attributes.get("literal")
    if literal is None:
        raise Unsupported("the data of this constant is left out in the file")
    if np.asarray(literal).dtype.kind == "c":
        raise Unsupported("complex constants")
    return [lifter.data(operation.results[0], np.asarray(literal)[None])]


@lifts("iota")
def _iota(lifter: Lifter, operation: Operation) -> list[Value]:
    layout = lifter.result_layout(operation)
    dim = operation.instruction.attribute("iota_dimension", 0) + 1
    return [lifter.value(layout, [position(lifter, layout, block, dim) for block in layout.blocks])]


def position(lifter: Lifter, layout: Layout, block: Block, dim: int) -> View:
    """The index along a dimension, within a block."""
    offset, digits = layout.alternative((dim,), block)
    return combine(lifter.store, [(c, iota(lifter.store, slot, n)) for slot, n, c in digits], offset)


@lifts("partition-id", "replica-id")
def _device_id(lifter: Lifter, operation: Operation) -> list[Value]:
    _, partitions = lifter.program.counts
    ids = np.array(lifter.device_ids, dtype=np.int64)
    return [lifter.data(operation.results[0], ids % partitions if operation.opcode == "partition-id" else ids // partitions)]


@lifts("broadcast")
def _broadcast(lifter: Lifter, operation: Operation) -> list[Value]:
    dims = operation.instruction.attribute("dimensions", ())
    return [lifter.permuted(operation, [0, *[d + 1 for d in dims]])]


@lifts("transpose")
def _transpose(lifter: Lifter, operation: Operation) -> list[Value]:
    permutation = operation.instruction.attributes["dimensions"]
    target = [0] * (len(permutation) + 1)
    for d, source in enumerate(permutation):
        target[source + 1] = d + 1
    return [lifter.permuted(operation, target)]


@lifts("reshape", "bitcast", "copy")
def _reshape(lifter: Lifter, operation: Operation) -> list[Value]:
    value = lifter.values[operation.operands[0]]
    layout = lifter.result_layout(operation)
    before, after = lifter.program.shapes[operation.operands[0]], operation.shapes[0]
    if (before.dtype, before.size) != (after.dtype, after.size):
        raise Unsupported("a bitcast to another type")
    rows = [memory_order(operation.opcode, s) for s in (before, after)]
    if value.layout.flat_key == layout.flat_key and all(list(r) == sorted(r) for r in rows):
        return [Value(layout, value.views)]
    sources = [Source((0,), (0,))]
    groups = reshape_groups(*[[s.dims[d] for d in r] for s, r in zip((before, after), rows, strict=True)])
    sources += [Source(tuple([rows[0][d] + 1 for d in left]), tuple([rows[1][d] + 1 for d in right])) for left, right in groups]
    return [lifter.value(layout, move(lifter.store, value, layout, sources))]


def identity_sources(rank: int) -> list[Source]:
    return [Source((d,), (d,)) for d in range(rank + 1)]


@lifts("slice")
def _slice(lifter: Lifter, operation: Operation) -> list[Value]:
    attributes = operation.instruction.attributes
    layout = lifter.result_layout(operation)
    strides = attributes.get("strides") or (1,) * len(attributes["starts"])
    sources = [Source((0,), (0,))]
    sources += [
        Source((d + 1,), (d + 1,), start, stride) for d, (start, stride) in enumerate(zip(attributes["starts"], strides, strict=True))
    ]
    return [lifter.value(layout, move(lifter.store, lifter.values[operation.operands[0]], layout, sources))]


@lifts("reverse")
def _reverse(lifter: Lifter, operation: Operation) -> list[Value]:
    layout = lifter.result_layout(operation)
    sources = identity_sources(len(operation.shapes[0].dims))
    for d in operation.instruction.attributes["dimensions"]:
        sources[d + 1] = Source((d + 1,), (d + 1,), layout.sizes[d + 1] - 1, -1)
    return [lifter.value(layout, move(lifter.store, lifter.values[operation.operands[0]], layout, sources))]


@lifts("concatenate")
def _concatenate(lifter: Lifter, operation: Operation) -> list[Value]:
    dim = operation.instruction.attributes["dimensions"][0] + 1
    layout = lifter.result_layout(operation)
    found: list[list[tuple[View, View]]] = [[] for _ in layout.blocks]
    start = 0
    for operand in operation.operands:
        value = lifter.values[operand]
        sources = identity_sources(len(operation.shapes[0].dims))
        size = value.layout.sizes[dim]
        sources[dim] = Source((dim,), (dim,), -start, within=size)
        for parts, block, view in zip(found, layout.blocks, move(lifter.store, value, layout, sources), strict=True):
            where = inside(lifter, layout, block, dim, start, size)
            if where.coef:
                parts.append((where, view))
        start += size
    return [lifter.value(layout, [_either_part(lifter, parts) for parts in found])]


def _either_part(lifter: Lifter, parts: list[tuple[View, View]]) -> View:
    """The view whose condition holds; exactly one does. A sum of products, unless infinities forbid it."""
    if any(view.term.taint for _, view in parts):
        result = parts[-1][1]
        for where, view in parts[-2::-1]:
            result = select(lifter.store, where, view, result)
        return result
    return combine(lifter.store, [(1, multiply(lifter.store, ((where, 1), (view, 1)))) for where, view in parts])


def inside(lifter: Lifter, layout: Layout, block: Block, dim: int, start: int, size: int) -> View:
    """1 where the index along a dimension lies in ``start .. start + size - 1``."""
    if start <= 0 and start + size >= layout.sizes[dim]:
        return lifter.store.constant(1)
    offset, digits = layout.alternative((dim,), block)
    key = ("inside", offset, tuple(digits), start, size)
    found: View | None = lifter.store.memo.get(key)
    if found is None:
        index = position(lifter, layout, block, dim)
        low = at_least_zero(lifter.store, combine(lifter.store, ((1, index),), -start))
        high = at_least_zero(lifter.store, combine(lifter.store, ((-1, index),), start + size - 1))
        found = lifter.store.memo[key] = multiply(lifter.store, ((low, 1), (high, 1)))
    return found


@lifts("pad")
def _pad(lifter: Lifter, operation: Operation) -> list[Value]:
    store = lifter.store
    value = lifter.values[operation.operands[0]]
    layout = lifter.result_layout(operation)
    padding = operation.instruction.attributes["padding"]
    if any(interior for _, _, interior in padding):
        return [_interior_pad(lifter, operation, layout)]
    sources = [Source((0,), (0,)), *[Source((d + 1,), (d + 1,), -low) for d, (low, _, _) in enumerate(padding)]]
    views = move(store, value, layout, sources)
    scalar = lifter.scalar(operation.operands[1], layout)
    found = []
    for view, block, other in zip(views, layout.blocks, scalar, strict=True):
        parts = [(inside(lifter, layout, block, d + 1, low, value.layout.sizes[d + 1]), 1) for d, (low, _, _) in enumerate(padding)]
        where = multiply(store, parts)
        found.append(select(store, where, view, other))
    return [lifter.value(layout, found)]


def _interior_pad(lifter: Lifter, operation: Operation, layout: Layout) -> Value:
    """Padding between elements: element ``i`` of the operand is at ``low + i * (interior + 1)``; tables say where that is."""
    store = lifter.store
    value = lifter.values[operation.operands[0]]
    padding = operation.instruction.attributes["padding"]
    scalar = lifter.scalar(operation.operands[1], layout)
    found = []
    for block, other in zip(layout.blocks, scalar, strict=True):
        sources, conditions = [Source((0,), (0,))], []
        tables: dict[int, tuple[npt.NDArray[np.int64], list[int]]] = {}
        for d, (low, _, interior) in enumerate(padding):
            offset, digits = layout.alternative((d + 1,), block)
            index = np.full([n for _, n, _ in digits], offset - low, dtype=np.int64)
            for k, (_, n, c) in enumerate(digits):
                index += c * np.arange(n).reshape([-1 if i == k else 1 for i in range(len(digits))])
            ok = (index >= 0) & (index % (interior + 1) == 0) & (index // (interior + 1) < value.layout.sizes[d + 1])
            tables[d + 1] = (np.where(ok, index // (interior + 1), 0), [s for s, _, _ in digits])
            conditions.append((from_array(store, ok, [s for s, _, _ in digits]), 1))
            sources.append(Source((d + 1,), (d + 1,)))
        view = lifter.by_tables(value, layout, block, tables)
        found.append(select(store, multiply(store, conditions), view, other))
    return lifter.value(layout, found)
