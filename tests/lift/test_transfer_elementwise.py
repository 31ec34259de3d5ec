"""Elementwise opcodes against execution: every opcode, type, pair of edge values, and constant operand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scalify.hlo.dtypes import DTYPES
from tests.lift.support import check
from tests.support.builder import Builder

INTEGERS = ("u8", "s8", "s32", "u32", "s64")
FLOATS = np.array([-3.0, -2.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 4.0])
STORED = {"u8": np.uint8, "s8": np.int8, "s32": np.int32, "u32": np.uint32, "s64": np.int64, "f32": np.float64, "pred": np.bool_}
BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power", "and", "or", "xor")
SHIFTS = ("shift-left", "shift-right-logical", "shift-right-arithmetic")
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def edges(dtype: str) -> np.ndarray[Any, Any]:
    """Values of a type where arithmetic changes its mind."""
    if dtype == "pred":
        return np.array([False, True])
    if dtype == "f32":
        return FLOATS
    low, high = DTYPES[dtype].minimum, DTYPES[dtype].maximum
    assert low is not None
    assert high is not None
    found = {low, low + 1, -7, -1, 0, 1, 2, 3, 8, high // 2 + 1, high - 1, high}
    return np.array(sorted(v for v in found if low <= v <= high), dtype=STORED[dtype])


def pairs(dtype: str) -> list[np.ndarray[Any, Any]]:
    x = edges(dtype)
    return [np.repeat(x, len(x)), np.tile(x, len(x))]


def two(dtype: str) -> tuple[Builder, int, int, list[np.ndarray[Any, Any]]]:
    b = Builder()
    data = pairs(dtype)
    return b, b.parameter(dtype, data[0].shape), b.parameter(dtype, data[0].shape), data


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_pairs(dtype: str) -> None:
    b, x, y, data = two(dtype)
    for opcode in (*BINARY, *SHIFTS):
        b.like(opcode, x, y)
    for direction in DIRECTIONS:
        b.add("compare", "pred", data[0].shape, [x, y], direction=direction)
    check(b, data)


def test_float_pairs() -> None:
    b, x, y, data = two("f32")
    for opcode in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder", "atan2"):
        b.like(opcode, x, y)
    for direction in DIRECTIONS:
        b.add("compare", "pred", data[0].shape, [x, y], direction=direction)
    check(b, data)


def test_predicate_pairs() -> None:
    b, x, y, data = two("pred")
    for opcode in ("and", "or", "xor", "add", "multiply", "maximum", "minimum"):
        b.like(opcode, x, y)
    for direction in DIRECTIONS:
        b.add("compare", "pred", data[0].shape, [x, y], direction=direction)
    b.like("not", x)
    b.like("select", x, y, x)
    b.like("select", x, x, y)
    check(b, data)


@pytest.mark.parametrize("dtype", [*INTEGERS, "f32", "pred"])
def test_unary(dtype: str) -> None:
    b = Builder()
    data = edges(dtype)
    x = b.parameter(dtype, data.shape)
    opcodes: tuple[str, ...] = ("not",) if dtype == "pred" else ("abs", "negate", "sign")
    if dtype in INTEGERS:
        opcodes += ("not", "popcnt", "count-leading-zeros")
    if dtype == "f32":
        opcodes += (
            "floor",
            "ceil",
            "round-nearest-even",
            "round-nearest-afz",
            "exponential",
            "exponential-minus-one",
            "log",
            "log-plus-one",
        )
        opcodes += ("sqrt", "rsqrt", "cbrt", "logistic", "tanh", "tan", "sine", "cosine", "erf")
        b.add("is-finite", "pred", data.shape, [x])
    for opcode in opcodes:
        b.like(opcode, x)
    check(b, [data], opaque=True)


@pytest.mark.parametrize("dtype", [*INTEGERS, "f32"])
@pytest.mark.parametrize("opcode", [*BINARY, *SHIFTS])
def test_constant_operand(dtype: str, opcode: str) -> None:
    """A constant on either side, each value a constant of its own."""
    if dtype == "f32" and opcode in ("and", "or", "xor", *SHIFTS):
        return
    b = Builder()
    data = edges(dtype)
    x = b.parameter(dtype, data.shape)
    for value in [*data, data.dtype.type(0)]:
        c = b.broadcast(b.constant(dtype, value), data.shape)
        b.like(opcode, x, c)
        b.like(opcode, c, x)
        b.like(opcode, c, b.broadcast(b.constant(dtype, data[1]), data.shape))
    check(b, [data])


@pytest.mark.parametrize("dtype", [*INTEGERS, "f32"])
def test_compare_with_constants_and_shifts(dtype: str) -> None:
    """``x + c`` against ``d``: moving ``c`` across must respect wrap-around."""
    b = Builder()
    data = edges(dtype)
    x = b.parameter(dtype, data.shape)
    constants = [data[0], data[-1], data.dtype.type(1), data.dtype.type(2)]
    for c in constants:
        moved = b.like("add", x, b.broadcast(b.constant(dtype, c), data.shape))
        doubled = b.like("multiply", x, b.broadcast(b.constant(dtype, c), data.shape))
        for value in (moved, doubled):
            for d in constants:
                bound = b.broadcast(b.constant(dtype, d), data.shape)
                for direction in DIRECTIONS:
                    b.add("compare", "pred", data.shape, [value, bound], direction=direction)
                    b.add("compare", "pred", data.shape, [value, x], direction=direction)
    check(b, [data])


@pytest.mark.parametrize("before", [*INTEGERS, "f32", "pred"])
def test_convert(before: str) -> None:
    """Conversions of values, of results that wrap around, and back again."""
    b = Builder()
    data = edges(before)
    if before == "s64":
        data = np.clip(data, -(1 << 24), 1 << 24)  # whose squares float64 holds
    x = b.parameter(before, data.shape)
    sources = [x] if before == "pred" else [x, b.like("add", x, x), b.like("multiply", x, x), b.like("negate", x)]
    for source in sources:
        for after in (*INTEGERS, "f32", "pred"):
            there = b.add("convert", after, data.shape, [source])
            b.add("convert", before, data.shape, [there])
            b.add("convert", "f32", data.shape, [b.add("convert", "s32", data.shape, [there])])
    check(b, [data])


@pytest.mark.parametrize("first", ["add", "subtract", "multiply", "negate", "shift-left"])
@pytest.mark.parametrize("dtype", ["u8", "s8", "s32", "u32"])
def test_overflow_is_seen(dtype: str, first: str) -> None:
    """What does not respect arithmetic modulo 2^bits takes the value that the type really holds."""
    b, x, y, data = two(dtype)
    v = b.like(first, x) if first == "negate" else b.like(first, x, y)
    w = b.like("add", v, x)
    for value in (v, w):
        for opcode in ("divide", "remainder", "maximum", "minimum", "shift-right-logical", "shift-right-arithmetic", "and", "power"):
            b.like(opcode, value, y)
        b.like("abs", value)
        b.like("sign", value)
        b.add("compare", "pred", data[0].shape, [value, y], direction="GT")
        b.add("compare", "pred", data[0].shape, [value, y], direction="EQ")
        b.add("convert", "f32", data[0].shape, [value])
        b.add("convert", "s64", data[0].shape, [value])
        b.add("clamp", dtype, data[0].shape, [b.constant(dtype, 1), value, b.constant(dtype, 5)])
        b.add("select", dtype, data[0].shape, [b.add("compare", "pred", data[0].shape, [value, x], direction="LE"), value, y])
    check(b, data)


@pytest.mark.parametrize("limits", [(0, 10), (-5, 5), (3, 4), (0, 2), (100, 128)])
def test_known_ranges(limits: tuple[int, int]) -> None:
    """Assumed ranges let integer division, remainder, clamp and comparisons simplify."""
    b = Builder()
    data = np.arange(*limits, dtype=np.int32)
    x = b.parameter("s32", data.shape)
    for value in (
        x,
        b.like("add", b.like("multiply", x, b.broadcast(b.constant("s32", 4), data.shape)), b.broadcast(b.constant("s32", 3), data.shape)),
    ):
        for c in (-4, -1, 1, 2, 4, 7, 64):
            k = b.broadcast(b.constant("s32", c), data.shape)
            for opcode in ("divide", "remainder", "maximum", "minimum", "and", "or"):
                b.like(opcode, value, k)
            for direction in DIRECTIONS:
                b.add("compare", "pred", data.shape, [value, k], direction=direction)
            for other in (-3, 0, 5):
                b.add("clamp", "s32", data.shape, [b.constant("s32", other), value, b.constant("s32", c)])
        for by in (0, 1, 3, 31, 32):
            for opcode in SHIFTS:
                b.like(opcode, value, b.broadcast(b.constant("s32", by), data.shape))
        half = b.like("multiply", b.add("convert", "f32", data.shape, [value]), b.broadcast(b.constant("f32", 0.25), data.shape))
        for opcode in ("floor", "ceil", "round-nearest-even", "round-nearest-afz", "sign", "abs"):
            b.like(opcode, half)
        b.add("convert", "s32", data.shape, [half])
        b.add("convert", "s32", data.shape, [b.like("floor", half)])
    check(b, [data], ranges={0: limits})


def test_clamp_and_select_of_floats() -> None:
    b = Builder()
    x = b.parameter("f32", FLOATS.shape)
    y = b.parameter("f32", FLOATS.shape)
    low, high = b.parameter("f32"), b.parameter("f32")
    b.add("clamp", "f32", FLOATS.shape, [low, x, high])
    b.add("clamp", "f32", FLOATS.shape, [high, x, low])
    for a in (-1.0, 0.5, 2.0):
        for c in (-2.0, 0.5, 3.0):
            clamped = b.add("clamp", "f32", FLOATS.shape, [b.constant("f32", a), x, b.constant("f32", c)])
            b.add("clamp", "f32", FLOATS.shape, [b.constant("f32", -0.25), b.like("negate", clamped), b.constant("f32", 1.25)])
    p = b.add("compare", "pred", FLOATS.shape, [x, y], direction="LT")
    q = b.add("compare", "pred", FLOATS.shape, [x, b.broadcast(b.constant("f32", 1.0), FLOATS.shape)], direction="GE")
    chosen = b.like("select", p, x, y)
    b.like("select", q, chosen, y)
    b.like("select", q, x, chosen)
    b.like("select", q, y, chosen)
    b.like("select", b.like("not", p), chosen, x)
    b.like("select", p, chosen, b.like("negate", y))
    b.like("exponential", b.like("select", q, b.like("add", x, y), b.like("negate", chosen)))
    check(b, [FLOATS, FLOATS[::-1] * 0.5, np.array(-1.0), np.array(2.0)])


def test_exponentials_and_logarithms() -> None:
    b = Builder()
    positive = np.array([0.25, 0.5, 1.0, 2.0, 3.0])
    x, y = b.parameter("f32", (5,)), b.parameter("f32", (5,))
    e = b.like("exponential", b.like("add", x, b.like("multiply", y, b.broadcast(b.constant("f32", 2.0), (5,)))))
    half = b.like("exponential", b.like("multiply", x, b.broadcast(b.constant("f32", -0.5), (5,))))
    ratio = b.like("divide", e, half)
    b.like("log", b.like("multiply", ratio, y))
    b.like("log", b.like("add", e, half))
    b.like("divide", ratio, b.like("exponential", b.like("subtract", x, y)))
    b.like("log", b.like("divide", y, x))
    b.like("sqrt", b.like("multiply", e, e))
    for value in (4.0, 2.0, 0.25, 0.0):
        b.like("sqrt", b.broadcast(b.constant("f32", value), (5,)))
    check(b, [positive, positive[::-1]])
