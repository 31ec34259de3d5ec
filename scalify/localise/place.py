"""Baseline values in the layouts of distributed ones."""

from __future__ import annotations

from itertools import islice, permutations
from itertools import product as combinations
from typing import TYPE_CHECKING

from scalify.lift.terms import FRESH, View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scalify.lift.layout import Layout, Value

MOST_PLACEMENTS = 4


def placements(value: Value, target: Layout) -> Iterator[View]:
    """The one view of a baseline value in the slots that the same axes have in a distributed value: in order first, where an axis occurs more than
    once. None if it has other axes.
    """
    if value.layout.plain and target.plain:
        yield from dict.fromkeys(islice(_placed(value, target), MOST_PLACEMENTS))


def _placed(value: Value, target: Layout) -> Iterator[View]:
    here, there = _by_axis(value.layout), _by_axis(target)
    options = [permutations(there[key], len(slots)) for key, slots in here.items() if key in there]
    coef, term, at = value.views[0]
    for chosen in combinations(*options):
        names: dict[int, int] = {}
        for slots, others in zip([s for key, s in here.items() if key in there], chosen, strict=True):
            names.update({a: b for x, y in zip(slots, others, strict=True) for a, b in zip(x, y, strict=True)})
        if all(s >= FRESH or s in names for s in at):
            yield View(coef, term, tuple([names.get(s, s) for s in at]))


def _by_axis(layout: Layout) -> dict[int, list[tuple[int, ...]]]:
    """The slots of each axis, as often as it occurs."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for key, slots in zip(layout.flat_key, layout.blocks[0].slots, strict=True):
        found.setdefault(key, []).append(slots)
    return found
