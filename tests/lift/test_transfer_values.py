"""Infinities, NaN, wide integers, complex numbers: what the reals do not have is kept, not simplified."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from scalify.hlo.module import Shape
from tests.lift.support import Outcome, check
from tests.support.builder import Builder

V = np.array([0.0, 1.0, -2.0, 3.0])
N = (4,)


def spread(b: Builder, value: float) -> int:
    return b.broadcast(b.constant("f32", value), N)


def compare(b: Builder, x: int, y: int, direction: str) -> int:
    return b.add("compare", "pred", N, [x, y], direction=direction)


def executed(b: Builder, inputs: list[np.ndarray[Any, Any]]) -> Outcome:
    return check(b, inputs, opaque=True, infinities=True)


def test_infinite_and_undefined_constants() -> None:
    b = Builder()
    x, zero, minus = b.parameter("f32", N), spread(b, 0.0), spread(b, -1.0)
    bad = [b.like("divide", x, zero), b.like("log", zero), b.like("log", minus), b.like("sqrt", minus), b.like("rsqrt", zero)]
    bad += [b.like("power", zero, minus), b.like("log-plus-one", minus), spread(b, math.nan), spread(b, math.inf), spread(b, -math.inf)]
    for value in bad:
        for opcode in ("exponential", "negate", "abs", "sign", "floor", "tanh"):
            b.like(opcode, value)
        for opcode in ("multiply", "add", "subtract", "maximum", "minimum", "divide"):
            b.like(opcode, value, zero)
            b.like(opcode, value, x)
            b.like(opcode, value, value)
        for direction in ("EQ", "NE", "LT", "GE"):
            compare(b, value, x, direction)
            compare(b, value, value, direction)
        b.add("is-finite", "pred", N, [value])
    executed(b, [V])


def test_masks() -> None:
    """Values behind a mask of -inf."""
    b = Builder()
    x, low = b.parameter("f32", N), spread(b, -math.inf)
    zero = spread(b, 0.0)
    mask = compare(b, x, zero, "GT")
    m = b.add("select", "f32", N, [mask, x, low])
    e = b.like("exponential", m)
    for value in (m, e):
        b.like("multiply", value, x)
        b.like("multiply", value, zero)
        b.like("divide", value, value)
        b.like("subtract", value, value)
        b.like("sign", value)
        for direction in ("EQ", "GT", "LE"):
            compare(b, value, zero, direction)
            compare(b, value, low, direction)
        b.add("is-finite", "pred", N, [value])
        b.add("reduce", "f32", (), [value, b.constant("f32", -math.inf)], calls=[b.reducer("maximum", "f32")], dimensions=(0,))
        b.add("reduce", "f32", (), [value, b.constant("f32", 0.0)], calls=[b.reducer("add", "f32")], dimensions=(0,))
    b.like("exponential", b.like("add", b.like("negate", m), low))
    b.add("convert", "s32", N, [m])
    b.add("clamp", "f32", N, [b.constant("f32", -1.0), m, b.constant("f32", 1.0)])
    padded = b.add("pad", "f32", (7,), [x, b.constant("f32", -math.inf)], padding=((1, 2, 0),))
    joined = b.add("concatenate", "f32", (8,), [low, x], dimensions=(0,))
    b.add("slice", "f32", (4,), [padded], starts=(1,), limits=(5,), strides=(1,))
    b.add("dynamic-slice", "f32", (2,), [joined, b.constant("s32", 3)], dynamic_slice_sizes=(2,))
    b.add("dot", "f32", (), [m, x], lhs_contracting_dims=(0,), rhs_contracting_dims=(0,))
    executed(b, [V])


def test_tables_with_infinities() -> None:
    b = Builder()
    x = b.parameter("f32", N)
    t, u = b.constant("f32", [1.0, -math.inf, 0.0, math.nan]), b.constant("f32", [1.0, -math.inf, 0.0, 2.0])
    for value in (t, u):
        e = b.like("exponential", value)
        ratio = b.like("divide", e, e)
        b.like("add", b.like("multiply", ratio, x), b.like("multiply", b.like("tanh", x), e))
        b.like("log", e)
        b.like("exponential", b.like("add", value, x))
        b.like("maximum", value, x)
        b.like("multiply", value, x)
        compare(b, e, spread(b, 0.0), "EQ")
        compare(b, value, x, "LT")
    executed(b, [V])


def test_wide_integers() -> None:
    b = Builder()
    for dtype, values in (("s64", [-(2**63), 2**63 - 1, 0]), ("u64", [2**64 - 1, 2**63, 5]), ("s32", [-(2**31), 2**31 - 1, 0])):
        x = b.constant(dtype, np.array(values, dtype={"s64": np.int64, "u64": np.uint64, "s32": np.int32}[dtype]))
        y = b.add("reverse", dtype, (3,), [x], dimensions=(0,))
        for direction in ("LT", "EQ", "GE"):
            b.add("compare", "pred", (3,), [x, y], direction=direction)
        for opcode in ("add", "multiply", "subtract", "divide", "remainder", "maximum"):
            b.like(opcode, x, y)
        b.add("convert", "s32", (3,), [x])
    executed(b, [])


def test_complex_numbers() -> None:
    b = Builder()
    x = b.add("complex", "c64", (2,), [b.parameter("f32", (2,)), b.constant("f32", [1.0, 2.0])])
    y = b.like("multiply", x, b.constant("c64", np.array([1 + 2j, 3])))
    for opcode in ("exponential", "log", "sqrt", "negate"):
        b.add("real", "f32", (2,), [b.like(opcode, y)])
    executed(b, [np.array([1.0, 2.0])])


@pytest.mark.parametrize("layouts", [((0, 1), (1, 0)), ((1, 0), (0, 1)), ((0, 1), (0, 1)), (None, (0, 1)), (None, None)])
def test_bitcast_follows_memory(layouts: tuple[tuple[int, int] | None, tuple[int, int] | None]) -> None:
    b = Builder()
    x = b.parameter(Shape("f32", (2, 6), layout=layouts[0]))
    for dims in ((2, 6), (6, 2), (3, 4)):
        b.add("bitcast", Shape("f32", dims, layout=layouts[1]), (), [x])
    check(b, [np.arange(12.0).reshape(2, 6)])


def test_bits_of_floats() -> None:
    """Results of one shape and no range of their own still differ by type."""
    b = Builder()
    x = b.parameter("s16", (3,))
    b.add("bitcast-convert", "f16", (3,), [x])
    b.add("bitcast-convert", "bf16", (3,), [x])
    b.add("bitcast-convert", "u16", (3,), [x])
    check(b, [np.array([1, 16000, 20000])], opaque=True)


@pytest.mark.parametrize("inner", ["s32", "f64", "pred"])
def test_reducers_with_conversions(inner: str) -> None:
    """A reducer that rounds is a sum; one that truncates is none."""
    b = Builder()
    x = b.parameter("f32", (2, 3))
    c = b.computation("odd")
    p, q = c.parameter("f32"), c.parameter("f32")
    s = c.add("maximum" if inner == "pred" else "add", inner, (), [c.add("convert", inner, (), [p]), c.add("convert", inner, (), [q])])
    name = c.end(c.add("convert", "f32", (), [s]))
    b.add("reduce", "f32", (2,), [x, b.constant("f32", 0.0)], calls=[name], dimensions=(1,))
    check(b, [np.array([[0.5, 1.5, 2.25], [-0.5, 3.0, 0.75]])], opaque=inner != "f64")
