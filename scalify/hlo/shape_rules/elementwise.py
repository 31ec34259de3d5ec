"""Shape rules of elementwise operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.hlo.dtypes import COMPLEX_OF, COMPLEX_PART, DTYPES
from scalify.hlo.module import Instruction, Module, Shape
from scalify.hlo.shape_rules.base import Rule, agree, array, check_call, fail, kind, same_type, scalar

if TYPE_CHECKING:
    from collections.abc import Sequence


def _unary(kinds: str | None) -> Rule:
    allowed = None if kinds is None else frozenset(d.name for d in DTYPES.values() if d.kind in kinds.split())

    def rule(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
        operand = operands[0]
        if allowed is not None and operand.dtype not in allowed:
            fail(f"is not defined on {operand}")
        return operand

    return rule


def _binary(kinds: str | None) -> Rule:
    allowed = frozenset(d.name for d in DTYPES.values() if kinds is None or d.kind in kinds.split())

    def rule(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
        left, right = operands
        if left is not right and (left.dims != right.dims or left.dtype != right.dtype):
            fail(f"operands differ: {left} and {right}")
        if left.dtype not in allowed:
            fail(f"is not defined on {left}")
        return left

    return rule


identity = _unary(None)
float_unary = _unary("f")
complex_unary = _unary("f c")
number_unary = _unary("f c s u")
integer_unary = _unary("s u")
bit_unary = _unary("s u pred")
any_binary = _binary(None)
number_binary = _binary("f c s u")
bit_binary = _binary("s u pred")
integer_binary = _binary("s u")


def is_finite(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    if kind(operands[0]) != "f":
        fail(f"is not defined on {operands[0]}")
    return Shape("pred", operands[0].dims)


def component(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    """real, imag, abs: the part of a complex type, else the type itself."""
    operand = operands[0]
    if kind(operand) == "pred":
        fail(f"is not defined on {operand}")
    part = COMPLEX_PART.get(operand.dtype)
    return Shape(part, operand.dims) if part else operand


def make_complex(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand = any_binary(instruction, operands, module)
    assert operand is not None
    whole = COMPLEX_OF.get(operand.dtype)
    if whole is None:
        fail(f"is not defined on {operand}")
    return Shape(whole, operand.dims)


def convert(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return Shape(array(instruction.shape).dtype, array(operands[0]).dims)


def compare(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    left, right = operands
    if left.dims != right.dims or not same_type(left, right):
        fail(f"operands differ: {left} and {right}")
    return Shape("pred", left.dims)


def select(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    predicate, left, right = operands
    if predicate.dtype != "pred" or (predicate.dims and predicate.dims != left.dims):
        fail(f"the predicate must be pred[] or pred of the operands' dimensions, got {predicate} for {left}")
    if not agree(left, right):
        fail(f"operands differ: {left} and {right}")
    return left


def clamp(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    low, operand, high = operands
    for bound in (low, high):
        if bound.dtype != operand.dtype or (bound.dims and bound.dims != operand.dims):
            fail(f"a bound must be a scalar or have the operand's shape, got {bound} for {operand}")
    return array(operand)


def map_(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    dims = array(operands[0]).dims
    if any(array(operand).dims != dims for operand in operands):
        fail("operands differ in their dimensions")
    result = check_call(module, instruction.calls[0], [Shape(operand.dtype) for operand in operands])
    return Shape(scalar(result, "the result of the mapped computation").dtype, dims)


def stochastic_convert(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    if kind(operands[0]) != "f" or kind(operands[1]) != "u" or operands[0].dims != operands[1].dims:
        fail(f"needs a float and an unsigned operand of equal dimensions, got {operands[0]} and {operands[1]}")
    return Shape(array(instruction.shape).dtype, operands[0].dims)


def bitcast_convert(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, result = array(operands[0]), array(instruction.shape)
    before, after = DTYPES[operand.dtype].bits, DTYPES[result.dtype].bits
    if (operand.dtype in COMPLEX_PART) != (result.dtype in COMPLEX_PART):
        fail(f"cannot reinterpret {operand.dtype} as {result.dtype}")
    if before == after:
        return Shape(result.dtype, operand.dims)
    if before > after:
        return Shape(result.dtype, (*operand.dims, before // after))
    if not operand.dims or operand.dims[-1] != after // before:
        fail(f"the last dimension of {operand} must have size {after // before}")
    return Shape(result.dtype, operand.dims[:-1])
