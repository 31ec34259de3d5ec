"""Reductions, windows, sorting and top-k against their definitions."""

from __future__ import annotations

import itertools
import math
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import HloError
from scalify.hlo.module import Shape
from scalify.hlo.window import WindowDimension
from tests.support.interpreter import evaluate, single, tuple_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from tests.support.builder import Builder

    Array = npt.NDArray[Any]

USUAL: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "multiply": lambda a, b: a * b, "maximum": max, "minimum": min,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "ordered": lambda a, b: a * 3 + b,
}  # fmt: skip


def reducer(kind: str, dtype: str = "s32") -> Callable[[Builder], list[str]]:
    def build(b: Builder) -> list[str]:
        if kind != "ordered":
            return [b.reducer(kind, dtype)]
        inner = b.computation("ordered")
        old, new = inner.parameter(dtype), inner.parameter(dtype)
        return [inner.end(inner.like("add", inner.like("multiply", old, inner.constant(dtype, 3)), new))]

    return build


def wrap(value: int, bits: int = 32) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


@pytest.mark.parametrize("kind", list(USUAL))
@pytest.mark.parametrize("dimensions", [(), (0,), (1,), (2, 0), (0, 1, 2)])
def test_reduce(kind: str, dimensions: tuple[int, ...]) -> None:
    x, initial = np.random.default_rng(0).integers(-99, 99, (2, 2, 3, 4)), np.array([5, -7])
    kept = [d for d in range(3) if d not in dimensions]
    out = tuple((2, 3, 4)[d] for d in kept)
    result = evaluate("reduce", ("s32", out), [("s32", x), ("s32", initial)], devices=2, calls=reducer(kind), dimensions=dimensions)[0]
    for device, index in itertools.product(range(2), np.ndindex(*out)):
        line = [int(x[device][i]) for i in np.ndindex(2, 3, 4) if tuple(i[d] for d in kept) == index]
        assert result[device][index] == wrap(reduce(USUAL[kind], line, int(initial[device])))


def test_reduce_of_nothing_is_the_initial_value() -> None:
    x = np.zeros((0, 2))
    assert single(
        "reduce", ("f32", (2,)), [("f32", x), ("f32", np.array(7.0))], calls=reducer("maximum", "f32"), dimensions=(0,)
    ).tolist() == [7, 7]


def test_narrow_sums_wrap() -> None:
    x = np.full(3, 100)
    assert single("reduce", ("s8", ()), [("s8", x), ("s8", np.array(0))], calls=reducer("add", "s8"), dimensions=(0,)) == wrap(300, 8)
    assert (
        single("reduce", ("u4", ()), [("u4", np.full(3, 9)), ("u4", np.array(0))], calls=reducer("add", "u4"), dimensions=(0,)) == 27 % 16
    )


def test_reducer_behind_float_conversions() -> None:
    def build(b: Builder) -> list[str]:
        inner = b.computation("wide_add")
        a, c = inner.parameter("bf16"), inner.parameter("bf16")
        total = inner.add("add", "f32", (), [inner.add("convert", "f32", (), [a]), inner.add("convert", "f32", (), [c])])
        return [inner.end(inner.add("convert", "bf16", (), [total]))]

    x = np.array([1.0, 1e-9])
    assert single("reduce", ("bf16", ()), [("bf16", x), ("bf16", np.array(0.0))], calls=build, dimensions=(0,)) == 1 + 1e-9


def arg_max(b: Builder) -> list[str]:
    inner = b.computation("argmax")
    a, i, c, j = inner.parameter("f32"), inner.parameter("s32"), inner.parameter("f32"), inner.parameter("s32")
    greater = inner.add("compare", "pred", (), [a, c], direction="GE")
    return [inner.end(inner.tuple(inner.like("select", greater, a, c), inner.like("select", greater, i, j)))]


def test_variadic_reduce() -> None:
    x = np.random.default_rng(0).integers(0, 5, (1, 3, 7)).astype(float)
    places = np.broadcast_to(np.arange(7), (1, 3, 7))
    operands = [("f32", x), ("s32", places), ("f32", np.array([-math.inf])), ("s32", np.array([-1]))]
    best, place = evaluate("reduce", tuple_shape(("f32", (3,)), ("s32", (3,))), operands, calls=arg_max, dimensions=(1,))
    assert best.tolist() == x.max(axis=2).tolist()
    assert place.tolist() == x.argmax(axis=2).tolist()


WINDOWS = st.builds(
    WindowDimension, st.integers(1, 3), st.integers(1, 2), st.integers(-1, 2), st.integers(-1, 2), st.integers(1, 2), st.integers(1, 2)
)


def spans(window: Sequence[WindowDimension], dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(
        max(0, ((d - 1) * w.lhs_dilate + 1 + w.pad_low + w.pad_high - (w.size - 1) * w.rhs_dilate - 1) // w.stride + 1)
        for d, w in zip(dims, window, strict=True)
    )


def covered(window: Sequence[WindowDimension], dims: Sequence[int], at: Sequence[int]) -> list[tuple[int, ...] | None]:
    """The base elements under a window, None for padding and holes."""
    found: list[tuple[int, ...] | None] = []
    for tap in itertools.product(*(range(w.size) for w in window)):
        place = [a * w.stride + t * w.rhs_dilate - w.pad_low for a, t, w in zip(at, tap, window, strict=True)]
        inside = all(p % w.lhs_dilate == 0 and 0 <= p // w.lhs_dilate < d for p, w, d in zip(place, window, dims, strict=True))
        found.append(tuple(p // w.lhs_dilate for p, w in zip(place, window, strict=True)) if inside else None)
    return found


@settings(max_examples=80, deadline=None)
@given(st.lists(WINDOWS, min_size=1, max_size=2), st.sampled_from(["add", "maximum", "ordered"]))
def test_reduce_window(window: list[WindowDimension], kind: str) -> None:
    dims = (4, 3)[: len(window)]
    x = np.random.default_rng(0).integers(-99, 99, dims)
    out = spans(window, dims)
    result = single("reduce-window", ("s32", out), [("s32", x), ("s32", np.array(2))], calls=reducer(kind), window=tuple(window))
    for at in np.ndindex(*out):
        line = [int(x[i]) for i in covered(window, dims, at) if i is not None]
        assert result[at] == wrap(reduce(USUAL[kind], line, 2))


def greater_equal(b: Builder) -> str:
    inner = b.computation("ge")
    a, c = inner.parameter("s32"), inner.parameter("s32")
    return inner.end(inner.add("compare", "pred", (), [a, c], direction="GE"))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(WindowDimension, st.integers(1, 3), st.integers(1, 2), st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=2
    ),
    st.sampled_from(["add", "ordered"]),
)
def test_select_and_scatter(window: list[WindowDimension], kind: str) -> None:
    dims = (4, 5)[: len(window)]
    x = np.random.default_rng(0).integers(0, 4, dims)
    out = spans(window, dims)
    source = np.random.default_rng(1).integers(1, 9, out)
    expected = np.full(dims, 1)
    for at in np.ndindex(*out):
        inside = [i for i in covered(window, dims, at) if i is not None]
        if inside:
            chosen = max(inside, key=lambda i: (x[i], [-p for p in i]))
            expected[chosen] = USUAL[kind](int(expected[chosen]), int(source[at]))
    operands = [("s32", x), ("s32", source), ("s32", np.array(1))]
    result = single(
        "select-and-scatter", ("s32", dims), operands, calls=lambda b: [greater_equal(b), *reducer(kind)(b)], window=tuple(window)
    )
    assert result.tolist() == expected.astype(np.int32).tolist()


def test_map() -> None:
    x, y = np.arange(6).reshape(2, 3), np.arange(6, 12).reshape(2, 3)
    assert (
        single("map", ("s32", (2, 3)), [("s32", x), ("s32", y)], calls=reducer("ordered"), dimensions=(0, 1)).tolist()
        == (x * 3 + y).tolist()
    )


def by_first(direction: str, key: str, other: str, **more: Any) -> Callable[[Builder], list[str]]:
    def build(b: Builder) -> list[str]:
        inner = b.computation("comparator")
        a, c = inner.parameter(key), inner.parameter(key)
        inner.parameter(other)
        inner.parameter(other)
        return [inner.end(inner.add("compare", "pred", (), [a, c], direction=direction, **more))]

    return build


@pytest.mark.parametrize("length", [0, 1, 2, 3, 5, 8, 13, 32])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_sort_is_stable_along_any_dimension(length: int, direction: str) -> None:
    keys = np.random.default_rng(0).integers(0, 6, (2, 3, length))
    places = np.broadcast_to(np.arange(length), keys.shape)
    for axis in (0, 1):
        operands = [(d, np.moveaxis(x, 2, axis + 1)) for d, x in (("s32", keys), ("u32", places))]
        dims = operands[0][1].shape[1:]
        shape = tuple_shape(("s32", dims), ("u32", dims))
        results = evaluate("sort", shape, operands, devices=2, calls=by_first(direction, "s32", "u32"), dimensions=(axis,), is_stable=True)
        order = np.argsort(keys if direction == "LT" else -keys, axis=2, kind="stable")
        assert np.moveaxis(results[0], axis + 1, 2).tolist() == np.take_along_axis(keys, order, axis=2).tolist()
        assert np.moveaxis(results[1], axis + 1, 2).tolist() == order.tolist()


def test_sort_by_the_total_order() -> None:
    x = np.array([math.nan, 0.0, -0.0, -math.inf, 1.0])
    result = single(
        "sort",
        tuple_shape(("f32", (5,)), ("f32", (5,))),
        [("f32", x), ("f32", x)],
        calls=by_first("LT", "f32", "f32", type="TOTALORDER"),
        dimensions=(0,),
    )
    assert [str(v) for v in result] == ["-inf", "-0.0", "0.0", "1.0", "nan"]


def test_comparator_that_is_not_transitive_is_refused() -> None:
    """Each residue modulo 3 comes before the next one, in a circle: no permutation is sorted."""

    def circle(b: Builder) -> list[str]:
        inner = b.computation("circle")
        a, c = inner.parameter("u32"), inner.parameter("u32")
        ahead = inner.like("remainder", inner.like("add", inner.like("subtract", c, a), inner.constant("u32", 3)), inner.constant("u32", 3))
        return [inner.end(inner.add("compare", "pred", (), [ahead, inner.constant("u32", 1)], direction="EQ"))]

    x = np.array([0, 1, 2, 0, 2, 1, 1, 0])
    with pytest.raises(HloError, match="strict weak order"):
        single("sort", ("u32", (8,)), [("u32", x)], calls=circle, dimensions=(0,))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "u8", "s32"])
def test_topk(largest: bool, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 9, (1, 3, 10))
    values, places = evaluate("topk", tuple_shape((dtype, (3, 4)), ("s32", (3, 4))), [(dtype, x)], k=4, largest=largest)
    for row in range(3):
        line = x[0, row].tolist()
        order = [n for _, n in sorted((-v if largest else v, n) for n, v in enumerate(line))][:4]
        assert places[0, row].tolist() == order
        assert values[0, row].tolist() == x[0, row, order].tolist()


def test_a_reducer_of_two_values_needs_a_tuple() -> None:
    with pytest.raises(HloError, match=r"reduce\.2: computation argmax takes 4 operands, not 2"):
        evaluate("reduce", Shape("f32", (3,)), [("f32", np.zeros((1, 3, 2))), ("f32", np.zeros(1))], calls=arg_max, dimensions=(1,))
