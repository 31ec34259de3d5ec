"""Data movement against element-by-element definitions."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalify.errors import HloError
from scalify.hlo.interpret import run
from scalify.hlo.module import Shape
from tests.support.builder import Builder
from tests.support.interpreter import evaluate, single

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


def ramp(*dims: int) -> Array:
    return np.arange(1, 1 + int(np.prod(dims, dtype=int))).reshape(dims)


@pytest.mark.parametrize("dimensions", list(itertools.permutations(range(3), 2)))
def test_broadcast(dimensions: tuple[int, int]) -> None:
    out = [4, 4, 4]
    x = ramp(2, 3)
    for size, d in zip(x.shape, dimensions, strict=True):
        out[d] = size
    result = single("broadcast", ("s32", tuple(out)), [("s32", x)], dimensions=dimensions)
    for index in np.ndindex(*out):
        assert result[index] == x[tuple(index[d] for d in dimensions)]


@pytest.mark.parametrize("permutation", list(itertools.permutations(range(3))))
def test_transpose(permutation: tuple[int, ...]) -> None:
    x = ramp(2, 3, 4)
    dims = tuple(x.shape[p] for p in permutation)
    result = single("transpose", ("s32", dims), [("s32", x)], dimensions=permutation)
    for index in np.ndindex(*x.shape):
        assert result[tuple(index[p] for p in permutation)] == x[index]


def test_reshape_is_row_major() -> None:
    assert single("reshape", ("s32", (3, 4)), [("s32", ramp(2, 6))]).tolist() == ramp(3, 4).tolist()


def test_bitcast_follows_layouts() -> None:
    """A [2,3] array in column-major memory is the [3,2] row-major array of the same memory."""
    b = Builder()
    x = b.parameter(Shape("s32", (2, 3), layout=(0, 1)))
    module = b.build(b.add("bitcast", Shape("s32", (3, 2), layout=(1, 0)), (), [x]))
    assert run(module, [ramp(1, 2, 3)])[0][0].tolist() == ramp(2, 3).T.tolist()
    assert single("bitcast", ("s32", (3, 2)), [("s32", ramp(2, 3))]).tolist() == ramp(3, 2).tolist()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(-2, 2), st.integers(0, 2)), min_size=1, max_size=3))
def test_pad(dims: list[tuple[int, int, int, int]]) -> None:
    sizes = [d[0] for d in dims]
    padding = [d[1:] for d in dims]
    spans = [s + max(s - 1, 0) * i + low + high for s, (low, high, i) in zip(sizes, padding, strict=True)]
    out = tuple(max(s, 0) for s in spans)
    expected = np.full(out, -1)
    x = ramp(*sizes)
    for index in np.ndindex(*sizes):
        target = tuple(n * (i + 1) + low for n, (low, _, i) in zip(index, padding, strict=True))
        if all(0 <= t < o for t, o in zip(target, out, strict=True)):
            expected[target] = x[index]
    assert single("pad", ("s32", out), [("s32", x), ("s32", np.array(-1))], padding=tuple(padding)).tolist() == expected.tolist()


def test_slice_concatenate_reverse_iota() -> None:
    x = ramp(5, 4)
    assert single("slice", ("s32", (2, 3)), [("s32", x)], starts=(1, 0), limits=(5, 3), strides=(2, 1)).tolist() == x[1:5:2, 0:3].tolist()
    joined = single("concatenate", ("s32", (5, 6)), [("s32", x), ("s32", ramp(5, 2))], dimensions=(1,))
    assert joined.tolist() == np.hstack([x, ramp(5, 2)]).tolist()
    assert single("reverse", ("s32", (5, 4)), [("s32", x)], dimensions=(0, 1)).tolist() == x[::-1, ::-1].tolist()
    assert single("iota", ("u8", (2, 300)), [], iota_dimension=1)[1].tolist() == [n % 256 for n in range(300)]


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
    st.lists(st.integers(-3, 6), min_size=6, max_size=6),
)
def test_dynamic_slices_clamp_for_each_device(dims: tuple[int, int], sizes: tuple[int, int], starts: list[int]) -> None:
    sizes = (min(sizes[0], dims[0]), min(sizes[1], dims[1]))
    x, table = ramp(3, *dims), np.array(starts).reshape(2, 3)
    operands = [("s32", x), ("s32", table[0]), ("s64", table[1])]
    taken = evaluate("dynamic-slice", ("s32", sizes), operands, devices=3, dynamic_slice_sizes=sizes)[0]
    update = -ramp(3, *sizes)
    put = evaluate("dynamic-update-slice", ("s32", dims), [operands[0], ("s32", update), *operands[1:]], devices=3)[0]
    for device in range(3):
        low = [min(max(int(table[d, device]), 0), dims[d] - sizes[d]) for d in range(2)]
        window = (slice(low[0], low[0] + sizes[0]), slice(low[1], low[1] + sizes[1]))
        assert taken[device].tolist() == x[device][window].tolist()
        expected = x[device].copy()
        expected[window] = update[device]
        assert put[device].tolist() == expected.tolist()


def test_dynamic_slice_with_one_vector_of_starts_and_unsigned_starts() -> None:
    x = ramp(4, 4)
    assert single("dynamic-slice", ("s32", (1, 2)), [("s32", x), ("s32", np.array([1, 9]))], dynamic_slice_sizes=(1, 2)).tolist() == [
        [7, 8]
    ]
    huge = np.array(2**64 - 1, np.uint64)
    assert single("dynamic-slice", ("s32", (1,)), [("s32", x[0]), ("u64", huge)], dynamic_slice_sizes=(1,)).tolist() == [4]


def test_wrong_declared_shape_is_refused() -> None:
    with pytest.raises(HloError, match=r"transpose\.1: the value has dimensions \[3, 2\]"):
        single("transpose", ("s32", (2, 3)), [("s32", ramp(2, 3))], dimensions=(1, 0))


def test_attributes_that_do_not_fit_are_named() -> None:
    with pytest.raises(HloError, match=r"transpose\.1: transpose: operands or attributes do not fit"):
        single("transpose", ("s32", (2, 3)), [("s32", ramp(2, 3))], dimensions=(1, 7))


def test_elided_constant_is_refused() -> None:
    b = Builder()
    with pytest.raises(HloError, match="data is not in the file"):
        run(b.build(b.add("constant", "f32", (2,))), [])
