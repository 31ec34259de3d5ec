"""Known data of parameters: checked against the parameter's shape and rounded to its element type.

The stored form is that of HLO literals: bf16 and the f8 types widened to float32, 4-bit integers as int8 or uint8, ``pred`` as bool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scalify.errors import RelationError
from scalify.hlo.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Shape
    from scalify.relation.file import Data

Array = npt.NDArray[np.generic]

_NATIVE_FLOAT: dict[str, Any] = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
_MINIFLOAT = {
    # name: mantissa bits, smallest normal exponent, largest finite value
    "bf16": (7, -126, float(np.ldexp(2 - 2**-7, 127))),
    "f8e5m2": (2, -14, 57344.0),
    "f8e4m3": (3, -6, 240.0),
    "f8e4m3fn": (3, -6, 448.0),
    "f8e3m4": (4, -2, 15.5),
    "f8e5m2fnuz": (2, -15, 57344.0),
    "f8e4m3fnuz": (3, -7, 240.0),
    "f8e4m3b11fnuz": (3, -10, 30.0),
    "f4e2m1fn": (1, 0, 6.0),
}


def dense(data: Data, shape: Shape) -> Array:
    """``data`` as an array of ``shape.dims``, or of rank 0 when a scalar is to fill a parameter of any shape.

    Raises:
        RelationError: the nesting is not the shape, or a value does not fit the element type.
    """
    flat, dims = _flatten(data)
    if dims not in ((), shape.dims):
        raise RelationError(f"has shape {list(dims)}, but the parameter is {shape}")
    return cast(flat, shape.dtype).reshape(dims)


def per_position(data: Sequence[Data], shape: Shape, positions: int) -> Array:
    """Data of each mesh position, of shape ``(positions, *dims)``, or ``(positions,)`` when scalars are to fill the parameter."""
    if len(data) != positions:
        raise RelationError(f"has {len(data)} entries, but the mesh has {positions} positions")
    flat, dims = _flatten(list(data))
    if dims[1:] not in ((), shape.dims):
        raise RelationError(f"has shape {list(dims[1:])} on each device, but the parameter is {shape}")
    return cast(flat, shape.dtype).reshape(dims)


def cast(flat: Sequence[bool | int | float], dtype: str) -> Array:
    """Round numbers to an HLO element type, to nearest even as XLA does.

    Raises:
        RelationError: a number is no value of the type (a fraction or out of range for integers, overflow for floats, not boolean).
    """
    known = DTYPES.get(dtype)
    if known is None or known.is_complex or (known.is_float and dtype not in _NATIVE_FLOAT and dtype not in _MINIFLOAT):
        raise RelationError(f"data of type {dtype} cannot be written in a relation file")
    if dtype == "pred":
        return _booleans(flat)
    wrong = next((v for v in flat if isinstance(v, bool)), None)
    if wrong is not None:
        raise RelationError(f"{str(wrong).lower()} is a boolean, but the parameter has type {dtype}; write 0 or 1")
    if known.is_float:
        return _floats(flat, dtype)
    assert known.minimum is not None
    assert known.maximum is not None
    return _integers(flat, dtype, known.minimum, known.maximum)


def _flatten(data: Data) -> tuple[list[bool | int | float], tuple[int, ...]]:
    """Leaves in row-major order, and the shape; level by level, so that nesting costs no recursion."""
    level: list[Any] = [data]
    dims: list[int] = []
    while level and isinstance(level[0], list):
        length = len(level[0])
        if any(not isinstance(item, list) or len(item) != length for item in level):
            raise RelationError("is ragged: lists of one level must have one length")
        dims.append(length)
        level = [leaf for item in level for leaf in item]
    if any(isinstance(item, list) for item in level):
        raise RelationError("is ragged: numbers and lists are mixed")
    return level, tuple(dims)


def _booleans(flat: Sequence[bool | int | float]) -> Array:
    wrong = next((v for v in flat if v not in (0, 1)), None)
    if wrong is not None:
        raise RelationError(f"{wrong} is not true or false, but the parameter has type pred")
    return np.array([bool(v) for v in flat], dtype=np.bool_)


def _integers(flat: Sequence[int | float], dtype: str, low: int, high: int) -> Array:
    for value in flat:
        if value != value or value in (float("inf"), float("-inf")) or value != int(value):  # noqa: PLR0124  NaN is the only value unlike itself
            raise RelationError(f"{value} is not an integer, but the parameter has type {dtype}")
        if not low <= value <= high:
            raise RelationError(f"{value} is outside of {low} to {high}, the range of {dtype}")
    signed = dtype.startswith("s")
    width = max(8, int(dtype[1:]))
    return np.array([int(v) for v in flat], dtype=f"{'int' if signed else 'uint'}{width}")


def _floats(flat: Sequence[int | float], dtype: str) -> Array:
    try:
        exact = np.array([float(v) for v in flat], dtype=np.float64)
    except OverflowError:
        raise RelationError(f"a number is too large for {dtype}") from None
    with np.errstate(over="ignore"):
        result = exact.astype(_NATIVE_FLOAT[dtype]) if dtype in _NATIVE_FLOAT else _round(exact, *_MINIFLOAT[dtype])
    over = np.isinf(result) & ~np.isinf(exact)
    if over.any():
        raise RelationError(f"{exact[over][0]} is too large for {dtype}; write .inf for infinity")
    return result


def _round(exact: npt.NDArray[np.float64], mantissa: int, least: int, largest: float) -> npt.NDArray[np.float32]:
    """To nearest even with ``mantissa`` explicit bits; gradual underflow below ``2**least``; infinite above ``largest``."""
    finite = np.where(np.isfinite(exact), exact, 0.0)
    exponent = np.maximum(np.frexp(finite)[1] - 1, least) - mantissa
    rounded = np.ldexp(np.rint(np.ldexp(finite, -exponent)), exponent)
    rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, rounded), rounded)
    return np.where(np.isfinite(exact), rounded, exact).astype(np.float32)
