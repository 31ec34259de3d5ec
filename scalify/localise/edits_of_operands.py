"""Edits of what an operation works on: operands exchanged, other values, operations left out, and those that only the baseline has put in."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, permutations
from itertools import product as combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.dtypes import DTYPES
from scalify.lift.layout import Value
from scalify.lift.linear import scale
from scalify.lift.terms import quotient
from scalify.localise.edits import FIRST, LAST, Edit, edits
from scalify.localise.edits_of_collectives import axis_groups, index_in
from scalify.localise.known import COLLECTIVES, REDUCTIONS
from scalify.localise.place import placements
from scalify.report.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scalify.lift.program import Operation
    from scalify.lift.terms import Number
    from scalify.localise.edits import Site

LAYOUT = frozenset({"reshape", "transpose", "bitcast", "broadcast", "reverse"})
SLICES = frozenset({"slice", "dynamic-slice", "dynamic-update-slice", "gather", "scatter", "pad", "concatenate"})

_ORDERED = (
    "subtract",
    "divide",
    "power",
    "remainder",
    "compare",
    "atan2",
    "dot",
    "shift-left",
    "shift-right-logical",
    "shift-right-arithmetic",
)
_FIRST_START = {"dynamic-slice": 1, "dynamic-update-slice": 2}
_NEAR = 6  #: values before an operation that are tried as operands


@edits(Kind.WRONG_OPERAND, *_ORDERED)
def _exchanged(site: Site) -> Iterator[Edit]:
    a, b = site.operation.operands
    yield from site.edit(f"the operands of {site.name} are exchanged", "verifies if they change places", operands=[b, a])


@edits(Kind.WRONG_OPERAND, "select")
def _branches(site: Site) -> Iterator[Edit]:
    condition, a, b = site.operation.operands
    yield from site.edit(f"the branches of {site.name} are exchanged", "verifies if they change places", operands=[condition, b, a])


@edits(Kind.WRONG_OPERAND, "clamp")
def _limits(site: Site) -> Iterator[Edit]:
    low, value, high = site.operation.operands
    yield from site.edit(f"the bounds of {site.name} are exchanged", "verifies if they change places", operands=[high, value, low])


@edits(Kind.WRONG_LAYOUT, "concatenate")
def _parts(site: Site) -> Iterator[Edit]:
    parts = site.operation.operands
    for order in islice(permutations(range(len(parts))), 24):
        if order != tuple(range(len(parts))):
            text = ", ".join([site.called(parts[n]) for n in order])
            yield from site.edit(
                "`concatenate` puts its parts into the wrong order", f"verifies in the order {text}", operands=[parts[n] for n in order]
            )


@edits(Kind.WRONG_SLICE, "dynamic-slice", "dynamic-update-slice")
def _starts(site: Site) -> Iterator[Edit]:
    """Start indices that nothing uses, those of the shards along a mesh axis, exchanged ones, 0."""
    opcode, operands = site.operation.opcode, site.operation.operands
    first = _FIRST_START[opcode]
    whole = site.dims(operands[0])
    part = site.operation.shapes[0].dims if opcode == "dynamic-slice" else site.dims(operands[1])
    if len(operands) != first + len(whole):
        return
    for d, (size, length) in enumerate(zip(whole, part, strict=True)):
        if length != size:
            for text, start, made in _places(site, operands[first + d], size, length):
                problem, remedy = (
                    f"`{opcode}` starts at another place of dimension {d} than the baseline",
                    f"verifies if it starts at {text}",
                )
                for edit in site.edit(problem, remedy, operands=[*operands[: first + d], start, *operands[first + d + 1 :]]):
                    yield replace(edit, changes={site.position: (*made, *edit.changes[site.position])})
    for order in islice(permutations(operands[first:]), 24):
        yield from site.edit(
            f"the start indices of `{opcode}` are exchanged", "verifies with them in another order", operands=[*operands[:first], *order]
        )


def _places(site: Site, now: int, size: int, length: int) -> Iterator[tuple[str, int, tuple[Operation, ...]]]:
    """Start indices in words, with what makes them."""
    for value in site.bench.unused:
        if site.same(value, now) and site.bench.positions[value] < site.position:
            yield site.called(value), value, ()
    for names, groups in axis_groups(site, ordered=True):
        for step in dict.fromkeys([length, size // len(groups[0])]):
            if step * (len(groups[0]) - 1) < size:
                start, made = site.scalar(now, index_in(site, groups) * step)
                yield f"{step} times the index along {names}", start, (made,)
    for offset in (0, size - length):
        start, made = site.scalar(now, np.full(1, offset))
        yield str(offset), start, (made,)


@edits(Kind.WRONG_OPERAND)
def _unused(site: Site) -> Iterator[Edit]:
    """A value that nothing uses any more in the place of an operand: those made from the operand first."""
    if site.operation.opcode == "parameter":
        return
    for operand in dict.fromkeys(site.operation.operands):
        fitting = [v for v in site.bench.unused if site.same(v, operand) and site.bench.positions[v] < site.position]
        fitting.sort(key=lambda v: operand not in site.maker(v).operands)
        for value in fitting[:_NEAR]:
            problem = f"{site.name} uses {site.called(operand)}, and nothing uses {site.called(value)}"
            yield from site.using(problem, f"verifies if it uses {site.called(value)} instead", operand, value)


@edits(Kind.UNRELATED, FIRST)
def _superfluous(site: Site) -> Iterator[Edit]:
    """An operation that gives an operand back unchanged."""
    if len(site.operation.results) != 1:
        return
    kind, problem = superfluous(site.operation)
    for operand in dict.fromkeys(site.operation.operands):
        for edit in site.dropped(problem, f"verifies without {site.name}", operand):
            yield Edit(kind, edit.operation, edit.problem, edit.remedy, edit.changes)


def superfluous(operation: Operation) -> tuple[Kind, str]:
    """What it means that the graph verifies without an operation."""
    opcode = operation.opcode
    if opcode in REDUCTIONS:
        return Kind.EXTRA_REDUCTION, f"`{opcode}` reduces a value that is already whole on every device"
    if opcode in COLLECTIVES:
        return Kind.WRONG_GROUPS, f"`{opcode}` moves a value that is already where it belongs"
    if opcode in LAYOUT:
        return Kind.WRONG_LAYOUT, f"`{opcode}` reorders elements that are already in the baseline's order"
    if opcode in SLICES:
        return Kind.WRONG_SLICE, f"`{opcode}` moves elements that are already where they belong"
    return Kind.WRONG_OPERATION, f"the baseline has no such `{opcode}`: it uses an operand as it is"


@edits(Kind.WRONG_OPERATION)
def _opcode_of_baseline(site: Site) -> Iterator[Edit]:
    """The opcode of a baseline operation on the same operands."""
    for other in site.bench.candidates(site.operation):
        if other.opcode != site.operation.opcode and len(other.operands) == len(site.operation.operands) and not other.computations:
            attributes = dict.fromkeys(site.attributes) | dict(other.instruction.attributes)
            problem = f"`{site.operation.opcode}` where the baseline has `{other.opcode}`"
            yield from site.edit(problem, f"verifies if it is `{other.opcode}`", opcode=other.opcode, attributes=attributes)


@edits(Kind.WRONG_SCALE)
def _scale(site: Site) -> Iterator[Edit]:
    """An operand, or the result, times the factor that it has in the baseline."""
    bench = site.bench
    for value in (*dict.fromkeys(site.operation.operands), *site.operation.results):
        lifted = bench.lifter.values[value]
        view = lifted.views[0]
        if view.term.kind == "one" or not view.coef or not DTYPES[bench.lifter.dtype(value)].is_float:
            continue
        for coef in [c for c in bench.known.coefficients.get(view.term, ()) if c and c != view.coef][:3]:
            factor = quotient(coef, view.coef)
            views = tuple([scale(bench.pair.store, v, factor) for v in lifted.views])
            remedy = f"verifies if {site.called(value)} is multiplied by {_number(factor)}"
            problem = f"{site.called(value)} is {_number(quotient(view.coef, coef))} times the baseline's value"
            yield from _put(site, problem, remedy, value, Value(lifted.layout, views))


@edits(Kind.WRONG_OPERAND, borrowing=True)
def _lost(site: Site) -> Iterator[Edit]:
    """What the baseline makes of an operand before it uses it: an addend, a factor or a function that was lost."""
    bench = site.bench
    for value in dict.fromkeys(site.operation.operands):
        for other in bench.followers(value):
            lifted = bench.lifter.values[value]
            factors = dict.fromkeys([1, _factor(site, value, other)])
            for view, factor in combinations(placements(bench.pair.baseline.values[other.results[0]], lifted.layout), factors):
                scaled = scale(bench.pair.store, view, factor)
                if factor and scaled != lifted.views[0]:
                    problem = f"{site.name} uses {site.called(value)} where the baseline uses what `{other.opcode}` makes of it"
                    remedy = f"verifies if the baseline's `{other.instruction.name}` comes before it"
                    yield from _put(site, problem, remedy, value, Value(lifted.layout, (scaled,)), other)


def _factor(site: Site, value: int, other: Operation) -> Number:
    """How many times an operand of a baseline operation a value is; 0 where that is nothing new."""
    view = site.bench.lifter.values[value].views[0]
    theirs = [v for o in other.operands for v in site.bench.pair.baseline.values[o].views if v.term is view.term and v.coef]
    return quotient(view.coef, theirs[0].coef) if theirs and theirs[0].coef != view.coef else 0


@edits(Kind.WRONG_OPERAND, borrowing=True)
def _operand_of_baseline(site: Site) -> Iterator[Edit]:
    """The one operand that the baseline's operation has and this one has not."""
    bench = site.bench
    for other in bench.candidates(site.operation):
        mine, theirs = _keys(bench.lifter, site.operation.operands), _keys(bench.pair.baseline, other.operands)
        strange, missing = [o for k, o in mine.items() if k not in theirs], [o for k, o in theirs.items() if k not in mine]
        if other.opcode != site.operation.opcode or len(strange) != 1 or len(missing) != 1:
            continue
        layout = bench.lifter.values[strange[0]].layout
        maker = bench.makers.get(missing[0])
        wanted = f"`{maker.instruction.name}`" if maker else "value"
        for view in placements(bench.pair.baseline.values[missing[0]], layout):
            problem = f"{site.name} uses {site.called(strange[0])} where the baseline uses {wanted}"
            yield from _put(
                site, problem, f"verifies with the baseline's {wanted} as an operand", strange[0], Value(layout, (view,)), maker
            )


def _keys(lifter: Any, operands: Sequence[int]) -> dict[object, int]:
    return {tuple([(v.coef, v.term) for v in lifter.values[o].views]): o for o in operands}


def _put(site: Site, problem: str, remedy: str, old: int, value: Value, counterpart: Operation | None = None) -> Iterator[Edit]:
    """A given value in the place of another one; of the operation's own result where that is it. Never what an output should be."""
    bench = site.bench
    if bench.is_answer(value):
        return
    if old in site.operation.results:
        yield Edit(site.kind, site.operation, problem, remedy, {site.position: ()}, {old: value}, counterpart)
        return
    new = bench.new(site.shape(old), bench.lifter.axes_of(old))
    yield from site.using(problem, remedy, old, new, given={new: value}, counterpart=counterpart)


@edits(Kind.WRONG_OPERAND)
def _other_parameter(site: Site) -> Iterator[Edit]:
    """Another parameter of the type in the place of one."""
    for operand in dict.fromkeys(site.operation.operands):
        if site.maker(operand).opcode == "parameter":
            choice = [v for v in site.bench.program.parameters if v >= 0 and v != operand and site.same(v, operand)]
            yield from _replaced(site, operand, choice)


@edits(Kind.WRONG_OPERAND, LAST)
def _other_operand(site: Site) -> Iterator[Edit]:
    """A value made shortly before in the place of an operand."""
    for operand in dict.fromkeys(site.operation.operands):
        yield from _replaced(site, operand, [v for v in site.bench.before(site.position, site.shape(operand)) if v != operand][:_NEAR])


def _replaced(site: Site, operand: int, choice: Sequence[int]) -> Iterator[Edit]:
    for value in choice:
        problem = f"{site.name} uses {site.called(operand)} where {site.called(value)} is needed"
        yield from site.using(problem, f"verifies if it uses {site.called(value)} instead", operand, value)


def _number(value: Any) -> str:
    return str(value) if float(value).is_integer() else f"{float(value):.6g}"
