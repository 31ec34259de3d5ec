"""Values of the reference interpreter: lanes, budgets, what a handler may look at.

Every array value has a leading axis of *lanes*. At the top a lane is a device; inside a scalar computation (a reducer, a
comparator) the elements that it is applied to are lanes as well, so that it is evaluated once for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scalify.errors import HloError, OverBudget, UsageError
from scalify.hlo.arithmetic.integers import as_index
from scalify.hlo.arithmetic.real import storage

if TYPE_CHECKING:
    from scalify.hlo.arithmetic.domain import Domain
    from scalify.hlo.module import Instruction, Module, Shape

__all__ = [
    "OVERHEAD",
    "Array",
    "Budget",
    "Flow",
    "Handler",
    "Kept",
    "Machine",
    "Meter",
    "Op",
    "Place",
    "Scope",
    "Value",
    "as_index",
    "bounded_size",
    "finished",
    "storage",
]

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = Any
"""An :data:`Array`, a tuple of values, or None for a token."""
Place: TypeAlias = tuple[int, str, int]
"""An instruction: number of the module, computation, position."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits that end a run with :class:`OverBudget` before memory is allocated or time spent.

    ``elements`` bounds any one value or temporary (all lanes together; an element counts for several in a domain that holds large ones), ``live`` all values that are held at once; ``operations`` bounds
    the element operations of the whole run, where each executed instruction counts at least ``OVERHEAD`` and each element operation the
    domain's cost; ``depth`` bounds nested calls.
    """

    elements: int = 1 << 27
    operations: int = 1 << 34
    depth: int = 64
    live: int = 1 << 29


OVERHEAD = 512


def bounded_size(dims: Iterable[int]) -> int:
    """Elements of an array, where an empty dimension counts as one: the other dimensions must be bearable all the same."""
    return math.prod(max(dim, 1) for dim in dims)


@dataclass
class Meter:
    """What a run has used so far; all modules of a run share one."""

    budget: Budget
    spent: int = 0
    live: int = 0

    def charge(self, operations: int, elements: int = 0) -> None:
        """Counts work before it is done. :raises OverBudget: too much."""
        if elements > self.budget.elements:
            raise OverBudget(f"a value of {elements} elements is over the limit of {self.budget.elements}")
        self.spent += operations
        if self.spent > self.budget.operations:
            raise OverBudget(f"execution needs more than the limit of {self.budget.operations} element operations")

    def hold(self, elements: int) -> None:
        """Counts elements that stay in memory (negative: that no longer do). :raises OverBudget: too many."""
        self.live += elements
        if self.live > self.budget.live:
            raise OverBudget(f"the values held at once have more elements than the limit of {self.budget.live}")


@dataclass(frozen=True, slots=True)
class Kept:
    """The value of an instruction in one of its executions, on the device ids of its lanes."""

    devices: npt.NDArray[np.int64]
    value: Value


@dataclass
class Machine:
    """What all lanes of one module share: the module, the devices, the limits and how much of them is used.

    ``evaluate`` runs a computation. ``keep`` says which instructions' values go to ``kept``; ``draws`` counts the executions of instructions whose
    value comes from outside. Messages wait in ``sent`` under channel and sender; ``receiving`` has the pairs of each channel (None: the host sends),
    ``peers`` the devices of the module that sends on it. All machines of a run share ``meter``, ``domain``, ``sent`` and ``peers``.
    """

    module: Module
    devices: int
    meter: Meter
    domain: Domain
    evaluate: Callable[[Scope, str, Sequence[Value]], Flow]
    number: int = 0
    keep: Container[Place] = ()
    label: str = ""
    depth: int = 0
    reducers: dict[str, str | None] = field(default_factory=dict)
    schedules: dict[str, list[tuple[int, tuple[int, ...]]]] = field(default_factory=dict)
    kept: dict[Place, list[Kept]] = field(default_factory=dict)
    draws: dict[str, int] = field(default_factory=dict)
    sent: dict[tuple[int, int], list[Value]] = field(default_factory=dict)
    receiving: dict[int, list[tuple[int, int]] | None] = field(default_factory=dict)
    peers: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @cached_property
    def counts(self) -> tuple[int, int]:
        """(replicas, partitions), whose product is the number of devices. A module that says neither is one replica.

        :raises UsageError: the module's own counts contradict the number of devices.
        """
        replicas, partitions = self.module.num_replicas, self.module.num_partitions
        if replicas * partitions == self.devices:
            return replicas, partitions
        if replicas * partitions == 1:
            return 1, self.devices
        raise UsageError(f"{self.module.name}: made for {replicas} replicas of {partitions} partitions, not for {self.devices} devices")

    @property
    def budget(self) -> Budget:
        return self.meter.budget

    def charge(self, operations: int = 0, elements: int = 0, products: int = 0) -> None:
        """Counts work before it is done; ``products`` are those that a contraction adds up. :raises OverBudget: too much."""
        domain = self.domain
        spent = operations * domain.cost + products * (domain.product_cost or domain.cost)
        self.meter.charge(spent, elements * max(1, domain.cost // 8))


@dataclass(frozen=True)
class Scope:
    """The lanes that a computation is evaluated on: ``devices[lane]`` is a device id.

    ``whole`` says that a lane is a device, so that collectives have a meaning. Where devices take different branches, a
    scope holds only those that took this one.
    """

    machine: Machine
    devices: npt.NDArray[np.int64]
    whole: bool = True

    @property
    def lanes(self) -> int:
        return len(self.devices)

    @property
    def domain(self) -> Domain:
        return self.machine.domain

    def call(self, computation: str, operands: Sequence[Value]) -> Flow:
        """The computation's root value on these lanes."""
        return self.machine.evaluate(self, computation, operands)

    def apply(self, computation: str, operands: Sequence[Array]) -> tuple[Array, ...]:
        """A scalar computation applied to every element of equally shaped operands ``[lanes, ...]``; always a tuple."""
        shape = operands[0].shape
        repeat = int(np.prod(shape[1:], dtype=np.int64))
        inner = Scope(self.machine, np.repeat(self.devices, repeat), whole=False)
        results = finished(inner.call(computation, [x.reshape(-1) for x in operands]))
        results = results if isinstance(results, tuple) else (results,)
        return tuple(r.reshape(shape) for r in results)

    def subset(self, keep: npt.NDArray[Any]) -> Scope:
        return Scope(self.machine, self.devices[keep], self.whole)

    def zeros(self, shape: Shape) -> Value:
        """Zeros of an array shape, None for a token, a tuple of these for a tuple."""
        if shape.is_tuple:
            return tuple(self.zeros(s) for s in shape.elements)
        return np.zeros((self.lanes, *shape.dims), self.domain.storage(shape.dtype)) if shape.is_array else None


@dataclass(frozen=True, slots=True)
class Op:
    """An instruction about to be evaluated: what its handler may look at besides the operands' values."""

    scope: Scope
    instruction: Instruction
    shapes: tuple[Shape, ...]
    """Declared shapes of the operands."""

    @property
    def shape(self) -> Shape:
        return self.instruction.shape

    @property
    def dtype(self) -> str:
        return self.instruction.shape.dtype

    @property
    def source(self) -> str:
        """The element type of the first operand."""
        return self.shapes[0].dtype

    @property
    def domain(self) -> Domain:
        return self.scope.machine.domain

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.instruction.attributes

    def charge(self, operations: int = 0, elements: int = 0, products: int = 0) -> None:
        self.scope.machine.charge(operations, elements, products)


Handler: TypeAlias = Callable[[Op, Sequence[Any]], Value]
"""Semantics of an opcode: operands and result are values on the scope's lanes. The result's type may be wider than declared
(the interpreter settles it), its dimensions not."""

Flow: TypeAlias = Generator[tuple[Op, Sequence[Value]], Value, Value]
"""An evaluation that stops wherever devices meet: it yields the instruction with its operands, and is sent the value."""


def finished(flow: Flow) -> Value:
    """The value of an evaluation in which no devices meet."""
    try:
        op, _ = next(flow)
    except StopIteration as end:
        return end.value
    raise HloError("devices cannot meet inside a scalar computation", op.instruction.name)
