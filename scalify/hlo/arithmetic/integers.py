"""Integers and predicates: exact in their declared width, the same in every domain.

Source: XLA's operation semantics and ``HloEvaluator``: integer division truncates, division by zero is -1 (all ones) and leaves
the dividend as remainder, the smallest integer divided by -1 is itself, shifts by the width or more push every bit out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scalify.hlo.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable

Array: TypeAlias = npt.NDArray[Any]


def storage(dtype: str) -> np.dtype[Any]:
    """The NumPy type of an integer type or of ``pred``; narrower types are held in 8 bits."""
    known = DTYPES[dtype]
    if known.kind == "pred":
        return np.dtype(np.bool_)
    return np.dtype(f"{'int' if known.kind == 's' else 'uint'}{max(known.bits, 8)}")


def wrap(array: Array, dtype: str) -> Array:
    """Integers modulo two to the width."""
    known, held = DTYPES[dtype], storage(dtype)
    settled = array if array.dtype == held else array.astype(held)
    if not known.is_integer or known.bits >= 8:
        return settled
    spare = 8 - known.bits
    return np.right_shift(np.left_shift(settled, spare), spare)


def unsigned(x: Array, bits: int) -> Array:
    """The two's complement pattern of ``bits`` bits as uint64."""
    return x.astype(np.uint64) & np.uint64((1 << bits) - 1)


def sign_extended(x: Array, bits: int) -> Array:
    """The lowest ``bits`` bits read as a signed number."""
    spare = 64 - bits
    return np.right_shift(np.left_shift(x.astype(np.int64), spare), spare)


def as_index(x: Array) -> npt.NDArray[np.int64]:
    """Integers as int64; unsigned ones beyond its range stay larger than any dimension."""
    if x.dtype == np.uint64:
        x = np.minimum(x, np.uint64(1 << 62))
    return x.astype(np.int64)


def _subtract(a: Array, b: Array) -> Array:
    return np.logical_xor(a, b) if a.dtype == np.bool_ else np.subtract(a, b)


def _divide(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = np.floor_divide(a, safe)
    if a.dtype.kind == "i":
        inexact = (quotient * safe != a) & ((a < 0) != (safe < 0))
        quotient = np.where(safe == -1, np.negative(a), quotient + inexact)
    return np.where(b == 0, np.invert(np.zeros_like(a)), quotient)


def _remainder(a: Array, b: Array) -> Array:
    # -1 divides everything; NumPy's fmod would trap on the smallest integer.
    trivial = (b == 0) if a.dtype.kind == "u" else (b == 0) | (b == -1)
    return np.where(b == 0, a, np.where(trivial, a.dtype.type(0), np.fmod(a, np.where(trivial, b.dtype.type(1), b))))


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind != "i":
        return np.power(a, b)
    one, zero = a.dtype.type(1), a.dtype.type(0)
    flipped = np.where(np.bitwise_and(b, 1) != 0, a, one)
    return np.where(b < 0, np.where(np.abs(a) == 1, flipped, zero), np.power(a, np.where(b < 0, zero, b)))


def _zero(x: Array) -> Array:
    return np.zeros_like(x)


def _same(x: Array) -> Array:
    return x


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "abs": np.abs, "negate": np.negative, "not": np.invert, "sign": np.sign, "real": _same, "imag": _zero,
    "add": np.add, "and": np.bitwise_and, "divide": _divide, "maximum": np.maximum, "minimum": np.minimum, "multiply": np.multiply,
    "or": np.bitwise_or, "power": _power, "remainder": _remainder, "subtract": _subtract, "xor": np.bitwise_xor,
}  # fmt: skip
"""By opcode, on arrays of one of the types of :func:`storage`."""

UFUNCS: dict[str, np.ufunc] = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
"""The associative and commutative ones, with which NumPy reduces."""

COMPARISONS: dict[str, Callable[..., Array]] = {
    "EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less,
}  # fmt: skip
