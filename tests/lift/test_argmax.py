"""Where the greatest value is: reductions of values with their indices, and searches in two steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scalify.lift.transfer.argmax import extreme_with_index
from tests.lift.support import Outcome, check
from tests.support.builder import Builder

ROWS = np.array([[3.0, 1, 3, 2, 0, 3, 2, 1], [0, 0, 0, 0, 0, 0, 0, 0], [-1, -2, -3, -1, -4, -1, -5, -6], [1, 2, 3, 4, 5, 6, 7, 8]])
GROUPS = ((0, 1), (2, 3))


def chooser(b: Builder, better: str = "GE", ties: str = "minimum", *, tangled: bool = False) -> str:
    """The reducer of (value, index) pairs that torch-xla writes, or one that is none."""
    inner = b.computation(f"choose_{better}_{ties}_{tangled}")
    v, i, w, j = (inner.parameter(t) for t in ("s32" if tangled else "f32", "s32") * 2)
    first = inner.add("compare", "pred", (), [v, w], direction=better)
    value = inner.like("select", first, v, w)
    place = inner.like("select", first, i, j)
    equal = inner.add("compare", "pred", (), [v, w], direction="EQ")
    least = inner.like(ties, v if tangled else i, j)
    return inner.end(inner.tuple(value, inner.like("select", equal, least, place)))


def search(b: Builder, x: int, reducer: str, worst: float, start: int = 0, step: int = 1) -> tuple[int, int]:
    """Value and index along the last dimension."""
    dims = b.shape(x).dims
    index = b.add("iota", "s32", dims, iota_dimension=len(dims) - 1)
    index = index if step == 1 else b.like("multiply", index, b.broadcast(b.constant("s32", step), dims))
    operands = [x, index, b.constant("f32", worst), b.constant("s32", start)]
    both = b.tuple(b.parameter("f32", dims[:-1]), b.parameter("s32", dims[:-1]))
    shape = b.shape(both)
    found = b.add("reduce", shape, (), operands, calls=[reducer], dimensions=(len(dims) - 1,))
    return b.get(found, 0), b.get(found, 1)


def searched(
    reducer: str, *, ties: str = "minimum", worst: float = -np.inf, start: int = 0, step: int = 1, opaque: bool = False
) -> Outcome:
    b = Builder()
    x = b.parameter("f32", ROWS.shape)
    search(b, x, chooser(b, reducer, ties), worst, start, step)
    return check(b, [ROWS, np.zeros(4), np.zeros(4, np.int32)], opaque=opaque)


def test_first_of_the_greatest_and_of_the_least() -> None:
    searched("GE")
    searched("GT")
    searched("LE", worst=np.inf)


def test_search_of_each_device_and_then_among_devices() -> None:
    """Two devices hold halves of a row each, four rows and their halves are cut: the second search is a gather at the place of the first."""
    b = Builder()
    x = b.parameter("f32", (4, 4))
    value, index = search(b, x, chooser(b), -np.inf)
    reducer = chooser(b)
    values = b.add("all-gather", "f32", (4, 2), [b.add("reshape", "f32", (4, 1), [value])], dimensions=(1,), replica_groups=((0, 1),))
    places = b.add("all-gather", "s32", (4, 2), [b.add("reshape", "s32", (4, 1), [index])], dimensions=(1,), replica_groups=((0, 1),))
    offsets = b.broadcast(b.constant("s32", [0, 4]), (4, 2), (1,))
    _, best = search(b, values, reducer, -np.inf)
    rows = b.add("iota", "s32", (4, 1), iota_dimension=0)
    at = b.add("concatenate", "s32", (4, 2), [rows, b.add("reshape", "s32", (4, 1), [best])], dimensions=(1,))
    every: dict[str, Any] = {"collapsed_slice_dims": (0, 1), "start_index_map": (0, 1), "index_vector_dim": 1, "slice_sizes": (1, 1)}
    b.add("gather", "s32", (4,), [b.like("add", places, offsets), at], **every)
    zeros: list[np.ndarray[Any, Any]] = [np.zeros(4), np.zeros(4, np.int32)]
    check(b, [ROWS, *zeros, *zeros], {"tp": 2}, [(None, "tp"), (), (), (), ()])


def test_another_choice_stays_unknown() -> None:
    """The last of equal values, an index that does not count, a start at another index, a start that may be the greatest."""
    assert searched("GE", ties="maximum", opaque=True).opaque
    assert searched("GE", step=3, opaque=True).opaque
    assert searched("GE", start=1, opaque=True).opaque
    assert searched("GE", worst=0.0, opaque=True).opaque


@pytest.mark.parametrize(
    ("better", "ties", "tangled", "name"),
    [
        ("GE", "minimum", False, "maximum"),
        ("GT", "minimum", False, "maximum"),
        ("LT", "minimum", False, "minimum"),
        ("GE", "maximum", False, None),
        ("GE", "minimum", True, None),  # compares a value with an index
        ("GE", "add", False, None),  # an index that is neither of the two
        ("EQ", "minimum", False, None),
    ],
)
def test_reducers(better: str, ties: str, tangled: bool, name: str | None) -> None:
    b = Builder()
    reducer = chooser(b, better, ties, tangled=tangled)
    assert extreme_with_index(b.computations[reducer]) == name
