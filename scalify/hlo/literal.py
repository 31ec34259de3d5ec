"""Constant data: a ``LiteralProto`` as a NumPy array.

The data of a literal is one flat list in memory order; the shape's layout says which dimension runs fastest.
bf16 and the float types of 8 and fewer bits are widened to float32, integers of fewer than 8 bits to int8 or uint8: both exact.

Source: ``LiteralProto`` of ``xla/xla_data.proto``; ``LiteralBase::Piece::WriteToProto`` (types under 8 bits take one byte an element);
the OCP MX and "FP8 formats for deep learning" papers for the small floats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from scalify.errors import HloError

if TYPE_CHECKING:
    from scalify.hlo.module import Shape

Array = npt.NDArray[Any]

# Far above what a file may hold; NumPy also refuses larger strides in arrays without elements.
MAX_ELEMENTS: Final = 1 << 40

# dtype -> (field, NumPy type of an element): repeated numbers, or little-endian bytes
_NUMBERS: Final[dict[str, tuple[str, Any]]] = {
    "pred": ("preds", np.bool_),
    "s32": ("s32s", np.int32),
    "s64": ("s64s", np.int64),
    "u32": ("u32s", np.uint32),
    "u64": ("u64s", np.uint64),
    "f32": ("f32s", np.float32),
    "f64": ("f64s", np.float64),
    "c64": ("c64s", np.float32),
    "c128": ("c128s", np.float64),
}
_BYTES: Final[dict[str, tuple[str, str]]] = {
    "s8": ("s8s", "i1"),
    "u8": ("u8s", "u1"),
    "s16": ("s16s", "<i2"),
    "u16": ("u16s", "<u2"),
    "f16": ("f16s", "<f2"),
    "bf16": ("bf16s", "<u2"),
}
# dtype -> (exponent bits, mantissa bits, bias, kind). ieee: has infinities; fn: only all-ones is NaN; fnuz: only negative zero is NaN;
# finite: no NaN at all; scale: an exponent alone, without sign
_SMALL_FLOATS: Final[dict[str, tuple[int, int, int, str]]] = {
    "f8e5m2": (5, 2, 15, "ieee"),
    "f8e4m3": (4, 3, 7, "ieee"),
    "f8e3m4": (3, 4, 3, "ieee"),
    "f8e4m3fn": (4, 3, 7, "fn"),
    "f8e4m3b11fnuz": (4, 3, 11, "fnuz"),
    "f8e5m2fnuz": (5, 2, 16, "fnuz"),
    "f8e4m3fnuz": (4, 3, 8, "fnuz"),
    "f4e2m1fn": (2, 1, 1, "finite"),
    "f8e8m0fnu": (8, 0, 127, "scale"),
}
_SMALL_INTEGERS: Final[dict[str, int]] = {"s1": 1, "s2": 2, "s4": 4, "u1": 1, "u2": 2, "u4": 4}


def small_float_table(dtype: str) -> npt.NDArray[np.float32]:
    """The value of each of the bit patterns of ``dtype`` (256 of 8 bits, 16 of 4 bits)."""
    exponent_bits, mantissa_bits, bias, kind = _SMALL_FLOATS[dtype]
    if kind == "scale":
        table = np.ldexp(1.0, np.arange(256) - bias)
        table[255] = np.nan
        return table.astype(np.float32)
    width = 1 + exponent_bits + mantissa_bits
    code = np.arange(1 << width)
    sign = np.where(code >> (width - 1), -1.0, 1.0)
    exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    normal = np.ldexp(1.0 + mantissa, exponent - bias)
    table = sign * np.where(exponent > 0, normal, np.ldexp(mantissa, np.full(code.shape, 1 - bias)))
    return _specials(table, code, mantissa_bits, width, kind).astype(np.float32)


def _specials(table: Array, code: Array, mantissa_bits: int, width: int, kind: str) -> Array:
    magnitude = code & ((1 << (width - 1)) - 1)
    top = (1 << (width - 1)) - 1  # exponent and mantissa all ones
    if kind == "ieee":
        infinity = top >> mantissa_bits << mantissa_bits
        table = np.where(magnitude == infinity, np.copysign(np.inf, table), table)
        return np.where(magnitude > infinity, np.nan, table)
    if kind == "fn":
        return np.where(magnitude == top, np.nan, table)
    if kind == "fnuz":
        return np.where(code == 1 << (width - 1), np.nan, table)
    return table


def _widen_bf16(data: Array) -> Array:
    return (data.astype(np.uint32) << 16).view(np.float32)


def _small_integers(data: Array, dtype: str) -> Array:
    bits = _SMALL_INTEGERS[dtype]
    low = data & ((1 << bits) - 1)
    if dtype.startswith("u"):
        return low
    half = 1 << (bits - 1)
    return ((low ^ half).astype(np.int16) - half).astype(np.int8)


def _flat(literal: Any, dtype: str) -> Array:
    """The data in memory order, one entry an element."""
    if dtype in _NUMBERS:
        name, kind = _NUMBERS[dtype]
        numbers = np.array(getattr(literal, name), dtype=kind)
        return _pairs(numbers) if dtype in ("c64", "c128") else numbers
    if dtype in _BYTES:
        name, code = _BYTES[dtype]
        data = _view(getattr(literal, name), code)
        return _widen_bf16(data) if dtype == "bf16" else data
    if dtype in _SMALL_FLOATS:
        table = small_float_table(dtype)
        codes = _view(getattr(literal, dtype + "s"), "u1") & (len(table) - 1)
        return np.asarray(table[codes])
    if dtype in _SMALL_INTEGERS:
        return _small_integers(_view(getattr(literal, dtype + "s"), "u1"), dtype)
    raise HloError(f"a literal of type {dtype} cannot be read")


def _pairs(numbers: Array) -> Array:
    if len(numbers) % 2:
        raise HloError("a complex literal has an odd number of floats")
    return numbers.view(np.complex64 if numbers.dtype == np.float32 else np.complex128)


def _view(raw: bytes, code: str) -> Array:
    if len(raw) % np.dtype(code).itemsize:
        raise HloError("a literal's data is cut in the middle of an element")
    data = np.frombuffer(raw, dtype=code)
    return data.astype(data.dtype.newbyteorder("="), copy=False)


def _logical(flat: Array, shape: Shape) -> Array:
    """From memory order to row-major order of the dimensions."""
    order = shape.layout
    if order is None or order == tuple(range(shape.rank - 1, -1, -1)):
        return flat.reshape(shape.dims)
    major_first = order[::-1]
    stored = flat.reshape([shape.dims[d] for d in major_first])
    return np.ascontiguousarray(stored.transpose(np.argsort(major_first)))


def read_literal(literal: Any, shape: Shape) -> Array | None:
    """The read-only array of a parsed ``LiteralProto``; None when the file leaves the data out.

    ``shape`` is the literal's own shape, which has its layout. Raises HloError for tuple and sparse literals and when the data does not fill the shape.
    """
    if not shape.is_array:
        raise HloError(f"a literal of type {shape.dtype} cannot be read")
    if literal.sparse_indices:
        raise HloError("sparse literals cannot be read")
    if math.prod(max(d, 1) for d in shape.dims) > MAX_ELEMENTS:
        raise HloError(f"a literal of shape {shape} is too large")
    flat = _flat(literal, shape.dtype)
    if not len(flat) and shape.size:
        return None
    if len(flat) != shape.size:
        raise HloError(f"the literal has {len(flat)} elements, its shape {shape} has {shape.size}")
    array = _logical(flat, shape)
    array.setflags(write=False)
    return array
