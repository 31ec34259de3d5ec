"""Suspects with their diagnosis and a repair, as findings; what is not understood."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.localise.diagnose import blamed, diagnose
from scalify.localise.grouping import grouped
from scalify.localise.known import Known
from scalify.localise.repair import find_repair
from scalify.localise.source import place
from scalify.localise.suspects import suspects
from scalify.report.model import Finding, Kind, Place, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scalify.lift.pair import Pair
    from scalify.lift.program import Operation
    from scalify.localise.edits import Edit

MOST_DIAGNOSED = 200
MOST_REPAIRED = 40  #: suspects for which a repair is looked for


def faults(pair: Pair, open_values: Sequence[int], source_root: Path | None) -> list[Finding]:
    """What is wrong with the values of claims that were not proved, the first suspect first."""
    known = Known.of(pair.baseline, pair.distributed, pair.relation.mesh.axes)
    unsupported = {id(o): reason for o, reason in pair.distributed.unsupported}
    found, repair = ranked(pair, known, open_values)
    rows = [_finding(pair, known, s, unsupported, source_root, repair) for s in found[:MOST_DIAGNOSED]]
    rows += [_unsupported_baseline(o, reason, source_root) for o, reason in pair.baseline.unsupported]
    return grouped(rows)


def ranked(pair: Pair, known: Known, outputs: Sequence[int]) -> tuple[list[Operation], Edit | None]:
    """The suspects, the operation that can be repaired first, and the repair. Those that differ by a factor only and cannot be repaired come last: a sum
    over devices may be scaled in another place than the baseline's.
    """
    found = [s.operation for s in suspects(pair.distributed, known, outputs)]
    if pair.distributed.unsupported:
        return found, None
    repair = find_repair(pair, known, [c for c in pair.claims if c.actual in outputs], found[:MOST_REPAIRED])
    found.sort(key=known.is_scaled)
    if repair is None:
        return found, None
    return [repair.operation, *[o for o in found if o is not repair.operation]], repair


def _finding(
    pair: Pair, known: Known, operation: Operation, unsupported: dict[int, str], source_root: Path | None, repair: Edit | None
) -> Finding:
    if id(operation) in unsupported:
        return Finding(Kind.UNSUPPORTED, Severity.ERROR, unsupported[id(operation)], place(operation.instruction, source_root))
    if repair is not None and repair.operation is operation:
        other = (
            place(repair.counterpart.instruction, source_root)
            if repair.counterpart
            else _baseline_place(pair, known, operation, source_root)
        )
        where = place(operation.instruction, source_root)
        return Finding(repair.kind, Severity.ERROR, repair.problem, where, other, repair.places, repair.remedy)
    kind, message = diagnose(known, operation)
    where = place(blamed(known, operation).instruction, source_root)
    return Finding(kind, Severity.ERROR, message, where, _baseline_place(pair, known, operation, source_root))


def _baseline_place(pair: Pair, known: Known, operation: Operation, source_root: Path | None) -> Place | None:
    """The baseline's instruction that uses the same operands, or has the value of the first operand."""
    views = [v for o in operation.operands for v in pair.distributed.values[o].views]
    used = {(v.coef, v.term) for v in views if v.term.kind != "one"}
    best: tuple[int, Operation] | None = None
    for other in pair.baseline.program.operations[: pair.own]:
        if other.opcode != operation.opcode or not other.operands:
            continue
        mine = {(v.coef, v.term) for o in other.operands for v in pair.baseline.values[o].views}
        score = len(mine & used)
        if score and (best is None or score > best[0]):
            best = score, other
    return place(best[1].instruction, source_root) if best else None


def _unsupported_baseline(operation: Operation, reason: str, source_root: Path | None) -> Finding:
    where = place(operation.instruction, source_root)
    return Finding(Kind.UNSUPPORTED, Severity.ERROR, f"in the baseline: {reason}", where, where)
