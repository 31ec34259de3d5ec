"""Tuples, tokens, calls, branches and loops.

Devices may disagree on a branch or a trip count: each branch or iteration then runs on the devices that take it, in lock step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scalify.hlo.semantics.values import OVERHEAD, Array, Flow, Handler, Op, Value, as_index

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def rows(value: Value, keep: Array) -> Value:
    """The lanes ``keep`` of a value."""
    if isinstance(value, tuple):
        return tuple(rows(v, keep) for v in value)
    return None if value is None else value[keep]


def put(value: Value, keep: Array, new: Value) -> Value:
    """``value`` with the lanes ``keep`` replaced by those of ``new``."""
    if isinstance(value, tuple):
        return tuple(put(v, keep, n) for v, n in zip(value, new, strict=True))
    if value is None:
        return None
    result: Array = np.array(value)
    result[keep] = new
    return result


def _tuple(_op: Op, operands: Sequence[Value]) -> Value:
    return tuple(operands)


def _get_tuple_element(op: Op, operands: Sequence[Value]) -> Value:
    return operands[0][op.attributes["index"]]


def _token(_op: Op, _operands: Sequence[Value]) -> Value:
    return None


def _call(op: Op, operands: Sequence[Value]) -> Flow:
    return op.scope.call(op.instruction.calls[0], operands)


def _while(op: Op, operands: Sequence[Value]) -> Flow:
    condition, body = op.instruction.calls
    state, scope = operands[0], op.scope
    result, active = state, np.arange(scope.lanes)
    while active.size:
        op.charge(OVERHEAD)
        goes_on = yield from scope.call(condition, [state])
        if not goes_on.all():
            result = put(result, active, state)
            active, state, scope = active[goes_on], rows(state, goes_on), scope.subset(goes_on)
        if active.size:
            state = yield from scope.call(body, [state])
    return result


def _conditional(op: Op, operands: Sequence[Value]) -> Flow:
    """A predicate picks the first branch when true; an index out of range picks the last one."""
    selector, branches = operands[0], op.instruction.calls
    index = as_index(selector)
    chosen = 1 - index if selector.dtype == np.bool_ else np.where((index < 0) | (index >= len(branches)), len(branches) - 1, index)
    if (chosen == chosen[0]).all():
        return (yield from op.scope.call(branches[chosen[0]], [operands[1 + chosen[0]]]))
    result = op.scope.zeros(op.shape)
    for branch in np.unique(chosen).tolist():
        keep = np.flatnonzero(chosen == branch)
        value = yield from op.scope.subset(keep).call(branches[branch], [rows(operands[1 + branch], keep)])
        result = put(result, keep, value)
    return result


def _async_start(op: Op, operands: Sequence[Value]) -> Flow:
    """(operands, result, contexts of the implementation)."""
    result = yield from _call(op, operands)
    return (tuple(operands), result, *(op.scope.zeros(s) for s in op.shape.elements[2:]))


def _same(_op: Op, operands: Sequence[Value]) -> Value:
    return operands[0]


def _async_done(_op: Op, operands: Sequence[Value]) -> Value:
    return operands[0][1]


def _copy_start(op: Op, operands: Sequence[Value]) -> Value:
    return (operands[0], operands[0], *(op.scope.zeros(s) for s in op.shape.elements[2:]))


def _copy_done(_op: Op, operands: Sequence[Value]) -> Value:
    return operands[0][0]


HANDLERS: dict[str, Handler] = {
    "after-all": _token,
    "async-done": _async_done,
    "async-update": _same,
    "copy-done": _copy_done,
    "copy-start": _copy_start,
    "get-tuple-element": _get_tuple_element,
    "tuple": _tuple,
}

FLOWS: dict[str, Callable[[Op, Sequence[Value]], Flow]] = {
    "async-start": _async_start,
    "call": _call,
    "conditional": _conditional,
    "fusion": _call,
    "while": _while,
}
"""Opcodes that run other computations on the devices themselves, in which devices may meet."""
