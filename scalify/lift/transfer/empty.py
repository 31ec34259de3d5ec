"""Arrays without elements.

A layout has no axis for a dimension of size 0, as for one of size 1, so such arrays must not reach the other transfer functions. A result
without elements may be anything; here it is 0. An operand without elements changes nothing, where the opcode says what is left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from scalify.lift.transfer.base import TRANSFERS, Unsupported

if TYPE_CHECKING:
    from scalify.lift.layout import Value
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation


def lift_empty(lifter: Lifter, operation: Operation) -> list[Value]:
    """An operation with an operand or a result without elements. :raises Unsupported: what is left is not known."""
    if lifter.empty.issuperset(operation.results):
        return [lifter.nothing(r) for r in operation.results]
    if operation.opcode == "concatenate":
        parts = tuple([o for o in operation.operands if o not in lifter.empty])
        return TRANSFERS["concatenate"](lifter, replace(operation, operands=parts))
    if operation.opcode == "pad":
        return [_filled(lifter, operation.results[0], operation.operands[1])]
    if operation.opcode == "reduce":
        initial = operation.operands[len(operation.results) :]
        return [_filled(lifter, r, i) for r, i in zip(operation.results, initial, strict=True)]
    if operation.opcode == "dynamic-update-slice" and operation.operands[1] in lifter.empty:
        return [lifter.values[operation.operands[0]]]
    raise Unsupported(f"{operation.opcode} of an array without elements")


def _filled(lifter: Lifter, result: int, scalar: int) -> Value:
    layout = lifter.layout_of(result)
    return lifter.value(layout, lifter.scalar(scalar, layout))
