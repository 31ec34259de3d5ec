"""The first instructions whose operands are related to the baseline and whose own value is not.

Only those count from which a failing output is reached through values that are themselves unrelated: a partial sum that a later all-reduce completes
is no suspect, and what merely follows from a suspect is none either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scalify.lift.lifter import Lifter
from scalify.lift.program import Operation
from scalify.localise.known import Known


@dataclass(frozen=True)
class Suspect:
    """An operation of the distributed program, by its position in it."""

    position: int
    operation: Operation


def failing(lifter: Lifter, known: Known, outputs: Iterable[int]) -> set[int]:
    """Values that are unrelated and reach a failing output through unrelated values only (the outputs included)."""
    producers = {r: o for o in lifter.program.operations for r in o.results}
    found: set[int] = set()
    pending = list(outputs)
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        operation = producers.get(value)
        if operation is not None:
            pending.extend(o for o in operation.operands if not known.relates(lifter.values[o]))
    return found


def suspects(lifter: Lifter, known: Known, outputs: Sequence[int]) -> list[Suspect]:
    """In data-flow order. Where every operand chain is related, the producer of the output itself."""
    bad = failing(lifter, known, outputs)
    found = []
    for position, operation in enumerate(lifter.program.operations):
        if not any(r in bad for r in operation.results):
            continue
        if any(o in bad for o in operation.operands):
            continue
        found.append(Suspect(position, operation))
    return found
