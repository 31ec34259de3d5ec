"""Constant data of every element type and layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import HloError
from scalify.hlo.literal import small_float_table
from scalify.hlo.load import load_bytes
from tests.support.protos import inst, raw, shape, with_one

if TYPE_CHECKING:
    from collections.abc import Sequence


def literal(dtype: str, dims: Sequence[int], layout: Sequence[int] | None = None, **data: Any) -> Any:
    proto = raw("LiteralProto", shape=shape(dtype, dims, layout), **data)
    return load_bytes(with_one(inst(3, "constant", dtype, dims, literal=proto)), "file").entry.instructions[-1].attributes.get("literal")


INTEGERS = np.array([[0, 1, 2], [3, 4, 127]])
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "pred": ({"preds": [True, False, True, True, False, False]}, np.array([[1, 0, 1], [1, 0, 0]], bool)),
    "s8": ({"s8s": b"\x00\x01\xff\x80\x7f\x02"}, np.array([[0, 1, -1], [-128, 127, 2]], np.int8)),
    "u8": ({"u8s": b"\x00\x01\xff\x80\x7f\x02"}, np.array([[0, 1, 255], [128, 127, 2]], np.uint8)),
    "s4": ({"s4s": b"\x00\x01\x0f\x08\x07\xf2"}, np.array([[0, 1, -1], [-8, 7, 2]], np.int8)),
    "u4": ({"u4s": b"\x00\x01\x0f\x08\x07\xf2"}, np.array([[0, 1, 15], [8, 7, 2]], np.uint8)),
    "s2": ({"s2s": b"\x00\x01\x02\x03\xff\xfe"}, np.array([[0, 1, -2], [-1, -1, -2]], np.int8)),
    "s16": ({"s16s": INTEGERS.astype("<i2").tobytes()}, INTEGERS.astype(np.int16)),
    "u16": ({"u16s": INTEGERS.astype("<u2").tobytes()}, INTEGERS.astype(np.uint16)),
    "s32": ({"s32s": -INTEGERS.ravel()}, -INTEGERS.astype(np.int32)),
    "s64": ({"s64s": -INTEGERS.ravel()}, -INTEGERS.astype(np.int64)),
    "u32": ({"u32s": INTEGERS.ravel()}, INTEGERS.astype(np.uint32)),
    "u64": ({"u64s": [2**64 - 1] * 6}, np.full((2, 3), 2**64 - 1, np.uint64)),
    "f16": ({"f16s": INTEGERS.astype("<f2").tobytes()}, INTEGERS.astype(np.float16)),
    "f32": ({"f32s": [0.1] * 6}, np.full((2, 3), 0.1, np.float32)),
    "f64": ({"f64s": [0.1] * 6}, np.full((2, 3), 0.1, np.float64)),
    "bf16": ({"bf16s": b"\x80\x3f\x80\x7f\x00\x80\x80\xbf\x00\x40\x01\x00"}, np.array([[1, np.inf, -0.0], [-1, 2, 2.0**-133]], np.float32)),
    "c64": ({"c64s": list(range(12))}, np.array([[1j, 2 + 3j, 4 + 5j], [6 + 7j, 8 + 9j, 10 + 11j]], np.complex64)),
    "c128": ({"c128s": list(range(12))}, np.array([[1j, 2 + 3j, 4 + 5j], [6 + 7j, 8 + 9j, 10 + 11j]], np.complex128)),
    "f8e4m3fn": ({"f8e4m3fns": b"\x38\x7e\x7f\x01\xb8\x80"}, np.array([[1, 448, np.nan], [2.0**-9, -1, -0.0]], np.float32)),
    "f8e5m2": ({"f8e5m2s": b"\x3c\x7b\x7c\x7d\x01\xfc"}, np.array([[1, 57344, np.inf], [np.nan, 2.0**-16, -np.inf]], np.float32)),
    "f8e4m3fnuz": ({"f8e4m3fnuzs": b"\x40\x7f\x80\x01\xc0\x00"}, np.array([[1, 240, np.nan], [2.0**-10, -1, 0]], np.float32)),
    "f8e5m2fnuz": ({"f8e5m2fnuzs": b"\x40\x7f\x80\x01\xc0\x00"}, np.array([[1, 57344, np.nan], [2.0**-17, -1, 0]], np.float32)),
    "f8e4m3b11fnuz": ({"f8e4m3b11fnuzs": b"\x58\x7f\x80\x01\xd8\x00"}, np.array([[1, 30, np.nan], [2.0**-13, -1, 0]], np.float32)),
    "f8e4m3": ({"f8e4m3s": b"\x38\x77\x78\x79\xb8\xf8"}, np.array([[1, 240, np.inf], [np.nan, -1, -np.inf]], np.float32)),
    "f8e3m4": ({"f8e3m4s": b"\x30\x6f\x70\x71\xb0\x01"}, np.array([[1, 15.5, np.inf], [np.nan, -1, 2.0**-6]], np.float32)),
    "f8e8m0fnu": ({"f8e8m0fnus": b"\x7f\x80\x7e\xff\x00\xfe"}, np.array([[1, 2, 0.5], [np.nan, 2.0**-127, 2.0**127]], np.float32)),
    "f4e2m1fn": ({"f4e2m1fns": b"\x00\x01\x02\x07\x0f\x08"}, np.array([[0, 0.5, 1], [6, -6, -0.0]], np.float32)),
}


@pytest.mark.parametrize("dtype", CASES)
def test_every_element_type(dtype: str) -> None:
    data, expected = CASES[dtype]
    found = literal(dtype, (2, 3), **data)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    assert not found.flags.writeable


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=4).flatmap(lambda dims: st.tuples(st.just(dims), st.permutations(range(len(dims))))))
def test_every_layout(drawn: tuple[list[int], list[int]]) -> None:
    dims, minor_to_major = drawn
    expected = np.arange(np.prod(dims, dtype=int), dtype=np.int32).reshape(dims)
    memory = [expected[index] for index in sorted(np.ndindex(*dims), key=lambda index: [index[d] for d in reversed(minor_to_major)])]
    np.testing.assert_array_equal(literal("s32", dims, minor_to_major, s32s=memory), expected)


def test_absent_data_gives_no_literal() -> None:
    assert literal("f32", (2, 3)) is None
    assert literal("f32", (0, 3)).shape == (0, 3)
    assert "literal" not in load_bytes(with_one(inst(3, "constant")), "file").entry.instructions[-1].attributes


def test_large_literal() -> None:
    np.testing.assert_array_equal(literal("f32", (5000,), f32s=np.arange(5000.0)), np.arange(5000, dtype=np.float32))


@pytest.mark.parametrize(
    ("dtype", "dims", "data", "message"),
    [
        ("f32", (2, 3), {"f32s": [1.0] * 5}, r"the literal has 5 elements, its shape f32\[2,3\] has 6"),
        ("f32", (1 << 40,), {"f32s": [1.0]}, "the literal has 1 elements"),
        ("f32", (2,), {"f32s": [1.0], "sparse_indices": [1]}, "sparse literals cannot be read"),
        ("bf16", (1,), {"bf16s": b"abc"}, "a literal's data is cut in the middle of an element"),
        ("c64", (1,), {"c64s": [1.0, 2.0, 3.0]}, "a complex literal has an odd number of floats"),
        ("s4", (4,), {"s4s": b"ab"}, "the literal has 2 elements"),
        ("token", (), {}, "a literal of type token cannot be read"),
    ],
)
def test_damaged_literals(dtype: str, dims: Sequence[int], data: dict[str, Any], message: str) -> None:
    with pytest.raises(HloError, match=f"^file: main: constant.3: {message}"):
        literal(dtype, dims, **data)


def test_literal_of_another_shape() -> None:
    proto = raw("LiteralProto", shape=shape("f32", (3, 2)), f32s=[1.0] * 6)
    with pytest.raises(HloError, match=r"the literal has shape f32\[3,2\], which is not the instruction's"):
        load_bytes(with_one(inst(3, "constant", "f32", (2, 3), literal=proto)), "file")


def test_small_floats_grow_with_their_code() -> None:
    for dtype in ("f8e4m3fn", "f8e5m2fnuz", "f8e3m4", "f4e2m1fn"):
        table = small_float_table(dtype)
        positive = table[: len(table) // 2]
        finite = positive[np.isfinite(positive)]
        assert (np.diff(finite) > 0).all()
