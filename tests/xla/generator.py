"""What the families of random programs have in common: choices, values, parameters with their data."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.dtypes import DTYPES
from scalify.hlo.module import Shape
from tests.support.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from scalify.hlo.window import WindowDimension

    Array = npt.NDArray[Any]

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
FLOATS = ("f32", "f64", "f32", "f64", "f16", "bf16")
WIDE = ("f32", "f64")
COMPLEX = ("c64", "c128")
DEVICES = (1, 2, 4, 8)
EXTREMES = ("add", "multiply", "maximum", "minimum")


class Generator:
    """A program in the making."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.devices = self.random.choice(DEVICES)
        self.b = Builder()
        self.inputs: list[Array] = []
        self.results: list[int] = []
        self.helpers = 0

    # -- choices ---------------------------------------------------------------------------------------------------------
    def pick(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def size(self, low: int = 1, high: int = 4) -> int:
        return self.random.randint(low, high)

    def dims(self, low: int = 0, high: int = 3) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.size(low, high)))

    def name(self, what: str) -> str:
        self.helpers += 1
        return f"{what}_{self.helpers}"

    # -- values ----------------------------------------------------------------------------------------------------------
    def value(self, dtype: str, dims: Sequence[int]) -> int:
        """A result of this shape, or a new parameter."""
        found = [v for v in self.results if self.b.shape(v) == Shape(dtype, tuple(dims))]
        if found and self.random.random() < 0.7:
            return int(self.pick(found))
        return self.parameter(self.data(dtype, dims), dtype)

    def parameter(self, data: Array, dtype: str) -> int:
        self.inputs.append(data)
        return self.b.parameter(dtype, data.shape[1:])

    def data(self, dtype: str, dims: Sequence[int]) -> Array:
        shape = (self.devices, *dims)
        kind = DTYPES[dtype]
        if dtype == "pred":
            return self.numbers.integers(0, 2, shape).astype(np.bool_)
        if kind.is_integer:
            return self._integers(dtype, shape)
        if kind.is_complex:
            return self.numbers.integers(-64, 64, shape) / 16 + 1j * self.numbers.integers(-64, 64, shape) / 16
        return self._floats(shape)

    def _integers(self, dtype: str, shape: tuple[int, ...]) -> Array:
        kind = DTYPES[dtype]
        low, high = kind.minimum or 0, kind.maximum or 0
        if self.random.random() < 0.5:
            low, high = max(low, -9), min(high, 9)
        held = np.int64 if kind.kind == "s" else np.uint64
        drawn = self.numbers.integers(low, high, shape, dtype=held, endpoint=True)
        return np.asarray(np.where(self.numbers.random(shape) < 0.1, held(kind.minimum or 0), drawn))

    def _floats(self, shape: tuple[int, ...]) -> Array:
        """Multiples of 2^-4 (which every type holds), sometimes with values that are no numbers."""
        drawn = self.numbers.integers(-64, 64, shape) / 16
        if self.random.random() < 0.1:
            odd = self.numbers.choice(np.array([np.inf, -np.inf, np.nan, 0.0]), shape)
            drawn = np.where(self.numbers.random(shape) < 0.3, odd, drawn)
        return np.asarray(drawn)

    def indices(self, high: int, dims: Sequence[int], dtype: str = "s32") -> int:
        """Positions, some of them outside."""
        return self.parameter(self.numbers.integers(-1, high + 2, (self.devices, *dims)), dtype)

    def add(self, opcode: str, dtype: str | Shape, dims: Sequence[int] = (), operands: Sequence[int] = (), **more: Any) -> int:
        value = self.b.add(opcode, dtype, dims, operands, **more)
        if self.b.shape(value).is_array:
            self.results.append(value)
        return value

    def like(self, opcode: str, *operands: int, **more: Any) -> int:
        return self.add(opcode, self.b.shape(operands[-1]), (), operands, **more)

    def parts(self, value: int) -> None:
        """The elements of a tuple as results."""
        for n in range(len(self.b.shape(value).elements)):
            self.results.append(self.b.get(value, n))

    def zero(self, dtype: str, value: float = 0) -> int:
        return self.b.constant(dtype, value)


def any_array(g: Generator, low: int = 0, high: int = 3) -> int:
    """A value of any type with a rank in these bounds."""
    return g.value(g.pick((*INTEGERS, *FLOATS, *COMPLEX, "pred")), g.dims(low, high))


def reducer(g: Generator, dtype: str) -> str:
    """A scalar computation that is one associative operation."""
    opcodes = ["add", "multiply", "maximum", "minimum"] + ["and", "or", "xor"] * DTYPES[dtype].is_integer
    return g.b.reducer(g.pick(["and", "or", "xor"] if dtype == "pred" else opcodes), dtype)


def positions(w: WindowDimension, size: int) -> int:
    """Of a window along a dimension."""
    dilated = (size - 1) * w.lhs_dilate + 1 + w.pad_low + w.pad_high
    return max(0, (dilated - (w.size - 1) * w.rhs_dilate - 1) // w.stride + 1)


def finite(x: Array) -> Array:
    """Small numbers in place of those that are none."""
    return np.nan_to_num(x, nan=0.5, posinf=1.0, neginf=-1.0)
