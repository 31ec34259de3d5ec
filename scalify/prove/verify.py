"""From a lifted pair to a verdict for each claim: normal forms, then instances, then saturation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from scalify.lift.layout import Layout, Value
from scalify.lift.pair import Claim, Pair, claimed
from scalify.lift.terms import View
from scalify.prove.instances import equal_by_instances

DEFAULT_LIMITS: Mapping[str, int] = {"terms": 2_000_000, "instances": 40_000, "obligations": 200}
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


def prove(pair: Pair, limits: Mapping[str, int]) -> list[Outcome]:
    """An outcome for every claim, in order."""
    return [_prove(pair, claim, limits) for claim in pair.claims]


def _prove(pair: Pair, claim: Claim, limits: Mapping[str, int]) -> Outcome:
    expected, actual = claimed(pair, claim)
    how = How.NORMAL_FORM
    differing = []
    for number, (left, right) in enumerate(zip(expected.views, actual.views, strict=True)):
        if left == right:
            continue
        devices = _device_slots(actual, number)
        if equal_by_instances(pair.store, left, right, devices, pair.distributed.known_terms, limits["instances"]):
            how = How.INSTANCES
        else:
            differing.append((left, right))
    return Outcome(claim, How.OPEN if differing else how, differing)


def _device_slots(value: Value, number: int) -> dict[int, int]:
    layout: Layout = value.layout
    block = layout.blocks[number]
    return {s: block.sizes[s] for s in layout.slots(0, block)}
