"""Values of the reference interpreter: storage types, lanes, budgets.

Every array value has a leading axis of *lanes*. At the top a lane is a device; inside a scalar computation (a reducer, a
comparator) the elements that it is applied to are lanes as well, so that it is evaluated once for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scalify.errors import HloError, UsageError
from scalify.hlo.dtypes import DTYPES

if TYPE_CHECKING:
    from scalify.hlo.module import Instruction, Module, Shape

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = Any
"""An :data:`Array`, a tuple of values, or None for a token."""

BF16 = (8, 7)
"""Exponent and mantissa bits."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits that end a run with :class:`HloError` instead of exhausting the machine.

    ``elements`` bounds any one value or temporary (all lanes together); ``operations`` bounds the element operations of the whole
    run, where each executed instruction counts at least ``OVERHEAD``; ``depth`` bounds nested calls.
    """

    elements: int = 1 << 27
    operations: int = 1 << 34
    depth: int = 64


OVERHEAD = 512


@cache
def storage(dtype: str, arithmetic: str = "f64") -> np.dtype[Any]:
    """The NumPy type that holds values of an HLO type. :raises HloError: no array type of this name."""
    known = DTYPES.get(dtype)
    if known is None:
        raise HloError(f"values of type {dtype} cannot be computed with")
    if known.is_integer:
        return np.dtype(f"{'int' if known.kind == 's' else 'uint'}{max(known.bits, 8)}")
    if not known.is_float:
        wide = arithmetic == "f64" or dtype == "c128"
        return np.dtype(np.bool_) if dtype == "pred" else np.dtype(np.complex128 if wide else np.complex64)
    return np.dtype(np.float64) if arithmetic == "f64" else _declared_float(dtype)


def _declared_float(dtype: str) -> np.dtype[Any]:
    known = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.float32}
    if dtype not in known:
        raise HloError(f"arithmetic in {dtype} is not supported")
    return np.dtype(known[dtype])


def settle(array: Array, dtype: str, arithmetic: str = "f64") -> Array:
    """``array`` as a value of HLO type ``dtype``: integers wrap at their width, floats round if arithmetic is ``declared``."""
    held = storage(dtype, arithmetic)
    settled = array if array.dtype == held else array.astype(held)
    if DTYPES[dtype].is_integer and DTYPES[dtype].bits < 8:
        spare = 8 - DTYPES[dtype].bits
        return np.right_shift(np.left_shift(settled, spare), spare)
    if arithmetic != "f64" and dtype == "bf16":
        return reduce_precision(settled, *BF16)
    return settled


def bounded_size(dims: Iterable[int]) -> int:
    """Elements of an array, where an empty dimension counts as one: the other dimensions must be bearable all the same."""
    return math.prod(max(dim, 1) for dim in dims)


def as_index(x: Array) -> npt.NDArray[np.int64]:
    """Integers as int64; unsigned ones beyond its range stay larger than any dimension."""
    if x.dtype == np.uint64:
        x = np.minimum(x, np.uint64(1 << 62))
    return x.astype(np.int64)


def reduce_precision(x: Array, exponent_bits: int, mantissa_bits: int, *, flush: bool = False) -> Array:
    """``x`` rounded to nearest even in a narrower format; ``flush`` sends values below the normal range to zero."""
    lowest = 2 - 2 ** (exponent_bits - 1)
    _, exponent = np.frexp(x)
    quantum = np.ldexp(np.ones_like(x), np.maximum(exponent - 1, lowest) - mantissa_bits)
    rounded = np.where(np.isfinite(x), np.rint(x / quantum) * quantum, x)
    top = (2.0 - 2.0**-mantissa_bits) * 2.0 ** (2 ** (exponent_bits - 1) - 1)
    rounded = np.where(np.abs(rounded) > top, np.copysign(np.inf, x), rounded)
    if flush:
        rounded = np.where(np.abs(rounded) < 2.0**lowest, np.copysign(0.0, x), rounded)
    return rounded.astype(x.dtype)


@dataclass
class Machine:
    """What all lanes of one run share: the module, the devices, the limits and how much of them is used."""

    module: Module
    devices: int
    budget: Budget
    arithmetic: str
    evaluate: Callable[[Scope, str, Sequence[Value]], Value]
    spent: int = 0
    depth: int = 0
    reducers: dict[str, str | None] = field(default_factory=dict)
    last_uses: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)

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

    def charge(self, operations: int, elements: int = 0) -> None:
        """Counts work before it is done. :raises HloError: over budget."""
        if elements > self.budget.elements:
            raise HloError(f"a value of {elements} elements is over the limit of {self.budget.elements}")
        self.spent += operations
        if self.spent > self.budget.operations:
            raise HloError(f"execution needs more than the limit of {self.budget.operations} element operations")


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

    def call(self, computation: str, operands: Sequence[Value]) -> Value:
        """The computation's root value on these lanes."""
        return self.machine.evaluate(self, computation, operands)

    def apply(self, computation: str, operands: Sequence[Array]) -> tuple[Array, ...]:
        """A scalar computation applied to every element of equally shaped operands ``[lanes, ...]``; always a tuple."""
        shape = operands[0].shape
        repeat = int(np.prod(shape[1:], dtype=np.int64))
        inner = Scope(self.machine, np.repeat(self.devices, repeat), whole=False)
        results = inner.call(computation, [x.reshape(-1) for x in operands])
        results = results if isinstance(results, tuple) else (results,)
        return tuple(r.reshape(shape) for r in results)

    def subset(self, keep: npt.NDArray[Any]) -> Scope:
        return Scope(self.machine, self.devices[keep], self.whole)

    def zeros(self, shape: Shape) -> Value:
        """Zeros of an array shape, None for a token, a tuple of these for a tuple."""
        if shape.is_tuple:
            return tuple(self.zeros(s) for s in shape.elements)
        return np.zeros((self.lanes, *shape.dims), storage(shape.dtype, self.machine.arithmetic)) if shape.is_array else None

    def settle(self, array: Array, dtype: str) -> Array:
        return settle(array, dtype, self.machine.arithmetic)

    def storage(self, dtype: str) -> np.dtype[Any]:
        return storage(dtype, self.machine.arithmetic)


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
    def attributes(self) -> Mapping[str, Any]:
        return self.instruction.attributes

    def charge(self, operations: int, elements: int = 0) -> None:
        self.scope.machine.charge(operations, elements)


Handler: TypeAlias = Callable[[Op, Sequence[Any]], Value]
"""Semantics of an opcode: operands and result are values on the scope's lanes. The result's type may be wider than declared
(the interpreter settles it), its dimensions not."""
