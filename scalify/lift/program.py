"""A module as one straight list of operations: calls inlined, tuples taken apart, loops with a known trip count written out.

Small integers that are known for every device (loop counters, partition-id arithmetic, constant tables, rank parameters) are evaluated
on the way with the reference semantics of :mod:`scalify.hlo.semantics`; an operation then carries them as ``known`` and later
stages need no arithmetic of their own. Device order is that of mesh positions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scalify.errors import HloError, InputError
from scalify.hlo.arithmetic.real import Real
from scalify.hlo.dtypes import DTYPES
from scalify.hlo.semantics.engine import HANDLERS
from scalify.hlo.semantics.values import Budget, Machine, Meter, Op, Scope
from scalify.lift.collate import PER_DEVICE
from scalify.lift.custom_calls import Registry, expand
from scalify.lift.known_calls import BUILT_IN
from scalify.lift.terms import LimitReached

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scalify.hlo.module import Computation, Instruction, Module, Shape

Array = npt.NDArray[Any]
Tree = Any  # a value number, a tuple of trees, or None for a token

MOST_KNOWN = 1 << 14  #: elements, all devices together, of an integer value that is evaluated
MOST_EVALUATED = 1 << 24  #: elements of all these values together
MOST_OPERATIONS = 80_000  #: with loops written out
STEPS = 3  #: instructions visited for each of them, also those that leave no operation: calls, tuples, conditions of loops
MOST_TRIPS = 4096
DEPTH = 64

_INLINED = frozenset({"call", "fusion"})
_ALIASES = frozenset({"copy", "opt-barrier", "optimization-barrier", "domain", "async-update", "all-reduce-done"})
_DONE = {"all-gather-done": 1, "collective-permute-done": 1, "async-done": 1, "copy-done": 0}  # the element of the start that is the value
_STRUCTURAL = _ALIASES | {"tuple", "get-tuple-element", "after-all", *_DONE}
_STARTED = {f"{opcode}-start": opcode for opcode in ("all-reduce", "all-gather", "collective-permute")}
_NEVER_KNOWN = frozenset({"rng", "rng-bit-generator", "rng-get-and-update-state", "infeed", "recv", "custom-call", "parameter"})


@dataclass(slots=True)
class Operation:
    """One array operation. ``operands`` and ``results`` are value numbers; several results only where the HLO result is a tuple.

    ``known`` holds ``[devices or 1, *dims]`` where evaluated. ``reducers`` are the called computations, kept as they are.
    """

    opcode: str
    instruction: Instruction
    operands: tuple[int, ...]
    results: tuple[int, ...]
    shapes: tuple[Shape, ...]
    computations: tuple[Computation, ...] = ()


@dataclass
class Program:
    """Operations in order; ``shapes[v]`` and ``known.get(v)`` speak of value v.

    ``parameters`` are the entry's, by number, ``outputs`` the root's elements; -1 for a token.
    """

    module: Module
    devices: int
    operations: list[Operation] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    known: dict[int, Array] = field(default_factory=dict)
    parameters: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    evaluate: Callable[[Instruction, tuple[int, ...], int], None] | None = None  # notes a result in ``known`` if the operands are

    @property
    def counts(self) -> tuple[int, int]:
        """(replicas, partitions) on the devices; a module that says nothing of them is one replica."""
        replicas, partitions = self.module.num_replicas, self.module.num_partitions
        return (replicas, partitions) if replicas * partitions == self.devices else (1, self.devices)

    def value(self, shape: Shape) -> int:
        self.shapes.append(shape)
        return len(self.shapes) - 1


def flatten(
    module: Module,
    device_ids: Sequence[int],
    known: Mapping[int, Array] | None = None,
    registry: Registry = BUILT_IN,
    most: int = MOST_OPERATIONS,
) -> Program:
    """The program of a module that runs on ``device_ids`` (in the order of mesh positions).

    ``known`` gives the data of parameters that are known, ``[devices, *dims]`` or ``[1, *dims]``; ``registry`` the meaning of custom calls.

    :raises HloError: calls nested too deeply, tuples inside tuples at the root.
    :raises LimitReached: more operations than ``most``.
    """
    return _Flattener(expand(module, registry), device_ids, known or {}, most).program


class _Flattener:
    def __init__(self, module: Module, device_ids: Sequence[int], known: Mapping[int, Array], most: int) -> None:
        self.most = most
        self.module = module
        self.program = Program(module, len(device_ids), evaluate=self._evaluate)
        machine = Machine(module, len(device_ids), Meter(Budget()), Real(), _no_calls)
        self.scope = Scope(machine, np.asarray(device_ids, dtype=np.int64))
        self.given = known
        self.steps = 0
        self.evaluated = 0  # elements
        entry = module.entry
        arguments: list[Tree] = []
        for number, shape in enumerate(module.parameter_shapes):
            arguments.append(self._parameter(entry.instructions[entry.parameters[number]], shape, number))
        root = self._computation(entry, arguments, 0)
        self.program.outputs = self._outputs(root)

    def _parameter(self, instruction: Instruction, shape: Shape, number: int) -> Tree:
        if shape.elements:
            raise HloError("entry parameters that are tuples are not supported", instruction.name)
        if not shape.is_array:
            self.program.parameters.append(-1)
            return () if shape.is_tuple else None
        value = self._append(instruction, (), (shape,))[0]
        self.program.parameters.append(value)
        if number in self.given:
            self.program.known[value] = self.given[number]
        return value

    def _outputs(self, root: Tree) -> list[int]:
        found = []
        for part, shape in zip(root if isinstance(root, tuple) else (root,), self.module.output_shapes, strict=True):
            if shape.elements:
                raise HloError("a result that is a tuple inside the root tuple is not supported")
            if shape.is_array != isinstance(part, int):
                raise HloError("a result that is the context of an asynchronous operation is not supported")
            found.append(part if isinstance(part, int) else -1)
        return found

    def _append(
        self, instruction: Instruction, operands: tuple[int, ...], shapes: tuple[Shape, ...], computations: tuple[Computation, ...] = ()
    ) -> tuple[int, ...]:
        program = self.program
        first = len(program.shapes)
        program.shapes.extend(shapes)
        results = tuple(range(first, first + len(shapes)))
        program.operations.append(Operation(instruction.opcode, instruction, operands, results, shapes, computations))
        if len(program.operations) > self.most:
            raise LimitReached("operations", self.most)
        return results

    # -- computations ----------------------------------------------------------------------------------------------------
    def _computation(self, computation: Computation, arguments: Sequence[Tree], depth: int) -> Tree:
        if depth > DEPTH:
            raise HloError(f"calls are nested deeper than {DEPTH}", computation.name)
        self.steps += len(computation.instructions)
        if self.steps > STEPS * self.most:
            raise LimitReached("operations", self.most)
        values: list[Tree] = []
        for instruction in computation.instructions:
            values.append(self._instruction(instruction, values, arguments, depth))
        return values[computation.root]

    def _instruction(self, instruction: Instruction, values: list[Tree], arguments: Sequence[Tree], depth: int) -> Tree:
        opcode = instruction.opcode
        if opcode == "parameter":
            return arguments[instruction.attributes["index"]]
        operands = [values[o] for o in instruction.operands]
        if opcode in _STRUCTURAL:
            return self._structure(instruction, operands)
        if opcode in _INLINED and instruction.calls:
            return self._computation(self.module.computations[instruction.calls[0]], operands, depth + 1)
        if opcode == "while":
            return self._while(instruction, operands[0], depth)
        if opcode == "conditional":
            return self._conditional(instruction, operands, depth)
        if opcode in _STARTED:
            return self._started(instruction, operands)
        if opcode == "copy-start":
            return (operands[0], operands[0], *[None] * (len(instruction.shape.elements) - 2))
        if opcode == "async-start" and instruction.calls:
            result = self._computation(self.module.computations[instruction.calls[0]], operands, depth + 1)
            return (tuple(operands), result, *[None] * (len(instruction.shape.elements) - 2))
        return self._plain(instruction, operands)

    def _structure(self, instruction: Instruction, operands: list[Tree]) -> Tree:
        """Operations that only make, open or pass on values."""
        if instruction.opcode == "after-all":
            return None
        if instruction.opcode == "tuple" or len(operands) > 1:  # a barrier may have several operands
            return tuple(operands)
        if instruction.opcode == "get-tuple-element":
            return self._element(instruction, operands[0], instruction.attributes["index"])
        if instruction.opcode in _DONE:
            return self._element(instruction, operands[0], _DONE[instruction.opcode])
        return self._copied(instruction, operands[0])

    def _copied(self, instruction: Instruction, operand: Tree) -> Tree:
        """The operand itself; an operation of its own where the memory layout changes, which a later bitcast depends on."""
        if not isinstance(operand, int) or not instruction.shape.is_array:
            return operand
        before, after = self.program.shapes[operand], instruction.shape
        if before.rank != after.rank or _minor_to_major(before) == _minor_to_major(after):
            return operand
        return self._plain(replace(instruction, opcode="copy"), [operand])

    def _started(self, instruction: Instruction, operands: list[Tree]) -> Tree:
        """An asynchronous collective as the plain one: its value is ready at once; what it hands to its ``-done`` is (operands, results)."""
        plain = replace(instruction, opcode=_STARTED[instruction.opcode])
        if plain.opcode == "all-reduce":
            return self._plain(plain, operands)
        if len(plain.shape.elements) < 2:
            raise HloError("has no result beside its operands", instruction.name)
        result = self._plain(replace(plain, shape=plain.shape.elements[1]), operands)
        return (tuple(operands) if len(operands) > 1 else operands[0], result, *[None] * (len(plain.shape.elements) - 2))

    def _element(self, instruction: Instruction, operand: Tree, index: int) -> Tree:
        if not isinstance(operand, tuple) or index >= len(operand):
            raise HloError(f"element {index} of a value that has none", instruction.name)
        if instruction.shape.is_array != isinstance(operand[index], int):
            raise HloError("the context of an asynchronous operation is used as a value", instruction.name)
        return operand[index]

    def _plain(self, instruction: Instruction, operands: list[Tree]) -> Tree:
        flat = _flat(operands)
        shape = instruction.shape
        if not shape.is_tuple and not shape.is_array:
            return None
        computations = tuple([self.module.computations[name] for name in instruction.calls])
        if not shape.is_tuple:
            result = self._append(instruction, flat, (shape,), computations)[0]
            self._evaluate(instruction, flat, result)
            return result
        results = self._append(instruction, flat, tuple([s for s in _flat_shapes(shape) if s.is_array]), computations)
        return _tree(shape, iter(results))

    # -- loops and branches ----------------------------------------------------------------------------------------------
    def _while(self, instruction: Instruction, state: Tree, depth: int) -> Tree:
        """The body once for each trip, as long as the condition is known and the same on every device."""
        condition, body = [self.module.computations[name] for name in instruction.calls]
        for _ in range(MOST_TRIPS):
            mark = len(self.program.operations), len(self.program.shapes)
            verdict = self._computation(condition, [state], depth + 1)
            known = self.program.known.get(verdict) if isinstance(verdict, int) else None
            del self.program.operations[mark[0] :]
            if known is None or (known != known.flat[0]).any():
                return self._opaque_loop(instruction, state)
            if not bool(known.flat[0]):
                return state
            state = self._computation(body, [state], depth + 1)
        raise LimitReached("trips", MOST_TRIPS)

    def _opaque_loop(self, instruction: Instruction, state: Tree) -> Tree:
        return self._plain(instruction, [state])

    def _conditional(self, instruction: Instruction, operands: list[Tree], depth: int) -> Tree:
        selector = self.program.known.get(operands[0]) if isinstance(operands[0], int) else None
        if selector is None or (selector != selector.flat[0]).any():
            return self._plain(instruction, operands)
        chosen = int(selector.flat[0])
        if selector.dtype == np.bool_:
            branch = 0 if chosen else 1
        else:
            branch = chosen if 0 <= chosen < len(instruction.calls) else len(instruction.calls) - 1
        return self._computation(self.module.computations[instruction.calls[branch]], [operands[1 + branch]], depth + 1)

    # -- known integers --------------------------------------------------------------------------------------------------
    def _evaluate(self, instruction: Instruction, operands: tuple[int, ...], result: int) -> None:
        shape = instruction.shape
        if PER_DEVICE in instruction.attributes:
            self.program.known[result] = instruction.attributes[PER_DEVICE]
            return
        dtype = DTYPES.get(shape.dtype)
        if dtype is None or dtype.is_float or dtype.is_complex or instruction.opcode in _NEVER_KNOWN:
            return
        known = self.program.known
        if instruction.opcode == "constant":
            if "literal" in instruction.attributes and shape.size <= MOST_KNOWN:
                known[result] = np.asarray(instruction.literal)[None]
            return
        if shape.size * self.program.devices > MOST_KNOWN or any(o not in known for o in operands):
            return
        self.evaluated += shape.size * self.program.devices
        if self.evaluated > MOST_EVALUATED:
            return
        if instruction.opcode not in HANDLERS or instruction.calls:
            return
        lanes = self.scope.lanes
        arrays = [np.broadcast_to(known[o], (lanes, *known[o].shape[1:])) for o in operands]
        shapes = tuple([self.program.shapes[o] for o in operands])
        try:
            with np.errstate(all="ignore"):
                value = HANDLERS[instruction.opcode](
                    Op(self.scope, instruction, shapes), [self.scope.domain.settle(a, s.dtype) for a, s in zip(arrays, shapes, strict=True)]
                )
        except (InputError, ArithmeticError, LookupError, TypeError, ValueError):
            return  # lifted like any other operation; the shape check has reported what is malformed
        if isinstance(value, np.ndarray) and value.shape == (lanes, *shape.dims):
            value = self.scope.domain.settle(value, shape.dtype)
            known[result] = value[:1] if lanes > 1 and (value == value[:1]).all() else value


def _minor_to_major(shape: Shape) -> tuple[int, ...]:
    return shape.layout if shape.layout is not None else tuple(reversed(range(shape.rank)))


def _no_calls(scope: Scope, name: str, operands: Sequence[Any]) -> Any:
    raise HloError("computations are not called while integers are evaluated", name)


def _flat(trees: Sequence[Tree]) -> tuple[int, ...]:
    if all(type(tree) is int for tree in trees):
        return tuple(trees)
    found: list[int] = []
    pending = list(reversed(trees))
    while pending:
        tree = pending.pop()
        if isinstance(tree, tuple):
            pending.extend(reversed(tree))
        elif tree is not None:
            found.append(tree)
    return tuple(found)


def _flat_shapes(shape: Shape) -> list[Shape]:
    found: list[Shape] = []
    pending = [shape]
    while pending:
        part = pending.pop()
        if part.is_tuple:
            pending.extend(reversed(part.elements))
        else:
            found.append(part)
    return found


def _tree(shape: Shape, results: Any, depth: int = 0) -> Tree:
    if depth > DEPTH:
        raise HloError(f"tuples are nested deeper than {DEPTH}")
    if shape.is_tuple:
        return tuple(_tree(s, results, depth + 1) for s in shape.elements)
    return next(results) if shape.is_array else None
