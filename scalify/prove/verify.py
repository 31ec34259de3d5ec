"""From a lifted pair to a verdict for each claim: normal forms, then instances, then saturation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from scalify.lift.pair import Claim, Pair, claimed
from scalify.prove.engine import Limits, Status
from scalify.prove.instances import equal_by_instances
from scalify.prove.obligation import Prover
from scalify.prove.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scalify.lift.layout import Layout, Value
    from scalify.lift.terms import View
    from scalify.prove.rule import Rule

DEFAULT_LIMITS: Mapping[str, int] = {"terms": 2_000_000, "instances": 20_000, "obligations": 16, "sweep": 24}
"""Counted limits, by the names that ``--limit`` takes."""


SWEEP = Limits(expression=200, rows=2_000, rounds=8, levels=0)
"""What one obligation of a sweep may cost; there may be many."""


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
    """The outcomes of all claims (for ``pair``, which may have been swept), and what it took: obligations given to the engine, memo hits, rules that fired, users' rules among them, the
    limit that stopped an attempt.
    """

    pair: Pair
    outcomes: list[Outcome]
    obligations: int = 0
    memo_hits: int = 0
    rules: tuple[str, ...] = ()
    user_rules: tuple[str, ...] = ()
    limit: str | None = None


def prove(pair: Pair, limits: Mapping[str, int], rules: Sequence[Rule]) -> Proof:
    """An outcome for every claim, in order. Where claims stay open the distributed program is swept and they are tried again."""
    search = _Search(pair, limits, Prover(rules))
    outcomes = search.claims()
    if any(o.how is How.OPEN for o in outcomes):
        sweep = Sweep(pair, Prover(rules, SWEEP), limits["sweep"])
        swept = sweep.run()
        search.count += len(sweep.prover.memo)
        if sweep.merged:
            search.swept(swept, sweep)
            outcomes = search.claims()
    pair.store.used.update(search.assumed)
    hits = search.prover.hits
    return Proof(search.pair, outcomes, search.count, hits, tuple(sorted(search.fired)), tuple(sorted(search.user_rules)), search.limit)


class _Search:
    def __init__(self, pair: Pair, limits: Mapping[str, int], prover: Prover) -> None:
        self.pair = pair
        self.limits = limits
        self.prover = prover
        self.count = 0
        self.instances = 0
        self.assumed: set[str] = set()
        self.fired: set[str] = set()
        self.user_rules: set[str] = set()
        self.limit: str | None = None

    def claims(self) -> list[Outcome]:
        return [self.claim(claim) for claim in self.pair.claims]

    def swept(self, pair: Pair, sweep: Sweep) -> None:
        """Go on with a swept pair; its proofs lean on what the sweep leaned on."""
        self.pair = pair
        self.assumed |= sweep.assumed
        self.fired |= sweep.fired
        self.user_rules |= sweep.user_rules

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
        if self._by_instances(expected, actual, devices):
            return How.INSTANCES
        return How.SATURATION if self._saturate(expected, actual) else How.OPEN

    def _by_instances(self, expected: View, actual: View, devices: dict[int, int]) -> bool:
        """Within what earlier claims have left of the limit, which counts new terms."""
        store = self.pair.store
        before = len(store.terms)
        known = self.pair.distributed.known_terms
        equal = equal_by_instances(store, expected, actual, devices, known, self.limits["instances"] - self.instances)
        self.instances += len(store.terms) - before
        return equal

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
