"""Shape rules of data movement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.hlo.dtypes import DTYPES
from scalify.hlo.module import Instruction, Module, Shape
from scalify.hlo.shape_rules.base import (
    array,
    dimension,
    distinct,
    fail,
    integer,
    kind,
    replaced,
    same_type,
    scalar,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def broadcast(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, result, dimensions = array(operands[0]), array(instruction.shape), instruction.attributes["dimensions"]
    if len(dimensions) != operand.rank:
        fail(f"dimensions={dimensions} for an operand of rank {operand.rank}")
    distinct(dimensions, result.rank, "dimensions")
    for d, size in zip(dimensions, operand.dims, strict=True):
        if result.dims[d] != size:
            fail(f"operand {operand} does not fit dimension {d} of {result}")
    return Shape(operand.dtype, result.dims)


def reshape(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, result = array(operands[0]), array(instruction.shape)
    if operand.size != result.size:
        fail(f"{operand} has {operand.size} elements, {result} has {result.size}")
    return Shape(operand.dtype, result.dims)


def dynamic_reshape(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    result = array(instruction.shape)
    if len(operands) - 1 != result.rank:
        fail(f"needs one size operand for each dimension of {result}, got {len(operands) - 1}")
    for size in operands[1:]:
        integer(scalar(size, "a size"), "sizes")
    return Shape(array(operands[0]).dtype, result.dims)


def transpose(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, permutation = array(operands[0]), instruction.attributes["dimensions"]
    if len(permutation) != operand.rank:
        fail(f"dimensions={permutation} for an operand of rank {operand.rank}")
    distinct(permutation, operand.rank, "dimensions")
    return Shape(operand.dtype, tuple([operand.dims[d] for d in permutation]))


def reverse(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    distinct(instruction.attributes["dimensions"], array(operands[0]).rank, "dimensions")
    return operands[0]


def bitcast(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    """Equal storage is enough; types below a byte count packed or one to a byte, as the layout wants."""
    operand, result = operands[0], instruction.shape
    if not (operand.is_array and result.is_array):
        return operand
    if operand.dtype == result.dtype:
        fits = operand.size == result.size
    else:
        a, b = DTYPES[operand.dtype].bits, DTYPES[result.dtype].bits
        sizes = {operand.size * a, operand.size * max(a, 8)}
        fits = bool(sizes & {result.size * b, result.size * max(b, 8)})
    if not fits:
        fail(f"{operand} and {result} differ in size")
    return None


def concatenate(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    first, d = array(operands[0]), _only(instruction, operands[0])
    rest = (first.dims[:d], first.dims[d + 1 :])
    for other in operands[1:]:
        if other.dtype != first.dtype or other.rank != first.rank or (other.dims[:d], other.dims[d + 1 :]) != rest:
            fail(f"operands {first} and {other} differ outside dimension {d}")
    return Shape(first.dtype, replaced(first.dims, d, sum([operand.dims[d] for operand in operands])))


def _only(instruction: Instruction, operand: Shape) -> int:
    dimensions: tuple[int, ...] = instruction.attributes["dimensions"]
    if len(dimensions) != 1:
        fail(f"needs exactly one dimension, got dimensions={dimensions}")
    return dimension(dimensions[0], array(operand).rank)


def slice_(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, attributes = array(operands[0]), instruction.attributes
    starts, limits, strides = attributes["starts"], attributes["limits"], attributes["strides"]
    if not len(starts) == len(limits) == len(strides) == operand.rank:
        fail(f"slice bounds do not fit the rank of {operand}")
    for start, limit, stride, size in zip(starts, limits, strides, operand.dims, strict=True):
        if not 0 <= start <= limit <= size or stride < 1:
            fail(f"[{start}:{limit}:{stride}] is outside of a dimension of size {size}")
    return Shape(operand.dtype, tuple([-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True)]))


def dynamic_slice(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, sizes = array(operands[0]), instruction.attributes["dynamic_slice_sizes"]
    if len(sizes) != operand.rank or any(not 0 <= a <= b for a, b in zip(sizes, operand.dims, strict=True)):
        fail(f"dynamic_slice_sizes={sizes} do not fit {operand}")
    _starts(operand, operands[1:])
    return Shape(operand.dtype, tuple(sizes))


def dynamic_update_slice(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, update = array(operands[0]), array(operands[1])
    fits = update.rank == operand.rank and all(a <= b for a, b in zip(update.dims, operand.dims, strict=True))
    if not fits or update.dtype != operand.dtype:
        fail(f"the update {update} does not fit {operand}")
    _starts(operand, operands[2:])
    return operand


def _starts(operand: Shape, starts: Sequence[Shape]) -> None:
    """One scalar a dimension, or (old files) one vector."""
    if len(starts) == 1 and starts[0].dims == (operand.rank,):
        integer(starts[0], "start indices")
        return
    if len(starts) != operand.rank:
        fail(f"needs {operand.rank} start indices, got {len(starts)}")
    for start in starts:
        integer(scalar(start, "a start index"), "start indices")


def pad(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, value, padding = array(operands[0]), operands[1], instruction.attributes["padding"]
    if not same_type(operand, scalar(value, "the padding value")):
        fail(f"the padding value is {value.dtype}, the operand {operand.dtype}")
    if len(padding) != operand.rank:
        fail(f"padding for {len(padding)} dimensions, the operand has rank {operand.rank}")
    dims = tuple([n + low + high + max(n - 1, 0) * interior for n, (low, high, interior) in zip(operand.dims, padding, strict=True)])
    if any(interior < 0 for _, _, interior in padding) or any(n < 0 for n in dims):
        fail(f"padding {padding} leaves a negative size in {operand}")
    return Shape(operand.dtype, dims)


def iota(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    if kind(instruction.shape) == "pred":
        fail("is not defined on pred")
    dimension(instruction.attributes["iota_dimension"], instruction.shape.rank, "iota_dimension")
    return None


def get_dimension_size(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    _only(instruction, operands[0])
    return Shape("s32")


def set_dimension_size(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    _only(instruction, operands[0])
    integer(scalar(operands[1], "the size"), "sizes")
    return operands[0]
