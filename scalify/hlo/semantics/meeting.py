"""Several evaluations side by side: each runs until its devices meet others, and goes on when all of those are there.

One module that every device runs is the case of a single evaluation. With a module for each device or stage, a collective joins the
evaluations whose devices share a replica group; they must all have come to one with the same opcode, channel, type and groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.semantics import collectives, effects
from scalify.hlo.semantics.control import rows
from scalify.hlo.semantics.engine import HANDLERS
from scalify.hlo.semantics.values import Op, Scope, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.semantics.values import Flow


@dataclass
class _Party:
    """An evaluation, what it waits for, and its value once it ended."""

    flow: Flow
    waiting: tuple[Op, Sequence[Value]] | None = None
    result: Value = None
    ended: bool = False

    def resume(self, value: Value) -> None:
        try:
            self.waiting = self.flow.send(value)
        except StopIteration as end:
            self.waiting, self.result, self.ended = None, end.value, True

    def fail(self, error: HloError) -> None:
        """Lets the evaluation say where the error is."""
        self.flow.throw(error)


def run(flows: Sequence[Flow]) -> list[Value]:
    """The values of all evaluations. :raises HloError: they wait for each other for ever, or meet in instructions that do not fit."""
    parties = [_Party(flow) for flow in flows]
    for party in parties:
        party.resume(None)
    while not all(party.ended for party in parties):
        waiting = [p for p in parties if p.waiting]
        advanced = [p.waiting is not None and _advance(p, parties) for p in waiting]
        if True not in advanced:
            waiting[0].fail(HloError("waits for other devices for ever"))
    return [party.result for party in parties]


def _advance(party: _Party, parties: Sequence[_Party]) -> bool:
    """Lets a party and those that it meets go on, if all are there."""
    assert party.waiting is not None
    op, operands = party.waiting
    try:
        if op.instruction.opcode == "recv-done":
            if not effects.arrived(op):
                return False
            values = [_handled(op, operands)]
            group = [party]
        else:
            group = _gathered(party, parties)
            if not group:
                return False
            values = _met([p.waiting for p in group if p.waiting])
    except (HloError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        party.flow.throw(error)
        raise
    for member, value in zip(group, values, strict=True):
        member.resume(value)
    return True


def _handled(op: Op, operands: Sequence[Value]) -> Value:
    return HANDLERS[op.instruction.opcode](op, operands)


def _gathered(party: _Party, parties: Sequence[_Party]) -> list[_Party]:
    """The parties that the collective joins; none while some are not there."""
    if len(parties) == 1:
        return [party]
    assert party.waiting is not None
    op = party.waiting[0]
    needed = _partners(op, set(op.scope.devices.tolist()))
    group = [p for p in parties if p.waiting and needed & set(p.waiting[0].scope.devices.tolist())]
    present = {d for p in group if p.waiting for d in p.waiting[0].scope.devices.tolist()}
    if not needed <= present or any(p.waiting and _signature(p.waiting[0]) != _signature(op) for p in group):
        return []
    return group


def _partners(op: Op, devices: set[int]) -> set[int]:
    """All devices that are joined with these, directly or through others of the same modules."""
    counts = op.scope.machine.counts
    if "source_target_pairs" in op.attributes:
        links: list[Any] = collectives.device_pairs(op.instruction, *counts)
    else:
        links = collectives.device_groups(op.instruction, *counts)
    found = set(devices)
    for link in links:
        if not found.isdisjoint(link):
            found.update(link)
    return found


def _signature(op: Op) -> tuple[Any, ...]:
    """What must agree among modules that meet."""
    a = op.attributes
    names = ("channel_id", "dimensions", "replica_groups", "source_target_pairs", "use_global_device_ids")
    return (op.instruction.opcode, op.shape, op.shapes, *(a.get(n) for n in names))


def _met(waiting: Sequence[tuple[Op, Sequence[Value]]]) -> list[Value]:
    """One collective on the lanes of all parties; each gets its own."""
    op, operands = waiting[0]
    if len(waiting) == 1:
        return [_handled(op, operands)]
    devices = np.concatenate([o.scope.devices for o, _ in waiting])
    joined = [np.concatenate(column) for column in zip(*(values for _, values in waiting), strict=True)]
    value = _handled(Op(Scope(op.scope.machine, devices), op.instruction, op.shapes), joined)
    ends = np.cumsum([o.scope.lanes for o, _ in waiting])
    return [rows(value, np.arange(end - o.scope.lanes, end)) for end, (o, _) in zip(ends, waiting, strict=True)]
