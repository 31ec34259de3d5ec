"""Shape check: every instruction against what its opcode infers from its operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.errors import HloError
from scalify.hlo.build import check_parameters
from scalify.hlo.opcodes import OPCODES, Opcode
from scalify.hlo.shape_rules.base import agree

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from scalify.hlo.module import Computation, Instruction, Module, Shape


def check(module: Module) -> None:
    """Check every instruction of every computation once.

    Raises :class:`HloError` naming computation and instruction when the declared shape contradicts the inferred one (element type or
    dimensions; layouts are ignored, dynamic dimensions count with their bound), or operands, attributes and called
    computations contradict each other. Unknown opcodes pass.
    """
    for computation in module.computations.values():
        try:
            check_parameters(computation.instructions)
        except HloError as error:
            raise error.at(computation.name) from None
    passed: set[Hashable] = set()
    for computation in module.computations.values():
        _check_computation(computation, module, passed)


def _check_computation(computation: Computation, module: Module, passed: set[Hashable]) -> None:
    """``passed`` holds what a rule may look at in instructions that passed, so that those of a repeated layer are checked once.

    Shapes are told apart by identity there: readers make equal shapes one object, and the module keeps them alive.
    """
    shapes = [instruction.shape for instruction in computation.instructions]
    for i in computation.instructions:
        operands = [shapes[p] for p in i.operands]
        key = (i.opcode, id(i.shape), *map(id, operands), i.calls, *i.attributes.items())
        count = len(passed)
        try:
            passed.add(key)
        except TypeError:  # a literal or a dictionary among the attributes
            count = -1
        if count != len(passed):
            _check_instruction(i, operands, module, computation.name)


def _check_instruction(instruction: Instruction, operands: Sequence[Shape], module: Module, computation: str) -> None:
    opcode = OPCODES.get(instruction.opcode)
    if opcode is None:
        return
    declared = instruction.shape
    try:
        inferred = infer(instruction, operands, module, opcode)
    except HloError as error:
        raise HloError(f"{instruction.opcode} {error.message}", f"{computation}.{instruction.name}") from None
    if inferred is not None and not agree(declared, inferred):
        message = f"{instruction.opcode} is declared {declared}, its operands give {inferred}"
        raise HloError(message, f"{computation}.{instruction.name}")


def infer(instruction: Instruction, operands: Sequence[Shape], module: Module, opcode: Opcode) -> Shape | None:
    """The shape that ``opcode`` infers; None where the declared shape is free or has been compared. Raises :class:`HloError`."""
    required = opcode.required
    if required and not required <= instruction.attributes.keys():
        raise HloError(f"lacks {', '.join(sorted(required - instruction.attributes.keys()))}")
    least, most = opcode.arity
    if len(operands) < least or (most is not None and len(operands) > most):
        raise HloError(_wrong_count(len(operands), opcode.arity, "operands"))
    if instruction.calls or opcode.calls[0]:
        least, most = opcode.calls
        if len(instruction.calls) < least or (most is not None and len(instruction.calls) > most):
            raise HloError(_wrong_count(len(instruction.calls), opcode.calls, "called computations"))
    return opcode.rule(instruction, operands, module)


def _wrong_count(count: int, allowed: tuple[int, int | None], what: str) -> str:
    least, most = allowed
    wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
    return f"needs {wanted} {what}, got {count}"
