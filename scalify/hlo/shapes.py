"""Shape check: every instruction against what its opcode infers from its operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.errors import HloError
from scalify.hlo.opcodes import OPCODES, Opcode
from scalify.hlo.shape_rules.base import agree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Computation, Instruction, Module, Shape


def check(module: Module) -> None:
    """Check every instruction of every computation once.

    Raises :class:`HloError` naming computation and instruction when the declared shape contradicts the inferred one (element type or
    dimensions; layouts are ignored, dynamic dimensions count with their bound), or operands, attributes and called
    computations contradict each other. Unknown opcodes pass.
    """
    for computation in module.computations.values():
        _check_parameters(computation)
    for computation in module.computations.values():
        _check_computation(computation, module)


def _check_parameters(computation: Computation) -> None:
    numbers = [i.attributes.get("index") for i in computation.instructions if i.opcode == "parameter"]
    if set(numbers) != set(range(len(numbers))):
        raise HloError(f"parameters are numbered {numbers}, not 0 to {len(numbers) - 1}", f"computation {computation.name}")


def _check_computation(computation: Computation, module: Module) -> None:
    shapes = [instruction.shape for instruction in computation.instructions]
    table = OPCODES
    for instruction in computation.instructions:
        opcode = table.get(instruction.opcode)
        if opcode is None:
            continue
        declared = instruction.shape
        operands = [shapes[p] for p in instruction.operands]
        try:
            inferred = infer(instruction, operands, module, opcode)
        except HloError as error:
            raise HloError(f"{instruction.opcode} {error.message}", _place(computation, instruction)) from None
        if inferred is None or inferred is declared:
            continue
        if declared.dims != inferred.dims or declared.dtype != inferred.dtype or not agree(declared, inferred):
            raise HloError(f"{instruction.opcode} is declared {declared}, its operands give {inferred}", _place(computation, instruction))


def infer(instruction: Instruction, operands: Sequence[Shape], module: Module, opcode: Opcode) -> Shape | None:
    """The shape that ``opcode`` infers; None where the declared shape is free or has been compared. Raises :class:`HloError`."""
    attributes = instruction.attributes
    if not opcode.required <= attributes.keys():
        raise HloError(f"lacks {', '.join(sorted(opcode.required - attributes.keys()))}")
    _count(len(operands), opcode.arity, "operands")
    if instruction.calls or opcode.calls[0]:
        _count(len(instruction.calls), opcode.calls, "called computations")
    return opcode.rule(instruction, operands, module)


def _count(count: int, allowed: tuple[int, int | None], what: str) -> None:
    least, most = allowed
    if count < least or (most is not None and count > most):
        wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        raise HloError(f"needs {wanted} {what}, got {count}")


def _place(computation: Computation, instruction: Instruction) -> str:
    return f"{computation.name}.{instruction.name}"
