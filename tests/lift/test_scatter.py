"""Overwriting scatter with computed indices: exact where no two updates meet, unknown where they may."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.lift.pair import claimed, lift_pair
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from tests.lift.support import Outcome, check
from tests.support.builder import Builder

if TYPE_CHECKING:
    from scalify.hlo.module import Module

CACHE, NEW, INDEX = (4, 3, 5), (2, 3), (2, 3)
Component = Callable[[Builder, int, int], int]


def iota(b: Builder, dim: int) -> int:
    return b.add("iota", "s32", INDEX, iota_dimension=dim)


def wide(b: Builder, value: int) -> int:
    """A vector of the first dimension, repeated over the second."""
    return b.broadcast(value, INDEX, (0,))


def written(components: list[Component], mesh: dict[str, int] | None = None, *, opaque: bool = False) -> Outcome:
    """``cache[c0, c1, c2] = new`` for index vectors computed from ``rows`` and ``places``, vectors of the first dimension."""
    b = Builder()
    cache, new = b.parameter("f32", CACHE), b.parameter("f32", NEW)
    rows, places = b.parameter("s32", INDEX[:1]), b.parameter("s32", INDEX[:1])
    vectors = [b.add("reshape", "s32", (*INDEX, 1), [c(b, rows, places)]) for c in components]
    index = b.add("concatenate", "s32", (*INDEX, 3), vectors, dimensions=(2,))
    inner = b.computation("second")
    inner.parameter("f32")
    inner.end(inner.parameter("f32"))
    every: dict[str, Any] = {"inserted_window_dims": (0, 1, 2), "scatter_dims_to_operand_dims": (0, 1, 2)}
    b.add("scatter", "f32", CACHE, [cache, index, new], calls=["second"], index_vector_dim=2, **every)
    values = np.arange(60.0).reshape(CACHE)
    specs = [(None, "tp"), (None, "tp"), (), ()] if mesh else None
    size = 2 if mesh else 1
    inputs = [
        np.concatenate([values] * size, axis=1),
        -np.arange(1.0, 6.0 * size + 1).reshape(2, 3 * size),
        np.array([2, 2]),
        np.array([7, 0]),
    ]
    return check(b, inputs, mesh, specs, ranges={2: (0, 4), 3: (0, 8)}, opaque=opaque)


def test_each_update_can_be_read_off_its_index() -> None:
    """A cache that every row of a batch writes at a place of its own, of which some are out of range."""
    cells: list[Component] = [lambda b, r, p: iota(b, 0), lambda b, r, p: iota(b, 1), lambda b, r, p: wide(b, p)]
    written(cells)
    written(cells, {"tp": 2})


def test_position_plus_something_found_before() -> None:
    shifted: Component = lambda b, r, p: b.like("add", iota(b, 1), wide(b, p))  # noqa: E731
    written([lambda b, r, p: iota(b, 0), lambda b, r, p: iota(b, 1), shifted])
    written([shifted, lambda b, r, p: wide(b, p), lambda b, r, p: iota(b, 0)])


def test_updates_that_may_meet() -> None:
    """Both rows write row 2: the last one wins, which no sum says."""
    met = written([lambda b, r, p: wide(b, r), lambda b, r, p: iota(b, 1), lambda b, r, p: wide(b, r)], opaque=True)
    assert [name for name in met.opaque if name.startswith("scatter")]


def test_a_sum_of_two_positions_does_not_tell_them() -> None:
    both: Component = lambda b, r, p: b.like("add", iota(b, 0), iota(b, 1))  # noqa: E731
    met = written([both, both, lambda b, r, p: wide(b, r)], opaque=True)
    assert [name for name in met.opaque if name.startswith("scatter")]


def test_a_slice_along_a_window_is_scattered_alone() -> None:
    """Where updates may meet, the columns of a cache are still independent: devices that hold some of them agree with one that holds all."""
    assert _columns(window=True)
    assert not _columns(window=True, moved=True)  # another index
    assert not _columns(window=False)  # the scattered dimension itself is cut: no device knows what the others drop


def _columns(*, window: bool, moved: bool = False) -> bool:
    """Whether a cache that is cut over two devices, by columns or by rows, is proved to be what one device writes."""
    baseline, distributed = _writer("baseline", (8, 6), (3, 6)), _writer("d", (8, 3) if window else (4, 6), (3, 3 if window else 6), moved)
    cut = "[null, tp]" if window else "[tp]"
    update = f"{{baseline: 2, distributed: 2{', spec: [null, tp]' if window else ''}}}"
    text = f"""version: 1
mesh: {{tp: 2}}
inputs:
  - {{baseline: 0, distributed: 0, spec: {cut}}}
  - {{baseline: 1, distributed: 1}}
  - {update}
outputs:
  - {{baseline: 0, distributed: 0, spec: {cut}}}
"""
    pair = lift_pair(baseline, [distributed], resolve(parse(text, "r.yaml"), baseline, [distributed]))
    return all(expected.views == actual.views for expected, actual in (claimed(pair, claim) for claim in pair.claims))


def _writer(name: str, cache: tuple[int, ...], new: tuple[int, ...], moved: bool = False) -> Module:
    b = Builder(name)
    operand, rows, update = b.parameter("f32", cache), b.parameter("s32", (3, 1)), b.parameter("f32", new)
    if moved:
        rows = b.like("add", rows, b.broadcast(b.constant("s32", 1), (3, 1)))
    inner = b.computation("second")
    inner.parameter("f32")
    inner.end(inner.parameter("f32"))
    dims: dict[str, Any] = {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
    return b.build(b.add("scatter", "f32", cache, [operand, rows, update], calls=["second"], index_vector_dim=1, **dims))
