"""From a lifted pair to a verdict for each claim: normal forms, then instances, then saturation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from scalify.lift.layout import Layout, Value
from scalify.lift.pair import Claim, Pair, claimed
from scalify.lift.terms import View
from scalify.prove.engine import Status
from scalify.prove.instances import equal_by_instances
from scalify.prove.obligation import Prover
from scalify.prove.rule import Rule

DEFAULT_LIMITS: Mapping[str, int] = {"terms": 2_000_000, "instances": 40_000, "obligations": 16}
"""Counted limits, by the names that ``--limit`` takes."""


class How(Enum):
    """What settled a claim."""

    NORMAL_FORM = "normal form"
    INSTANCES = "instance by instance"
    SATURATION = "equality saturation"
    OPEN = "not proved"


@dataclass
class Outcome:
    """Result for one claim. ``differing`` are the blocks that were not proved: (expected, actual)."""

    claim: Claim
    how: How
    differing: list[tuple[View, View]] = field(default_factory=list)


@dataclass
class Proof:
    """The outcomes of all claims, and what it took: obligations given to the engine, memo hits, rules that fired, users' rules among them, the
    limit that stopped an attempt."""

    outcomes: list[Outcome]
    obligations: int = 0
    memo_hits: int = 0
    rules: tuple[str, ...] = ()
    user_rules: tuple[str, ...] = ()
    limit: str | None = None


def prove(pair: Pair, limits: Mapping[str, int], rules: Sequence[Rule]) -> Proof:
    """An outcome for every claim, in order."""
    search = _Search(pair, limits, Prover(rules))
    outcomes = [search.claim(claim) for claim in pair.claims]
    pair.store.used.update(search.assumed)
    return Proof(outcomes, search.count, search.prover.hits, tuple(sorted(search.fired)), tuple(sorted(search.user_rules)), search.limit)


class _Search:
    def __init__(self, pair: Pair, limits: Mapping[str, int], prover: Prover) -> None:
        self.pair = pair
        self.limits = limits
        self.prover = prover
        self.count = 0
        self.assumed: set[str] = set()
        self.fired: set[str] = set()
        self.user_rules: set[str] = set()
        self.limit: str | None = None

    def claim(self, claim: Claim) -> Outcome:
        expected, actual = claimed(self.pair, claim)
        how = How.NORMAL_FORM
        differing = []
        for number, (left, right) in enumerate(zip(expected.views, actual.views, strict=True)):
            if left == right:
                continue
            found = self._settle(left, right, _device_slots(actual, number))
            how = found if found is not How.OPEN else how
            if found is How.OPEN:
                differing.append((left, right))
        return Outcome(claim, How.OPEN if differing else how, differing)

    def _settle(self, expected: View, actual: View, devices: dict[int, int]) -> How:
        known = self.pair.distributed.known_terms
        if equal_by_instances(self.pair.store, expected, actual, devices, known, self.limits["instances"]):
            return How.INSTANCES
        return How.SATURATION if self._saturate(expected, actual) else How.OPEN

    def _saturate(self, expected: View, actual: View) -> bool:
        if self.count >= self.limits["obligations"]:
            self.limit = "obligations"
            return False
        self.count += 1
        outcome = self.prover.prove(expected, actual)
        if outcome.proved:
            self.assumed.update(outcome.assumptions)
            self.fired.update(outcome.rules)
            self.user_rules.update(outcome.user_rules)
        elif outcome.status is Status.LIMIT:
            self.limit = self.limit or outcome.limit
        return outcome.proved


def _device_slots(value: Value, number: int) -> dict[int, int]:
    layout: Layout = value.layout
    block = layout.blocks[number]
    return {s: block.sizes[s] for s in layout.slots(0, block)}
