"""Shapes as HLO text: ``f32[2,<=4]{1,0}``, ``(s32[], (bf16[8]))``, ``token[]``.

Source: ``HloParserImpl::ParseShape`` and ``ShapeUtil::HumanString``.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from scalify.errors import HloError
from scalify.hlo.dtypes import DTYPES
from scalify.hlo.lexer import without_comments
from scalify.hlo.module import Shape
from scalify.hlo.shardings import MAX_NESTING

if TYPE_CHECKING:
    from collections.abc import Iterable

# The layout follows at once: after white space a brace begins the body of a computation.
ARRAY: Final = re.compile(r"([a-z]\w*)\[([\d,<=\s]*)\](?:\{([^{}\s=%]*)\})?")
_SYMBOL: Final = re.compile(rf"\s*(?:({ARRAY.pattern})|([(),]))")
_MAX_ELEMENTS: Final = (1 << 63) - 1


def read_shape(text: str) -> Shape:
    """The shape that ``text`` spells, without what layouts say of tiles and memory spaces."""
    array = ARRAY.fullmatch(text)
    return _array(array[1], array[2], array[3]) if array else _nested(without_comments(text))


def _nested(text: str) -> Shape:
    """A tuple's shape. ``open_tuples`` holds the elements read so far of each tuple that is not closed yet."""
    open_tuples: list[list[Shape]] = []
    position, done, after_element = 0, None, False
    while done is None:
        match = _SYMBOL.match(text, position)
        if match is None:
            raise HloError(f"{text[:60]!r} is not a shape")
        position = match.end()
        if match[5] == "(":
            open_tuples.append([])
            if after_element or len(open_tuples) > MAX_NESTING:
                raise HloError(f"{text[:60]!r} is not a shape" if after_element else f"tuples are nested deeper than {MAX_NESTING}")
            continue
        if match[5] == ",":
            if not after_element:
                raise HloError(f"{text[:60]!r} is not a shape")
            after_element = False
            continue
        closes = match[5] == ")"
        if closes != after_element and not (closes and open_tuples and not open_tuples[-1]):
            raise HloError(f"{text[:60]!r} is not a shape")
        shape = Shape("tuple", elements=tuple(open_tuples.pop())) if closes else _array(match[2], match[3], match[4])
        after_element = True
        if open_tuples:
            open_tuples[-1].append(shape)
        else:
            done = shape
    if text[position:].strip():
        raise HloError(f"{text[:60]!r} is not a shape")
    return done


def _array(dtype: str, sizes: str, layout: str | None) -> Shape:
    if dtype not in DTYPES:
        if dtype not in ("token", "opaque") or sizes.strip():
            raise HloError(f"{dtype}[{sizes[:40]}] is not a known type")
        return Shape(dtype)
    parts = [part.strip() for part in sizes.split(",")] if sizes.strip() else []
    dynamic = tuple(part.startswith("<=") for part in parts)
    numbers = [part.removeprefix("<=") for part in parts]
    if not all(number.isdecimal() and len(number) <= 19 for number in numbers):
        raise HloError(f"{dtype}[{sizes[:40]}] has a size that is not a number")
    dims = tuple(map(int, numbers))
    if math.prod(dims) > _MAX_ELEMENTS:
        raise HloError(f"{dtype}[{sizes[:40]}] has too many elements")
    return Shape(dtype, dims, (), dynamic if any(dynamic) else (), _layout(layout, dims, f"{dtype}[{sizes[:40]}]"))


def _layout(text: str | None, dims: tuple[int, ...], what: str) -> tuple[int, ...] | None:
    if text is None:
        return None
    order = text.split(":", 1)[0]
    if not re.fullmatch(r"(\d{1,4}(,\d{1,4})*)?", order):
        raise HloError(f"{what} has the layout {text[:40]!r}")
    minor_to_major = tuple(map(int, order.split(","))) if order else ()
    if sorted(minor_to_major) != list(range(len(dims))):
        raise HloError(f"the layout {text[:40]!r} does not fit {what}")
    return minor_to_major


def write_shape(shape: Shape, *, layout: bool = True) -> str:
    """The text of ``shape``, which :func:`read_shape` takes back."""
    if shape.is_tuple:
        return "(" + write_shapes(shape.elements, layout=layout) + ")"
    if not layout or shape.layout is None or not shape.dims:
        return str(shape)
    return f"{shape}{{{','.join(map(str, shape.layout))}}}"


def write_shapes(shapes: Iterable[Shape], *, layout: bool = True) -> str:
    """Several shapes, separated by commas."""
    return ", ".join(write_shape(shape, layout=layout) for shape in shapes)
