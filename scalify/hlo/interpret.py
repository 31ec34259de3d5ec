"""The reference interpreter: a module executed in NumPy on a simulated mesh, every device at once.

Floats are computed in float64 whatever their declared type (``arithmetic="f64"``), so that the results are those of real arithmetic up
to about 1e-15, or in their declared type (``"declared"``). Integers wrap at their declared width. What each opcode computes is in
:mod:`scalify.hlo.semantics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError, UsageError
from scalify.hlo.semantics import (
    collectives,
    contraction,
    control,
    custom_calls,
    elementwise,
    indexing,
    linear_algebra,
    movement,
    ordering,
    reduction,
)
from scalify.hlo.semantics.values import OVERHEAD, Array, Budget, Handler, Machine, Op, Scope, Value, bounded_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Computation, Instruction, Module, Shape

__all__ = ["HANDLERS", "Budget", "run"]

HANDLERS: dict[str, Handler] = {
    **collectives.HANDLERS,
    **contraction.HANDLERS,
    **control.HANDLERS,
    **custom_calls.HANDLERS,
    **elementwise.HANDLERS,
    **indexing.HANDLERS,
    **linear_algebra.HANDLERS,
    **movement.HANDLERS,
    **ordering.HANDLERS,
    **reduction.HANDLERS,
}
ARITHMETIC = ("f64", "declared")
MAX_NESTING = 32
"""Of tuple types."""
DEFAULT_BUDGET = Budget()


def run(
    module: Module, inputs: Sequence[Array], devices: int = 1, *, arithmetic: str = "f64", budget: Budget = DEFAULT_BUDGET
) -> list[Array]:
    """The results of every device.

    ``inputs`` are the entry parameters in order, each ``[devices, *dims]`` in the order of device ids; so are the results, which are
    the elements of a tuple root or the single root (a token is an empty array, and any array stands for a token parameter).

    :raises HloError: an instruction that is malformed, not supported or over the budget; the message names it.
    :raises UsageError: inputs that do not fit the parameters, or a number of devices that contradicts the module.
    """
    if arithmetic not in ARITHMETIC:
        raise UsageError(f"arithmetic is one of {', '.join(ARITHMETIC)}, not {arithmetic!r}")
    machine = Machine(module, devices, budget, arithmetic, _evaluate)
    scope = Scope(machine, np.arange(devices))
    operands = [
        _accept(scope, n, shape, x) for n, (shape, x) in enumerate(zip(module.parameter_shapes, _counted(module, inputs), strict=True))
    ]
    with np.errstate(all="ignore"):
        result = scope.call(module.entry_name, operands)
    results = result if isinstance(result, tuple) else (result,)
    return [_deliver(scope, value) for value in results]


def _counted(module: Module, inputs: Sequence[Array]) -> Sequence[Array]:
    expected = len(module.parameter_shapes)
    if len(inputs) != expected:
        raise UsageError(f"{module.name}: {len(inputs)} inputs for {expected} parameters")
    return inputs


def _accept(scope: Scope, number: int, shape: Shape, value: Array) -> Value:
    if shape.dtype == "token":
        return None
    if not shape.is_array:
        raise HloError(f"parameter {number} of type {shape} cannot be given as an array")
    if value.shape != (scope.lanes, *shape.dims):
        raise UsageError(f"input {number} has shape {value.shape}, not {(scope.lanes, *shape.dims)}")
    return scope.settle(value, shape.dtype)


def _deliver(scope: Scope, value: Value) -> Array:
    if isinstance(value, tuple):
        raise HloError("a result that is a tuple inside the root tuple is not supported")
    return np.zeros((scope.lanes, 0)) if value is None else np.array(value)


def _evaluate(scope: Scope, name: str, operands: Sequence[Value]) -> Value:
    """The root value of a computation. Values are dropped after their last use."""
    machine = scope.machine
    if machine.depth >= machine.budget.depth:
        raise HloError(f"calls are nested deeper than {machine.budget.depth}")
    computation = machine.module.computations[name]
    if len(operands) != len(computation.parameters):
        raise HloError(f"computation {name} takes {len(computation.parameters)} operands, not {len(operands)}")
    machine.depth += 1
    values: list[Value] = [None] * len(computation.instructions)
    for position, dead in enumerate(_last_uses(machine, computation)):
        values[position] = _step(scope, computation, position, values, operands)
        for old in dead:
            values[old] = None
    machine.depth -= 1
    return values[computation.root]


def _last_uses(machine: Machine, computation: Computation) -> list[tuple[int, ...]]:
    """For each position the values that nothing after it reads."""
    known = machine.last_uses.get(computation.name)
    if known is None:
        last = {o: p for p, i in enumerate(computation.instructions) for o in (p, *i.operands)}
        dead: list[list[int]] = [[] for _ in computation.instructions]
        for value, position in last.items():
            if value != computation.root:
                dead[position].append(value)
        known = machine.last_uses[computation.name] = [tuple(d) for d in dead]
    return known


def _step(scope: Scope, computation: Computation, position: int, values: Sequence[Value], arguments: Sequence[Value]) -> Value:
    instruction = computation.instructions[position]
    try:
        if instruction.opcode == "parameter":
            return arguments[instruction.attributes["index"]]
        operands = [values[o] for o in instruction.operands]
        shapes = tuple(computation.instructions[o].shape for o in instruction.operands)
        return _execute(Op(scope, instruction, shapes), operands)
    except HloError as error:
        raise error if error.where else error.at(instruction.name) from None
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError, np.linalg.LinAlgError) as error:
        # Operands and attributes come from a file; NumPy finds what does not fit together.
        raise HloError(f"{instruction.opcode}: operands or attributes do not fit: {error}", instruction.name) from error


def _execute(op: Op, operands: list[Value]) -> Value:
    handler = HANDLERS.get(op.instruction.opcode)
    if handler is None:
        raise HloError(f"opcode {op.instruction.opcode} is not supported")
    if any(op.shape.dynamic):
        raise HloError("dynamic dimensions are not supported")
    elements = op.scope.lanes * _largest(op.shape)
    op.charge(elements + OVERHEAD, elements)
    return _settle(op.scope, op.instruction, op.shape, handler(op, operands))


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


def _settle(scope: Scope, instruction: Instruction, shape: Shape, value: Any) -> Value:
    """The value in its declared type. :raises HloError: its dimensions are not the declared ones."""
    if not shape.is_array:
        if isinstance(value, tuple) and len(value) == len(shape.elements):
            return tuple(_settle(scope, instruction, s, v) for s, v in zip(shape.elements, value, strict=True))
        if value is not None or shape.is_tuple:
            raise HloError(f"the value is not of type {shape}")
        return None
    if not isinstance(value, np.ndarray) or value.shape != (scope.lanes, *shape.dims):
        found = list(value.shape[1:]) if isinstance(value, np.ndarray) else "no array"
        raise HloError(f"the value has dimensions {found}, the declared type is {shape}")
    return scope.settle(value, shape.dtype)
