"""Custom calls by their registered semantics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.lift.transfer.base import Unsupported, lifts
from scalify.lift.transfer.opaque import Batch, call

if TYPE_CHECKING:
    from scalify.lift.layout import Value
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation


@lifts("custom-call")
def _custom_call(lifter: Lifter, operation: Operation) -> list[Value]:
    target = operation.instruction.attributes.get("custom_call_target", "")
    if target in IDENTITIES:
        return [lifter.values[operation.operands[0]]]
    raise Unsupported(f"custom call {target} is not in the registry")


IDENTITIES = frozenset({"Sharding", "AwsNeuronTransferWithStaticRing"})
