"""What a distributed graph would need to verify: edits tried one after the other, the likely ones first.

Suspects are where the damage shows; the mistake is there or some operations before. So the edits of the suspects are tried, then those of the operations
before them, step by step. Most attempts end at once, at the next value that the baseline does not have. Those that got furthest are then carried
through, as correct graphs have values of their own, too. An edit repairs the graph if all failing claims verify with it; the first one found is named.

All work is counted, in values lifted and nodes asked for, so that every run gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scalify.localise import edits_of_attributes, edits_of_collectives, edits_of_operands  # noqa: F401  they register their rules
from scalify.localise.bench import UNLIMITED, Bench
from scalify.localise.edits import ANY, FIRST, LAST, OWN, Edit, moved, proposals
from scalify.report.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scalify.lift.pair import Claim, Pair
    from scalify.lift.program import Operation
    from scalify.localise.known import Known

OFTEN = FIRST, OWN, ANY
STEPS = 3  #: operations before a suspect that are tried together with it
MOST_SITES = 400
LONG = 12  #: work more for each operation: one attempt that succeeds lifts all that follows
NEAR_SHARE = 45_000  #: work that is left for operations behind the suspects
PATIENCE = (8, 300), (UNLIMITED, 300)  #: new values that are put up with, and in how many attempts
INFERRED = 12  #: attempts for which the axes are inferred again

_MOVING = frozenset({Kind.WRONG_AXIS, Kind.WRONG_LAYOUT, Kind.WRONG_GROUPS, Kind.WRONG_SLICE})


@dataclass
class _Trace:
    """Attempts that did not repair the graph at once: (position reached, edit), those near the suspects, and all positions that were edited."""

    suspects: Sequence[Operation]
    reached: list[tuple[int, Edit]] = field(default_factory=list)
    near: list[Edit] = field(default_factory=list)
    sites: set[int] = field(default_factory=set)


def find_repair(pair: Pair, known: Known, claims: Sequence[Claim], suspects: Sequence[Operation]) -> Edit | None:
    """An edit with which all of ``claims``, which failed, verify; None if none was found with the work allowed."""
    bench = Bench(pair, known, claims)
    trace = _Trace(suspects=list({id(s): s for s in (*suspects, *bench.first_news())}.values()))
    try:
        for stage, work in STAGES:
            bench.left = work + (LONG * len(bench.operations) if stage is _at_once else 0)
            found = stage(bench, trace)
            if found is not None:
                return found
        return None
    finally:
        bench.close()


def _at_once(bench: Bench, trace: _Trace) -> Edit | None:
    """Near the suspects, first with what the program has itself, then with values of the baseline; then before the first one."""
    suspects = trace.suspects
    here = list(_sites(bench, suspects, 0))
    near = [s for s in _sites(bench, suspects, STEPS) if s not in here]
    before = [s for s in _sites(bench, suspects, MOST_SITES) if s not in here + near]
    plan = (
        (here, (FIRST, OWN), False),
        (near, (FIRST, OWN), False),
        (here, (ANY,), False),
        (near, (ANY,), False),
        (here, OFTEN, True),
        (near, OFTEN, True),
        (here + near, (LAST,), False),
        (before, OFTEN, False),
    )
    for sites, groups, borrowing in plan:
        for steps, position in sites:
            trace.sites.add(position)
            for edit in proposals(bench, position, *groups, borrowing=borrowing):
                if bench.left <= 0:
                    return None
                attempt = bench.attempt(edit.changes, edit.given)
                if attempt.proved == len(bench.claims) and bench.confirms(edit.changes, edit.given):
                    return edit
                everywhere = _everywhere(bench, edit, attempt.reached)
                if everywhere is not None:
                    return everywhere
                if attempt.reached >= position:
                    trace.reached.append((attempt.reached, edit))
                if steps <= STEPS:
                    trace.near.append(edit)
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


def _everywhere(bench: Bench, edit: Edit, reached: int) -> Edit | None:
    """The same edit in all layers, if with the edit in one the damage shows at the same place of another."""
    before = bench.without(edit.changes)
    if not before < reached < len(bench.operations) or not bench.alike(before, reached):
        return None
    step, others = reached - before, []
    for number in range(1, (len(bench.operations) - min(edit.changes)) // step + 1):
        other = moved(bench, edit, number * step)
        if other is not None:
            others.append(other)
    whole = edit.with_others(others)
    proved = bench.attempt(whole.changes, whole.given).proved if others else 0
    return whole if proved == len(bench.claims) and bench.confirms(whole.changes, whole.given) else None


def _carried(bench: Bench, trace: _Trace) -> Edit | None:
    """Carried through: those that got beyond the value where the damage shows, then those that got as far, then those that got away from where they
    were made.
    """
    stopped = [(r, e) for r, e in trace.reached if max(e.changes, default=r) < r < len(bench.operations)]
    stopped.sort(key=lambda t: -t[0])
    beyond = [e for r, e in stopped if r > bench.without(e.changes)]
    as_far = [e for r, e in stopped if r == bench.without(e.changes)]
    others = [e for r, e in stopped if r < bench.without(e.changes)]
    for attempts in beyond, as_far, others:
        for patience, most in PATIENCE:
            for edit in attempts[:most]:
                if bench.left <= 0:
                    return None
                proved = bench.attempt(edit.changes, edit.given, patience).proved
                if proved == len(bench.claims) and bench.confirms(edit.changes, edit.given):
                    return edit
    return None


def _settled(bench: Bench, edit: Edit) -> bool:
    return bench.settles(edit.changes, edit.given) and bench.confirms(edit.changes, edit.given)


def _elsewhere(bench: Bench, trace: _Trace) -> Edit | None:
    """Instance by instance, too: what was tried near the suspects, then the operations behind them, where a graph has values of its own."""
    for edit in trace.near:
        if bench.left > NEAR_SHARE and _settled(bench, edit):
            return edit
    failing = bench.failing()
    for groups in (FIRST, OWN), (ANY,), (LAST,):
        for position in failing:
            for edit in proposals(bench, position, *groups) if position not in trace.sites else ():
                if bench.left <= 0:
                    return None
                if _settled(bench, edit):
                    return edit
    return None


def _inferred(bench: Bench, trace: _Trace) -> Edit | None:
    best = [e for _, e in sorted(trace.reached, key=lambda t: -t[0])[:4] if not e.given]
    for edit in [*best, *[e for e in trace.near if e.kind in _MOVING and not e.given]][:INFERRED]:
        if bench.left > 0 and bench.anew(edit.changes):
            return edit
    return None


Stage = Callable[[Bench, _Trace], Edit | None]
STAGES: tuple[tuple[Stage, int], ...] = ((_at_once, 30_000), (_carried, 50_000), (_inferred, 20_000), (_elsewhere, 60_000))
"""What is tried in turn, and the work that each may do: some 20,000 units a second."""
