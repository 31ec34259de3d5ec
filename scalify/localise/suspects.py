"""The first instructions whose operands are related to the baseline and whose own value is not.

Only those count from which a failing output is reached through values that are themselves unrelated: what merely follows from a suspect is none. A
partial sum counts as related: the instruction that takes it for a whole value is to blame, or the collective that completes it wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalify.localise.known import COLLECTIVES, Known, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation

_GIVEN = frozenset({"parameter", "constant", "iota", "partition-id", "replica-id"})
_LINEAR = frozenset(
    ["reshape", "bitcast", "transpose", "broadcast", "convert", "copy", "reverse", "reduce-precision", "multiply", "divide", "negate"]
)


@dataclass(frozen=True)
class Suspect:
    """An operation of the distributed program, by its position in it."""

    position: int
    operation: Operation


def failing(lifter: Lifter, known: Known, outputs: Sequence[int]) -> set[int]:
    """Values that are unrelated and reach a failing output through unrelated values only (the outputs included)."""
    producers = known.producers
    found: set[int] = set()
    pending = list(outputs)
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        operation = producers.get(value)
        if operation is not None and operation.opcode not in _GIVEN:
            pending.extend(o for o in _blamed(known, value, operation) if producers[o].opcode not in _GIVEN)
    return found


def _blamed(known: Known, value: int, operation: Operation) -> list[int]:
    """The operands that may carry the fault: new ones; those that have vanished into a constant; those in another order."""
    statuses = {o: known.status(o) for o in operation.operands}
    new = [o for o, s in statuses.items() if s is Status.NEW]
    if new:
        return new
    if known.status(value) is Status.CONSTANT:
        return [o for o, s in statuses.items() if s is Status.CONSTANT]
    vanished = [o for o, s in statuses.items() if s is Status.CONSTANT and o in known.vanished]
    return vanished or [o for o, s in statuses.items() if s is Status.REORDERED]


def suspects(lifter: Lifter, known: Known, outputs: Sequence[int]) -> list[Suspect]:
    """In data-flow order; operations without a lifting first, as nothing can be said of what follows them; those that only change an order
    last, as a framework may keep its own layouts.
    """
    bad = failing(lifter, known, outputs)
    unknown = {id(o) for o, _ in lifter.unsupported}
    first: list[Suspect] = []
    found: list[Suspect] = []
    last: list[Suspect] = []
    for position, operation in enumerate(lifter.program.operations):
        if not any(r in bad for r in operation.results):
            continue
        if id(operation) in unknown:
            first.append(Suspect(position, operation))
        elif not any(o in bad for o in operation.operands):
            reorders = operation.opcode not in COLLECTIVES and all(known.status(r) is Status.REORDERED for r in operation.results)
            (last if reorders else found).append(Suspect(position, operation))
    return first + found + last


def origin_of_partial(known: Known, value: int) -> Operation | None:
    """The operation that makes a partial value, those that only move, convert or scale it looked through; None if it is given."""
    producer = known.producers.get(value)
    while producer is not None and producer.opcode in _LINEAR:
        parts = [o for o in producer.operands if known.status(o) is Status.PARTIAL]
        if len(parts) != 1:
            break
        producer = known.producers.get(parts[0])
    return producer if producer is None or producer.opcode not in _GIVEN else None
