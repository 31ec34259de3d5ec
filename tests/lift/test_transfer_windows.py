"""Convolutions and windowed reductions against execution: every parameter of a window, groups, dimension numbers, cuts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from scalify.hlo.window import ConvDims, WindowDimension
from tests.lift.support import check
from tests.support.builder import Builder

LINE = ConvDims(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))  # input b s c, kernel s c f, output b s f
PLANE = ConvDims(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))  # b c y x, f c y x


def numbers(*dims: int, start: int = 1) -> np.ndarray[Any, Any]:
    count = math.prod(dims)
    return (np.arange(start, start + count) * 7 % 23 - 11.0).reshape(dims)


def outputs(window: WindowDimension, size: int) -> int:
    padded = (size - 1) * window.lhs_dilate + 1 + window.pad_low + window.pad_high
    return max(0, (padded - (window.size - 1) * window.rhs_dilate - 1) // window.stride + 1)


def line(b: Builder, x: int, kernel: int, window: WindowDimension, **more: Any) -> None:
    batch, size, _ = b.shape(x).dims
    dims = (batch // more.get("batch_group_count", 1), outputs(window, size), b.shape(kernel).dims[2])
    if 0 not in dims:
        b.add("convolution", "f32", dims, [x, kernel], window=(window,), dim_labels=LINE, **more)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("reversal", [False, True])
def test_windows_of_convolutions(size: int, *, reversal: bool) -> None:
    b = Builder()
    x, kernel = b.parameter("f32", (2, 4, 2)), b.parameter("f32", (size, 2, 3))
    for stride, low, high, lhs, rhs in itertools.product((1, 2), (0, 1, -1, 2), (0, 1), (1, 2), (1, 2)):
        line(b, x, kernel, WindowDimension(size, stride, low, high, lhs, rhs, reversal))
    outcome = check(b, [numbers(2, 4, 2), numbers(size, 2, 3)])
    assert not outcome.opaque


@pytest.mark.parametrize(("features", "batches"), [(1, 1), (2, 1), (4, 1), (1, 2)])
def test_groups_of_convolutions(features: int, batches: int) -> None:
    b = Builder()
    x, kernel = b.parameter("f32", (4, 5, 4)), b.parameter("f32", (2, 4 // features, 4))
    line(b, x, kernel, WindowDimension(2, 1, 1, 0), feature_group_count=features, batch_group_count=batches)
    outcome = check(b, [numbers(4, 5, 4), numbers(2, 4 // features, 4)])
    assert not outcome.opaque


CUTS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "batch": (("d",), ()),
    "input features": ((None, None, "d"), (None, "d")),
    "output features": ((), (None, None, "d")),
    "positions": ((None, "d"), ()),
    "kernel elements": ((), ("d",)),
}


@pytest.mark.parametrize("cut", CUTS)
def test_cut_convolutions(cut: str) -> None:
    """The local convolution of cut operands, whatever it is good for."""
    sizes = [(4, 8, 4), (2, 4, 6)]
    local = [tuple([n // 2 if d < len(s) and s[d] else n for d, n in enumerate(dims)]) for dims, s in zip(sizes, CUTS[cut], strict=True)]
    b = Builder()
    x, kernel = b.parameter("f32", local[0]), b.parameter("f32", (local[1][0], local[0][2], local[1][2]))
    for window in (WindowDimension(local[1][0]), WindowDimension(local[1][0], 2, 1, 1), WindowDimension(local[1][0], 1, 0, 1, 1, 2)):
        line(b, x, kernel, window)
    outcome = check(
        b, [numbers(*sizes[0]), numbers(2, sizes[0][2] if cut == "input features" else local[0][2], 6)], {"d": 2}, list(CUTS[cut])
    )
    assert not outcome.opaque


def test_convolution_of_a_plane() -> None:
    b = Builder()
    x, kernel = b.parameter("f32", (2, 2, 4, 3)), b.parameter("f32", (3, 2, 3, 1))
    window = (WindowDimension(3, 2, 1, 1), WindowDimension(1))
    b.add("convolution", "f32", (2, 3, 2, 3), [x, kernel], window=window, dim_labels=PLANE)
    assert not check(b, [numbers(2, 2, 4, 3), numbers(3, 2, 3, 1)]).opaque


INITIAL = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf}


@pytest.mark.parametrize("opcode", INITIAL)
def test_windows_of_reductions(opcode: str) -> None:
    b = Builder()
    x, initial = b.parameter("f32", (2, 6)), b.constant("f32", INITIAL[opcode])
    for size, stride, low, high, lhs, rhs in itertools.product((1, 2, 3), (1, 2, 3), (0, 1, 2), (0, 1), (1, 2), (1, 2)):
        window = WindowDimension(size, stride, low, high, lhs, rhs)
        if outputs(window, 6):
            dims = (2, outputs(window, 6))
            b.add("reduce-window", "f32", dims, [x, initial], calls=[b.reducer(opcode, "f32")], window=(WindowDimension(1), window))
    check(b, [numbers(2, 6)], opaque=True, infinities=True)


@pytest.mark.parametrize("spec", [(), ("d",), (None, "d")])
@pytest.mark.parametrize("opcode", INITIAL)
def test_cut_windows_of_reductions(opcode: str, spec: tuple[Any, ...]) -> None:
    local = (2 if spec[:1] == ("d",) else 4, 4 if spec[1:] == ("d",) else 8)
    b = Builder()
    x, initial = b.parameter("f32", local), b.constant("f32", INITIAL[opcode])
    for window in (WindowDimension(2, 2), WindowDimension(2), WindowDimension(local[1], 1, local[1] - 1)):
        dims = (local[0], outputs(window, local[1]))
        b.add("reduce-window", "f32", dims, [x, initial], calls=[b.reducer(opcode, "f32")], window=(WindowDimension(1), window))
    outcome = check(b, [numbers(4, 8)], {"d": 2}, [spec], infinities=True)
    assert not outcome.opaque


def test_windowed_sum_from_another_start() -> None:
    """Padding counts as the initial value; such sums stay functions of their operands."""
    b = Builder()
    x, initial = b.parameter("f32", (4,)), b.constant("f32", 2.0)
    for low in (0, 1):
        window = WindowDimension(2, 2, low, low)
        b.add("reduce-window", "f32", (outputs(window, 4),), [x, initial], calls=[b.reducer("add", "f32")], window=(window,))
    check(b, [numbers(4)], opaque=True)
