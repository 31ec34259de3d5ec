"""Shape rules of reductions and windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    same_type,
    scalar,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.window import WindowDimension


def reduce(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    values, types = _values(instruction, operands, module)
    dimensions = instruction.attributes["dimensions"]
    distinct(dimensions, values[0].rank, "dimensions")
    dims = without(values[0].dims, dimensions)
    return bundle(instruction, [Shape(dtype, dims) for dtype in types])


def reduce_window(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    values, types = _values(instruction, operands, module)
    dims = window_result(values[0], instruction.attributes["window"])
    return bundle(instruction, [Shape(dtype, dims) for dtype in types])


def _values(instruction: Instruction, operands: Sequence[Shape], module: Module) -> tuple[Sequence[Shape], Sequence[str]]:
    """The reduced operands, after comparing them with the initial values and the reducer."""
    count = len(operands) // 2
    if len(operands) != 2 * count:
        fail(f"needs as many initial values as operands, got {len(operands)} operands in all")
    values, initial = operands[:count], operands[count:]
    for value, start in zip(values, initial, strict=True):
        if array(value).dims != values[0].dims:
            fail("operands differ in their dimensions")
        if not same_type(scalar(start, "an initial value"), value):
            fail(f"the initial value is {start.dtype}, the operand {value.dtype}")
    return values, check_reducer(module, instruction.calls[0], values)


def window_result(operand: Shape, window: Sequence[WindowDimension]) -> tuple[int, ...]:
    if len(window) != array(operand).rank:
        fail(f"a window of rank {len(window)} for {operand}")
    check_window(window)
    return tuple(positions(w, size) for w, size in zip(window, operand.dims, strict=True))


def positions(window: WindowDimension, size: int) -> int:
    """Number of places that the window takes along a dimension of ``size`` elements."""
    base = (max((size - 1) * window.lhs_dilate + 1, 0) if size else 0) + window.pad_low + window.pad_high
    extent = (window.size - 1) * window.rhs_dilate + 1
    return 0 if base < extent else (base - extent) // window.stride + 1


def check_window(window: Sequence[WindowDimension]) -> None:
    for w in window:
        if w.size < 1 or w.stride < 1 or w.lhs_dilate < 1 or w.rhs_dilate < 1:
            fail(f"sizes, strides and dilations of a window must be positive: {w}")


def select_and_scatter(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, source, start = array(operands[0]), array(operands[1]), scalar(operands[2], "the initial value")
    select, combine = instruction.calls
    if not agree(check_call(module, select, [Shape(operand.dtype)] * 2), PRED):
        fail(f"{select} must return pred[]")
    check_reducer(module, combine, [source])
    if source.dims != window_result(operand, instruction.attributes["window"]):
        fail(f"the source {source} does not fit the window over {operand}")
    if not (same_type(source, operand) and same_type(start, operand)):
        fail(f"operand {operand}, source {source} and initial value {start} differ in type")
    return operand
