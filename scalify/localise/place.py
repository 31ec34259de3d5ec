"""Baseline values in the layouts of distributed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.lift.terms import FRESH, View

if TYPE_CHECKING:
    from scalify.lift.layout import Layout, Value


def placed(value: Value, target: Layout) -> View | None:
    """The one view of a baseline value in the slots that the same axes have in a distributed value; None if it has other axes."""
    if not value.layout.plain or not target.plain:
        return None
    names: dict[int, int] = {}
    there = dict(zip(target.flat_key, target.blocks[0].slots, strict=True))
    for key, slots in zip(value.layout.flat_key, value.layout.blocks[0].slots, strict=True):
        if key in there:
            names.update(zip(slots, there[key], strict=True))
    coef, term, at = value.views[0]
    if any(s < FRESH and s not in names for s in at):
        return None
    found = tuple([names.get(s, s) for s in at])
    return View(coef, term, found) if len(set(found)) == len(found) else None
