"""Constant data as HLO text: ``{ { 1, 2 }, { 3, 4 } }``, ``-inf``, ``true``, ``(1, -2)`` for a complex number.

Source: ``HloParserImpl::ParseDenseLiteral``, ``LiteralBase::ToString``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scalify.errors import HloError
from scalify.hlo.dtypes import DTYPES
from scalify.hlo.lexer import without_comments
from scalify.hlo.literal import Array, small_float_table

if TYPE_CHECKING:
    from scalify.hlo.module import Shape

_ELEMENT: Final = re.compile(r"[^\s{},()]+(?:\(0x[0-9a-fA-F]+\))?")
_COMPLEX: Final = re.compile(r"\(([^(),{}]*),([^(),{}]*)\)")
_PAYLOAD: Final = re.compile(r"\(0x[0-9a-fA-F]+\)\Z")
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}


def read_literal(text: str, shape: Shape) -> Array | None:
    """The read-only array that ``text`` spells, rounded to the type of ``shape``; None when the text leaves the data out (``{...}``)."""
    if not shape.is_array:
        raise HloError(f"a literal of type {shape.dtype} cannot be read")
    text = without_comments(text)
    if "..." in text:
        return None
    complex_numbers = DTYPES[shape.dtype].is_complex
    pattern = _COMPLEX if complex_numbers else _ELEMENT
    words = pattern.findall(text)
    if len(words) != shape.size:
        raise HloError(f"the literal has {len(words)} elements, its shape {shape} has {shape.size}")
    if words and "".join(pattern.sub("", text).split()) != _nest([""] * len(words), shape.dims, ","):
        raise HloError(f"the braces of the literal do not fit {shape}")
    try:
        flat = _numbers(words, shape.dtype)
    except (ValueError, KeyError, OverflowError):
        raise HloError(f"the literal has an element that is not of type {shape.dtype}") from None
    array = flat.reshape(shape.dims)
    array.setflags(write=False)
    return array


def _numbers(words: list[Any], dtype: str) -> Array:
    info = DTYPES[dtype]
    if info.kind == "pred":
        return np.array([_TRUTH[word] for word in words], dtype=np.bool_)
    if info.minimum is not None and info.maximum is not None:
        integers = [int(word) for word in words]
        if integers and not info.minimum <= min(integers) <= max(integers) <= info.maximum:
            raise HloError(f"the literal has an element outside of {info.minimum} to {info.maximum}")
        return np.array(integers, dtype=f"{'u' if info.kind == 'u' else ''}int{max(info.bits, 8)}")
    if info.is_complex:
        parts = np.array([(_float(real.strip()), _float(imaginary.strip())) for real, imaginary in words], dtype=np.float64)
        return _narrow(parts.reshape(-1), f"f{info.bits // 2}").view(f"complex{info.bits}")
    return _narrow(np.array([_float(word) for word in words], dtype=np.float64), dtype)


def _float(word: str) -> float:
    if word.lstrip("+-").startswith(("0x", "0X")):
        return float.fromhex(word)
    return float(_PAYLOAD.sub("", word))


def _narrow(values: Array, dtype: str) -> Array:
    """float64 values rounded to ``dtype`` and held as :mod:`scalify.hlo.literal` says."""
    if dtype in ("f64", "f32", "f16"):
        with np.errstate(over="ignore"):
            return values.astype(f"float{dtype[1:]}")
    return _round_bf16(values) if dtype == "bf16" else _round_small(values, dtype)


def _round_bf16(values: Array) -> Array:
    """To 8 significant bits, ties to even; the smallest step is 2^-133."""
    finite = np.where(np.isfinite(values), values, 0.0)
    _, exponent = np.frexp(finite)
    step = np.ldexp(1.0, np.maximum(exponent - 8, -133))
    rounded = np.where(np.isfinite(values), np.rint(finite / step) * step, values)
    return np.where(np.abs(rounded) >= 2.0**128, np.copysign(np.inf, rounded), rounded).astype(np.float32)


def _round_small(values: Array, dtype: str) -> Array:
    """To the nearest value of a type of at most 8 bits; HloError beyond its range."""
    table = small_float_table(dtype)
    exact = np.unique(table[np.isfinite(table)]).astype(np.float64)
    place = np.clip(np.searchsorted(exact, values), 1, len(exact) - 1)
    low, high = exact[place - 1], exact[place]
    nearest = np.where(values - low <= high - values, low, high)
    special = ~np.isfinite(values)
    beyond = ~special & ((values < exact[0]) | (values > exact[-1]))
    if beyond.any() or not np.isin(values[special & ~np.isnan(values)], table).all():
        raise HloError(f"the literal has an element that {dtype} cannot hold")
    return np.where(special, values, np.copysign(nearest, values)).astype(np.float32)


def write_literal(array: Array) -> str:
    """The text of ``array``, which :func:`read_literal` takes back exactly (the payload of a NaN excepted)."""
    if np.iscomplexobj(array):
        words = [f"({a}, {b})" for a, b in zip(_words(array.real), _words(array.imag), strict=True)]
    else:
        words = _words(array)
    return _nest(words, array.shape, ", ") if words else "{}"


def _words(array: Array) -> list[str]:
    flat = np.ascontiguousarray(array).reshape(-1)
    words: list[str] = flat.astype(str).tolist()
    if flat.dtype == np.bool_:
        return [word.lower() for word in words]
    if flat.dtype.kind == "f":
        for k in np.flatnonzero(np.isnan(flat) & np.signbit(flat)):
            words[k] = "-nan"
    return words


def _nest(words: list[str], dims: tuple[int, ...], separator: str) -> str:
    for size in reversed(dims):
        words = ["{" + separator.join(words[k : k + size]) + "}" for k in range(0, len(words), size)]
    return words[0]
