"""Floating point: float64 as an approximation of the reals, or every value rounded to its declared type."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from scalify.errors import HloError
from scalify.hlo.arithmetic import hashing, integers
from scalify.hlo.arithmetic.domain import Array, Domain, whole
from scalify.hlo.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.hlo.dtypes import DType

BF16 = (8, 7)
"""Exponent and mantissa bits."""


def _sign(x: Array) -> Array:
    if x.dtype.kind != "f":
        return np.sign(x)
    return np.where((x == 0) | np.isnan(x), x, np.copysign(x.dtype.type(1), x))


def _round_away(x: Array) -> Array:
    whole_part = np.trunc(x)
    return np.where(np.abs(x - whole_part) >= 0.5, whole_part + np.copysign(1.0, x), whole_part)


def _erf(x: Array) -> Array:
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh, "cbrt": np.cbrt,
    "ceil": np.ceil, "cosine": np.cos, "cosh": np.cosh, "erf": _erf, "exponential": np.exp, "exponential-minus-one": np.expm1,
    "floor": np.floor, "imag": np.imag, "is-finite": np.isfinite, "log": np.log, "log-plus-one": np.log1p, "logistic": _logistic,
    "negate": np.negative, "real": np.real, "round-nearest-afz": _round_away, "round-nearest-even": np.rint, "rsqrt": _rsqrt, "sign": _sign,
    "sine": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
    "add": np.add, "atan2": np.arctan2, "divide": np.divide, "maximum": np.maximum, "minimum": np.minimum, "multiply": np.multiply,
    "power": np.power, "remainder": np.fmod, "subtract": np.subtract,
}  # fmt: skip


@cache
def storage(dtype: str, *, declared: bool = False) -> np.dtype[Any]:
    """The NumPy type that holds values of an HLO type. :raises HloError: no array type of this name."""
    return (Declared() if declared else Real()).storage(dtype)


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


class Real(Domain):
    """Floats in float64 whatever their declared type: the results of real arithmetic up to about 1e-15.

    An opaque function is a smooth one (a cosine of a random linear form of its float operands), so that it keeps rounding errors small.
    """

    name = "f64"

    def _storage(self, dtype: DType) -> np.dtype[Any]:
        return np.dtype(np.float64 if dtype.is_float else np.complex128)

    def _settle(self, array: Array, dtype: DType) -> Array:
        held = self._storage(dtype)
        return array if array.dtype == held else array.astype(held)

    def _encode(self, array: Array, dtype: DType) -> Array:
        return self._settle(array, dtype)

    def _apply(self, opcode: str, operands: Sequence[Array], dtype: DType) -> Array:
        function = FUNCTIONS.get(opcode)
        if function is None:
            raise HloError(f"{opcode} of {dtype.name} is not defined")
        return function(*operands)

    def _reduce(self, opcode: str, x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
        reduced: Array = integers.UFUNCS[opcode].reduce(x, axis=axes, dtype=x.dtype)
        return reduced

    def _accumulate(self, opcode: str, target: Array, index: tuple[Array, Array], updates: Array, dtype: DType) -> None:
        integers.UFUNCS[opcode].at(target, index, updates)

    def _matmul(self, a: Array, b: Array, dtype: DType) -> Array:
        product: Array = np.matmul(a, b)
        return product

    def root_of_unity(self, order: int, dtype: str) -> Array:
        roots: Array = np.exp(2j * np.pi * np.arange(order) / order)
        return roots

    def _compare(self, direction: str, a: Array, b: Array, dtype: DType) -> Array:
        return integers.COMPARISONS[direction](a, b)

    def _order_key(self, x: Array, dtype: DType) -> Array:
        bits = x.astype(np.float64).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)

    def _from_integers(self, x: Array, target: DType) -> Array:
        return self._settle(x, target)

    def _to_integer(self, x: Array, target: DType) -> Array:
        low, high = target.minimum or 0, target.maximum or 0
        holder = np.int64 if target.kind == "s" else np.uint64
        rest = np.trunc(x.astype(np.float64))
        inside = (rest > low) & (rest < high)
        result = np.where(inside, rest, 0.0).astype(holder)
        return np.where(rest <= low, holder(low), np.where(rest >= high, holder(high), result))

    def complex(self, real: Array, imaginary: Array) -> Array:
        # 1j * inf has no real part
        result = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), np.result_type(real, imaginary, np.complex64))
        result.real, result.imag = real, imaginary
        return result

    def to_bits(self, x: Array, dtype: DType) -> Array:
        if dtype.name != "bf16":
            held = wire(dtype)
            pattern: Array = np.ascontiguousarray(x.astype(held)).view(f"uint{8 * held.itemsize}")
            return pattern
        narrow = reduce_precision(x.astype(np.float64), *BF16).astype(np.float32)
        return np.right_shift(narrow.view(np.uint32), 16).astype(np.uint16)

    def from_bits(self, bits: Array, dtype: DType) -> Array:
        if dtype.name == "bf16":
            return np.left_shift(bits.astype(np.uint32), 16).view(np.float32)
        return np.ascontiguousarray(bits).view(wire(dtype))

    def opaque(self, name: str, operands: Sequence[tuple[Array, str]], shape: tuple[int, ...], dtype: str) -> Array:
        if whole(dtype):
            return super().opaque(name, operands, shape, dtype)
        exact = [(x, d) for x, d in operands if whole(d)]
        phase = super().opaque(name, exact, shape, "f64") * np.pi
        angle = phase.reshape(phase.shape[0], -1)
        for number, (x, d) in enumerate(operands):
            if not whole(d) and x.shape[1]:
                parts = np.concatenate([x.real, x.imag], axis=1) if x.dtype.kind == "c" else x
                angle = angle + parts @ self._weights(name, number, parts.shape[1], angle.shape[1])
        result: Array = np.cos(angle).reshape(angle.shape[0], *shape)
        return result

    def _weights(self, name: str, number: int, size: int, count: int) -> Array:
        words = hashing.combined(hashing.key(self.seed, name, number), [hashing.positions((size, count))])
        return self.unknown(words, "f64") / math.sqrt(size)

    def _digest(self, x: Array, dtype: DType) -> hashing.Words:
        if dtype.is_complex:
            return hashing.combined(np.uint64(0), [self._digest(part, DTYPES["f64"]) for part in (x.real, x.imag)])
        return np.ascontiguousarray(x + 0.0, dtype=np.float64).view(np.uint64)


class Declared(Real):
    """Every float rounded to its declared type; half floats multiply and add in single precision within a contraction, as devices do."""

    name = "declared"
    reals: ClassVar[bool] = False
    cost = 8
    product_cost = 1

    def _storage(self, dtype: DType) -> np.dtype[Any]:
        held = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.float32, "c64": np.complex64, "c128": np.complex128}
        if dtype.name not in held:
            raise HloError(f"arithmetic in {dtype.name} is not supported")
        return np.dtype(held[dtype.name])

    def _settle(self, array: Array, dtype: DType) -> Array:
        settled = super()._settle(array, dtype)
        return reduce_precision(settled, *BF16) if dtype.name == "bf16" else settled

    def _matmul(self, a: Array, b: Array, dtype: DType) -> Array:
        held = np.float32 if dtype.name == "f16" else a.dtype
        product: Array = np.matmul(a.astype(held, copy=False), b.astype(held, copy=False))
        return product

    def round(self, x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
        return reduce_precision(x, exponent_bits, mantissa_bits, flush=True)


def wire(dtype: DType) -> np.dtype[Any]:
    """The NumPy type of the same bits in memory (16-bit integers for bf16). :raises HloError: there is none."""
    names = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "uint16"}
    if dtype.name not in names:
        raise HloError(f"the bits of {dtype.name} are not known here")
    return np.dtype(names[dtype.name])
