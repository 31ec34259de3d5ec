"""Elementwise opcodes against plain Python numbers."""

from __future__ import annotations

import itertools
import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scalify.errors import HloError
from scalify.hlo.dtypes import DTYPES
from tests.support.interpreter import evaluate, single

if TYPE_CHECKING:
    from collections.abc import Callable

INTEGERS = ["s4", "u4", "s8", "u8", "s32", "u32", "s64", "u64"]
HOLDERS = {d: np.dtype(f"{'int' if d[0] == 's' else 'uint'}{max(int(d[1:]), 8)}") for d in INTEGERS}


def wrap(value: int, dtype: str) -> int:
    bits = DTYPES[dtype].bits
    value %= 1 << bits
    return value - (1 << bits) if dtype[0] == "s" and value >> (bits - 1) else value


def truncating(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def pattern(a: int, dtype: str) -> int:
    return a % (1 << DTYPES[dtype].bits)


def shift(function: Callable[[int, int], int], fill: Callable[[int], int]) -> Callable[[int, int, str], int]:
    return lambda a, b, d: function(a, b) if 0 <= b < DTYPES[d].bits else fill(a)


BINARY: dict[str, Callable[[int, int, str], int]] = {
    "add": lambda a, b, _: a + b,
    "subtract": lambda a, b, _: a - b,
    "multiply": lambda a, b, _: a * b,
    "maximum": lambda a, b, _: max(a, b),
    "minimum": lambda a, b, _: min(a, b),
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "divide": lambda a, b, _: truncating(a, b) if b else -1,
    "remainder": lambda a, b, _: a - truncating(a, b) * b if b else a,
    "shift-left": shift(lambda a, b: a << b, lambda _: 0),
    "shift-right-logical": lambda a, b, d: pattern(a, d) >> b if 0 <= b < DTYPES[d].bits else 0,
    "shift-right-arithmetic": lambda a, b, d: wrap(pattern(a, d), "s" + d[1:]) >> (b if 0 <= b < DTYPES[d].bits else DTYPES[d].bits - 1),
}


def samples(dtype: str) -> list[int]:
    low, high = DTYPES[dtype].minimum or 0, DTYPES[dtype].maximum or 0
    if DTYPES[dtype].bits == 4:
        return list(range(low, high + 1))
    wanted = {low, low + 1, -7, -2, -1, 0, 1, 2, 3, 5, 31, 63, 64, 100, high - 1, high}
    return sorted(v for v in wanted if low <= v <= high)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("opcode", BINARY)
def test_integer_binary(opcode: str, dtype: str) -> None:
    pairs = list(itertools.product(samples(dtype), repeat=2))
    a, b = (np.array([p[n] for p in pairs], HOLDERS[dtype]) for n in (0, 1))
    result = single(opcode, (dtype, a.shape), [(dtype, a), (dtype, b)])
    assert result.tolist() == [wrap(BINARY[opcode](x, y, dtype), dtype) for x, y in pairs]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_power(dtype: str) -> None:
    pairs = [(a, b) for a in samples(dtype) for b in (-3, -2, -1, 0, 1, 2, 5, 7) if b >= (DTYPES[dtype].minimum or 0)]
    a, b = (np.array([p[n] for p in pairs], HOLDERS[dtype]) for n in (0, 1))
    result = single("power", (dtype, a.shape), [(dtype, a), (dtype, b)])

    def expected(x: int, y: int) -> int:
        return wrap(x**y, dtype) if y >= 0 else {1: 1, -1: (-1) ** y}.get(x, 0)

    assert result.tolist() == [int(expected(x, y)) for x, y in pairs]


UNARY: dict[str, Callable[[int, str], int]] = {
    "abs": lambda a, _: abs(a),
    "negate": lambda a, _: -a,
    "not": lambda a, _: ~a,
    "sign": lambda a, _: (a > 0) - (a < 0),
    "popcnt": lambda a, d: pattern(a, d).bit_count(),
    "count-leading-zeros": lambda a, d: DTYPES[d].bits - pattern(a, d).bit_length(),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("opcode", UNARY)
def test_integer_unary(opcode: str, dtype: str) -> None:
    a = np.array(samples(dtype), HOLDERS[dtype])
    assert single(opcode, (dtype, a.shape), [(dtype, a)]).tolist() == [wrap(UNARY[opcode](x, dtype), dtype) for x in samples(dtype)]


FLOAT_UNARY: dict[str, Callable[[float], float]] = {
    "abs": abs, "acos": math.acos, "asin": math.asin, "asinh": math.asinh, "atan": math.atan, "atanh": math.atanh,
    "cbrt": math.cbrt, "ceil": math.ceil, "cosine": math.cos, "cosh": math.cosh, "erf": math.erf, "exponential": math.exp,
    "exponential-minus-one": math.expm1, "floor": math.floor, "log-plus-one": math.log1p, "logistic": lambda x: 1 / (1 + math.exp(-x)),
    "negate": lambda x: -x, "sign": lambda x: math.copysign(1, x) if x else x, "sine": math.sin, "sinh": math.sinh, "tan": math.tan,
    "tanh": math.tanh, "round-nearest-even": round, "round-nearest-afz": lambda x: math.copysign(math.floor(abs(x) + 0.5), x),
}  # fmt: skip


@pytest.mark.parametrize("opcode", FLOAT_UNARY)
def test_float_unary(opcode: str) -> None:
    x = np.array([-0.99, -0.5, -0.25, -0.0, 0.0, 1e-9, 0.3, 0.5, 0.75])
    expected = [FLOAT_UNARY[opcode](v) for v in x.tolist()]
    np.testing.assert_allclose(single(opcode, ("f32", x.shape), [("f32", x)]), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("opcode", "function"),
    [
        ("log", math.log),
        ("sqrt", math.sqrt),
        ("rsqrt", lambda x: 1 / math.sqrt(x)),
        ("acosh", lambda x: math.acosh(x) if x >= 1 else math.nan),
    ],
)
def test_float_unary_of_positive(opcode: str, function: Callable[[float], float]) -> None:
    x = np.array([1e-3, 0.5, 1.0, 2.5, 1e5])
    np.testing.assert_allclose(single(opcode, ("f32", x.shape), [("f32", x)]), list(map(function, x.tolist())), rtol=1e-14)


def test_rounding_at_halves() -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999999999999994])
    assert single("round-nearest-even", ("f64", (7,)), [("f64", x)]).tolist() == [-2, -2, 0, 0, 2, 2, 0]
    assert single("round-nearest-afz", ("f64", (7,)), [("f64", x)]).tolist() == [-3, -2, -1, 1, 2, 3, 0]


def test_float_binary() -> None:
    pairs = [(5.5, 2.0), (-5.5, 2.0), (5.5, -2.0), (0.25, 0.5)]
    a, b = (np.array([p[n] for p in pairs]) for n in (0, 1))
    functions: dict[str, Callable[[float, float], float]] = {"remainder": math.fmod, "atan2": math.atan2, "divide": lambda x, y: x / y}
    for opcode, function in functions.items():
        np.testing.assert_allclose(single(opcode, ("f32", (4,)), [("f32", a), ("f32", b)]), [function(x, y) for x, y in pairs], rtol=1e-14)
    np.testing.assert_allclose(single("power", ("f32", (4,)), [("f32", abs(a)), ("f32", b)]), abs(a) ** b)


def test_maximum_keeps_nan() -> None:
    a, b = np.array([math.nan, 1.0]), np.array([1.0, math.nan])
    assert np.isnan(single("maximum", ("f32", (2,)), [("f32", a), ("f32", b)])).all()
    assert np.isnan(single("minimum", ("f32", (2,)), [("f32", a), ("f32", b)])).all()


def test_is_finite() -> None:
    x = np.array([1.0, math.inf, -math.inf, math.nan])
    assert single("is-finite", ("pred", (4,)), [("f32", x)]).tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("opcode", "expected"), [("add", [0, 1, 1, 1]), ("multiply", [0, 0, 0, 1]), ("maximum", [0, 1, 1, 1]), ("xor", [0, 1, 1, 0])]
)
def test_pred_arithmetic(opcode: str, expected: list[int]) -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert single(opcode, ("pred", (4,)), [("pred", a), ("pred", b)]).astype(int).tolist() == expected


def test_f64_is_used_whatever_the_declared_type() -> None:
    x = np.array([1.0]), np.array([1e-12])
    assert single("add", ("bf16", (1,)), [("bf16", x[0]), ("bf16", x[1])])[0] == 1.0 + 1e-12


def test_declared_arithmetic_rounds() -> None:
    x = np.array([1.0, 1.0, 3e38]), np.array([1 / 256, 3 / 256, 3e38])
    result = single("add", ("bf16", (3,)), [("bf16", x[0]), ("bf16", x[1])], arithmetic="declared")
    assert result.tolist() == [1.0, 1 + 4 / 256, math.inf]
    assert single("add", ("f32", (1,)), [("f32", np.ones(1)), ("f32", np.full(1, 1e-9))], arithmetic="declared").tolist() == [1.0]


def test_reduce_precision() -> None:
    x = np.array([1 + 2**-9, 1e-40, 70000.0])
    rounded = single("reduce-precision", ("f32", (3,)), [("f32", x)], exponent_bits=5, mantissa_bits=2, arithmetic="declared")
    assert rounded.tolist() == [1.0, 0.0, math.inf]
    assert single("reduce-precision", ("f32", (3,)), [("f32", x)], exponent_bits=5, mantissa_bits=2).tolist() == x.tolist()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_float_to_integer_truncates_and_saturates(dtype: str) -> None:
    values = [-1e30, -300.7, -1.9, -0.5, 0.0, 0.9, 2.5, 7.99, 300.2, 1e30, math.inf, -math.inf, math.nan]
    low, high = DTYPES[dtype].minimum or 0, DTYPES[dtype].maximum or 0
    clipped = [0 if math.isnan(v) else max(low, min(high, v if math.isinf(v) else int(v))) for v in values]
    assert single("convert", (dtype, (len(values),)), [("f32", np.array(values))]).tolist() == clipped


@pytest.mark.parametrize(("source", "target"), list(itertools.product(INTEGERS, repeat=2)))
def test_integer_to_integer_wraps(source: str, target: str) -> None:
    x = np.array(samples(source), HOLDERS[source])
    assert single("convert", (target, x.shape), [(source, x)]).tolist() == [wrap(v, target) for v in samples(source)]


def test_convert_to_and_from_pred() -> None:
    assert single("convert", ("pred", (3,)), [("f32", np.array([0.0, -0.5, 2.0]))]).tolist() == [False, True, True]
    assert single("convert", ("s32", (2,)), [("pred", np.array([False, True]))]).tolist() == [0, 1]


@pytest.mark.parametrize("direction", ["EQ", "NE", "GE", "GT", "LE", "LT"])
def test_compare(direction: str) -> None:
    values = [-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]
    pairs = list(itertools.product(values, repeat=2))
    a, b = (np.array([p[n] for p in pairs]) for n in (0, 1))
    functions: dict[str, Callable[[Any, Any], bool]] = {
        "EQ": lambda x, y: x == y, "NE": lambda x, y: x != y, "GE": lambda x, y: x >= y,
        "GT": lambda x, y: x > y, "LE": lambda x, y: x <= y, "LT": lambda x, y: x < y,
    }  # fmt: skip
    expected = [functions[direction](x, y) for x, y in pairs]
    assert single("compare", ("pred", a.shape), [("f32", a), ("f32", b)], direction=direction).tolist() == expected

    def place(v: float) -> int:
        pattern: int = struct.unpack("<q", struct.pack("<d", abs(v)))[0]
        return pattern * (-1 if math.copysign(1, v) < 0 else 1) - (math.copysign(1, v) < 0)

    total = [functions[direction](place(x), place(y)) for x, y in pairs]
    assert single("compare", ("pred", a.shape), [("f32", a), ("f32", b)], direction=direction, type="TOTALORDER").tolist() == total


def test_unsigned_compare_of_large_values() -> None:
    a, b = np.array([2**64 - 1], np.uint64), np.array([1], np.uint64)
    assert single("compare", ("pred", (1,)), [("u64", a), ("u64", b)], direction="GT").tolist() == [True]


def test_select_with_array_and_scalar_predicate() -> None:
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert single("select", ("f32", (2,)), [("pred", np.array([True, False])), ("f32", a), ("f32", b)]).tolist() == [1.0, 4.0]
    assert single("select", ("f32", (2,)), [("pred", np.array(False)), ("f32", a), ("f32", b)]).tolist() == [3.0, 4.0]


def test_clamp_with_scalar_and_array_bounds() -> None:
    x = np.array([-5, 0, 5])
    assert single("clamp", ("s32", (3,)), [("s32", np.array(-1)), ("s32", x), ("s32", np.array(2))]).tolist() == [-1, 0, 2]
    low, high = np.array([0, 1, 2]), np.array([1, 2, 3])
    assert single("clamp", ("s32", (3,)), [("s32", low), ("s32", x), ("s32", high)]).tolist() == [0, 1, 3]


def test_bitcast_convert() -> None:
    x = np.array([1.0, -2.5])
    assert single("bitcast-convert", ("u32", (2,)), [("f32", x)]).tolist() == x.astype(np.float32).view(np.uint32).tolist()
    assert single("bitcast-convert", ("u16", (2,)), [("bf16", x)]).tolist() == [0x3F80, 0xC020]
    assert single("bitcast-convert", ("bf16", (2,)), [("u16", np.array([0x3F80, 0xC020]))]).tolist() == [1.0, -2.5]
    narrow = single("bitcast-convert", ("u8", (2, 4)), [("f32", x)])
    assert narrow.tolist() == x.astype(np.float32).view(np.uint8).reshape(2, 4).tolist()
    assert single("bitcast-convert", ("f32", (2,)), [("u8", narrow)]).tolist() == x.tolist()


def test_complex_parts() -> None:
    re, im = np.array([3.0, 0.0]), np.array([-4.0, 2.0])
    z = single("complex", ("c64", (2,)), [("f32", re), ("f32", im)])
    assert z.tolist() == [3 - 4j, 2j]
    assert single("real", ("f32", (2,)), [("c64", z)]).tolist() == [3.0, 0.0]
    assert single("imag", ("f32", (2,)), [("c64", z)]).tolist() == [-4.0, 2.0]
    assert single("abs", ("f32", (2,)), [("c64", z)]).tolist() == [5.0, 2.0]


def test_operands_of_different_shape_are_refused() -> None:
    with pytest.raises(HloError, match=r"add\.2: operands differ in shape"):
        evaluate("add", ("f32", (2, 3)), [("f32", np.zeros((1, 2, 3))), ("f32", np.zeros((1, 1, 3)))])
