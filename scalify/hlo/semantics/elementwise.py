"""Elementwise opcodes: arithmetic, comparison, selection, conversion.

Source: XLA's operation semantics and ``HloEvaluator``: integer division truncates, division by zero is -1 (all ones) and leaves
the dividend as remainder, the smallest integer divided by -1 is itself, shifts by the width or more push every bit out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.dtypes import DTYPES, DType
from scalify.hlo.semantics.values import BF16, Array, Handler, Op, reduce_precision, storage

Function = Callable[..., Array]


def _pointwise(function: Function) -> Handler:
    """The opcode that applies a NumPy function to operands of equal shape."""

    def handler(_op: Op, operands: Sequence[Array]) -> Array:
        if any(x.shape != operands[0].shape for x in operands):
            raise HloError("operands differ in shape")
        return function(*operands)

    return handler


def spread(scalar: Array, like: Array) -> Array:
    """A scalar ``[lanes]`` given the rank of ``like``, so that it broadcasts against it."""
    return scalar.reshape(scalar.shape + (1,) * (like.ndim - scalar.ndim)) if scalar.ndim == 1 else scalar


def _subtract(a: Array, b: Array) -> Array:
    return np.logical_xor(a, b) if a.dtype == np.bool_ else np.subtract(a, b)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = np.floor_divide(a, safe)
    if a.dtype.kind == "i":
        inexact = (quotient * safe != a) & ((a < 0) != (safe < 0))
        quotient = np.where(safe == -1, np.negative(a), quotient + inexact)
    return np.where(b == 0, np.invert(np.zeros_like(a)), quotient)


def _remainder(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.fmod(a, b)
    # -1 divides everything; NumPy's fmod would trap on the smallest integer.
    trivial = (b == 0) if a.dtype.kind == "u" else (b == 0) | (b == -1)
    return np.where(b == 0, a, np.where(trivial, a.dtype.type(0), np.fmod(a, np.where(trivial, b.dtype.type(1), b))))


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind != "i":
        return np.power(a, b)
    one, zero = a.dtype.type(1), a.dtype.type(0)
    flipped = np.where(np.bitwise_and(b, 1) != 0, a, one)
    return np.where(b < 0, np.where(np.abs(a) == 1, flipped, zero), np.power(a, np.where(b < 0, zero, b)))


def _sign(x: Array) -> Array:
    if x.dtype.kind != "f":
        return np.sign(x)
    return np.where((x == 0) | np.isnan(x), x, np.copysign(x.dtype.type(1), x))


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def _erf(x: Array) -> Array:
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Function] = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh, "cbrt": np.cbrt,
    "ceil": np.ceil, "cosine": np.cos, "cosh": np.cosh, "erf": _erf, "exponential": np.exp, "exponential-minus-one": np.expm1,
    "floor": np.floor, "imag": np.imag, "is-finite": np.isfinite, "log": np.log, "log-plus-one": np.log1p, "logistic": _logistic,
    "negate": np.negative, "not": np.invert, "popcnt": np.bitwise_count, "real": np.real, "round-nearest-afz": _round_away,
    "round-nearest-even": np.rint, "rsqrt": _rsqrt, "sign": _sign, "sine": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh,
}  # fmt: skip
BINARY: dict[str, Function] = {
    "add": np.add, "and": np.bitwise_and, "atan2": np.arctan2, "divide": _divide, "maximum": np.maximum, "minimum": np.minimum,
    "multiply": np.multiply, "or": np.bitwise_or, "power": _power, "remainder": _remainder, "subtract": _subtract, "xor": np.bitwise_xor,
}  # fmt: skip
COMPARISONS: dict[str, Function] = {
    "EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less,
}  # fmt: skip


def total_order_key(x: Array) -> Array:
    """Integers ordered like ``x`` in the total order: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN. Integers are their own keys."""
    if x.dtype.kind != "f":
        return x
    bits = x.astype(np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def _compare(op: Op, operands: Sequence[Array]) -> Array:
    a, b = operands
    if a.shape != b.shape:
        raise HloError("operands differ in shape")
    if op.attributes.get("type") == "TOTALORDER":
        a, b = total_order_key(a), total_order_key(b)
    return COMPARISONS[op.attributes["direction"]](a, b)


def _select(_op: Op, operands: Sequence[Array]) -> Array:
    predicate, on_true, on_false = operands
    return np.where(spread(predicate, on_true), on_true, on_false)


def _clamp(_op: Op, operands: Sequence[Array]) -> Array:
    low, x, high = operands
    return np.minimum(np.maximum(spread(low, x), x), spread(high, x))


def _complex(_op: Op, operands: Sequence[Array]) -> Array:
    real, imaginary = operands
    result = np.empty(real.shape, np.complex128)
    result.real, result.imag = real, imaginary
    return result


def _shift(function: Function, *, signed: bool) -> Handler:
    """Shifts at the declared width; ``signed`` fills with the sign."""

    def handler(op: Op, operands: Sequence[Array]) -> Array:
        x, amount = operands
        bits = DTYPES[op.dtype].bits
        out = (amount < 0) | (amount >= bits)
        if signed:
            x = sign_extended(x, bits)
            return np.right_shift(x, np.where(out, bits - 1, amount).astype(np.int64))
        x = unsigned(x, bits)
        return np.where(out, np.uint64(0), function(x, np.where(out, 0, amount).astype(np.uint64)))

    return handler


def unsigned(x: Array, bits: int) -> Array:
    """The two's complement pattern of ``bits`` bits as uint64."""
    return x.astype(np.uint64) & np.uint64((1 << bits) - 1)


def sign_extended(x: Array, bits: int) -> Array:
    """The lowest ``bits`` bits read as a signed number."""
    spare = 64 - bits
    return np.right_shift(np.left_shift(x.astype(np.int64), spare), spare)


def _count_leading_zeros(op: Op, operands: Sequence[Array]) -> Array:
    bits = DTYPES[op.dtype].bits
    x, length = unsigned(operands[0], bits), np.zeros(operands[0].shape, np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        big = x >= np.uint64(1) << np.uint64(step)
        length += np.where(big, np.uint64(step), np.uint64(0))
        x = np.where(big, x >> np.uint64(step), x)
    return bits - (length + x)


def _popcnt(op: Op, operands: Sequence[Array]) -> Array:
    return np.bitwise_count(unsigned(operands[0], DTYPES[op.dtype].bits))


def convert(x: Array, dtype: str) -> Array:
    """``x`` converted to an HLO type: float to integer truncates and saturates (NaN is 0), integer to integer wraps."""
    if dtype == "pred":
        result: Array = x != 0
        return result
    if x.dtype.kind == "c" and not dtype.startswith("c"):
        x = x.real
    return _float_to_integer(x, DTYPES[dtype]) if x.dtype.kind == "f" and DTYPES[dtype].is_integer else x


def _float_to_integer(x: Array, target: DType) -> Array:
    low, high = target.minimum or 0, target.maximum or 0
    holder = np.int64 if target.kind == "s" else np.uint64
    whole = np.trunc(x.astype(np.float64))
    inside = (whole > low) & (whole < high)
    result = np.where(inside, whole, 0.0).astype(holder)
    return np.where(whole <= low, holder(low), np.where(whole >= high, holder(high), result))


def _convert(op: Op, operands: Sequence[Array]) -> Array:
    return convert(operands[0], op.dtype)


def _reduce_precision(op: Op, operands: Sequence[Array]) -> Array:
    """Identity where floats are read as reals, like every other rounding."""
    if op.scope.machine.arithmetic == "f64":
        return operands[0]
    return reduce_precision(operands[0], op.attributes["exponent_bits"], op.attributes["mantissa_bits"], flush=True)


def bitcast_convert(x: Array, source: str, target: str) -> Array:
    """The bits of ``x`` read as another type; a change of width moves to or from a last dimension.

    Floats are first rounded to their declared type. :raises HloError: a type whose bit pattern is not known here.
    """
    bits, wanted = _to_bits(x, source), _wire(target)
    if bits.dtype.itemsize > wanted.itemsize:
        bits = bits[..., None]
    read = np.ascontiguousarray(bits).view(wanted)
    read = read[..., 0] if bits.dtype.itemsize < wanted.itemsize else read
    return np.left_shift(read.astype(np.uint32), 16).view(np.float32) if target == "bf16" else read


def _wire(dtype: str) -> np.dtype[Any]:
    """The NumPy type of the same bits in memory (16-bit integers for bf16)."""
    known = DTYPES.get(dtype)
    if known is None or known.bits < 8 or (known.is_float and known.bits == 8):
        raise HloError(f"bitcast-convert of {dtype} is not supported")
    return np.dtype(np.uint16) if dtype == "bf16" else storage(dtype, "declared")


def _to_bits(x: Array, dtype: str) -> Array:
    if dtype != "bf16":
        return np.ascontiguousarray(x.astype(_wire(dtype)))
    narrow = reduce_precision(x.astype(np.float64), *BF16).astype(np.float32)
    return np.right_shift(narrow.view(np.uint32), 16).astype(np.uint16)


def _bitcast_convert(op: Op, operands: Sequence[Array]) -> Array:
    return bitcast_convert(operands[0], op.shapes[0].dtype, op.dtype)


HANDLERS: dict[str, Handler] = {
    **{opcode: _pointwise(function) for opcode, function in {**UNARY, **BINARY}.items()},
    "popcnt": _popcnt,
    "count-leading-zeros": _count_leading_zeros,
    "compare": _compare,
    "select": _select,
    "bitcast-convert": _bitcast_convert,
    "clamp": _clamp,
    "complex": _complex,
    "convert": _convert,
    "reduce-precision": _reduce_precision,
    "shift-left": _shift(np.left_shift, signed=False),
    "shift-right-logical": _shift(np.right_shift, signed=False),
    "shift-right-arithmetic": _shift(np.right_shift, signed=True),
}
