"""The evaluation of one module's computations, instruction by instruction, on all of its lanes.

An evaluation is a generator (:data:`Flow`): it stops wherever devices meet, so that several modules can run side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError, OverBudget, Undecidable
from scalify.hlo.semantics import (
    collectives,
    contraction,
    control,
    custom_calls,
    effects,
    elementwise,
    indexing,
    linear_algebra,
    movement,
    ordering,
    reduction,
)
from scalify.hlo.semantics.values import OVERHEAD, Flow, Handler, Kept, Op, Scope, Value, bounded_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scalify.hlo.module import Computation, Instruction, Shape
    from scalify.hlo.semantics.values import Machine

HANDLERS: dict[str, Handler] = {
    **collectives.HANDLERS,
    **contraction.HANDLERS,
    **control.HANDLERS,
    **custom_calls.HANDLERS,
    **effects.HANDLERS,
    **elementwise.HANDLERS,
    **indexing.HANDLERS,
    **linear_algebra.HANDLERS,
    **movement.HANDLERS,
    **ordering.HANDLERS,
    **reduction.HANDLERS,
}
"""Semantics of each opcode that runs on its own."""

MEETINGS = collectives.MEETINGS | {"recv-done"}
MAX_NESTING = 32
"""Of tuple types."""
_VIEWS = frozenset(
    {"parameter", "tuple", "get-tuple-element", "copy", "opt-barrier", "reshape", "bitcast", "broadcast", "slice", "transpose"}
)
"""Opcodes whose values hold no memory of their own."""


def evaluate(scope: Scope, name: str, operands: Sequence[Value]) -> Flow:
    """The root value of a computation. Values are dropped after their last use."""
    machine = scope.machine
    if machine.depth >= machine.budget.depth:
        raise OverBudget(f"calls are nested deeper than {machine.budget.depth}")
    computation = machine.module.computations[name]
    if len(operands) != len(computation.parameters):
        raise HloError(f"computation {name} takes {len(computation.parameters)} operands, not {len(operands)}")
    machine.depth += 1
    values: list[Value] = [None] * len(computation.instructions)
    for position, dead in _schedule(machine, computation):
        values[position] = yield from _step(scope, computation, position, values, operands)
        machine.meter.hold(_held(computation.instructions[position], values[position]))
        for old in dead:
            machine.meter.hold(-_held(computation.instructions[old], values[old]))
            values[old] = None
    machine.depth -= 1
    root = computation.root
    machine.meter.hold(-_held(computation.instructions[root], values[root]))
    return values[root]


def _held(instruction: Instruction, value: Value) -> int:
    """Elements that a value occupies."""
    if instruction.opcode in _VIEWS:
        return 0
    pending, elements = [value], 0
    while pending:
        part = pending.pop()
        if isinstance(part, tuple):
            pending.extend(part)
        elif part is not None:
            elements += part.size
    return elements


def _schedule(machine: Machine, computation: Computation) -> list[tuple[int, tuple[int, ...]]]:
    """Positions in the order of execution, each with the values that nothing after it reads."""
    known = machine.schedules.get(computation.name)
    if known is None:
        order = _order(computation)
        last: dict[int, int] = {}
        for position in order:
            last.update(dict.fromkeys((position, *computation.instructions[position].operands), position))
        dead: dict[int, list[int]] = {}
        for value, position in last.items():
            if value != computation.root:
                dead.setdefault(position, []).append(value)
        known = machine.schedules[computation.name] = [(p, tuple(dead.get(p, ()))) for p in order]
    return known


def _order(computation: Computation) -> Iterable[int]:
    """As it stands, but what waits for a message comes after everything that does not: the message may be sent there."""
    rows = computation.instructions
    if all(i.opcode != "recv-done" for i in rows):
        return range(len(rows))
    waits = [0] * len(rows)
    for position, i in enumerate(rows):
        waits[position] = max((waits[o] for o in (*i.operands, *i.control) if o < position), default=0) + (i.opcode == "recv-done")
    return sorted(range(len(rows)), key=waits.__getitem__)


def _step(scope: Scope, computation: Computation, position: int, values: Sequence[Value], arguments: Sequence[Value]) -> Flow:
    instruction = computation.instructions[position]
    try:
        if instruction.opcode == "parameter":
            value = arguments[instruction.attributes["index"]]
        else:
            operands = [values[o] for o in instruction.operands]
            shapes = tuple(computation.instructions[o].shape for o in instruction.operands)
            value = yield from _execute(Op(scope, instruction, shapes), operands)
    except HloError as error:
        raise error if error.where else error.at(instruction.name) from None
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        # Operands and attributes come from a file; NumPy finds what does not fit together.
        raise HloError(f"{instruction.opcode}: operands or attributes do not fit: {error}", instruction.name) from error
    _keep(scope, (scope.machine.number, computation.name, position), value)
    return value


def _keep(scope: Scope, place: tuple[int, str, int], value: Value) -> None:
    machine = scope.machine
    if scope.whole and place in machine.keep:
        machine.meter.hold(sum(x.size for x in (value if isinstance(value, tuple) else (value,)) if isinstance(x, np.ndarray)))
        machine.kept.setdefault(place, []).append(Kept(scope.devices, value))


def _execute(op: Op, operands: list[Value]) -> Flow:
    opcode = op.instruction.opcode
    if opcode not in HANDLERS and opcode not in control.FLOWS:
        raise Undecidable(f"opcode {opcode} is not supported")
    if any(op.shape.dynamic):
        raise Undecidable("dynamic dimensions are not supported")
    elements = op.scope.lanes * _largest(op.shape)
    op.charge(elements + OVERHEAD, elements)
    if opcode in control.FLOWS:
        value = yield from control.FLOWS[opcode](op, operands)
    elif opcode in MEETINGS:
        value = yield op, operands
    else:
        value = HANDLERS[opcode](op, operands)
    return settle(op.scope, op.shape, value)


def _largest(shape: Shape) -> int:
    """Elements of the largest array in a shape. :raises HloError: tuples nested too deep for the functions that walk values."""
    level, largest, depth = [shape], 0, 0
    while level:
        largest = max(largest, *(bounded_size(s.dims) if s.is_array else 0 for s in level), 0)
        level = [element for s in level for element in s.elements]
        depth += 1
        if depth > MAX_NESTING:
            raise HloError(f"tuples are nested deeper than {MAX_NESTING}")
    return largest


def settle(scope: Scope, shape: Shape, value: Any) -> Value:
    """The value in its declared type. :raises HloError: its dimensions are not the declared ones."""
    if not shape.is_array:
        if isinstance(value, tuple) and len(value) == len(shape.elements):
            return tuple(settle(scope, s, v) for s, v in zip(shape.elements, value, strict=True))
        if value is not None or shape.is_tuple:
            raise HloError(f"the value is not of type {shape}")
        return None
    if not isinstance(value, np.ndarray) or value.shape != (scope.lanes, *shape.dims):
        found = list(value.shape[1:]) if isinstance(value, np.ndarray) else "no array"
        raise HloError(f"the value has dimensions {found}, the declared type is {shape}")
    return scope.domain.settle(value, shape.dtype)
