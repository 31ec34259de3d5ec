"""Sums, products and extrema over dimensions: dot and reduce."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, reduce
from typing import TYPE_CHECKING

from scalify.hlo.dtypes import DTYPES
from scalify.lift.einsum import contract, total
from scalify.lift.extremum import greatest, least, product_over
from scalify.lift.functions import maximum, minimum
from scalify.lift.linear import add, combine
from scalify.lift.product import times
from scalify.lift.terms import Store, View, is_boolean, remember
from scalify.lift.transfer.base import Unsupported, exact_value, lifts

if TYPE_CHECKING:
    from scalify.hlo.module import Computation, Instruction
    from scalify.lift.layout import Layout, Value
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation

Reduction = Callable[[Store, View, Mapping[int, int]], View]
Combiner = Callable[[Store, View, View], View]

#: reducer opcode -> (over labels, of two values)
REDUCTIONS: dict[str, tuple[Reduction, Combiner]] = {
    "add": (total, add),
    "maximum": (greatest, maximum),
    "minimum": (least, minimum),
    "multiply": (product_over, times),
    "or": (greatest, maximum),
    "and": (least, minimum),
}


def _passes(instructions: Sequence[Instruction], instruction: Instruction) -> bool:
    """Whether an instruction hands its operand on; conversions do so between floats, where rounding is left aside."""
    if len(instruction.operands) != 1 or instruction.opcode not in ("convert", "copy", "bitcast", "reshape"):
        return False
    before, after = instructions[instruction.operands[0]].shape.dtype, instruction.shape.dtype
    return before == after or (DTYPES[before].is_float and DTYPES[after].is_float)


def reducer_opcode(computation: Computation) -> str | None:
    """The opcode of a reducer that applies one commutative operation to its two parameters, through conversions; else None."""
    instructions = computation.instructions
    root = instructions[computation.root]
    while _passes(instructions, root):
        root = instructions[root.operands[0]]
    if root.opcode not in REDUCTIONS or len(root.operands) != 2:
        return None
    found = set()
    for operand in root.operands:
        source = instructions[operand]
        while _passes(instructions, source):
            source = instructions[source.operands[0]]
        if source.opcode != "parameter":
            return None
        found.add(source.attributes["index"])
    return root.opcode if found == {0, 1} else None


def reduction_of(operation: Operation, dtype: str) -> str:
    """The reduction of an operation's computation. :raises Unsupported: it is not one of the commutative ones, or bitwise."""
    name = reducer_opcode(operation.computations[0]) if operation.computations else None
    if name is None:
        raise Unsupported("a reducer that is no single commutative operation")
    if dtype == "pred" and name in ("add", "maximum"):
        return "or"
    if dtype == "pred" and name in ("multiply", "minimum"):
        return "and"
    return name


def check_logical(name: str, dtype: str, views: Sequence[View]) -> None:
    """``and`` and ``or`` are extrema on 0/1 values only."""
    if name in ("and", "or") and dtype != "pred" and not all(is_boolean(v) or v.coef == 0 for v in views):
        raise Unsupported("a bitwise reduction of integers")


def reduce_last(store: Store, value: Value, target: Layout, name: str) -> list[View]:
    """For each block of ``target``, whose factors come first in the value's layout, the reduction over the remaining factors."""
    over, combine = REDUCTIONS[name]
    reduced = partial(remember, store, ("reduce", name), make=lambda v, bound: over(store, v[0], bound))
    parts = [reduced([v], slots=slots) if slots else v for v, slots in zip(value.views, _beyond(value.layout, target), strict=True)]
    each = len(parts) // target.count
    return [reduce(partial(combine, store), parts[k : k + each]) for k in range(0, len(parts), each)]


def _beyond(layout: Layout, target: Layout) -> list[dict[int, int]]:
    """For each block of ``layout`` the slots, with their sizes, of its factors behind those of ``target``."""
    kept = len(target.factors)
    return [{s: block.sizes[s] for of_factor in block.slots[kept:] for s in of_factor} for block in layout.blocks]


@lifts("dot")
def _dot(lifter: Lifter, operation: Operation) -> list[Value]:
    if lifter.dtype(operation.results[0]) == "pred":
        raise Unsupported("a dot of predicates")
    a = operation.instruction.attributes
    if len(operation.operands) != 2:
        raise Unsupported("a dot of sparse operands")
    left, right = (lifter.exact_float(o, operation.results[0]) for o in operation.operands)
    target = lifter.result_layout(operation)
    count, rank, free_right = (
        len(a["lhs_batch_dims"]),
        len(operation.shapes[0].dims),
        len(left.layout.dims) - len(a["lhs_contracting_dims"]),
    )
    lhs_to = _targets(len(left.layout.dims), a["lhs_batch_dims"], a["lhs_contracting_dims"], 1 + count, 1 + rank)
    rhs_to = _targets(len(right.layout.dims), a["rhs_batch_dims"], a["rhs_contracting_dims"], free_right, 1 + rank)
    plain = _plain_dot(lifter.store, target, ((left, lhs_to), (right, rhs_to)))
    if plain is not None:
        return [lifter.value(target, (plain,))]
    contracted = lifter.axes_of(operation.operands[0])
    extended = lifter.extended(operation.results[0], [contracted[d] for d in a["lhs_contracting_dims"]])
    x, y = lifter.spread(left, extended, lhs_to), lifter.spread(right, extended, rhs_to)
    store = lifter.store
    parts = [contract(store, p, q, slots) for p, q, slots in zip(x.views, y.views, _beyond(extended, target), strict=True)]
    each = len(parts) // target.count
    sums = [parts[k] if each == 1 else combine(store, [(1, p) for p in parts[k : k + each]]) for k in range(0, len(parts), each)]
    return [lifter.value(target, sums)]


def _plain_dot(store: Store, target: Layout, sides: Sequence[tuple[Value, Sequence[int]]]) -> View | None:
    """The dot of two values of one block each, whose dimensions go to those of the target or, behind them, are contracted; None where they have other
    axes than there, or several blocks.
    """
    if not target.plain:
        return None
    block, rank = target.blocks[0], len(target.dims)
    inner: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}  # of each contracted dimension the factors and the slots
    sizes: dict[int, int] = {}
    views = []
    for value, places in sides:
        layout = value.layout
        if not layout.plain:
            return None
        slots: list[int] = []
        for d, where in enumerate(places):
            if where >= rank and where not in inner:
                own = [layout.blocks[0].sizes[s] for s in layout.slots(d, layout.blocks[0])]
                first = len(block.sizes) + len(sizes)
                sizes.update(enumerate(own, first))
                inner[where] = layout.key[d], tuple(range(first, first + len(own)))
            factors, there = inner[where] if where >= rank else (target.key[where], target.slots(where, block))
            if factors != layout.key[d]:
                return None
            slots += there
        coef, term, at = value.views[0]
        views.append(View(coef, term, tuple([slots[s] for s in at])))
    return contract(store, views[0], views[1], sizes)


@cache
def _targets(rank: int, batch: tuple[int, ...], contracting: tuple[int, ...], start: int, inner: int) -> tuple[int, ...]:
    """For each dimension of an operand (device first) the dimension of the extended layout: batch, free (from ``start``), contracted
    (from ``inner``).
    """
    where = {d: 1 + k for k, d in enumerate(batch)} | {d: inner + k for k, d in enumerate(contracting)}
    free = [d for d in range(rank - 1) if d not in where]
    where |= {d: start + k for k, d in enumerate(free)}
    return (0, *[where[d] for d in range(rank - 1)])


def reduce_one(lifter: Lifter, operation: Operation) -> list[Value]:
    """A reduction of one operand by a commutative operation."""
    dtype = lifter.dtype(operation.results[0])
    name = reduction_of(operation, dtype)
    source = lifter.values[operation.operands[0]]
    if name not in ("add", "multiply"):
        source = exact_value(lifter, source, dtype)
    check_logical(name, dtype, source.views)
    dims = operation.instruction.attributes["dimensions"]
    target = lifter.result_layout(operation)
    axes = lifter.axes_of(operation.operands[0])
    extended = lifter.extended(operation.results[0], [axes[d] for d in dims])
    kept = [d for d in range(len(axes)) if d not in dims]
    where = {d: 1 + k for k, d in enumerate(kept)} | {d: 1 + len(kept) + k for k, d in enumerate(dims)}
    spread = lifter.spread(source, extended, [0, *[where[d] for d in range(len(axes))]])
    views = reduce_last(lifter.store, spread, target, name)
    initial = lifter.scalar(operation.operands[1], target)
    return [lifter.value(target, [with_initial(lifter, name, dtype, v, i) for v, i in zip(views, initial, strict=True)])]


def with_initial(lifter: Lifter, name: str, dtype: str, view: View, initial: View) -> View:
    """The reduction combined with its initial value, which is left out where it is the identity."""
    if name == "multiply" and initial == lifter.store.constant(1):
        return view
    if name in ("maximum", "minimum") and is_extreme(lifter, dtype, initial, name == "maximum"):
        return view
    _, combine = REDUCTIONS[name]
    return combine(lifter.store, view, initial)


def is_extreme(lifter: Lifter, dtype: str, initial: View, lowest: bool) -> bool:
    """Whether the value is the identity of max (``lowest``) or min for this type; the largest finite float counts, and is noted."""
    known = DTYPES[dtype]
    if initial.term.kind == "infinity":
        return (initial.coef < 0) == lowest
    if initial.term is not lifter.store.one:
        return False
    if known.is_integer:
        return initial.coef == (known.minimum if lowest else known.maximum)
    if known.is_float and initial.coef == (-1 if lowest else 1) * _largest(dtype):
        lifter.store.used.add("lowest-finite-is-identity")
        return True
    return False


_LARGEST = {
    "f16": 65504,
    "bf16": (2**8 - 1) * 2**120,
    "f32": (2**24 - 1) * 2**104,
    "f64": (2**53 - 1) * 2**971,
}


def _largest(dtype: str) -> int:
    return _LARGEST.get(dtype, 0) or 1 << 2000
