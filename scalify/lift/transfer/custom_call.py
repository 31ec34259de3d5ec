"""Custom calls that are opaque functions; identities and decompositions are gone by now (:mod:`scalify.lift.custom_calls`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.lift.custom_calls import batch_of, refusal
from scalify.lift.transfer.base import Unsupported, lifts
from scalify.lift.transfer.opaque import Batch, call

if TYPE_CHECKING:
    from scalify.lift.layout import Value
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation


@lifts("custom-call")
def _custom_call(lifter: Lifter, operation: Operation) -> list[Value]:
    batch = batch_of(operation.instruction)
    if batch is None:
        raise Unsupported(refusal(operation.instruction))
    if len(batch) != len(operation.operands):
        raise Unsupported("an opaque custom call with a tuple or a token among its operands")
    return call(lifter, operation, Batch([dict(pairs) for pairs in batch]))
