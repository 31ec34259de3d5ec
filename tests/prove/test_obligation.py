"""From views to obligations: where they are cut, what is remembered, where they stop."""

from __future__ import annotations

import pytest

from scalify.lift.atoms import infinity, opaque, parameter
from scalify.lift.einsum import total
from scalify.lift.functions import function
from scalify.lift.linear import add, combine, scale
from scalify.lift.product import multiply, times
from scalify.lift.terms import LimitReached, Store, View
from scalify.prove.catalogue import installed, rules
from scalify.prove.engine import Limits, Status
from scalify.prove.expression import problem
from scalify.prove.obligation import Prover, prove

ROW, J, K = 0, 1, 2
SIZES = {ROW: 3, J: 4, K: 5}


def leaf(store: Store, name: str, *slots: int) -> View:
    return parameter(store, (name,), [(s, SIZES[s]) for s in slots], None)


@pytest.fixture(scope="module")
def prover() -> Prover:
    return Prover(rules(installed()))


def distributed(store: Store, layer: int) -> tuple[View, View]:
    a, b, c = (leaf(store, f"{n}{layer}", ROW) for n in "abc")
    return times(store, a, add(store, b, c)), combine(store, ((1, times(store, a, b)), (1, times(store, a, c))))


def test_shared_terms_are_cut(prover: Prover) -> None:
    store = Store()
    deep = leaf(store, "x", ROW)
    for _ in range(200):
        deep = function(store, "sine", [add(store, deep, store.constant(1))])
    a, b = leaf(store, "a", ROW), leaf(store, "b", ROW)
    left, right = times(store, deep, add(store, a, b)), combine(store, ((1, times(store, deep, a)), (1, times(store, deep, b))))
    assert len(problem(left, right, 0, 400).nodes) < 20
    assert prover.prove(left, right).proved


def test_shared_terms_are_opened_when_that_is_needed(prover: Prover) -> None:
    store = Store()
    a, b = leaf(store, "a", ROW), leaf(store, "b", ROW)
    both = add(store, a, b)
    left = add(store, times(store, both, both), function(store, "sine", [both]))
    right = combine(
        store, ((1, times(store, a, a)), (2, times(store, a, b)), (1, times(store, b, b)), (1, function(store, "sine", [both])))
    )
    assert prover.prove(left, right).proved


def test_repeated_layers_are_proved_once() -> None:
    prover = Prover(rules(installed()))
    store = Store()
    outcomes = [prover.prove(*distributed(store, layer)) for layer in range(20)]
    assert all(o.proved for o in outcomes)
    assert len(prover.memo) == 1
    assert prover.hits == 19


def test_bound_labels_of_equal_sums_have_equal_names(prover: Prover) -> None:
    store = Store()
    x, y, z, w = leaf(store, "x", ROW, K), leaf(store, "y", K, J), leaf(store, "z", ROW, K), leaf(store, "w", K, J)
    left = total(store, times(store, y, add(store, x, z)), {K: 5})
    right = add(store, total(store, times(store, x, y), {K: 5}), total(store, times(store, z, y), {K: 5}))
    wrong = add(store, total(store, times(store, x, y), {K: 5}), total(store, times(store, z, w), {K: 5}))
    assert left != right
    assert prover.prove(left, right).proved
    assert not prover.prove(left, wrong).proved


def test_a_label_is_not_captured(prover: Prover) -> None:
    store = Store()
    x, y = leaf(store, "x", K), leaf(store, "y", K)
    nested = total(store, multiply(store, ((x, 1), (add(store, total(store, x, {K: 5}), y), -1))), {K: 5})
    flat = total(store, multiply(store, ((x, 1), (add(store, scale(store, x, 5), y), -1))), {K: 5})
    assert not prover.prove(nested, flat).proved


def test_factors_and_coefficients_count(prover: Prover) -> None:
    left, right = distributed(Store(), 0)
    store = Store()
    left, right = distributed(store, 0)
    assert not prover.prove(left, scale(store, right, 2)).proved


def test_axes_count(prover: Prover) -> None:
    store = Store()
    square = parameter(store, ("s",), [(ROW, 3), (J, 3)], None)
    turned = View(square.coef, square.term, (square.at[1], square.at[0]))
    assert not prover.prove(square, turned).proved


def test_values_that_may_be_infinite_are_never_opened(prover: Prover) -> None:
    store = Store()
    large = add(store, leaf(store, "x", ROW), infinity(store, 1))
    outcome = prover.prove(combine(store, ((1, large), (-1, large))), store.constant(0))
    assert not outcome.proved


def test_large_obligations_stop_at_a_named_limit() -> None:
    store = Store()
    left = right = store.constant(0)
    for n in range(60):
        left = add(store, left, function(store, "sine", [leaf(store, f"a{n}", ROW)]))
        right = add(store, right, function(store, "cosine", [leaf(store, f"a{n}", ROW)]))
    with pytest.raises(LimitReached):
        problem(left, right, 0, 50)
    outcome = prove(store, left, right, rules(installed()), Limits(expression=50))
    assert outcome.status is Status.LIMIT
    assert outcome.limit.startswith("obligation-")


def test_the_order_of_the_axes_that_an_operation_sees_counts(prover: Prover) -> None:
    store = Store()
    square = parameter(store, ("s",), [(J, 4), (K, 4)], None)
    other = parameter(store, ("t",), [(J, 4), (K, 4)], None)

    def sort(view: View, *core: int) -> View:
        return opaque(store, ("sort",), [(view, [(c, 4) for c in core])], [ROW], {ROW: 16})

    assert not prover.prove(sort(square, J, K), sort(square, K, J)).proved
    assert not prover.prove(sort(add(store, square, other), J, K), sort(add(store, square, other), K, J)).proved
    left = times(store, square, add(store, square, other))
    right = combine(store, ((1, times(store, square, square)), (1, times(store, square, other))))
    assert prover.prove(sort(left, J, K), sort(right, J, K)).proved
    assert not prover.prove(sort(left, J, K), sort(right, K, J)).proved
