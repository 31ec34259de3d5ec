"""Elementwise opcodes: arithmetic, comparison, selection, conversion. What the functions of numbers are is the domain's matter.

Source: XLA's operation semantics and ``HloEvaluator``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scalify.errors import HloError
from scalify.hlo.arithmetic.domain import whole
from scalify.hlo.arithmetic.integers import sign_extended, unsigned, wrap
from scalify.hlo.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.hlo.arithmetic.domain import Domain
    from scalify.hlo.semantics.values import Array, Handler, Op

POINTWISE = [
    "abs",
    "acos",
    "acosh",
    "add",
    "and",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cosine",
    "cosh",
    "divide",
    "erf",
    "exponential",
    "exponential-minus-one",
    "floor",
    "imag",
    "is-finite",
    "log",
    "log-plus-one",
    "logistic",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "power",
    "real",
    "remainder",
    "round-nearest-afz",
    "round-nearest-even",
    "rsqrt",
    "sign",
    "sine",
    "sinh",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "xor",
]
"""Opcodes that are functions of elements of one type; :meth:`Domain.apply` computes them."""


def _pointwise(op: Op, operands: Sequence[Array]) -> Array:
    _same_shapes(operands)
    return op.domain.apply(op.instruction.opcode, operands, op.source)


def _same_shapes(operands: Sequence[Array]) -> None:
    if any(x.shape != operands[0].shape for x in operands):
        raise HloError("operands differ in shape")


def spread(scalar: Array, like: Array) -> Array:
    """A scalar ``[lanes]`` given the rank of ``like``, so that it broadcasts against it."""
    return scalar.reshape(scalar.shape + (1,) * (like.ndim - scalar.ndim)) if scalar.ndim == 1 else scalar


def _compare(op: Op, operands: Sequence[Array]) -> Array:
    _same_shapes(operands)
    total = op.attributes.get("type") == "TOTALORDER"
    return op.domain.compare(op.attributes["direction"], operands[0], operands[1], op.source, total=total)


def _select(_op: Op, operands: Sequence[Array]) -> Array:
    predicate, on_true, on_false = operands
    return np.where(spread(predicate, on_true), on_true, on_false)


def _clamp(op: Op, operands: Sequence[Array]) -> Array:
    low, x, high = operands
    raised = op.domain.apply("maximum", [spread(low, x), x], op.dtype)
    return op.domain.apply("minimum", [raised, spread(high, x)], op.dtype)


def _complex(op: Op, operands: Sequence[Array]) -> Array:
    return op.domain.complex(*operands)


def _shift(function: Callable[[Array, Array], Array], *, signed: bool) -> Handler:
    def handler(op: Op, operands: Sequence[Array]) -> Array:
        bits = DTYPES[op.dtype].bits
        x, amount = unsigned(operands[0], bits), unsigned(operands[1], bits)
        out = amount >= bits
        if signed:
            return np.right_shift(sign_extended(x, bits), np.where(out, bits - 1, amount).astype(np.int64))
        return np.where(out, np.uint64(0), function(x, np.where(out, 0, amount).astype(np.uint64)))

    return handler


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


def _convert(op: Op, operands: Sequence[Array]) -> Array:
    return op.domain.convert(operands[0], op.source, op.dtype)


def _reduce_precision(op: Op, operands: Sequence[Array]) -> Array:
    return op.domain.round(operands[0], op.attributes["exponent_bits"], op.attributes["mantissa_bits"])


def _stochastic_convert(op: Op, operands: Sequence[Array]) -> Array:
    """The second operand, read as a fraction of its range, decides whether the size is rounded up.

    A narrower float is the operand itself, as every conversion between floats where these are read as reals.
    """
    x, noise = operands
    domain = op.domain
    if not whole(op.dtype):
        if domain.reals:
            return x
        raise HloError("stochastic rounding between floats is not supported")
    size = domain.apply("abs", [x], op.source)
    low = domain.apply("floor", [size], op.source)
    rest = domain.apply("subtract", [size, low], op.source)
    scaled = domain.apply("multiply", [rest, domain.number(2.0 ** DTYPES[op.shapes[1].dtype].bits, op.source)], op.source)
    up = noise < domain.convert(scaled, op.source, op.shapes[1].dtype)
    rounded = np.where(up, domain.apply("add", [low, domain.number(1.0, op.source)], op.source), low)
    signed = np.where(domain.compare("LT", x, np.zeros_like(x), op.source), domain.apply("negate", [rounded], op.source), rounded)
    return domain.convert(np.where(domain.apply("is-finite", [x], op.source), signed, x), op.source, op.dtype)


def bitcast_convert(domain: Domain, x: Array, source: str, target: str) -> Array:
    """The bits of ``x`` read as another type; a change of width moves to or from a last dimension.

    Floats are first rounded to their declared type. :raises HloError: a type whose bit pattern is not known here.
    """
    before, after = DTYPES[source], DTYPES[target]
    if source == target:
        return x
    if before.is_complex or after.is_complex or min(before.bits, after.bits) < 8 or "pred" in (source, target):
        raise HloError(f"bitcast-convert of {source} to {target} is not supported")
    bits = np.ascontiguousarray(x).view(f"uint{before.bits}") if whole(source) else domain.to_bits(x, before)
    bits = bits[..., None] if before.bits > after.bits else bits
    read = np.ascontiguousarray(bits).view(f"uint{after.bits}")
    read = read[..., 0] if before.bits < after.bits else read
    return wrap(read.view(f"int{after.bits}"), target) if after.kind == "s" else read if whole(target) else domain.from_bits(read, after)


def _bitcast_convert(op: Op, operands: Sequence[Array]) -> Array:
    return bitcast_convert(op.domain, operands[0], op.source, op.dtype)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(POINTWISE, _pointwise),
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
    "stochastic-convert": _stochastic_convert,
}
