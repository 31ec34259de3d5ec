"""Gather and scatter against the definition, one element at a time, with random dimension numbers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.interpreter import evaluate, tuple_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from tests.support.builder import Builder

    Array = npt.NDArray[Any]


class Numbers(NamedTuple):
    """Gather's dimension numbers, and the shapes that go with them."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    result: tuple[int, ...]
    sizes: tuple[int, ...]
    offset_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    start_map: tuple[int, ...]
    vector_dim: int


@st.composite
def dimension_numbers(draw: st.DrawFn) -> Numbers:
    rank = draw(st.integers(1, 4))
    operand = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    roles = [draw(st.sampled_from(["window", "collapsed", "batching"])) for _ in range(rank)]
    batching = tuple(d for d in range(rank) if roles[d] == "batching")
    collapsed = tuple(d for d in range(rank) if roles[d] == "collapsed")
    free = [d for d in range(rank) if d not in batching]
    start_map = tuple(draw(st.permutations(free))[: draw(st.integers(0, len(free)))])
    sizes = tuple(1 if roles[d] != "window" else draw(st.integers(0, operand[d])) for d in range(rank))
    # Batch dimensions of the indices: those of the operand's batching dimensions, and others.
    batch = draw(
        st.permutations(
            [("b", operand[d], d) for d in batching] + [("f", draw(st.integers(1, 2)), -1) for _ in range(draw(st.integers(0, 2)))]
        )
    )
    vector_dim = draw(st.integers(0, len(batch)))
    indices = [size for _, size, _ in batch]
    places = {d: n + (n >= vector_dim) for n, (_, _, d) in enumerate(batch) if d >= 0}
    # The index vector may be implicit: a scalar in the dimension after the last.
    if len(start_map) != 1 or vector_dim != len(batch) or draw(st.booleans()):
        indices.insert(vector_dim, len(start_map))
    window = [d for d in range(rank) if roles[d] == "window"]
    total = len(batch) + len(window)
    offset_dims = tuple(sorted(draw(st.permutations(range(total)))[: len(window)]))
    w, b = iter(window), iter(batch)
    result = tuple(sizes[next(w)] if d in offset_dims else next(b)[1] for d in range(total))
    indices_batching = tuple(places[d] for d in batching)
    return Numbers(operand, tuple(indices), result, sizes, offset_dims, collapsed, batching, indices_batching, start_map, vector_dim)


def split(n: Numbers, index: tuple[int, ...], indices: Array) -> tuple[list[int], list[int]]:
    """Unclamped start and window offset, in operand dimensions, of an element of the result."""
    batch = [i for d, i in enumerate(index) if d not in n.offset_dims]
    window = iter(i for d, i in enumerate(index) if d in n.offset_dims)
    offset = [0 if d in n.collapsed or d in n.batching else next(window) for d in range(len(n.operand))]
    start = [0] * len(n.operand)
    for k, d in enumerate(n.start_map):
        place = list(batch)
        if n.vector_dim < indices.ndim:
            place.insert(n.vector_dim, k)
        start[d] = int(indices[tuple(place)])
    for d, axis in zip(n.batching, n.indices_batching, strict=True):
        start[d] = batch[axis - (axis > n.vector_dim)]
    return start, offset


def values(n: Numbers, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    operand = rng.integers(0, 100, (2, *n.operand))
    return operand, rng.integers(-1, 4, (2, *n.indices))


@settings(max_examples=200, deadline=None)
@given(dimension_numbers(), st.integers(0, 1000))
def test_gather(n: Numbers, seed: int) -> None:
    operand, indices = values(n, seed)
    result = evaluate(
        "gather", ("s32", n.result), [("s32", operand), ("s32", indices)], devices=2, offset_dims=n.offset_dims, collapsed_slice_dims=n.collapsed,
        operand_batching_dims=n.batching, start_indices_batching_dims=n.indices_batching, start_index_map=n.start_map,
        index_vector_dim=n.vector_dim, slice_sizes=n.sizes,
    )[0]  # fmt: skip
    for device, index in itertools.product(range(2), np.ndindex(*n.result)):
        start, offset = split(n, index, indices[device])
        clamped = [min(max(s, 0), dim - size) for s, dim, size in zip(start, n.operand, n.sizes, strict=True)]
        assert result[device][index] == operand[device][tuple(c + o for c, o in zip(clamped, offset, strict=True))]


def reducers(b: Builder, kind: str) -> list[str]:
    if kind in ("add", "maximum"):
        return [b.reducer(kind, "s32")]
    inner = b.computation(kind)
    old, new = inner.parameter("s32"), inner.parameter("s32")
    if kind == "assign":
        return [inner.end(new)]
    # old * 3 + new: depends on the order.
    return [inner.end(inner.like("add", inner.like("multiply", old, inner.constant("s32", 3)), new))]


COMBINE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "maximum": max,
    "assign": lambda _, b: b,
    "ordered": lambda a, b: a * 3 + b,
}


@pytest.mark.parametrize("kind", list(COMBINE))
@settings(max_examples=60, deadline=None)
@given(n=dimension_numbers(), seed=st.integers(0, 1000))
def test_scatter(kind: str, n: Numbers, seed: int) -> None:
    operand, indices = values(n, seed)
    updates = np.random.default_rng(seed + 1).integers(0, 100, (2, *n.result))
    result = evaluate(
        "scatter", ("s32", n.operand), [("s32", operand), ("s32", indices), ("s32", updates)], devices=2, calls=lambda b: reducers(b, kind),
        update_window_dims=n.offset_dims, inserted_window_dims=n.collapsed, input_batching_dims=n.batching,
        scatter_indices_batching_dims=n.indices_batching, scatter_dims_to_operand_dims=n.start_map, index_vector_dim=n.vector_dim,
    )[0]  # fmt: skip
    expected = operand.copy()
    sizes = iter(n.result[d] for d in n.offset_dims)
    extent = [1 if d in n.collapsed or d in n.batching else next(sizes) for d in range(len(n.operand))]
    batch_first = sorted(np.ndindex(*n.result), key=lambda index: [i for d, i in enumerate(index) if d not in n.offset_dims])
    for device, index in itertools.product(range(2), batch_first):
        start, offset = split(n, index, indices[device])
        if all(0 <= s <= dim - e for s, dim, e in zip(start, n.operand, extent, strict=True)):
            place = tuple(s + o for s, o in zip(start, offset, strict=True))
            expected[device][place] = COMBINE[kind](int(expected[device][place]), int(updates[device][index]))
    assert result.tolist() == expected.astype(np.int32).tolist()


def test_variadic_scatter() -> None:
    def keep_larger(b: Builder) -> list[str]:
        """The pair whose first element is larger."""
        inner = b.computation("keep_larger")
        a, i, c, j = inner.parameter("f32"), inner.parameter("s32"), inner.parameter("f32"), inner.parameter("s32")
        better = inner.add("compare", "pred", (), [c, a], direction="GT")
        return [inner.end(inner.tuple(inner.like("select", better, c, a), inner.like("select", better, j, i)))]

    values, places = np.array([[0.0, 5.0]]), np.array([[-1, -1]])
    operands = [
        ("f32", values),
        ("s32", places),
        ("s32", np.array([[0, 0, 1]])),
        ("f32", np.array([[1.0, 3.0, 4.0]])),
        ("s32", np.array([[7, 8, 9]])),
    ]
    best, place = evaluate(
        "scatter", tuple_shape(("f32", (2,)), ("s32", (2,))), operands, calls=keep_larger,
        inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1,
    )  # fmt: skip
    assert best.tolist() == [[3.0, 5.0]]
    assert place.tolist() == [[8, -1]]
