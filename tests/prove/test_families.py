"""Each family of normal forms: with it equal values share a term; without it egglog proves what the constructors no longer see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scalify.lift.atoms import iota, parameter
from scalify.lift.compare import at_least_zero, equals_zero
from scalify.lift.einsum import total
from scalify.lift.elementary import exponential
from scalify.lift.functions import select
from scalify.lift.linear import add, combine, negate
from scalify.lift.product import multiply, times
from scalify.lift.terms import Laws, Store, View
from scalify.prove.catalogue import installed, rules
from scalify.prove.obligation import Prover

if TYPE_CHECKING:
    from collections.abc import Callable

ROW, J, K, L = 0, 1, 2, 3
SIZES = {ROW: 3, J: 4, K: 5, L: 5}


def leaf(store: Store, name: str, *slots: int, limits: tuple[int | None, int | None] | None = None) -> View:
    return parameter(store, (name,), [(s, SIZES[s]) for s in slots], limits)


def _linear(s: Store) -> tuple[View, View]:
    a, b, c = (leaf(s, n, ROW) for n in "abc")
    return add(s, add(s, a, b), c), add(s, a, add(s, b, c))


def _linear_cancels(s: Store) -> tuple[View, View]:
    a, b = leaf(s, "a", ROW), leaf(s, "b", ROW)
    return add(s, add(s, a, b), negate(s, b)), a


def _einsum(s: Store) -> tuple[View, View]:
    a, b, c = leaf(s, "a", ROW, J), leaf(s, "b", J, K), leaf(s, "c", K)
    inner = total(s, times(s, a, b), {J: 4})
    return total(s, times(s, inner, c), {K: 5}), total(s, multiply(s, ((a, 1), (b, 1), (c, 1))), {J: 4, K: 5})


def _guards(s: Store) -> tuple[View, View]:
    n, a = leaf(s, "n", limits=(-100, 100)), leaf(s, "a", ROW)
    first, second = at_least_zero(s, n), at_least_zero(s, combine(s, ((1, n),), 3))
    return multiply(s, ((first, 1), (second, 1), (a, 1))), times(s, first, a)


def _one_hot(s: Store) -> tuple[View, View]:
    here = equals_zero(s, combine(s, ((1, iota(s, K, 5)), (-1, iota(s, L, 5)))))
    return total(s, times(s, here, leaf(s, "a", ROW, K)), {K: 5}), leaf(s, "a", ROW, L)


def _exponential(s: Store) -> tuple[View, View]:
    a, b = leaf(s, "a", ROW), leaf(s, "b", ROW)
    return exponential(s, combine(s, ((1, a), (-1, b)))), multiply(s, ((exponential(s, a), 1), (exponential(s, b), -1)))


def _softmax(s: Store) -> tuple[View, View]:
    a, m = leaf(s, "a", ROW, K), leaf(s, "m", ROW)
    shifted = exponential(s, combine(s, ((1, a), (-1, m))))
    plain = exponential(s, a)
    return (
        multiply(s, ((shifted, 1), (total(s, shifted, {K: 5}), -1))),
        multiply(s, ((plain, 1), (total(s, plain, {K: 5}), -1))),
    )


def _select(s: Store) -> tuple[View, View]:
    p, a = at_least_zero(s, leaf(s, "p", ROW)), leaf(s, "a", ROW)
    return select(s, p, a, s.constant(0)), times(s, p, a)


def _select_parts(s: Store) -> tuple[View, View]:
    p, a, b = at_least_zero(s, leaf(s, "p", ROW)), leaf(s, "a", ROW), leaf(s, "b", ROW)
    zero = s.constant(0)
    return add(s, select(s, p, a, zero), select(s, p, b, zero)), select(s, p, add(s, a, b), zero)


FAMILIES: tuple[tuple[str, Callable[[Store], tuple[View, View]], bool], ...] = (
    ("linear", _linear, True),
    ("linear", _linear_cancels, True),
    ("einsum", _einsum, True),
    ("guards", _guards, True),
    ("one_hot", _one_hot, True),
    ("exponential", _exponential, True),
    ("exponential", _softmax, False),
    ("select", _select, True),
    ("select", _select_parts, False),
)


@pytest.fixture(scope="module")
def prover() -> Prover:
    return Prover(rules(installed()))


@pytest.mark.parametrize(("family", "pair", "shared"), FAMILIES, ids=[f"{f}{p.__name__}" for f, p, _ in FAMILIES])
def test_egglog_proves_what_a_switched_off_family_leaves(
    prover: Prover, family: str, pair: Callable[[Store], tuple[View, View]], shared: bool
) -> None:
    left, right = pair(Store())
    assert left == right or not shared
    assert left == right or prover.prove(left, right).proved
    left, right = pair(Store(Laws(**{family: False})))
    assert left != right
    outcome = prover.prove(left, right)
    assert outcome.proved, outcome
    assert outcome.rules
