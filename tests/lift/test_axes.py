"""Factor inference: whatever is demanded, what an axis is cut into fits its size and its equals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.lift.axes import Axis, factors, find, make_product, make_sum, segments, unify, unify_products
from scalify.lift.infer import Demands
from scalify.lift.layout import Block, Layout, alternatives
from tests.lift.expressions import random_of

if TYPE_CHECKING:
    from random import Random


def check_axis(axis: Axis) -> None:
    """Products multiply, sums add up, and the alternatives of all factors tile the axis exactly once."""
    found = find(axis)
    assert found.size == axis.size
    if found.kind == "product":
        assert int(np.prod([f.size for f in factors(found)])) == axis.size
    if found.kind == "sum":
        assert sum(s.size for s in segments(found)) == axis.size
        assert all(find(s).kind != "sum" for s in segments(found))
    for factor in factors(found):
        assert sorted(k for a in alternatives(factor) for k in indices(a.offset, a.digits)) == list(range(factor.size))


def indices(offset: int, digits: tuple[tuple[int, int], ...]) -> list[int]:
    found = [offset]
    for size, stride in digits:
        found = [f + k * stride for f in found for k in range(size)]
    return found


def divisors(n: int) -> list[int]:
    return [d for d in range(2, n) if n % d == 0]


def cut(rnd: Random, size: int) -> list[int]:
    """A factorisation of a size, factors above 1."""
    found = []
    while divisors(size) and rnd.random() < 0.7:
        n = rnd.choice(divisors(size))
        found.append(n)
        size //= n
    return [*found, size]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 32))
def test_random_demands(seed: int) -> None:
    """Products, sums and equalities in any order leave every axis whole; what a demand reports as met is met."""
    rnd = random_of(seed)
    size = rnd.choice([6, 8, 12, 16, 24])
    axes = [Axis(size) for _ in range(3)]
    parts: list[Axis] = []
    for _ in range(rnd.randrange(1, 6)):
        axis = rnd.choice([a for a in axes + parts if a.size > 1])
        kind = rnd.randrange(3)
        if kind == 0:
            new = [Axis(n) for n in cut(rnd, axis.size)]
            if make_product(axis, new):
                assert flat(factors(axis)) == flat([f for a in new for f in factors(a)])
            parts += new
        elif kind == 1 and axis.size > 1:
            first = rnd.randrange(1, axis.size)
            new = [Axis(first), Axis(axis.size - first)]
            make_sum(axis, new)
            parts += [a for a in new if a.size > 1]
        else:
            other = rnd.choice([a for a in axes + parts if a.size == axis.size])
            if unify(axis, other):
                assert find(axis) is find(other)
        for a in axes + parts:
            check_axis(a)


def flat(axes: list[Axis]) -> list[int]:
    return [id(find(a)) for a in axes]


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ([2, 3], [6], [2, 3]),
        ([4, 6], [8, 3], [4, 2, 3]),
        ([2, 12], [8, 3], [2, 4, 3]),
        ([2, 3], [3, 2], None),
        ([4, 9], [6, 6], None),
        ([2, 2, 2], [4, 2], [2, 2, 2]),
    ],
)
def test_common_refinement(left: list[int], right: list[int], common: list[int] | None) -> None:
    a, b = [Axis(n) for n in left], [Axis(n) for n in right]
    assert unify_products(a, b) is (common is not None)
    if common is not None:
        assert [f.size for x in a for f in factors(x)] == [f.size for x in b for f in factors(x)] == common
    for axis in a + b:
        check_axis(axis)


def test_segments_go_through_the_outer_factor() -> None:
    """4096 = (32 heads)(128) with a boundary at 8 heads; 128 = 32 | 96 under the heads."""
    whole, heads = Axis(4096), Axis(128)
    make_product(whole, [Axis(32), heads])
    make_sum(heads, [Axis(32), Axis(96)])
    assert [f.size for f in factors(whole)] == [32, 128]
    assert [s.size for s in segments(factors(whole)[1])] == [32, 96]
    rows, cut_rows = Axis(64), Axis(64)
    make_product(rows, [Axis(16), Axis(4)])
    make_sum(cut_rows, [Axis(60), Axis(4)])
    assert unify(rows, cut_rows)
    assert [f.size for f in factors(rows)] == [16, 4]
    assert [s.size for s in segments(factors(rows)[0])] == [15, 1]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 32))
def test_parts_have_a_place_in_the_whole(seed: int) -> None:
    """Parts at random places, met together with products: layouts tile, whatever was refused."""
    rnd = random_of(seed)
    size = rnd.choice([6, 8, 12, 16])
    whole, demands, parts = Axis(size), Demands(), []
    for _ in range(rnd.randrange(1, 4)):
        start = rnd.randrange(size)
        limit = rnd.randrange(start + 1, size + 1)
        part = Axis(limit - start) if limit - start > 1 else None
        demands.part(whole, start, limit, part)
        parts += [part] if part is not None else []
        if rnd.random() < 0.5 and divisors(size):
            demands.product([whole], [Axis(n) for n in cut(rnd, size)])
    demands.meet()
    for axis in [whole, *parts]:
        check_axis(axis)
    layout = Layout((None, whole, *parts))
    covered = np.zeros(layout.sizes, dtype=int)
    for block in layout.blocks:
        grid = [np.array(indices(*_offset_and_digits(layout, d, block))) for d in range(len(layout.dims))]
        covered[np.ix_(*grid)] += 1
    assert (covered == 1).all()


def _offset_and_digits(layout: Layout, dim: int, block: Block) -> tuple[int, tuple[tuple[int, int], ...]]:
    offset, digits = layout.alternative((dim,), block)
    return offset, tuple((n, c) for _, n, c in digits)
