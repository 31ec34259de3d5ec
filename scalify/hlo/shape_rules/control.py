"""Shape rules of control flow, tuples, tokens, random numbers and host transfers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.hlo.shape_rules.base import (
    PRED,
    TOKEN,
    agree,
    array,
    bundle,
    check_call,
    fail,
    integer,
    kind,
    same_type,
    scalar,
    tuple_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Instruction, Module, Shape


def free(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return None


def first(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return operands[0]


def token(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return TOKEN


def constant(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    literal = instruction.attributes.get("literal")
    if literal is not None and literal.shape != instruction.shape.dims:
        fail(f"the literal has dimensions {literal.shape}, declared is {instruction.shape}")
    return None


def tuple_(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return tuple_of(operands)


def get_tuple_element(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    index: int = instruction.attributes["index"]
    elements = operands[0].elements
    if not operands[0].is_tuple or not 0 <= index < len(elements):
        fail(f"index={index} does not fit {operands[0]}")
    return elements[index]


def call(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return check_call(module, instruction.calls[0], operands)


def while_(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    condition, body = instruction.calls
    if not agree(check_call(module, condition, operands), PRED):
        fail(f"the condition {condition} must return pred[]")
    if not agree(check_call(module, body, operands), operands[0]):
        fail(f"the body {body} must return what it takes, {operands[0]}")
    return operands[0]


def conditional(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    selector, branches = scalar(operands[0], "the selector"), instruction.calls
    if selector.dtype not in ("pred", "s32") or len(operands) != len(branches) + 1:
        fail(f"needs a selector pred[] or s32[] and one operand a branch, got {selector} and {len(operands) - 1}")
    if selector.dtype == "pred" and len(branches) != 2:
        fail(f"a selector pred[] needs two branches, got {len(branches)}")
    for branch, operand in zip(branches, operands[1:], strict=True):
        result = check_call(module, branch, [operand])
        if not agree(result, instruction.shape):
            fail(f"branch {branch} returns {result}, declared is {instruction.shape}")
    return None


def async_start(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    elements = instruction.shape.elements
    result = check_call(module, instruction.calls[0], operands)
    if len(elements) < 2 or not (agree(elements[0], tuple_of(operands)) and agree(elements[1], result)):
        fail(f"must return the operands, then {result}; declared is {instruction.shape}")
    return None


def copy_start(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    elements = instruction.shape.elements
    if len(elements) < 2 or not (agree(elements[0], operands[0]) and agree(elements[1], operands[0])):
        fail(f"must begin with result and operand, both {operands[0]}; declared is {instruction.shape}")
    return None


def copy_done(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    if not operands[0].elements:
        fail(f"needs the tuple of copy-start, got {operands[0]}")
    return operands[0].elements[0]


def send(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    elements = instruction.shape.elements
    if len(elements) != 3 or not agree(elements[0], operands[0]):
        fail(f"must return the operand, a context and a token; declared is {instruction.shape}")
    return None


def recv(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    if len(instruction.shape.elements) != 3:
        fail(f"must return the data, a context and a token; declared is {instruction.shape}")
    return None


def recv_done(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    if len(operands[0].elements) != 3:
        fail(f"needs the tuple of recv, got {operands[0]}")
    return tuple_of((operands[0].elements[0], TOKEN))


def send_done(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return TOKEN


def infeed(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    elements = instruction.shape.elements
    if len(elements) != 2 or not agree(elements[1], TOKEN):
        fail(f"must return the data and a token; declared is {instruction.shape}")
    return None


def rng(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    low, high = (scalar(operand, "a parameter of the distribution") for operand in operands)
    if not same_type(low, high) or not same_type(array(instruction.shape), low):
        fail(f"the distribution is over {low} and {high}, declared is {instruction.shape}")
    return None


def rng_bit_generator(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    shape = instruction.shape
    if not shape.is_tuple:
        bits = shape
    elif len(shape.elements) == 2 and agree(shape.elements[0], operands[0]):
        bits = shape.elements[1]
    else:
        fail(f"must return the state {operands[0]} and the bits; declared is {shape}")
    integer(bits, "the generated bits")
    return None


def rng_state(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    if kind(array(instruction.shape)) != "u":
        fail(f"must be unsigned, declared is {instruction.shape}")
    return None


def barrier(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return operands[0] if len(operands) == 1 else bundle(instruction, operands)
