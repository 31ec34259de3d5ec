"""Calls, loops, branches, limits and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scalify.errors import HloError, Undecidable, UsageError
from scalify.hlo.interpret import HANDLERS, Budget, run
from scalify.hlo.module import Module, Shape
from scalify.hlo.opcodes import OPCODES
from scalify.hlo.semantics.control import FLOWS
from scalify.hlo.semantics.engine import MEETINGS
from scalify.hlo.window import WindowDimension
from tests.support.builder import Builder

PAIR = Shape("tuple", (), (Shape("s32"), Shape("s32")))


def loop(body_reduces: bool = False, groups: tuple[tuple[int, ...], ...] = ()) -> Module:
    """(count, total): while count > 0, total += count (summed over devices when ``body_reduces``), count -= 1."""
    b = Builder()
    condition = b.computation("condition")
    count = condition.get(condition.parameter(PAIR), 0)
    condition.end(condition.add("compare", "pred", (), [count, condition.constant("s32", 0)], direction="GT"))
    body = b.computation("body")
    state = body.parameter(PAIR)
    count, total = body.get(state, 0), body.get(state, 1)
    step = body.add("all-reduce", "s32", (), [count], calls=[b.reducer("add", "s32")], replica_groups=groups) if body_reduces else count
    body.end(body.tuple(body.like("subtract", count, body.constant("s32", 1)), body.like("add", total, step)))
    start = b.tuple(b.parameter("s32"), b.parameter("s32"))
    return b.build(b.add("while", PAIR, (), [start], calls=["condition", "body"]))


def test_trip_counts_may_differ() -> None:
    counts, totals = np.array([0, 3, 1, 5]), np.array([7, 0, 0, 100])
    results = run(loop(), [counts, totals], 4)
    assert results[0].tolist() == [0, 0, 0, 0]
    assert results[1].tolist() == [7, 6, 1, 115]


def test_collectives_in_a_body_run_in_lock_step() -> None:
    """Groups whose members agree on the trip count are independent of each other."""
    counts, totals = np.array([2, 2, 3, 3]), np.zeros(4, int)
    results = run(loop(True, ((0, 1), (2, 3))), [counts, totals], 4)
    assert results[1].tolist() == [6, 6, 12, 12]


def test_collective_that_a_member_does_not_reach() -> None:
    with pytest.raises(HloError, match="would wait for ever"):
        run(loop(True), [np.array([1, 2]), np.zeros(2, int)], 2)


def test_endless_loop_ends_over_the_budget() -> None:
    b = Builder()
    condition = b.computation("condition")
    condition.parameter("s32")
    condition.end(condition.constant("pred", True))
    body = b.computation("body")
    body.end(body.parameter("s32"))
    module = b.build(b.add("while", "s32", (), [b.parameter("s32")], calls=["condition", "body"]))
    with pytest.raises(HloError, match="element operations"):
        run(module, [np.zeros(1, int)], budget=Budget(operations=1 << 20))


def branches(selector: str) -> Module:
    b = Builder()
    for name, opcode in (("first", "negate"), ("second", "copy"), ("third", "abs"))[: 2 if selector == "pred" else 3]:
        inner = b.computation(name)
        inner.end(inner.like(opcode, inner.parameter("s32", (2,))))
    names = ["first", "second", "third"][: 2 if selector == "pred" else 3]
    choice, x = b.parameter(selector), b.parameter("s32", (2,))
    return b.build(b.add("conditional", "s32", (2,), [choice, *[x] * len(names)], calls=names))


def test_conditional_on_a_predicate() -> None:
    x = np.array([[1, -2], [3, -4]])
    assert run(branches("pred"), [np.array([True, False]), x], 2)[0].tolist() == [[-1, 2], [3, -4]]
    assert run(branches("pred"), [np.array([True, True]), x], 2)[0].tolist() == (-x).tolist()


def test_conditional_on_an_index_takes_the_last_branch_when_out_of_range() -> None:
    x = np.array([[1, -2]] * 5)
    result = run(branches("s32"), [np.array([0, 1, 2, -1, 9]), x], 5)[0]
    assert result.tolist() == [[-1, 2], [1, -2], [1, 2], [1, 2], [1, 2]]


def test_calls_fusions_and_async_forms() -> None:
    b = Builder()
    inner = b.computation("double")
    x = inner.parameter("f32", (2,))
    inner.end(inner.like("add", x, x))
    value = b.parameter("f32", (2,))
    called = b.add("call", "f32", (2,), [value], calls=["double"])
    fused = b.add("fusion", "f32", (2,), [called], calls=["double"], kind="kLoop")
    array = Shape("f32", (2,))
    started = b.add("async-start", Shape("tuple", (), (Shape("tuple", (), (array,)), array, Shape("u32"))), (), [fused], calls=["double"])
    done = b.add("async-done", array, (), [b.like("async-update", started)])
    copied = b.add("copy-done", array, (), [b.add("copy-start", Shape("tuple", (), (array, array, Shape("u32"))), (), [done])])
    barrier = b.like("opt-barrier", b.tuple(copied, value))
    assert [r.tolist() for r in run(b.build(barrier), [np.array([[1.0, 2.0]])])] == [[[8.0, 16.0]], [[1.0, 2.0]]]


def test_tokens() -> None:
    b = Builder()
    token = b.add("after-all", Shape("token"), ())
    x = b.add("add-dependency", "f32", (), [b.parameter("f32"), token])
    results = run(b.build([x, token]), [np.array([2.0])])
    assert results[0].tolist() == [2.0]
    assert results[1].size == 0


def test_nested_calls_are_bounded() -> None:
    b = Builder()
    inner = b.computation("c0")
    inner.end(inner.parameter("f32"))
    for n in range(1, 100):
        outer = b.computation(f"c{n}")
        outer.end(outer.add("call", "f32", (), [outer.parameter("f32")], calls=[f"c{n - 1}"]))
    module = b.build(b.add("call", "f32", (), [b.parameter("f32")], calls=["c99"]))
    with pytest.raises(HloError, match="nested deeper"):
        run(module, [np.zeros(1)])


def test_large_values_are_refused_before_they_exist() -> None:
    b = Builder()
    module = b.build(b.broadcast(b.parameter("f32"), (1 << 20, 1 << 20)))
    with pytest.raises(HloError, match=r"broadcast\.1: a value of \d+ elements is over the limit"):
        run(module, [np.zeros(1)])


def test_unknown_opcodes_are_refused() -> None:
    b = Builder()
    with pytest.raises(Undecidable, match="no-such-opcode"):
        run(b.build(b.add("no-such-opcode", "f32", (2,))), [])


def test_dynamic_dimensions_are_refused() -> None:
    b = Builder()
    module = b.build(b.add("copy", Shape("f32", (2,), dynamic=(True,)), (), [b.parameter("f32", (2,))]))
    with pytest.raises(HloError, match="dynamic"):
        run(module, [np.zeros((1, 2))])


def test_wrong_inputs() -> None:
    b = Builder()
    module = b.build(b.parameter("f32", (2,)))
    with pytest.raises(UsageError, match="0 inputs for 1"):
        run(module, [])
    with pytest.raises(UsageError, match="has shape"):
        run(module, [np.zeros((1, 3))])
    with pytest.raises(UsageError, match="the domain is one of"):
        run(module, [np.zeros((1, 2))], arithmetic="f8")


def test_every_opcode_has_semantics() -> None:
    assert {"parameter", *HANDLERS, *FLOWS} == set(OPCODES)
    assert set(OPCODES) >= MEETINGS


@pytest.mark.parametrize(
    ("opcode", "dims", "attributes"),
    [
        ("iota", (0, 1 << 40), {"iota_dimension": 1}),
        ("pad", (2, 0), {"padding": ((1 << 40, 0, 0), (0, -2, 0))}),
        ("reduce-window", (2, 0), {"window": (WindowDimension(1), WindowDimension(1 << 40))}),
        ("fft", (2, 2), {"fft_type": "FFT", "fft_length": (1 << 40,)}),
    ],
)
def test_hostile_sizes_end_within_the_budget(opcode: str, dims: tuple[int, ...], attributes: dict[str, Any]) -> None:
    b = Builder()
    operands = {"iota": [], "fft": [b.parameter("f32", (2, 2))]}.get(opcode)
    operands = [b.parameter("f32", (2, 2)), b.parameter("f32")] if operands is None else operands
    calls = [b.reducer("add", "f32")] if opcode == "reduce-window" else []
    module = b.build(b.add(opcode, "f32", dims, operands, calls=calls, **attributes))
    inputs = [np.zeros((1, *s.dims)) for s in module.parameter_shapes]
    with pytest.raises(HloError, match=r"limit|a transform of length"):
        run(module, inputs, budget=Budget(elements=1 << 20, operations=1 << 22))
