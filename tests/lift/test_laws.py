"""The laws of the constructors: random expressions keep their value, and normal forms do not depend on how a value was built."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.lift import compare, elementary, functions, product
from scalify.lift.atoms import infinity, iota, not_a_number, parameter
from scalify.lift.einsum import total
from scalify.lift.extremum import greatest, least
from scalify.lift.linear import add, combine, scale, subtract
from scalify.lift.terms import Laws, Store, View
from tests.lift.expressions import GUARDS, SIZES, STEPS, Expression, random_of
from tests.lift.support import check_facts

if TYPE_CHECKING:
    from random import Random

COEFFICIENTS: tuple[int | Fraction, ...] = (1, -2, Fraction(1, 3))
SEEDS = st.integers(0, 1 << 32)


@settings(max_examples=250, deadline=None, derandomize=True)
@given(SEEDS)
def test_random_expressions(seed: int) -> None:
    e = Expression(random_of(seed))
    e.grow(20)
    check_facts(e.evaluator)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(SEEDS)
def test_conditions(seed: int) -> None:
    e = Expression(random_of(seed))
    e.grow(30, GUARDS)
    check_facts(e.evaluator)


@pytest.mark.parametrize("off", Laws._fields)
def test_without_one_family(off: str) -> None:
    """Each family of laws is optional: without it the forms are others, the values are the same."""
    for seed in range(12):
        Expression(random_of(seed), Laws()._replace(**{off: False})).grow(20)


@pytest.mark.parametrize("name", sorted(STEPS))
def test_each_step(name: str) -> None:
    for seed in range(12):
        e = Expression(random_of(seed))
        e.grow(4, [name, "whole_combination", "products"])
        STEPS[name](e)


def x_of(store: Store, name: str, at: tuple[int, ...], limits: tuple[int, int] | None = None) -> View:
    return parameter(store, ("parameter", name), [(s, SIZES[s]) for s in at], limits)


# -- normal forms ------------------------------------------------------------------------------------------------------------
@settings(max_examples=100, deadline=None, derandomize=True)
@given(SEEDS)
def test_slots_may_be_renamed(seed: int) -> None:
    """The same expression over exchanged slots is the same term, where every leaf occurs once (so that nothing is tied)."""
    order = (1, 0, 3, 2)
    results = []
    for names in (tuple(range(4)), order):
        e = Expression(random_of(seed), order=names)
        store, rnd = e.store, e.rnd
        leaves = [e.leaf("a+", [0]), e.leaf("b", [0, 1]), e.leaf("c/", [2, 3]), e.leaf("d", [1, 2]), e.leaf("e?", [0, 1, 3]), e.iota(2)]
        rnd.shuffle(leaves)
        view = leaves[0].view
        for leaf in leaves[1:]:
            kind = rnd.randrange(4)
            if kind == 0:
                view = combine(store, ((rnd.choice(COEFFICIENTS), view), (3, leaf.view)))
            elif kind == 1:
                view = product.times(store, view, leaf.view)
            elif kind == 2:
                slot = names[rnd.randrange(4)]
                view = total(store, product.times(store, view, leaf.view), {slot: SIZES[slot]})
            else:
                view = compare.compare(store, "GE", view, leaf.view)
        results.append(view)
    first, second = results
    assert _same_up_to_numbers(first, second)
    assert second.at == tuple(order[s] for s in first.at)


def _same_up_to_numbers(a: View, b: View) -> bool:
    """Terms of two stores: their numbers count up in the same order, since they were built alike."""
    return (a.coef, a.term.kind, a.term.sizes, repr(a.term.data)) == (b.coef, b.term.kind, b.term.sizes, repr(b.term.data))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SEEDS, st.randoms(use_true_random=False))
def test_the_order_of_operands_does_not_matter(seed: int, rnd: Random) -> None:
    e = Expression(random_of(seed))
    e.grow(8)
    views = list(dict.fromkeys(v.view for v in e.values if v.view.coef))[:5]
    shuffled = rnd.sample(views, len(views))
    store = e.store
    assert combine(store, [(1, v) for v in views]) == combine(store, [(1, v) for v in shuffled])
    assert product.multiply(store, [(v, 1) for v in views]) == product.multiply(store, [(v, 1) for v in shuffled])


def test_symmetric_uses_of_one_leaf_stay_apart() -> None:
    """``x_ij x_ji`` and ``x_ij x_ij``; cyclic products of three."""
    store = Store()
    x = x_of(store, "b", (0, 1))
    flipped = View(1, x.term, (1, 0))
    assert product.times(store, x, flipped).term is not product.times(store, x, x).term
    assert total(store, product.times(store, x, flipped), {0: 2, 1: 2}) == total(store, product.times(store, flipped, x), {0: 2, 1: 2})
    trace = total(store, product.times(store, x, flipped), {0: 2, 1: 2})
    square = total(store, product.times(store, x, x), {0: 2, 1: 2})
    assert trace != square
    assert subtract(store, x, flipped) != subtract(store, flipped, x)
    assert compare.compare(store, "GE", x, flipped) != compare.compare(store, "GE", flipped, x)
    assert compare.compare(store, "EQ", x, flipped) == compare.compare(store, "EQ", flipped, x)


def test_sums_take_no_label_twice() -> None:
    """``(sum_i x_i)^2`` has two labels, ``sum_i x_i^2`` one."""
    store = Store()
    x = x_of(store, "a", (0,))
    s = total(store, x, {0: 2})
    assert product.times(store, s, s) != total(store, product.times(store, x, x), {0: 2})
    y = x_of(store, "y", (0,))
    inner = total(store, product.times(store, x, y), {0: 2})
    assert total(store, product.times(store, inner, y), {0: 2}) == product.times(store, inner, total(store, y, {0: 2}))


# -- side conditions: each law where its condition fails ----------------------------------------------------------------------
def test_infinities_are_no_coefficients() -> None:
    store = Store()
    x, inf = x_of(store, "a", (0,)), infinity(store, 1)
    zero = store.constant(0)
    assert product.times(store, zero, inf) != zero
    assert scale(store, inf, 0) != zero
    assert subtract(store, inf, inf) != zero
    masked = functions.select(store, compare.compare(store, "GT", x, zero), x, scale(store, inf, -1))
    assert subtract(store, masked, masked) != zero
    assert product.times(store, zero, masked) != zero
    other = compare.compare(store, "GT", x_of(store, "y", (0,)), zero)
    assert functions.select(store, other, masked, zero).term.kind == "fn"
    assert functions.maximum(store, inf, not_a_number(store)) != inf


def test_division_cancels_what_is_positive_only() -> None:
    store = Store()
    x = x_of(store, "a", (0,))
    assert product.divide(store, x, x) != store.constant(1)
    e = elementary.exponential(store, x)
    assert product.divide(store, e, e) == store.constant(1)
    count = x_of(store, "n", (0,), (0, 5))
    assert product.divide(store, count, count) != store.constant(1)


def test_exponentials_of_what_may_be_infinite() -> None:
    store = Store()
    x, inf = x_of(store, "a", (0,)), infinity(store, 1)
    assert elementary.exponential(store, scale(store, inf, -1)) == store.constant(0)
    assert elementary.exponential(store, inf) != store.constant(0)
    masked = functions.select(store, compare.compare(store, "GT", x, store.constant(0)), x, scale(store, inf, -1))
    unknown = elementary.exponential(store, subtract(store, scale(store, masked, -1), inf))
    assert unknown != store.constant(0)
    vanished = elementary.exponential(store, masked)
    assert product.divide(store, vanished, vanished) != store.constant(1)


@pytest.mark.parametrize("name", ["log", "sqrt", "power"])
def test_functions_of_bad_constants_are_tainted(name: str) -> None:
    store = Store()
    bad = functions.make(
        store, name, None, [store.constant(-1), store.constant(Fraction(1, 3))] if name == "power" else [store.constant(-1)]
    )
    assert product.times(store, store.constant(0), bad) != store.constant(0)
    assert functions.function(store, "divide-by-zero", [x_of(store, "a", (0,))]).term.taint


def test_logarithms_of_negative_factors() -> None:
    store = Store()
    x, y = x_of(store, "a", (0,)), x_of(store, "y", (0,))
    product_log = elementary.logarithm(store, product.times(store, x, y))
    assert product_log != add(store, elementary.logarithm(store, x), elementary.logarithm(store, y))
    assert elementary.logarithm(store, scale(store, elementary.exponential(store, x), -1)).term.kind == "fn"


def test_integer_laws_need_integers() -> None:
    store = Store()
    x, n = x_of(store, "a", (0,)), x_of(store, "n", (0,), (-9, 9))
    above = compare.compare(store, "GT", x, store.constant(0))
    assert above != compare.compare(store, "GE", x, store.constant(1))
    assert compare.compare(store, "GT", n, store.constant(0)) == compare.compare(store, "GE", n, store.constant(1))
    half = scale(store, n, Fraction(1, 2))
    assert compare.compare(store, "GT", half, store.constant(0)) != compare.compare(store, "GE", half, store.constant(1))


def test_conditions_are_idempotent_numbers_are_not() -> None:
    store = Store()
    p, n = x_of(store, "p", (0,), (0, 1)), x_of(store, "n", (0,), (0, 2))
    assert product.times(store, p, p) == p
    assert product.times(store, n, n) != n
    assert functions.maximum(store, p, p) == p


def test_one_hot_needs_the_index_inside() -> None:
    store = Store()
    position, value = iota(store, 2, 3), x_of(store, "c", (2, 3))
    for index in (-1, 3):
        hit = compare.equals_zero(store, combine(store, ((1, position),), -index))
        assert hit == store.constant(0)
    wide = x_of(store, "n", (0,), (-1, 5))
    hit = compare.equals_zero(store, subtract(store, position, wide))
    assert total(store, product.times(store, hit, value), {2: 3}).term.kind == "sum"
    shifted = compare.equals_zero(store, combine(store, ((1, position), (-1, iota(store, 3, 3))), -1))  # v = j + 1, outside for j = 2
    found = total(store, product.times(store, shifted, value), {2: 3})
    assert found != View(1, value.term, (3, 3))


@pytest.mark.parametrize(("low", "high"), [(-5, 5), (-1, 0)])
def test_remainders_need_what_is_not_negative(low: int, high: int) -> None:
    store = Store()
    n = x_of(store, "n", (0,), (low, high))
    assert functions.remainder(store, n, 3) is None
    assert functions.integer_quotient(store, n, 3) is None


def test_wraps_vanish_within_range_only() -> None:
    store = Store()
    n = x_of(store, "n", (0,), (0, 100))
    assert functions.wrap(store, n, 0, 127) == n
    assert functions.wrap(store, add(store, n, n), 0, 127) != add(store, n, n)


def test_largest_values_of_negative_multiples() -> None:
    """``max(-x)`` is not ``-max(x)``."""
    store = Store()
    x = x_of(store, "a", (0,))
    assert greatest(store, scale(store, x, -1), {0: 2}) == scale(store, least(store, x, {0: 2}), -1)
    assert greatest(store, scale(store, x, -1), {0: 2}) != scale(store, greatest(store, x, {0: 2}), -1)
