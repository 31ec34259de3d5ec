"""Shape rules of gather and scatter (with batching dimensions)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scalify.hlo.module import Instruction, Module, Shape
from scalify.hlo.shape_rules.base import (
    PRED,
    agree,
    array,
    bundle,
    check_call,
    check_reducer,
    distinct,
    fail,
    increasing,
    integer,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def gather(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, indices, attributes = array(operands[0]), operands[1], instruction.attributes
    collapsed, batching, sizes = attributes["collapsed_slice_dims"], attributes["operand_batching_dims"], attributes["slice_sizes"]
    batch = _batch_dims(operand, indices, attributes["start_index_map"], batching, attributes["start_indices_batching_dims"], attributes)
    increasing(collapsed, operand.rank, "collapsed_slice_dims")
    if set(collapsed) & set(batching):
        fail("a dimension is in collapsed_slice_dims and in operand_batching_dims")
    if len(sizes) != operand.rank or any(not 0 <= a <= b for a, b in zip(sizes, operand.dims, strict=True)):
        fail(f"slice_sizes={sizes} do not fit {operand}")
    if any(sizes[d] > 1 for d in (*collapsed, *batching)):
        fail("a collapsed or batching dimension has a slice size above 1")
    window = without(sizes, {*collapsed, *batching})
    return Shape(operand.dtype, _interleave(window, batch, attributes["offset_dims"], "offset_dims"))


def scatter(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    count, attributes = len(operands) // 2, instruction.attributes
    if len(operands) % 2 == 0:
        fail(f"needs operands, indices and as many updates as operands, got {len(operands)}")
    values, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    check_reducer(module, instruction.calls[0], values)
    for operand, update in zip(values, updates, strict=True):
        _update(array(operand), indices, array(update), attributes)
    return bundle(instruction, values)


def _update(operand: Shape, indices: Shape, update: Shape, attributes: Mapping[str, Any]) -> None:
    inserted, batching = attributes["inserted_window_dims"], attributes["input_batching_dims"]
    indexed, window_dims = attributes["scatter_dims_to_operand_dims"], attributes["update_window_dims"]
    batch = _batch_dims(operand, indices, indexed, batching, attributes["scatter_indices_batching_dims"], attributes)
    increasing(inserted, operand.rank, "inserted_window_dims")
    if set(inserted) & set(batching):
        fail("a dimension is in inserted_window_dims and in input_batching_dims")
    increasing(window_dims, update.rank, "update_window_dims")
    bounds = without(operand.dims, {*inserted, *batching})
    window = tuple(update.dims[d] for d in window_dims)
    if len(window) != len(bounds) or any(a > b for a, b in zip(window, bounds, strict=True)):
        fail(f"the window {window} of the updates {update} does not fit {operand}")
    if update.dtype != operand.dtype or without(update.dims, window_dims) != batch:
        fail(f"updates {update} do not fit the indices {indices} and {operand}")


def _batch_dims(
    operand: Shape, indices: Shape, indexed: Sequence[int], batching: Sequence[int], partners: Sequence[int], attributes: Mapping[str, Any]
) -> tuple[int, ...]:
    """Sizes of the index dimensions other than the index vector's, after checking what gather and scatter share."""
    vector = attributes["index_vector_dim"]
    integer(indices, "indices")
    if not 0 <= vector <= indices.rank:
        fail(f"index_vector_dim={vector} is out of range for {indices}")
    length = indices.dims[vector] if vector < indices.rank else 1
    if length != len(indexed):
        fail(f"the index vector has {length} entries for {len(indexed)} indexed dimensions")
    distinct((*indexed, *batching), operand.rank, "indexed or batching dimensions")
    _batching_partners(operand, indices, batching, partners, vector)
    return without(indices.dims, {vector})


def _batching_partners(operand: Shape, indices: Shape, batching: Sequence[int], partners: Sequence[int], vector: int) -> None:
    increasing(batching, operand.rank, "operand batching dimensions")
    distinct(partners, indices.rank, "index batching dimensions")
    if len(batching) != len(partners) or vector in partners:
        fail(f"batching dimensions {tuple(batching)} of the operand do not pair with {tuple(partners)} of the indices")
    for a, b in zip(batching, partners, strict=True):
        if operand.dims[a] != indices.dims[b]:
            fail(f"batching dimension {a} of {operand} and {b} of {indices} differ")


def _interleave(window: Sequence[int], batch: Sequence[int], places: Sequence[int], what: str) -> tuple[int, ...]:
    rank = len(window) + len(batch)
    if len(places) != len(window):
        fail(f"{what}={tuple(places)} for a window of rank {len(window)}")
    increasing(places, rank, what)
    inner, outer = iter(window), iter(batch)
    return tuple(next(inner) if d in places else next(outer) for d in range(rank))


def sort(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    first, dimensions = array(operands[0]), instruction.attributes["dimensions"]
    if len(dimensions) != 1:
        fail(f"needs exactly one dimension, got dimensions={dimensions}")
    distinct(dimensions, max(first.rank, 1), "dimensions")
    if any(array(operand).dims != first.dims for operand in operands):
        fail("operands differ in their dimensions")
    scalars = [Shape(operand.dtype) for operand in operands for _ in range(2)]
    _comparator(instruction.calls[0], scalars, module)
    return bundle(instruction, operands)


def _comparator(name: str, scalars: Sequence[Shape], module: Module) -> None:
    if not agree(check_call(module, name, scalars), PRED):
        fail(f"the comparator {name} must return pred[]")


def topk(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, k = array(operands[0]), instruction.attributes["k"]
    if not operand.dims or not 0 <= k <= operand.dims[-1]:
        fail(f"k={k} does not fit {operand}")
    dims = (*operand.dims[:-1], k)
    return Shape("tuple", elements=(Shape(operand.dtype, dims), Shape("s32", dims)))
