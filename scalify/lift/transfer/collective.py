"""Collectives: reductions, gathers and permutations of the device dimension."""

from __future__ import annotations

from itertools import combinations as subsets
from itertools import product as combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from scalify.hlo.semantics.collectives import device_groups, device_pairs
from scalify.lift.atoms import from_array
from scalify.lift.compare import equals_zero
from scalify.lift.einsum import total
from scalify.lift.instance import substitute
from scalify.lift.linear import combine
from scalify.lift.moves import Source, move, pull
from scalify.lift.product import multiply
from scalify.lift.terms import View
from scalify.lift.transfer.base import Unsupported, exact_value, lifts
from scalify.lift.transfer.contraction import REDUCTIONS, check_logical, reduction_of
from scalify.lift.transfer.movement import identity_sources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from scalify.lift.layout import Block, Layout, Value
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation
    from scalify.lift.terms import Index
    from scalify.lift.transfer.contraction import Combiner, Reduction


def device_factors(lifter: Lifter, operation: Operation, layout: Layout) -> list[int]:
    """The factors of the device dimension that the index within a replica group runs over, major to minor.

    :raises Unsupported: the groups are not digits of the mesh position that inference could cut out.
    """
    digits = lifter.side.groups(operation)
    if digits is None:
        raise Unsupported("replica groups that are no digits of the mesh position")
    found: list[int] = []
    for size, stride in digits:
        chosen, below = [], 1
        for f in reversed(layout.range(0)):
            if stride <= below < stride * size:
                chosen.append(f)
            below *= layout.factors[f].size
        total = 1
        for f in chosen:
            total *= layout.factors[f].size
        if total != size or not _starts_at(layout, chosen, stride):
            raise Unsupported("replica groups that cut across the factors of the mesh")
        found += reversed(chosen)
    return found


def _starts_at(layout: Layout, chosen: Sequence[int], stride: int) -> bool:
    below = 1
    for f in reversed(layout.range(0)):
        if f in chosen:
            return below == stride
        below *= layout.factors[f].size
    return not chosen


def reduce_devices(lifter: Lifter, value: Value, factors: Sequence[int], name: str) -> list[View]:
    """Each block reduced over the given device factors, on all of which the result is the same."""
    over, combiner = REDUCTIONS[name]
    layout = value.layout
    known: dict[tuple[int, ...], View] = {}
    found = []
    for block in layout.blocks:
        key = tuple([-1 if f in factors else c for f, c in enumerate(block.choice)])
        if key not in known:
            known[key] = _reduced(lifter, value, block.choice, factors, over, combiner)
        found.append(_relabelled(layout, known[key], block.choice, factors))
    return found


def _reduced(lifter: Lifter, value: Value, choice: Sequence[int], factors: Sequence[int], over: Reduction, combiner: Combiner) -> View:
    """The reduction as a view in the slots of the first block of the group."""
    layout = value.layout
    result: View | None = None
    for picks in combinations(*[range(len(layout.parts[f])) for f in factors]):
        where = list(choice)
        for f, c in zip(factors, picks, strict=True):
            where[f] = c
        block = layout.blocks[layout.position(where)]
        slots = {s: block.sizes[s] for f in factors for s in block.slots[f]}
        view = value.views[layout.position(where)]
        if slots:
            view = sum_devices(lifter, view, slots) if over is total else over(lifter.store, view, slots)
        view = _by_factor(block, view)
        result = view if result is None else combiner(lifter.store, result, view)
    assert result is not None
    return result


def sum_devices(lifter: Lifter, view: View, slots: Mapping[int, int]) -> View:
    """The sum over devices; written out over some of them where that gives a value that the baseline has and the sum does not.

    A baseline that computes its experts one after the other has no axis to sum over.
    """
    result = total(lifter.store, view, slots)
    if lifter.is_known(result):
        return result
    used = [s for s in slots if s in view.at]
    for count in range(len(used), 0, -1):
        for chosen in subsets(used, count):
            sizes = [slots[s] for s in chosen]
            if int(np.prod(sizes)) > MOST_UNROLLED:
                continue
            inner = total(lifter.store, view, {s: n for s, n in slots.items() if s not in chosen})
            first = substitute(lifter.store, inner, dict.fromkeys(chosen, -1))
            if first.coef and not lifter.is_known(first):
                continue  # a baseline that writes the sum out has its parts
            written = combine(lifter.store, [(1, v) for v in instances(lifter, inner, chosen, sizes)])
            if lifter.is_known(written):
                return written
    return result


def instances(lifter: Lifter, view: View, slots: Sequence[int], sizes: Sequence[int]) -> list[View]:
    """The view at every combination of constants for the slots."""
    picks = combinations(*[range(n) for n in sizes])
    return [substitute(lifter.store, view, {s: -1 - k for s, k in zip(slots, pick, strict=True)}) for pick in picks]


MOST_UNROLLED = 64
_WIDE = 64  # digits of one factor, when slots are numbered by factor


def _by_factor(block: Block, view: View) -> View:
    """Slots numbered by factor, so that blocks with other numbers of digits can be combined."""
    names = {s: f * _WIDE + k for f, slots in enumerate(block.slots) for k, s in enumerate(slots)}
    coef, term, at = view
    return View(coef, term, tuple([names.get(s, s) for s in at]))


def _relabelled(layout: Layout, view: View, choice: Sequence[int], factors: Sequence[int]) -> View:
    block = layout.blocks[layout.position(choice)]
    names = {f * _WIDE + k: s for f, slots in enumerate(block.slots) for k, s in enumerate(slots)}
    coef, term, at = view
    return View(coef, term, tuple([names.get(s, s) for s in at]))


@lifts("all-reduce")
def _all_reduce(lifter: Lifter, operation: Operation) -> list[Value]:
    found = []
    for operand, result in zip(operation.operands, operation.results, strict=True):
        dtype = lifter.dtype(result)
        name = reduction_of(operation, dtype)
        value = lifter.values[operand]
        if name not in ("add", "multiply"):
            value = exact_value(lifter, value, dtype)
        check_logical(name, dtype, value.views)
        factors = device_factors(lifter, operation, value.layout)
        views = reduce_devices(lifter, value, factors, name)
        found.append(lifter.value(value.layout, views))
    return found


@lifts("all-gather")
def _all_gather(lifter: Lifter, operation: Operation) -> list[Value]:
    dim = operation.instruction.attributes["dimensions"][0] + 1
    found = []
    for operand, result in zip(operation.operands, operation.results, strict=True):
        value = lifter.values[operand]
        target = lifter.layout_of(result)
        factors = device_factors(lifter, operation, value.layout)
        _check_group(value.layout, factors, lifter.program.shapes[result].dims[dim - 1], lifter.program.shapes[operand].dims[dim - 1])
        found.append(_gathered(lifter, value, target, dim, factors))
    return found


def _check_group(layout: Layout, factors: Sequence[int], large: int, small: int) -> None:
    """The group has as many devices as the dimension has parts. The shape check takes either reading of the groups."""
    if prod([layout.factors[f].size for f in factors]) * small != large:
        raise Unsupported("replica groups of another size than the shapes say")


def _gathered(lifter: Lifter, value: Value, target: Layout, dim: int, factors: Sequence[int]) -> Value:
    """``target[dev, .., (group index, i), ..] = value[dev with the group's digits replaced, .., i, ..]``."""
    source = value.layout
    keys = [id(source.factors[f]) for f in factors] + [id(source.factors[f]) for f in source.range(dim)]
    where = list(target.range(dim))
    if keys != [id(target.factors[f]) for f in where]:
        return _gathered_by_table(lifter, value, target, dim, factors)
    mapping = {f: where[k] for k, f in enumerate(factors)}
    for d in range(len(source.dims)):
        for k, f in enumerate(source.range(d)):
            if d == dim:
                mapping[f] = where[len(factors) + k]
            elif f not in mapping:
                mapping[f] = target.starts[d] + k
    return pull(lifter.store.memo, value, target, tuple([mapping[f] for f in range(len(source.factors))]))


def _gathered_by_table(lifter: Lifter, value: Value, target: Layout, dim: int, factors: Sequence[int]) -> Value:
    """The same where the gathered dimension has other factors: the device's digits become tables of the index."""
    source = value.layout
    if any(len(p) > 1 for p in source.parts) or any(len(p) > 1 for p in target.parts):
        raise Unsupported("an all-gather of a dimension that is cut in another way")
    block = target.blocks[0]
    offset, digits = target.alternative((dim,), block)
    index = np.full([n for _, n, _ in digits], offset, dtype=np.int64)
    for k, (_, n, c) in enumerate(digits):
        index += c * np.arange(n).reshape([-1 if i == k else 1 for i in range(len(digits))])
    tables = {}
    slots = [s for s, _, _ in digits]
    stride = source.sizes[dim]
    tables_dim = {dim: (index % stride, slots)}
    rest = index // stride
    for f in reversed(list(factors)):
        size = source.factors[f].size
        tables[f] = (rest % size, slots)
        rest = rest // size
    view = lifter.by_tables(value, target, block, tables_dim, tables)
    return lifter.value(target, [view])


@lifts("reduce-scatter")
def _reduce_scatter(lifter: Lifter, operation: Operation) -> list[Value]:
    dim = operation.instruction.attributes["dimensions"][0] + 1
    found = []
    for operand, result in zip(operation.operands, operation.results, strict=True):
        dtype = lifter.dtype(result)
        name = reduction_of(operation, dtype)
        value = lifter.values[operand]
        if name not in ("add", "multiply"):
            value = exact_value(lifter, value, dtype)
        check_logical(name, dtype, value.views)
        factors = device_factors(lifter, operation, value.layout)
        reduced = lifter.value(value.layout, reduce_devices(lifter, value, factors, name))
        target = lifter.layout_of(result)
        _check_group(value.layout, factors, lifter.program.shapes[operand].dims[dim - 1], lifter.program.shapes[result].dims[dim - 1])
        found.append(_scattered(lifter, reduced, target, dim, factors))
    return found


def _scattered(lifter: Lifter, value: Value, target: Layout, dim: int, factors: Sequence[int]) -> Value:
    """``target[dev, .., i, ..] = value[dev, .., (group index of dev, i), ..]``."""
    sources = identity_sources(len(target.dims) - 1)
    extra, stride = [], target.sizes[dim]
    for f in reversed(list(factors)):
        extra.append((f, stride))
        stride *= value.layout.factors[f].size
    sources[dim] = Source((dim,), (dim,), 0, 1, tuple(extra))
    return lifter.value(target, move(lifter.store, value, target, sources))


@lifts("all-to-all")
def _all_to_all(lifter: Lifter, operation: Operation) -> list[Value]:
    dims = operation.instruction.attribute("dimensions")
    value = lifter.values[operation.operands[0]]
    factors = device_factors(lifter, operation, value.layout)
    if not dims or len(operation.operands) > 1:
        return _all_to_all_tuple(lifter, operation, factors)
    dim = dims[0] + 1
    target = lifter.result_layout(operation)
    where = list(target.range(dim))
    layout = value.layout
    if [id(layout.factors[f]) for f in factors] != [id(layout.factors[f]) for f in layout.range(dim)[: len(factors)]]:
        raise Unsupported("an all-to-all of a dimension that is cut in another way")
    mapping = list(range(len(layout.factors)))
    for k, f in enumerate(factors):
        mapping[f] = where[k]
        mapping[where[k]] = f
    return [pull(lifter.store.memo, value, target, tuple(mapping))]


def _all_to_all_tuple(lifter: Lifter, operation: Operation, factors: Sequence[int]) -> list[Value]:
    """Result j on the device of group index r is operand r of the device of group index j."""
    operands = [lifter.values[o] for o in operation.operands]
    layout = operands[0].layout
    sizes = [layout.factors[f].size for f in factors]
    _check_group(layout, factors, len(operands), 1)
    if any(len(layout.parts[f]) > 1 for f in factors) or any(o.layout.flat_key != layout.flat_key for o in operands):
        raise Unsupported("an all-to-all of values that are cut in different ways")
    found = []
    for j in range(len(operands)):
        picks = dict(zip(factors, map(int, np.unravel_index(j, sizes)), strict=True)) if factors else {}
        views = [_swapped(lifter, [o.views[b] for o in operands], block, factors, sizes, picks) for b, block in enumerate(layout.blocks)]
        found.append(lifter.value(layout, views))
    return found


def _swapped(
    lifter: Lifter, views: Sequence[View], block: Block, factors: Sequence[int], sizes: Sequence[int], picks: Mapping[int, int]
) -> View:
    """Sum over r of ``[this device's group index = r] * operand r at the picked device``."""
    store = lifter.store
    change: dict[int, Index] = {block.slots[f][0]: -1 - k for f, k in picks.items()}
    parts = []
    for r, view in enumerate(views):
        own = np.unravel_index(r, sizes)
        conditions = [
            (equals_zero(store, combine(store, ((1, lifter.iota(block.slots[f][0], n)),), -int(k))), 1)
            for f, n, k in zip(factors, sizes, own, strict=True)
        ]
        parts.append((1, multiply(store, [*conditions, (substitute(store, view, change), 1)])))
    return combine(store, parts)


@lifts("collective-permute", "collective-broadcast")
def _collective_permute(lifter: Lifter, operation: Operation) -> list[Value]:
    if operation.opcode == "collective-broadcast":
        groups = device_groups(operation.instruction, *lifter.program.counts)
        pairs = [(g[0], d) for g in groups for d in g]
    else:
        pairs = device_pairs(operation.instruction, *lifter.program.counts)
    if len(operation.operands) != len(operation.results):
        raise Unsupported("a permutation that updates a buffer in place")
    source = np.full(lifter.program.devices, -1, dtype=np.int64)
    for a, b in pairs:
        if a not in lifter.side.positions or b not in lifter.side.positions:
            raise Unsupported("a permutation of devices that do not exist")
        if source[lifter.side.positions[b]] != -1:
            raise Unsupported("a permutation with two sources for one device")
        source[lifter.side.positions[b]] = lifter.side.positions[a]
    return [_permuted(lifter, lifter.values[o], source) for o in operation.operands]


def _permuted(lifter: Lifter, value: Value, source: npt.NDArray[np.int64]) -> Value:
    """Device at position p receives from ``source[p]``, zeros where that is -1."""
    layout = value.layout
    views = []
    for block in layout.blocks:
        offset, digits = layout.alternative((0,), block)
        index = np.full([n for _, n, _ in digits], offset, dtype=np.int64)
        for k, (_, n, c) in enumerate(digits):
            index += c * np.arange(n).reshape([-1 if i == k else 1 for i in range(len(digits))])
        slots = [s for s, _, _ in digits]
        wanted = source[index]
        view = lifter.by_tables(value, layout, block, {0: (wanted, slots)})
        mask = from_array(lifter.store, wanted >= 0, slots)
        views.append(multiply(lifter.store, ((mask, 1), (view, 1))))
    return lifter.value(layout, views)
