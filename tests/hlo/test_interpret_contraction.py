"""Dot against einsum, convolution against its definition."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import HloError
from scalify.hlo.window import ConvDims, WindowDimension
from tests.support.interpreter import evaluate, single


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2), st.randoms(use_true_random=False))
def test_dot(batch: int, contracted: int, left_free: int, right_free: int, random: Any) -> None:
    names = iter("abcdefgh")
    b, c, m, n = ([next(names) for _ in range(count)] for count in (batch, contracted, left_free, right_free))
    size = {name: random.randint(1, 3) for name in "abcdefgh"}
    left, right = [*b, *c, *m], [*b, *c, *n]
    random.shuffle(left)
    random.shuffle(right)
    x = np.random.default_rng(0).integers(-9, 9, (2, *(size[d] for d in left)))
    y = np.random.default_rng(1).integers(-9, 9, (2, *(size[d] for d in right)))
    out = [*b, *(d for d in left if d in m), *(d for d in right if d in n)]
    result = evaluate(
        "dot", ("s32", tuple(size[d] for d in out)), [("s32", x), ("s32", y)], devices=2,
        lhs_batch_dims=tuple(map(left.index, b)), rhs_batch_dims=tuple(map(right.index, b)),
        lhs_contracting_dims=tuple(map(left.index, c)), rhs_contracting_dims=tuple(map(right.index, c)),
    )[0]  # fmt: skip
    assert result.tolist() == np.einsum(f"z{''.join(left)},z{''.join(right)}->z{''.join(out)}", x, y).tolist()


def test_dot_multiplies_in_the_result_type() -> None:
    x = np.full((1, 2), 100)
    attributes = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}
    assert single("dot", ("s32", (1, 1)), [("s8", x), ("s8", x.T)], **attributes).tolist() == [[20000]]
    assert single("dot", ("s8", (1, 1)), [("s8", x), ("s8", x.T)], **attributes).tolist() == [[20000 % 256]]


def test_dot_of_different_sizes_is_refused() -> None:
    with pytest.raises(HloError, match="contracted dimensions differ"):
        single("dot", ("f32", ()), [("f32", np.ones(2)), ("f32", np.ones(3))], lhs_contracting_dims=(0,), rhs_contracting_dims=(0,))


WINDOWS = st.builds(
    WindowDimension,
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(-1, 2),
    st.integers(-1, 2),
    st.integers(1, 2),
    st.integers(1, 2),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(WINDOWS, min_size=0, max_size=2), st.sampled_from([(1, 1), (2, 1), (1, 2)]), st.permutations(range(4)))
def test_convolution(window: list[WindowDimension], groups: tuple[int, int], order: list[int]) -> None:
    rank = len(window)
    feature_groups, batch_groups = groups
    batch, inputs, outputs = 2 * batch_groups, 2 * feature_groups, 2 * feature_groups * batch_groups
    spatial = (4, 3)[:rank]
    rng = np.random.default_rng(0)
    x, kernel = (
        rng.integers(-9, 9, (batch, inputs, *spatial)),
        rng.integers(-9, 9, (outputs, inputs // feature_groups, *(w.size for w in window))),
    )
    out = [
        max(0, ((s - 1) * w.lhs_dilate + 1 + w.pad_low + w.pad_high - (w.size - 1) * w.rhs_dilate - 1) // w.stride + 1)
        for s, w in zip(spatial, window, strict=True)
    ]
    expected = np.zeros((batch // batch_groups, outputs, *out), int)
    for n, o, i, *rest in itertools.product(
        *map(range, (batch // batch_groups, outputs, inputs // feature_groups, *out, *(w.size for w in window)))
    ):
        at, tap = rest[:rank], rest[rank:]
        place = [a * w.stride + t * w.rhs_dilate - w.pad_low for a, t, w in zip(at, tap, window, strict=True)]
        inside = all(p % w.lhs_dilate == 0 and 0 <= p // w.lhs_dilate < s for p, w, s in zip(place, window, spatial, strict=True))
        if inside:
            source = tuple(p // w.lhs_dilate for p, w in zip(place, window, strict=True))
            weight = tuple(w.size - 1 - t if w.reversal else t for t, w in zip(tap, window, strict=True))
            row = o // (outputs // batch_groups) * (batch // batch_groups) + n
            expected[(n, o, *at)] += (
                x[(row, o // (outputs // feature_groups) * (inputs // feature_groups) + i, *source)] * kernel[(o, i, *weight)]
            )
    # Dimensions in an arbitrary order: entry n of each array stands at place[n].
    place = [order[: rank + 2].index(v) for v in sorted(order[: rank + 2])]
    dims = ConvDims(place[0], place[1], tuple(place[2:]), place[1], place[0], tuple(place[2:]), place[0], place[1], tuple(place[2:]))
    moved = [np.moveaxis(a, range(rank + 2), place) for a in (x, kernel, expected)]
    result = single(
        "convolution", ("s32", moved[2].shape), [("s32", moved[0]), ("s32", moved[1])], window=tuple(window), dim_labels=dims,
        feature_group_count=feature_groups, batch_group_count=batch_groups,
    )  # fmt: skip
    assert result.tolist() == moved[2].tolist()
    assert math.prod(result.shape) == expected.size
