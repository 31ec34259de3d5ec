"""Flattening: calls inlined, tuples taken apart, loops written out, known integers evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scalify.errors import HloError
from scalify.hlo.module import Shape
from scalify.lift import program
from scalify.lift.program import flatten
from scalify.lift.terms import LimitReached
from tests.support.builder import Builder

if TYPE_CHECKING:
    from scalify.hlo.module import Module
    from scalify.lift.program import Program

TOKEN = Shape("token")


def opcodes(flat: Program) -> list[str]:
    return [o.opcode for o in flat.operations]


def scalar(b: Builder, opcode: str, *operands: int, dtype: str = "s32", **more: Any) -> int:
    return b.add(opcode, dtype, (), operands, **more)


def known(flat: Program, output: int = 0) -> list[Any]:
    found: list[Any] = flat.known[flat.outputs[output]].tolist()
    return found


def function(b: Builder, name: str, opcode: str = "negate") -> str:
    """A computation that applies an opcode to its only, scalar operand."""
    inner = b.computation(name)
    return inner.end(inner.like(opcode, inner.parameter("f32", ())))


# -- calls and tuples ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("opcode", ["call", "fusion"])
def test_calls_are_inlined(opcode: str) -> None:
    b = Builder()
    x = b.parameter("f32", ())
    once = b.add(opcode, "f32", (), [x], calls=[function(b, "inner")])
    twice = b.add(opcode, "f32", (), [once], calls=["inner"])
    flat = flatten(b.build(twice), [0])
    assert opcodes(flat) == ["parameter", "negate", "negate"]
    first, second = flat.operations[1:]
    assert first.operands == tuple(flat.parameters)
    assert second.operands == first.results
    assert flat.outputs == list(second.results)


def test_calls_in_calls() -> None:
    b = Builder()
    function(b, "f0")
    for k in range(1, 20):
        inner = b.computation(f"f{k}")
        p = inner.parameter("f32", ())
        inner.end(inner.add("call", "f32", (), [p], calls=[f"f{k - 1}"]))
    assert opcodes(flatten(b.build(b.add("call", "f32", (), [b.parameter("f32", ())], calls=["f19"])), [0])) == ["parameter", "negate"]


def test_calls_that_nest_too_deeply() -> None:
    b = Builder()
    function(b, "f0")
    for k in range(1, program.DEPTH + 3):
        inner = b.computation(f"f{k}")
        p = inner.parameter("f32", ())
        inner.end(inner.add("call", "f32", (), [p], calls=[f"f{k - 1}"]))
    module = b.build(b.add("call", "f32", (), [b.parameter("f32", ())], calls=[f"f{program.DEPTH + 2}"]))
    with pytest.raises(HloError, match="nested deeper than"):
        flatten(module, [0])


def test_calls_that_double_at_every_level_stop_at_the_limit() -> None:
    b = Builder()
    function(b, "f0")
    for k in range(1, 40):
        inner = b.computation(f"f{k}")
        p = inner.parameter("f32", ())
        for _ in range(2):
            p = inner.add("call", "f32", (), [p], calls=[f"f{k - 1}"])
        inner.end(p)
    with pytest.raises(LimitReached) as caught:
        flatten(b.build(b.add("call", "f32", (), [b.parameter("f32", ())], calls=["f39"])), [0], most=1000)
    assert (caught.value.name, caught.value.limit) == ("operations", 1000)


def test_tuples_leave_no_operation() -> None:
    b = Builder()
    x, y = b.parameter("f32", (2,)), b.parameter("s32", (3,))
    nested = b.tuple(b.tuple(x, y), x)
    flat = flatten(b.build([b.get(b.get(nested, 0), 1), b.get(nested, 1), y]), [0])
    assert opcodes(flat) == ["parameter", "parameter"]
    first, second = flat.parameters
    assert flat.outputs == [second, first, second]


def test_an_operation_with_several_results() -> None:
    b = Builder()
    x, y = b.parameter("f32", (2,)), b.parameter("f32", (3,))
    shape = Shape("tuple", (), (b.shape(x), b.shape(y)))
    both = b.add("all-reduce", shape, (), [x, y], calls=[b.reducer("add", "f32")], replica_groups=())
    flat = flatten(b.build([b.get(both, 1), b.get(both, 0)]), [0])
    reduced = flat.operations[-1]
    assert [s.dims for s in reduced.shapes] == [(2,), (3,)]
    assert flat.outputs == list(reversed(reduced.results))
    assert [c.name for c in reduced.computations] == ["add_f32"]


def test_results_that_are_no_arrays() -> None:
    b = Builder()
    x = b.parameter("f32", ())
    assert flatten(b.build([b.add("after-all", TOKEN), x]), [0]).outputs == [-1, 0]
    nested = Builder()
    p = nested.parameter("f32", ())
    with pytest.raises(HloError, match="a tuple inside the root tuple"):
        flatten(nested.build([nested.tuple(p), p]), [0])


def test_parameters_that_are_no_arrays() -> None:
    b = Builder()
    b.parameter(TOKEN)
    flat = flatten(b.build(b.parameter("f32", ())), [0])
    assert opcodes(flat) == ["parameter"]
    assert flat.outputs == [0]
    whole = Builder()
    pair = whole.parameter(Shape("tuple", (), (Shape("f32"), Shape("f32"))))
    with pytest.raises(HloError, match="parameters that are tuples"):
        flatten(whole.build(whole.get(pair, 0)), [0])


def test_elements_that_do_not_exist() -> None:
    b = Builder()
    x = b.parameter("f32", ())
    wrong = b.add("get-tuple-element", "f32", (), [b.tuple(x)], index=1)
    with pytest.raises(HloError, match="element 1 of a value that has none"):
        flatten(b.build(wrong), [0])


@pytest.mark.parametrize("opcode", ["copy", "opt-barrier", "optimization-barrier", "domain"])
def test_aliases_leave_no_operation(opcode: str) -> None:
    b = Builder()
    x, y = b.parameter("f32", (2,)), b.parameter("f32", (3,))
    flat = flatten(b.build(b.get(b.like(opcode, b.tuple(x, y)), 1)), [0])
    assert opcodes(flat) == ["parameter", "parameter"]
    assert flat.outputs == [flat.parameters[1]]


def test_operations_that_only_have_effects_vanish() -> None:
    b = Builder()
    x = b.parameter("f32", (2,))
    b.add("outfeed", TOKEN, (), [x, b.add("after-all", TOKEN)])
    assert "outfeed" not in opcodes(flatten(b.build(x), [0]))


# -- loops ---------------------------------------------------------------------------------------------------------------------
def counting(trips: int, start: int = 0, step: int = 1, below: str | None = None) -> Module:
    """``for i in start, start + step, .. < trips: x = -x`` (or the loop ``below``), over the state (i, x)."""
    b = Builder()
    x = b.parameter("f32", ())
    state = b.tuple(b.constant("s32", start), x)
    shape = b.shape(state)
    condition = b.computation("condition")
    c = condition.parameter(shape)
    condition.end(scalar(condition, "compare", condition.get(c, 0), condition.constant("s32", trips), dtype="pred", direction="LT"))
    body = b.computation("body")
    s = body.parameter(shape)
    i = scalar(body, "add", body.get(s, 0), body.constant("s32", step))
    inner = body.get(s, 1)
    value = body.add("call", "f32", (), [inner], calls=[below]) if below else body.like("negate", inner)
    body.end(body.tuple(i, value))
    loop = b.add("while", shape, (), [state], calls=["condition", "body"])
    return b.build([b.get(loop, 0), b.get(loop, 1)])


@pytest.mark.parametrize(("trips", "start", "step", "count"), [(0, 0, 1, 0), (1, 0, 1, 1), (7, 0, 1, 7), (7, 2, 2, 3), (-3, 0, 1, 0)])
def test_loops_with_known_trips_are_written_out(trips: int, start: int, step: int, count: int) -> None:
    flat = flatten(counting(trips, start, step), [0])
    assert opcodes(flat).count("negate") == count
    assert "while" not in opcodes(flat)
    assert "compare" not in opcodes(flat)
    assert known(flat) == [start + step * count]


def test_loops_in_loops() -> None:
    b = Builder()
    outer, total = Shape("tuple", (), (Shape("s32"), Shape("s32"))), Shape("tuple", (), (Shape("s32"), Shape("s32")))
    for name, trips in (("inner", 3), ("outer", 4)):
        condition = b.computation(f"{name}_condition")
        c = condition.parameter(outer)
        condition.end(scalar(condition, "compare", condition.get(c, 0), condition.constant("s32", trips), dtype="pred", direction="LT"))
        body = b.computation(f"{name}_body")
        s = body.parameter(outer)
        i, value = body.get(s, 0), body.get(s, 1)
        if name == "outer":
            start = body.tuple(body.constant("s32", 0), value)
            value = body.get(body.add("while", total, (), [start], calls=["inner_condition", "inner_body"]), 1)
        body.end(body.tuple(scalar(body, "add", i, body.constant("s32", 1)), scalar(body, "add", value, body.constant("s32", 10))))
    state = b.tuple(b.constant("s32", 0), b.constant("s32", 0))
    loop = b.add("while", total, (), [state], calls=["outer_condition", "outer_body"])
    assert known(flatten(b.build(b.get(loop, 1)), [0])) == [4 * (3 * 10 + 10)]


def test_too_many_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_TRIPS", 10)
    assert opcodes(flatten(counting(9), [0])).count("negate") == 9
    with pytest.raises(LimitReached) as caught:
        flatten(counting(11), [0])
    assert (caught.value.name, caught.value.limit) == ("trips", 10)


def test_a_loop_that_never_ends() -> None:
    with pytest.raises(LimitReached):
        flatten(counting(1, step=0), [0])


def test_a_loop_of_unknown_length_stays_one_operation() -> None:
    b = Builder()
    condition = b.computation("condition")
    c = condition.parameter("f32", ())
    condition.end(scalar(condition, "compare", c, condition.constant("f32", 1.0), dtype="pred", direction="LT"))
    loop = b.add("while", "f32", (), [b.parameter("f32", ())], calls=["condition", function(b, "body")])
    flat = flatten(b.build(loop), [0])
    assert opcodes(flat) == ["parameter", "while"]
    assert [c.name for c in flat.operations[1].computations] == ["condition", "body"]


def test_a_loop_whose_length_depends_on_the_device_stays_one_operation() -> None:
    b = Builder()
    condition = b.computation("condition")
    c = condition.parameter("u32", ())
    condition.end(scalar(condition, "compare", c, condition.constant("u32", 5), dtype="pred", direction="LT"))
    body = b.computation("body")
    body.end(scalar(body, "add", body.parameter("u32", ()), body.constant("u32", 5), dtype="u32"))
    start = scalar(b, "multiply", b.add("partition-id", "u32"), b.constant("u32", 3), dtype="u32")
    loop = b.add("while", "u32", (), [start], calls=["condition", "body"])
    assert opcodes(flatten(b.build(loop, num_partitions=3), [0, 1, 2]))[-1] == "while", "0 and 3 are below 5, 6 is not"
    assert known(flatten(b.build(loop, num_partitions=2), [0, 1])) == [5, 8], "one trip on both devices"


# -- conditionals ----------------------------------------------------------------------------------------------------------------
BRANCHES = ("negate", "abs", "sine")


def choosing(selector: Any, dtype: str = "s32", branches: int = 3) -> Module:
    b = Builder()
    names = [function(b, opcode, opcode) for opcode in BRANCHES[:branches]]
    x = b.parameter("f32", ())
    which = b.constant(dtype, selector) if selector is not None else b.parameter(dtype, ())
    return b.build(b.add("conditional", "f32", (), [which, *[x] * branches], calls=names))


@pytest.mark.parametrize(("selector", "taken"), [(0, "negate"), (1, "abs"), (2, "sine"), (3, "sine"), (-1, "sine"), (1 << 30, "sine")])
def test_a_known_selector_takes_its_branch(selector: int, taken: str) -> None:
    found = opcodes(flatten(choosing(selector), [0]))
    assert [o for o in found if o in BRANCHES] == [taken], "numbers out of range take the last branch"
    assert "conditional" not in found


@pytest.mark.parametrize(("selector", "taken"), [(True, "negate"), (False, "abs")])
def test_a_known_predicate_takes_its_branch(selector: bool, taken: str) -> None:
    found = opcodes(flatten(choosing(selector, "pred", 2), [0]))
    assert [o for o in found if o in BRANCHES] == [taken]


def test_an_unknown_selector_stays() -> None:
    flat = flatten(choosing(None), [0])
    assert opcodes(flat)[-1] == "conditional"
    assert [c.name for c in flat.operations[-1].computations] == list(BRANCHES)


# -- known integers --------------------------------------------------------------------------------------------------------------
def test_integers_made_of_device_numbers() -> None:
    b = Builder()
    offset = scalar(b, "multiply", b.add("partition-id", "u32"), b.constant("u32", 4), dtype="u32")
    table = b.constant("s32", [10, 20, 30])
    rank = b.add("convert", "s32", (), [b.add("partition-id", "u32")])
    entry = b.add("dynamic-slice", "s32", (1,), [table, rank], dynamic_slice_sizes=(1,))
    flat = flatten(b.build([offset, entry], num_partitions=3), [2, 0, 1])
    assert known(flat) == [8, 0, 4], "in the order of mesh positions"
    assert known(flat, 1) == [[30], [10], [20]]


def test_equal_values_are_kept_once() -> None:
    b = Builder()
    same = scalar(b, "multiply", b.add("partition-id", "u32"), b.constant("u32", 0), dtype="u32")
    assert known(flatten(b.build(same, num_partitions=4), [0, 1, 2, 3])) == [0]


def test_given_parameters() -> None:
    b = Builder()
    p = b.parameter("s32", ())
    module = b.build(scalar(b, "add", p, b.constant("s32", 1)))
    assert known(flatten(module, [0, 1], {0: np.array([5, 7], dtype=np.int32)})) == [6, 8]
    assert flatten(module, [0, 1]).outputs[0] not in flatten(module, [0, 1]).known


@pytest.mark.parametrize(
    ("dtype", "value", "expected"), [("u8", 255, 0), ("s8", 127, -128), ("s32", 2**31 - 1, -(2**31)), ("u32", 2**32 - 1, 0)]
)
def test_integers_wrap_around(dtype: str, value: int, expected: int) -> None:
    b = Builder()
    assert known(flatten(b.build(scalar(b, "add", b.constant(dtype, value), b.constant(dtype, 1), dtype=dtype)), [0])) == [expected]


def test_what_is_not_evaluated() -> None:
    b = Builder()
    x = b.constant("f32", 2.0)
    big = b.add("iota", "s32", (program.MOST_KNOWN + 1,), iota_dimension=0)
    small = b.add("iota", "s32", (5,), iota_dimension=0)
    zero = b.constant("s32", 0)
    random = b.add("rng", "s32", (), [zero, b.constant("s32", 9)], distribution="rng_uniform")
    opaque = b.add("custom-call", "s32", (), [zero], custom_call_target="Mystery")
    flat = flatten(b.build([x, big, small, random, opaque, scalar(b, "add", random, zero)]), [0])
    assert [o in flat.known for o in flat.outputs] == [False, False, True, False, False, False]


def test_malformed_operations_are_left_to_the_lifter() -> None:
    b = Builder()
    wrong = b.add("dynamic-slice", "s32", (9,), [b.constant("s32", [1, 2]), b.constant("s32", 0)], dynamic_slice_sizes=(9,))
    flat = flatten(b.build(wrong), [0])
    assert flat.outputs[0] not in flat.known
