"""Moving the blocks of a value into another layout."""

from __future__ import annotations

from itertools import product as combinations
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from scalify.lift.instance import substitute
from scalify.lift.layout import Alternative, Block, Layout, Value, joined
from scalify.lift.linear import combine
from scalify.lift.place import Digits, Place, locate
from scalify.lift.product import multiply
from scalify.lift.terms import Index, Store, View

if TYPE_CHECKING:
    from collections.abc import Sequence

Mapping = tuple[int, ...]  # for each source factor, the target factor that it takes its digits from


def pull(memo: dict[object, object], value: Value, target: Layout, mapping: Mapping) -> Value:
    """``target[...] = value[...]`` where source factor f is indexed by target factor ``mapping[f]`` (the same axis)."""
    source = value.layout
    key = (source.grid, target.grid, mapping)
    plan = memo.get(key)
    if plan is None:
        plan = memo[key] = _plan(source, target, mapping)
    views = value.views
    return Value(target, tuple([_renamed(views[where], slots) for where, slots in plan]))  # type: ignore[attr-defined]


def _plan(source: Layout, target: Layout, mapping: Mapping) -> list[tuple[int, tuple[int, ...] | None]]:
    plan = []
    for block in target.blocks:
        choice = [block.choice[f] for f in mapping]
        where = source.position(choice)
        slots = tuple([s for f in mapping for s in block.slots[f]])
        plan.append((where, None if slots == tuple(range(len(slots))) else slots))
    return plan


def _renamed(view: View, slots: tuple[int, ...] | None) -> View:
    if slots is None:
        return view
    coef, term, at = view
    return View(coef, term, tuple([slots[s] for s in at]))


class Source(NamedTuple):
    """How some source dimensions (taken row-major together) are indexed: ``base + stride * (index over the target dimensions)``.

    ``extra`` adds digits of other target factors: (factor, coefficient of its element index). ``within`` says that only indices of
    ``0 .. within - 1`` matter, as the caller masks all others.
    """

    dims: tuple[int, ...]
    target: tuple[int, ...]
    base: int = 0
    stride: int = 1
    extra: tuple[tuple[int, int], ...] = ()
    within: int | None = None


class Pick(NamedTuple):
    """One source block of a target block: which one, with which indices for its slots, and where (None = everywhere)."""

    where: int
    change: dict[int, Index]
    conditions: tuple[View, ...]


def move(store: Store, value: Value, target: Layout, sources: Sequence[Source]) -> list[View]:
    """For each target block the source's elements at the indices that ``sources`` give, 0 where there are none."""
    key = ("move", value.layout.grid, target.grid, tuple(sources))
    plan: list[list[Pick]] | None = store.memo.get(key)
    if plan is None:
        plan = store.memo[key] = _picks(store, value.layout, target, sources)
    return [_moved(store, value, picks) for picks in plan]


def _moved(store: Store, value: Value, picks: list[Pick]) -> View:
    found = []
    store.spend("moves", len(picks))
    for where, change, conditions in picks:
        view = value.views[where]
        if change:
            view = substitute(store, view, change)
        found.append(multiply(store, [(view, 1), *[(c, 1) for c in conditions]]) if conditions else view)
    return found[0] if len(found) == 1 else combine(store, [(1, v) for v in found])


def _picks(store: Store, layout: Layout, target: Layout, sources: Sequence[Source]) -> list[list[Pick]]:
    parts = {s.dims: _alternatives(layout, s.dims) for s in sources}
    plan = []
    for block in target.blocks:
        options = [locate(store, parts[s.dims], *digits_of(target, block, s)) for s in sources]
        store.spend("moves", prod(map(len, options)))
        plan.append([_pick(layout, sources, places) for places in combinations(*options)])
    return plan


def _alternatives(layout: Layout, dims: tuple[int, ...]) -> tuple[Alternative, ...]:
    chosen = [f for d in dims for f in layout.range(d)]
    return joined([layout.parts[f] for f in chosen], [layout.factors[f].size for f in chosen])


def digits_of(target: Layout, block: Block, source: Source) -> tuple[int, Digits]:
    """The affine index of a source in a target block."""
    offset, digits = target.alternative(source.target, block)
    base = source.base + source.stride * offset
    found = [(slot, n, c * source.stride) for slot, n, c in digits]
    for factor, coefficient in source.extra:
        part = target.parts[factor][block.choice[factor]]
        base += part.offset * coefficient
        found += [(slot, n, s * coefficient) for slot, (n, s) in zip(block.slots[factor], part.digits, strict=True) if s * coefficient]
    return _folded(base, found, source.within) if source.within else (base, found)


def _folded(base: int, digits: Digits, size: int) -> tuple[int, Digits]:
    """The same index modulo ``size``, where the digits are whole multiples of it or stay below it together: then that takes no table."""
    low = [d for d in digits if d[2] % size]
    rest = base % size
    if all(c > 0 for _, _, c in low) and rest + sum(c * (n - 1) for _, n, c in low) < size:
        return rest, low
    return base, digits


def _pick(layout: Layout, sources: Sequence[Source], places: Sequence[Place]) -> Pick:
    choice = [0] * len(layout.factors)
    order: list[int] = []
    indices: list[Index] = []
    for source, place in zip(sources, places, strict=True):
        chosen = [f for d in source.dims for f in layout.range(d)]
        left = place.choice
        for f in reversed(chosen):
            left, choice[f] = divmod(left, len(layout.parts[f]))
        order += chosen
        indices += place.indices
    where = layout.position(choice)
    slots = [s for f in order for s in layout.blocks[where].slots[f]]
    change = {s: i for s, i in zip(slots, indices, strict=True) if s != i}
    return Pick(where, change, tuple([p.condition for p in places if p.condition is not None]))
