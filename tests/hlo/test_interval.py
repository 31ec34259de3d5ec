"""Intervals always hold the value over the reals, and are single numbers where float64 has it exactly."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import Undecidable
from scalify.hlo.arithmetic.interval import Interval, interval, quantum

if TYPE_CHECKING:
    from collections.abc import Callable

    from scalify.hlo.arithmetic.domain import Array

DOMAIN = Interval()
FINITE = st.floats(allow_nan=False, allow_infinity=False)
MODEST = st.floats(-1e6, 1e6, allow_subnormal=False)


def point(*values: float) -> Array:
    return DOMAIN.encode(np.array(values), "f64")


def holds(x: Array, value: Fraction) -> bool:
    return _below(float(x.real), value) and _below(-float(x.imag), -value)


def _below(bound: float, value: Fraction) -> bool:
    return bound == -math.inf or (math.isfinite(bound) and Fraction(bound) <= value)


@given(FINITE, FINITE)
def test_sums_and_products_hold_the_exact_ones(a: float, b: float) -> None:
    with np.errstate(all="ignore"):
        assert holds(DOMAIN.apply("add", [point(a), point(b)], "f64")[0], Fraction(a) + Fraction(b))
        assert holds(DOMAIN.apply("subtract", [point(a), point(b)], "f64")[0], Fraction(a) - Fraction(b))
        assert holds(DOMAIN.apply("multiply", [point(a), point(b)], "f64")[0], Fraction(a) * Fraction(b))
        if b:
            assert holds(DOMAIN.apply("divide", [point(a), point(b)], "f64")[0], Fraction(a) / Fraction(b))


@given(st.lists(MODEST, min_size=4, max_size=4), st.lists(st.fractions(0, 1), min_size=2, max_size=2))
def test_operations_on_intervals_hold_those_on_their_members(ends: list[float], where: list[Fraction]) -> None:
    boxes = [sorted(ends[:2]), sorted(ends[2:])]
    x, y = (interval(np.array([a]), np.array([b])) for a, b in boxes)
    p, q = (Fraction(a) + (Fraction(b) - Fraction(a)) * w for (a, b), w in zip(boxes, where, strict=True))
    exact: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "maximum": max,
        "minimum": min,
    }
    for opcode, function in exact.items():
        assert holds(DOMAIN.apply(opcode, [x, y], "f64")[0], function(p, q))
    assert holds(DOMAIN.apply("abs", [x], "f64")[0], abs(p))
    assert holds(DOMAIN.apply("negate", [x], "f64")[0], -p)
    assert holds(DOMAIN.apply("multiply", [x, x], "f64")[0], p * p)


@settings(max_examples=60)
@given(st.integers(1, 30), st.integers(0, 2**32 - 1), st.booleans())
def test_contractions_and_sums_hold_the_exact_ones(size: int, seed: int, short: bool) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-9, 9, size) / 8 if short else rng.standard_normal(size) * 10.0 ** rng.integers(-8, 8, size) for _ in range(2))
    expected = sum((Fraction(p) * Fraction(q) for p, q in zip(a.tolist(), b.tolist(), strict=True)), Fraction())
    found = DOMAIN.matmul(point(*a).reshape(1, size), point(*b).reshape(size, 1), "f64")[0, 0]
    assert holds(found, expected)
    total = DOMAIN.reduce("add", point(*a), (0,), "f64")
    assert holds(total, sum(map(Fraction, a.tolist()), Fraction()))
    if short:
        assert found.real == found.imag
        assert total.real == total.imag


@given(st.floats(-700, 700))
def test_exponentials_logarithms_and_roots_hold_the_exact_ones(x: float) -> None:
    with localcontext() as context:
        context.prec = 60
        value = Decimal(x)
        assert holds(DOMAIN.apply("exponential", [point(x)], "f64")[0], Fraction(value.exp()))
        if x > 0:
            assert holds(DOMAIN.apply("log", [point(x)], "f64")[0], Fraction(value.ln()))
            assert holds(DOMAIN.apply("sqrt", [point(x)], "f64")[0], Fraction(value.sqrt()))
            assert holds(DOMAIN.apply("rsqrt", [point(x)], "f64")[0], Fraction(1 / value.sqrt()))
        grown = (2 * value).exp()
        if abs(x) > 1e-30:  # else 60 digits are too few for the expected value
            assert holds(DOMAIN.apply("tanh", [point(x)], "f64")[0], Fraction((grown - 1) / (grown + 1)))
        assert holds(DOMAIN.apply("logistic", [point(x)], "f64")[0], Fraction(1 / (1 + (-value).exp())))


def test_exact_values_stay_exact() -> None:
    with np.errstate(all="ignore"):
        for opcode, x, value in [("exponential", 0.0, 1.0), ("exponential", -np.inf, 0.0), ("log", 1.0, 0.0), ("tanh", 0.0, 0.0)]:
            assert DOMAIN.apply(opcode, [point(x)], "f64")[0] == complex(value, value)
        assert DOMAIN.apply("multiply", [point(3.0), point(0.25)], "f64")[0] == 0.75 + 0.75j
        assert DOMAIN.apply("divide", [point(3.0), point(8.0)], "f64")[0] == 0.375 + 0.375j


def test_too_large_is_not_infinite() -> None:
    with np.errstate(all="ignore"):
        for opcode, operands in [("multiply", [1e200, 1e200]), ("add", [1.7e308, 1.7e308]), ("exponential", [800.0])]:
            found = DOMAIN.apply(opcode, [point(x) for x in operands], "f64")[0]
            assert np.isfinite(found.real)
            assert found.imag == np.inf


def test_what_overlaps_has_no_order() -> None:
    x, y = interval(np.array([1.0]), np.array([2.0])), interval(np.array([2.0]), np.array([3.0]))
    for direction in ("LT", "EQ", "NE", "GE"):
        with pytest.raises(Undecidable):
            DOMAIN.compare(direction, x, y, "f32")
    with pytest.raises(Undecidable):
        DOMAIN.order_key(np.concatenate([x, y]), "f32")
    assert DOMAIN.compare("LT", x, point(2.5), "f32").all()
    assert DOMAIN.compare("EQ", point(2.5), point(2.5), "f32").all()
    assert DOMAIN.order_key(np.concatenate([point(2.5), x, point(2.5), point(0.5)]), "f32").tolist() == [2, 1, 2, 0]


@pytest.mark.parametrize(
    ("opcode", "operands"),
    [
        ("divide", [(1, 1), (-1, 1)]),
        ("log", [(-1, 1)]),
        ("sqrt", [(-1, 1)]),
        ("rsqrt", [(0, 1)]),
        ("power", [(-1, 1), (0.5, 0.5)]),
        ("remainder", [(1, 2), (3, 3)]),
        ("subtract", [(np.inf, np.inf), (np.inf, np.inf)]),
    ],
)
def test_nothing_is_known_of_what_may_not_be_a_number(opcode: str, operands: list[tuple[float, float]]) -> None:
    with np.errstate(all="ignore"):
        found = DOMAIN.apply(opcode, [interval(np.array([float(a)]), np.array([float(b)])) for a, b in operands], "f64")
        assert np.isnan(found.real).all()
        assert np.isnan(found.imag).all()
        for opcode_on_it in ("abs", "negate", "exponential", "floor", "sine", "sqrt"):
            assert np.isnan(DOMAIN.apply(opcode_on_it, [found], "f64").imag).all()
        for two in ("add", "multiply", "maximum", "divide", "power"):
            assert np.isnan(DOMAIN.apply(two, [found, point(2.0)], "f64").real).all()
        assert np.isnan(DOMAIN.matmul(found.reshape(1, 1), point(0.0).reshape(1, 1), "f64").real).all()
        assert np.isnan(DOMAIN.reduce("add", np.concatenate([found, point(1.0)]), (0,), "f64").real)
    with pytest.raises(Undecidable):
        DOMAIN.compare("LT", found, found, "f64")
    with pytest.raises(Undecidable):
        DOMAIN.apply("is-finite", [found], "f64")


def test_a_value_equals_itself() -> None:
    x = interval(np.array([1.0]), np.array([2.0]))
    assert not DOMAIN.compare("NE", x, x, "f64").any()
    with pytest.raises(Undecidable):
        DOMAIN.compare("NE", x, x.copy(), "f64")


def test_functions_without_bounds_are_refused() -> None:
    with pytest.raises(Undecidable):
        DOMAIN.apply("tan", [point(0.0)], "f64")


def test_conversions_to_integers_need_the_whole_part() -> None:
    inside, across = interval(np.array([2.1]), np.array([2.9])), interval(np.array([2.9]), np.array([3.1]))
    assert DOMAIN.convert(inside, "f32", "s32").tolist() == [2]
    with pytest.raises(Undecidable):
        DOMAIN.convert(across, "f32", "s32")
    large = DOMAIN.convert(np.array([2**62 + 1]), "s64", "f64")[0]
    assert holds(large, Fraction(2**62 + 1))


def test_the_unit_of_all_elements() -> None:
    assert quantum(np.array([0.75, 4.0, 0.0])) == 0.25
    assert quantum(np.array([0.0])) == np.inf
    assert quantum(np.array([5e-324, 1.0])) == 5e-324
    assert quantum(np.array([np.inf])) == 0.0
