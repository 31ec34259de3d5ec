"""A counterexample is found where the graphs differ, and only there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scalify.errors import Undecidable
from scalify.hlo.module import ReplicaGroups
from scalify.lift.known_calls import BUILT_IN
from scalify.refute.inputs import SAMPLINGS, Inputs
from scalify.refute.search import refute
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from tests.support.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Callable

    from scalify.hlo.module import Module
    from scalify.report.model import Counterexample

TP = 2
MATMUL: dict[str, Any] = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,), "lhs_batch_dims": (), "rhs_batch_dims": ()}
ROWS = """
version: 1
mesh: {tp: 2}
inputs:
  - {baseline: 0, distributed: 0, spec: [null, tp]}
  - {baseline: 1, distributed: 1, spec: [tp]}
outputs:
  - {baseline: 0, distributed: 0}
"""
WHOLE = """
version: 1
mesh: {tp: 2}
inputs:
  - {baseline: 0, distributed: 0}
outputs:
  - {baseline: 0, distributed: 0}
"""


def row_parallel(devices: int, *, scale: float = 1.0, reducer: str = "add", groups: tuple[tuple[int, ...], ...] = ((0, 1),)) -> Module:
    b = Builder()
    x, w = b.parameter("f32", (4, 8 // devices)), b.parameter("f32", (8 // devices, 6))
    y = b.add("dot", "f32", (4, 6), [x, w], **MATMUL)
    if devices > 1:
        y = b.add("all-reduce", "f32", (4, 6), [y], calls=[b.reducer(reducer, "f32")], replica_groups=ReplicaGroups(groups))
    y = b.like("multiply", y, b.broadcast(b.constant("f32", scale), (4, 6)))
    return b.build(b.like("tanh", y), num_partitions=devices)


def search(baseline: Module, distributed: Module, relation: str = ROWS, operations: int = 10**8) -> Counterexample | None:
    found = resolve(parse(relation, "relation"), baseline, [distributed])
    return refute(baseline, [distributed], found, BUILT_IN, range(9), operations)


def one(make: Callable[[Builder, int], int], dtype: str = "f32", dims: tuple[int, ...] = (4, 6), devices: int = 1) -> Module:
    b = Builder()
    return b.build(make(b, b.parameter(dtype, dims)), num_partitions=devices)


def test_equal_graphs_are_not_refuted() -> None:
    assert search(row_parallel(1), row_parallel(TP)) is None


@pytest.mark.parametrize(
    "fault",
    [{"scale": 1.001}, {"scale": -1.0}, {"reducer": "maximum"}, {"groups": ((0,), (1,))}],
    ids=["scale", "sign", "reducer", "groups"],
)
def test_a_difference_is_found_with_its_place_and_values(fault: dict[str, Any]) -> None:
    found = search(row_parallel(1), row_parallel(TP, **fault))
    assert found is not None
    (difference,) = found.outputs
    assert difference.output == 0
    assert 0 <= difference.device < TP
    assert all(0 <= i < n for i, n in zip(difference.index, (4, 6), strict=True))
    (low, high), (other_low, other_high) = difference.baseline, difference.distributed
    assert None not in (low, high, other_low, other_high)
    gap = max(other_low - high, low - other_high)  # type: ignore[operator]
    assert gap > 8 * difference.rounding


def test_another_rounding_of_a_constant_does_not_refute() -> None:
    """The graphs differ over the reals, by less than single precision tells."""
    assert search(row_parallel(1), row_parallel(TP, scale=1 + 2.0**-23)) is None


def test_a_narrower_type_does_not_refute() -> None:
    def narrow(b: Builder, x: int) -> int:
        return b.add("convert", "f32", (4, 6), [b.add("convert", "bf16", (4, 6), [b.like("tanh", x)])])

    assert search(one(lambda b, x: b.like("tanh", x)), one(narrow, devices=TP), WHOLE) is None


def test_an_undecided_order_does_not_refute() -> None:
    """``sqrt(x)^2 < x`` is false over the reals, and rounding decides it in floats."""

    def squared(b: Builder, x: int) -> int:
        root = b.like("sqrt", b.like("abs", x))
        less = b.add("compare", "pred", (4, 6), [b.like("multiply", root, root), b.like("abs", x)], direction="LT")
        return b.like("select", less, b.like("negate", x), x)

    assert search(one(lambda b, x: x), one(squared, devices=TP), WHOLE) is None


def test_what_is_no_number_does_not_refute() -> None:
    zero = np.zeros((4, 6), np.float32)
    assert search(one(lambda b, x: x), one(lambda b, x: b.like("divide", x, b.constant("f32", zero)), devices=TP), WHOLE) is None


def test_random_numbers_do_not_refute() -> None:
    def noise(b: Builder, x: int) -> int:
        low, high = b.constant("f32", 0), b.constant("f32", 1)
        return b.like("add", x, b.add("rng", "f32", (4, 6), [low, high], distribution="rng_uniform"))

    assert search(one(noise), one(noise, devices=TP), WHOLE) is None


def test_functions_without_known_meaning_do_not_refute() -> None:
    def call(target: str) -> Callable[[Builder, int], int]:
        return lambda b, x: b.add("custom-call", "f32", (4, 6), [x], custom_call_target=target)

    assert search(one(call("first")), one(call("second"), devices=TP), WHOLE) is None


def test_integers_beyond_the_shape_are_tried() -> None:
    """A start is clamped on one side and taken modulo on the other: they differ outside the array only."""

    def picked(b: Builder, x: int, wrapped: bool) -> int:
        data = b.constant("f32", np.arange(8, dtype=np.float32))
        start = b.like("and", x, b.constant("s32", 7)) if wrapped else x
        return b.add("dynamic-slice", "f32", (1,), [data, start], dynamic_slice_sizes=(1,))

    baseline = one(lambda b, x: picked(b, x, False), "s32", ())
    distributed = one(lambda b, x: picked(b, x, True), "s32", (), TP)
    found = search(baseline, distributed, WHOLE)
    assert found is not None
    assert found.sampling == "wide"
    assumed = WHOLE + "assume:\n  - {baseline: 0, range: [0, 8]}\n"
    assert search(baseline, distributed, assumed) is None


def test_the_search_ends_with_its_budget() -> None:
    assert search(row_parallel(1), row_parallel(TP, scale=2.0), operations=1000) is None


def second(b: Builder) -> str:
    """A reducer that keeps the update."""
    inner = b.computation("second")
    inner.parameter("f32")
    return inner.end(inner.parameter("f32"))


def test_a_broken_promise_of_unique_indices_does_not_refute() -> None:
    """The last update wins on one side, the first on the other; neither has to."""

    def written(b: Builder, x: int, order: tuple[int, ...]) -> int:
        indices = b.constant("s32", np.zeros((2, 1), np.int32))
        updates = b.add(
            "reverse", "f32", (2, 6), [b.add("slice", "f32", (2, 6), [x], starts=(0, 0), limits=(2, 6), strides=(1, 1))], dimensions=order
        )
        numbers: dict[str, Any] = dict.fromkeys(["input_batching_dims", "scatter_indices_batching_dims"], ())
        numbers |= {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1}
        return b.add("scatter", "f32", (4, 6), [x, indices, updates], calls=[second(b)], unique_indices=True, **numbers)

    assert search(one(lambda b, x: written(b, x, ())), one(lambda b, x: written(b, x, (0,)), devices=TP), WHOLE) is None


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_inputs_satisfy_the_relation(sampling: str) -> None:
    baseline, distributed = row_parallel(1), row_parallel(TP)
    relation = resolve(parse(ROWS, "relation"), baseline, [distributed])
    given = Inputs(baseline, [distributed], relation, 3, sampling)
    x, w = given.baseline
    mine, weights = given.distributed[0]
    assert (np.concatenate([mine[0], mine[1]], axis=1) == x[0]).all()
    assert (np.concatenate([weights[0], weights[1]], axis=0) == w[0]).all()
    again = Inputs(baseline, [distributed], relation, 3, sampling)
    assert (again.baseline[0] == x).all()
    assert (Inputs(baseline, [distributed], relation, 4, sampling).baseline[0] != x).any()


def test_integers_are_in_the_range_that_is_assumed() -> None:
    module = one(lambda b, x: x, "s32", (500,))
    for low, high in ((3, 5), (-7, -2), (0, 2**31 - 1)):
        text = WHOLE + f"assume:\n  - {{baseline: 0, range: [{low}, {high}]}}\n"
        found = Inputs(module, [module], resolve(parse(text, "relation"), module, [module]), 0, "wide").baseline[0]
        assert found.min() >= low
        assert found.max() < high
    assert set(np.unique(Inputs(module, [module], resolve(parse(WHOLE, "r"), module, [module]), 0, "sparse").baseline[0])) == set(range(8))


def test_an_empty_range_has_no_inputs() -> None:
    module = one(lambda b, x: x, "u8", (5,))
    text = WHOLE + "assume:\n  - {baseline: 0, range: [300, 400]}\n"
    with pytest.raises(Undecidable):
        Inputs(module, [module], resolve(parse(text, "relation"), module, [module]), 0, "sparse")
