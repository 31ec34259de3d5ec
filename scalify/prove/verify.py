"""From a lifted pair to a verdict for each claim: normal forms, then instances, then saturation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from scalify.lift.pair import Claim, Pair, claimed
from scalify.lift.program import MOST_OPERATIONS
from scalify.prove.instances import equal_by_instances

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from scalify.lift.layout import Layout, Value
    from scalify.lift.terms import View
    from scalify.prove.obligation import Prover
    from scalify.prove.rule import Rule
    from scalify.prove.sweep import Sweep

    Rules = Callable[[], Sequence[Rule]]

DEFAULT_LIMITS: Mapping[str, int] = {
    "operations": MOST_OPERATIONS,
    "terms": 2_000_000,
    "instances": 20_000,
    "obligations": 16,
    "sweep": 24,
    "refutation": 3_000_000_000,
}
"""Counted limits, by the names that ``--limit`` takes; ``refutation`` counts element operations of the search for a counterexample."""


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


def prove(pair: Pair, limits: Mapping[str, int], rules: Rules, differing: Callable[[set[int]], Container[int]] = lambda _: ()) -> Proof:
    """An outcome for every claim, in order. Where claims stay open the distributed program is swept and they are tried again.

    ``rules`` is called, and the engine loaded, only when normal forms and instances leave something open: most pairs never need them. Before that ``differing`` is
    asked which of the outputs that normal forms leave open are known to differ: no proof of theirs is looked for.
    """
    search = _Search(pair, limits, rules)
    left = {c.output for c in pair.claims if search.differing_blocks(c)}
    search.refuted = differing(left) if left else ()
    outcomes = search.claims()
    if any(o.how is How.OPEN and o.claim.output not in search.refuted for o in outcomes) and search.sweep():
        outcomes = search.claims()
    pair.store.used.update(search.assumed)
    hits = search.hits
    return Proof(search.pair, outcomes, search.count, hits, tuple(sorted(search.fired)), tuple(sorted(search.user_rules)), search.limit)


class _Search:
    def __init__(self, pair: Pair, limits: Mapping[str, int], rules: Rules) -> None:
        self.pair = pair
        self.limits = limits
        self.rules = rules
        self.count = 0
        self.instances = 0
        self.assumed: set[str] = set()
        self.fired: set[str] = set()
        self.user_rules: set[str] = set()
        self.limit: str | None = None
        self.refuted: Container[int] = ()

    def claims(self) -> list[Outcome]:
        return [self.claim(claim) for claim in self.pair.claims]

    @cached_property
    def prover(self) -> Prover:
        from scalify.prove.obligation import Prover  # noqa: PLC0415 - only what is left needs the engine

        return Prover(self.rules())

    @property
    def hits(self) -> int:
        return self.prover.hits if "prover" in self.__dict__ else 0

    def sweep(self) -> bool:
        """Go on with a swept pair; False when the sweep found nothing."""
        from scalify.prove.sweep import Sweep, sweeper  # noqa: PLC0415 - as above

        sweep = Sweep(self.pair, sweeper(self.prover.rules), self.limits["sweep"])
        swept = sweep.run()
        self.count += len(sweep.prover.memo)
        if sweep.merged:
            self._swept(swept, sweep)
        return sweep.merged > 0

    def _swept(self, pair: Pair, sweep: Sweep) -> None:
        """The proofs of a swept pair lean on what the sweep leaned on."""
        self.pair = pair
        self.assumed |= sweep.assumed
        self.fired |= sweep.fired
        self.user_rules |= sweep.user_rules

    def differing_blocks(self, claim: Claim) -> list[tuple[View, View, dict[int, int]]]:
        """The blocks whose views differ: (expected, actual, its slots of the device dimension)."""
        expected, actual = claimed(self.pair, claim)
        both = enumerate(zip(expected.views, actual.views, strict=True))
        return [(left, right, _device_slots(actual, number)) for number, (left, right) in both if left != right]

    def claim(self, claim: Claim) -> Outcome:
        blocks = self.differing_blocks(claim)
        if claim.output in self.refuted:
            return Outcome(claim, How.OPEN if blocks else How.NORMAL_FORM, [(left, right) for left, right, _ in blocks])
        how = How.NORMAL_FORM
        differing = []
        for left, right, devices in blocks:
            found = self._settle(left, right, devices)
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
        elif outcome.limit:
            self.limit = self.limit or outcome.limit
        return outcome.proved


def _device_slots(value: Value, number: int) -> dict[int, int]:
    layout: Layout = value.layout
    block = layout.blocks[number]
    return {s: block.sizes[s] for s in layout.slots(0, block)}
