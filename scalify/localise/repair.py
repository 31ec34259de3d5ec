"""What a distributed graph would need to verify: edits tried one after the other, the likely ones first.

Suspects are where the damage shows; the mistake is there or some operations before. So the edits of the suspects are tried, then those of the operations
before them, step by step. Most attempts end at once, at the next value that the baseline does not have. Those that got furthest are then carried
through, as correct graphs have values of their own, too. An edit repairs the graph if all failing claims verify with it; the first one found is named.

All work is counted, in values lifted, so that every run gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scalify.localise import edits_of_attributes, edits_of_collectives, edits_of_operands  # noqa: F401  they register their rules
from scalify.localise.bench import UNLIMITED, Bench
from scalify.localise.edits import Edit, proposals
from scalify.report.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scalify.lift.pair import Claim, Pair
    from scalify.lift.program import Operation
    from scalify.localise.known import Known

BUDGET = 12_000  #: values lifted again, all attempts together
STEPS = 3  #: operations before a suspect that are tried together with it
MOST_SITES = 400
PATIENCE = (8, 400), (32, 60), (UNLIMITED, 12)  #: new values that are put up with, and in how many attempts
SETTLED = 4  #: of these, compared instance by instance
INFERRED = 12  #: attempts for which the axes are inferred again

_MOVING = frozenset({Kind.WRONG_AXIS, Kind.WRONG_LAYOUT, Kind.WRONG_GROUPS, Kind.WRONG_SLICE})


@dataclass
class _Trace:
    """Attempts that did not repair the graph at once: (position reached, edit), and those that move elements near the suspects."""

    reached: list[tuple[int, Edit]] = field(default_factory=list)
    moving: list[Edit] = field(default_factory=list)


def find_repair(pair: Pair, known: Known, claims: Sequence[Claim], suspects: Sequence[Operation], budget: int = BUDGET) -> Edit | None:
    """An edit with which all of ``claims``, which failed, verify; None if none was found within ``budget``."""
    bench = Bench(pair, known, claims, budget)
    trace = _Trace()
    try:
        found = _at_once(bench, suspects, trace)
        for later in (_carried, _inferred, _settled):
            bench.left = budget // 3
            found = found or later(bench, trace)
        return found
    finally:
        bench.close()


def _at_once(bench: Bench, suspects: Sequence[Operation], trace: _Trace) -> Edit | None:
    """Near the suspects, first with what the program has itself, then with values of the baseline; then before the first one."""
    suspects = list({id(s): s for s in (*suspects, *bench.first_news())}.values())
    here = list(_sites(bench, suspects, 0))
    near = [s for s in _sites(bench, suspects, STEPS) if s not in here]
    before = [s for s in _sites(bench, suspects[:1], MOST_SITES) if s not in here + near]
    for sites, borrowing in (here, False), (near, False), (here, True), (near, True), (before, False):
        for steps, position in sites:
            for edit in proposals(bench, position, borrowing=borrowing):
                if bench.left <= 0:
                    return None
                attempt = bench.attempt(edit.changes, edit.given)
                if attempt.proved == len(bench.claims):
                    return edit
                if attempt.reached >= position:
                    trace.reached.append((attempt.reached, edit))
                if edit.kind in _MOVING and steps <= STEPS and not edit.given:
                    trace.moving.append(edit)
    return None


def _sites(bench: Bench, suspects: Sequence[Operation], most: int) -> Iterator[tuple[int, int]]:
    """(steps before a suspect, position): suspect by suspect, with the operations before it that no other one has had."""
    seen: set[int] = set()
    for suspect in suspects:
        level, steps = [bench.positions[suspect.results[0]]], 0
        while level and steps <= most and len(seen) < MOST_SITES:
            level = [p for p in level if p not in seen]
            seen.update(level)
            yield from [(steps, p) for p in level]
            level = list(dict.fromkeys([bench.positions[o] for p in level for o in bench.operations[p].operands]))
            steps += 1


def _carried(bench: Bench, trace: _Trace) -> Edit | None:
    """Those that got furthest, carried through; some have been already."""
    stopped = [(reached, edit) for reached, edit in trace.reached if reached < len(bench.operations)]
    stopped.sort(key=lambda t: -t[0])
    for patience, most in PATIENCE:
        for _, edit in stopped[:most]:
            if bench.left > 0 and bench.attempt(edit.changes, edit.given, patience).proved == len(bench.claims):
                return edit
    return None


def _settled(bench: Bench, trace: _Trace) -> Edit | None:
    for _, edit in sorted(trace.reached, key=lambda t: -t[0])[:SETTLED]:
        if bench.left > 0 and bench.settles(edit.changes, edit.given):
            return edit
    return None


def _inferred(bench: Bench, trace: _Trace) -> Edit | None:
    best = [e for _, e in sorted(trace.reached, key=lambda t: -t[0])[:4] if not e.given]
    for edit in [*best, *trace.moving][:INFERRED]:
        if bench.left > 0 and bench.anew(edit.changes):
            return edit
    return None
