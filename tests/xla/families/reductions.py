"""Reductions, windows, maps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scalify.hlo.dtypes import DTYPES
from scalify.hlo.module import Shape
from scalify.hlo.window import WindowDimension
from tests.xla.generator import FLOATS, INTEGERS, WIDE, positions, reducer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.xla.generator import Generator


def reductions(g: Generator) -> None:
    x = g.value(g.pick((*INTEGERS, *FLOATS, "pred")), g.dims(1))
    shape = g.b.shape(x)
    axes = tuple(sorted(g.random.sample(range(shape.rank), g.size(1, shape.rank))))
    dims = [n for d, n in enumerate(shape.dims) if d not in axes]
    g.add("reduce", shape.dtype, dims, [x, g.value(shape.dtype, ())], calls=[reducer(g, shape.dtype)], dimensions=axes)


def arg_extremes(g: Generator) -> None:
    """The usual reducer of two operands: the greatest value and its first position."""
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims(1, 2)
    inner = g.b.computation(g.name("arg"))
    a, i, c, j = inner.parameter(dtype), inner.parameter("s32"), inner.parameter(dtype), inner.parameter("s32")
    greater = inner.add("compare", "pred", (), [a, c], direction="GT")
    first = inner.add(
        "and",
        "pred",
        (),
        [inner.add("compare", "pred", (), [a, c], direction="EQ"), inner.add("compare", "pred", (), [i, j], direction="LT")],
    )
    keep = inner.like("or", greater, first)
    calls = [inner.end(inner.tuple(inner.like("select", keep, a, c), inner.like("select", keep, i, j)))]
    places = g.b.add("iota", "s32", dims, (), iota_dimension=0)
    low = DTYPES[dtype].minimum if DTYPES[dtype].is_integer else -math.inf
    shape = Shape("tuple", (), (Shape(dtype, dims[1:]), Shape("s32", dims[1:])))
    x = g.value(dtype, dims)
    g.parts(g.add("reduce", shape, (), [x, places, g.zero(dtype, low or 0), g.zero("s32")], calls=calls, dimensions=(0,)))


def windows(g: Generator) -> None:
    x = g.value(g.pick((*INTEGERS, *WIDE)), g.dims(1, 2))
    shape = g.b.shape(x)
    window = tuple(WindowDimension(g.size(1, 3), g.size(1, 2), g.size(0, 2), g.size(0, 2), g.size(1, 2), g.size(1, 2)) for _ in shape.dims)
    dims = [positions(w, n) for w, n in zip(window, shape.dims, strict=True)]
    g.add("reduce-window", shape.dtype, dims, [x, g.value(shape.dtype, ())], calls=[reducer(g, shape.dtype)], window=window)


def select_and_scatter(g: Generator) -> None:
    dtype, dims = g.pick(("s32", "f32", "f64")), g.dims(1, 2)
    window = tuple(WindowDimension(g.size(1, 3), g.size(1, 2), g.size(0, 1), g.size(0, 1)) for _ in dims)
    source = g.value(dtype, [positions(w, n) for w, n in zip(window, dims, strict=True)])
    inner = g.b.computation(g.name("select"))
    a, c = inner.parameter(dtype), inner.parameter(dtype)
    calls = [inner.end(inner.add("compare", "pred", (), [a, c], direction="GE")), g.b.reducer("add", dtype)]
    g.add("select-and-scatter", dtype, dims, [g.value(dtype, dims), source, g.zero(dtype)], calls=calls, window=window)


def maps(g: Generator) -> None:
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims()
    inner = g.b.computation(g.name("map"))
    a, c = inner.parameter(dtype), inner.parameter(dtype)
    calls = [inner.end(inner.like("add", inner.like("multiply", a, c), a))]
    g.add("map", dtype, dims, [g.value(dtype, dims), g.value(dtype, dims)], calls=calls, dimensions=tuple(range(len(dims))))


STEPS: tuple[Callable[[Generator], None], ...] = (reductions, arg_extremes, windows, select_and_scatter, maps)
