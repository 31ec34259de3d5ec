"""Reductions: ``reduce``, ``reduce-window``, ``select-and-scatter``, ``map``.

Source: XLA's operation semantics. XLA leaves the order open; here the initial value comes first and the elements follow in row-major
order, except that the usual one-operand reducers (which are associative over the reals) use NumPy's own order.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.arithmetic.domain import ASSOCIATIVE
from scalify.hlo.dtypes import DTYPES
from scalify.hlo.semantics.movement import dilate_and_pad
from scalify.hlo.semantics.values import OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scalify.hlo.module import Computation
    from scalify.hlo.semantics.values import Array, Handler, Op, Scope
    from scalify.hlo.window import WindowDimension

ASSIGN = "parameter"
"""What :func:`combiner` says of a computation that returns its second operand."""


def combiner(scope: Scope, name: str) -> str | None:
    """The opcode of a two-parameter computation that is one associative operation or :data:`ASSIGN`; None for any other."""
    known = scope.machine.reducers
    if name not in known:
        computation = scope.machine.module.computations[name]
        known[name] = _classify(computation, looks_through=scope.domain.reals)
    return known[name]


def _classify(computation: Computation, *, looks_through: bool) -> str | None:
    parameters = computation.parameters
    if len(parameters) != 2:
        return None
    root = _source(computation, computation.root, looks_through=looks_through)
    if root == parameters[1]:
        return ASSIGN
    instruction = computation.instructions[root]
    operands = {_source(computation, o, looks_through=looks_through) for o in instruction.operands}
    return instruction.opcode if instruction.opcode in ASSOCIATIVE and operands == set(parameters) else None


def _source(computation: Computation, position: int, *, looks_through: bool) -> int:
    """The value behind copies and, where floats are reals, behind conversions between floats."""
    while True:
        instruction = computation.instructions[position]
        if instruction.opcode not in ("copy", "convert") or not instruction.operands:
            return position
        operand = computation.instructions[instruction.operands[0]]
        floats = all(s.dtype in DTYPES and DTYPES[s.dtype].is_float for s in (instruction.shape, operand.shape))
        if instruction.opcode == "convert" and not (floats and looks_through):
            return position
        position = instruction.operands[0]


def _element_type(scope: Scope, name: str) -> str:
    """The type of the first parameter of a reducer."""
    computation = scope.machine.module.computations[name]
    return computation.instructions[computation.parameters[0]].shape.dtype


def combine(scope: Scope, name: str, left: Sequence[Array], right: Sequence[Array]) -> tuple[Array, ...]:
    """One application of a reducer to accumulators and elements of equal shape."""
    opcode = combiner(scope, name)
    if opcode in ASSOCIATIVE:
        return (scope.domain.apply(opcode, [left[0], right[0]], _element_type(scope, name)),)
    if opcode == ASSIGN:
        return (right[0],)
    return scope.apply(name, [*left, *right])


def fold(scope: Scope, name: str, initial: Sequence[Array], elements: Iterable[Sequence[Array]]) -> tuple[Array, ...]:
    """Left fold; ``initial`` and every entry of ``elements`` are arrays ``[lanes, ...]`` of one shape."""
    accumulated = tuple(initial)
    for element in elements:
        scope.machine.charge(accumulated[0].size + OVERHEAD)
        accumulated = combine(scope, name, accumulated, element)
    return accumulated


def spread_initial(initial: Sequence[Array], shape: Sequence[int]) -> list[Array]:
    """Scalars ``[lanes]`` repeated over ``[lanes, *shape]``."""
    return [np.broadcast_to(i.reshape(-1, *(1,) * len(shape)), (i.shape[0], *shape)) for i in initial]


def unpack(results: tuple[Array, ...], *, as_tuple: bool) -> Any:
    """All results, or the only one where the instruction's type is no tuple."""
    return results if as_tuple else results[0]


def _reduce(op: Op, operands: Sequence[Array]) -> Any:
    count = len(operands) // 2
    inputs, initial, name = operands[:count], operands[count:], op.instruction.calls[0]
    axes = tuple(d + 1 for d in op.attributes["dimensions"])
    op.charge(sum(x.size for x in inputs))
    opcode = combiner(op.scope, name) if count == 1 and inputs[0].size else None
    if opcode in ASSOCIATIVE:
        reduced = op.domain.reduce(opcode, inputs[0], axes, op.source)
        results: tuple[Array, ...] = (op.domain.apply(opcode, [spread_initial(initial, reduced.shape[1:])[0], reduced], op.source),)
    else:
        results = _reduce_in_order(op, inputs, initial, axes)
    return unpack(results, as_tuple=op.shape.is_tuple)


def _reduce_in_order(op: Op, inputs: Sequence[Array], initial: Sequence[Array], axes: tuple[int, ...]) -> tuple[Array, ...]:
    axes = tuple(sorted(axes))
    kept = tuple(a for a in range(inputs[0].ndim) if a not in axes)
    length = math.prod(inputs[0].shape[a] for a in axes)
    lines = [x.transpose(*axes, *kept).reshape(length, *(x.shape[a] for a in kept)) for x in inputs]
    start = spread_initial(initial, lines[0].shape[2:])
    return fold(op.scope, op.instruction.calls[0], start, zip(*lines, strict=True))


def output_size(window: WindowDimension, size: int) -> int:
    """Positions of a window along a dimension of ``size`` elements."""
    dilated = (size - 1) * window.lhs_dilate + 1 if size else 0
    padded = dilated + window.pad_low + window.pad_high
    extent = (window.size - 1) * window.rhs_dilate + 1 if window.size else 0
    return 0 if window.size == 0 or padded < extent else (padded - extent) // window.stride + 1


def _reduce_window(op: Op, operands: Sequence[Array]) -> Any:
    """Positions of a window outside of the operand count for nothing, as in ``HloEvaluator``: the initial value enters once."""
    count = len(operands) // 2
    window: Sequence[WindowDimension] = op.attributes["window"]
    inputs, initial = operands[:count], operands[count:]
    sizes = [output_size(w, d) for w, d in zip(window, inputs[0].shape[1:], strict=True)]
    padding = [(w.pad_low, w.pad_high, w.lhs_dilate - 1) for w in window]
    padded = [dilate_and_pad(op, x, padding, i) for x, i in zip(inputs, initial, strict=True)]
    inside = dilate_and_pad(op, np.ones((1, *inputs[0].shape[1:]), np.bool_), padding, np.zeros(1, np.bool_))
    results = tuple(spread_initial(initial, sizes))
    for offset in _offsets(op, window):
        place = _strided(window, offset, sizes)
        op.charge(results[0].size + OVERHEAD)
        combined = combine(op.scope, op.instruction.calls[0], results, [x[place] for x in padded])
        results = tuple(np.where(inside[place], new, old) for new, old in zip(combined, results, strict=True))
    return unpack(results, as_tuple=op.shape.is_tuple)


def _offsets(op: Op, window: Sequence[WindowDimension]) -> Iterable[tuple[int, ...]]:
    """The elements of a window in row-major order, charged before there are any."""
    op.charge(OVERHEAD * math.prod(max(w.size, 1) for w in window))
    return itertools.product(*(range(w.size) for w in window))


def _strided(window: Sequence[WindowDimension], offset: Sequence[int], sizes: Sequence[int]) -> tuple[Any, ...]:
    """Where element ``offset`` of every window lies in the padded base."""
    starts = [o * w.rhs_dilate for o, w in zip(offset, window, strict=True)]
    bounded = [slice(s, s + (n - 1) * w.stride + 1 if n else s, w.stride) for s, n, w in zip(starts, sizes, window, strict=True)]
    return (slice(None), *bounded)


def _select_and_scatter(op: Op, operands: Sequence[Array]) -> Array:
    """Each source element goes to the operand position that ``select`` keeps of its window."""
    x, source, initial = operands
    select, scatter = op.instruction.calls
    chosen = _selected_positions(op, x, source.shape[1:], select)
    lanes = x.shape[0]
    result = np.array(spread_initial([initial], x.shape[1:])[0].reshape(lanes, -1))
    accumulate(op.scope, scatter, [result], chosen.reshape(lanes, -1), [source.reshape(lanes, -1)], chosen.reshape(lanes, -1) >= 0)
    return result.reshape(x.shape)


def _selected_positions(op: Op, x: Array, sizes: Sequence[int], select: str) -> Array:
    """Flat position in the operand of the element kept of each window, -1 for a window that is all padding."""
    window: Sequence[WindowDimension] = op.attributes["window"]
    padding = [(w.pad_low, w.pad_high, 0) for w in window]
    places = np.broadcast_to(np.arange(x[0].size).reshape(1, *x.shape[1:]), x.shape)
    padded = dilate_and_pad(op, x, padding, np.zeros(x.shape[0], x.dtype))
    padded_places = dilate_and_pad(op, places, padding, np.full(x.shape[0], -1))
    best = np.zeros((x.shape[0], *sizes), x.dtype)
    best_place = np.full(best.shape, -1)
    for offset in _offsets(op, window):
        op.charge(best.size)
        index = _strided(window, offset, sizes)
        value, place = padded[index], padded_places[index]
        keeps = op.scope.apply(select, [best, value])[0].astype(np.bool_) & (best_place >= 0)
        takes = (place >= 0) & ~keeps
        best, best_place = np.where(takes, value, best), np.where(takes, place, best_place)
    return best_place


def accumulate(scope: Scope, name: str, targets: Sequence[Array], places: Array, updates: Sequence[Array], valid: Array) -> None:
    """``target[lane, place] = combine(target[lane, place], update)`` for each update in order, in place.

    ``targets`` are ``[lanes, size]``, ``places``, ``updates`` and ``valid`` ``[lanes, count]``; invalid updates are dropped.
    """
    opcode = combiner(scope, name) if len(targets) == 1 else None
    lane = np.broadcast_to(np.arange(places.shape[0])[:, None], places.shape)
    if opcode in ASSOCIATIVE:
        scope.domain.accumulate(opcode, targets[0], (lane[valid], places[valid]), updates[0][valid], _element_type(scope, name))
        return
    if opcode == ASSIGN:
        targets[0][lane[valid], places[valid]] = updates[0][valid]
        return
    for column in range(places.shape[1]):
        keep = valid[:, column]
        if keep.any():
            _accumulate_one(
                scope.subset(keep), name, targets, (lane[keep, column], places[keep, column]), [u[keep, column] for u in updates]
            )


def _accumulate_one(scope: Scope, name: str, targets: Sequence[Array], index: tuple[Array, Array], updates: Sequence[Array]) -> None:
    old = [target[index] for target in targets]
    for target, new in zip(targets, combine(scope, name, old, updates), strict=True):
        target[index] = new


def _map(op: Op, operands: Sequence[Array]) -> Array:
    if any(x.shape != operands[0].shape for x in operands):
        raise HloError("operands differ in shape")
    return op.scope.apply(op.instruction.calls[0], operands)[0]


HANDLERS: dict[str, Handler] = {
    "map": _map,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "select-and-scatter": _select_and_scatter,
}
