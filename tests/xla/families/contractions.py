"""Dot, convolution, transforms, linear algebra, normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scalify.hlo.dtypes import COMPLEX_OF
from scalify.hlo.module import Shape
from scalify.hlo.window import ConvDims, WindowDimension
from tests.xla.generator import COMPLEX, FLOATS, INTEGERS, WIDE, finite, positions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.xla.generator import Generator


def dots(g: Generator) -> None:
    dtype = g.pick((*INTEGERS, *FLOATS, *COMPLEX))
    names = [[f"{k}{n}" for n in range(g.size(0, top))] for k, top in (("b", 1), ("c", 2), ("m", 1), ("n", 1))]
    sizes = {n: g.size() for group in names for n in group}
    batch, contracted, left_free, right_free = names
    left, right = (
        g.random.sample([*batch, *contracted, *free], len(batch) + len(contracted) + len(free)) for free in (left_free, right_free)
    )
    out = [sizes[n] for n in (*batch, *left_free, *right_free)]
    g.add(
        "dot", dtype, out, [g.value(dtype, [sizes[n] for n in left]), g.value(dtype, [sizes[n] for n in right])],
        lhs_batch_dims=tuple(map(left.index, batch)), rhs_batch_dims=tuple(map(right.index, batch)),
        lhs_contracting_dims=tuple(map(left.index, contracted)), rhs_contracting_dims=tuple(map(right.index, contracted)),
    )  # fmt: skip


def convolutions(g: Generator) -> None:
    dtype, rank = g.pick(("f32", "f64", "s32", "f32")), g.size(1, 2)
    groups, batches = g.pick(((1, 1), (2, 1), (1, 2)))
    window = tuple(
        WindowDimension(g.size(1, 3), g.size(1, 2), g.size(0, 2), g.size(0, 2), g.size(1, 2), g.size(1, 2), g.pick((True, False)))
        for _ in range(rank)
    )
    spatial = [g.size(2, 4) for _ in window]
    batch, inputs, outputs = 2 * batches, 2 * groups, 2 * groups * batches
    out = [positions(w, n) for w, n in zip(window, spatial, strict=True)]
    axes = tuple(range(2, rank + 2))
    dims = ConvDims(0, 1, axes, 1, 0, axes, 0, 1, axes)
    # XLA leaves padding out, which shows beside infinities.
    x, kernel = (
        g.parameter(finite(g.data(dtype, n)), dtype)
        for n in ((batch, inputs, *spatial), (outputs, inputs // groups, *(w.size for w in window)))
    )
    g.add(
        "convolution", dtype, (batch // batches, outputs, *out), [x, kernel],
        window=window, dim_labels=dims, feature_group_count=groups, batch_group_count=batches,
    )  # fmt: skip


def transforms(g: Generator) -> None:
    part = g.pick(WIDE)
    whole, dims = COMPLEX_OF[part], (*g.dims(0, 1), g.size(2, 5), g.size(2, 5))
    length = dims[-g.size(1, 2) :]
    half = (*dims[:-1], dims[-1] // 2 + 1)
    g.add("fft", whole, dims, [g.parameter(g.data(whole, dims), whole)], fft_type=g.pick(("FFT", "IFFT")), fft_length=length)
    spectrum = g.add("fft", whole, half, [g.parameter(finite(g.data(part, dims)), part)], fft_type="RFFT", fft_length=length)
    g.add("fft", part, dims, [spectrum], fft_type="IRFFT", fft_length=length)


def solvers(g: Generator) -> None:
    dtype, n, m = g.pick(WIDE), g.size(1, 3), g.size(1, 3)
    base = g.numbers.integers(-2, 3, (g.devices, n, n))
    spread = base @ base.swapaxes(1, 2) + 4 * np.eye(n)
    lower = g.pick((True, False))
    # XLA leaves the other triangle open.
    factor = g.b.add("cholesky", dtype, (n, n), [g.parameter(spread, dtype)], lower=lower)
    mask = g.b.add(
        "compare", "pred", (n, n), [g.b.add("iota", "s32", (n, n), (), iota_dimension=d) for d in (0, 1)], direction="GE" if lower else "LE"
    )
    g.like("select", mask, factor, g.b.broadcast(g.zero(dtype), (n, n)))
    left = g.pick((True, False))
    a = g.parameter(g.numbers.integers(-2, 3, (g.devices, n, n)) + 5 * np.eye(n), dtype)
    g.add(
        "triangular-solve", dtype, (n, m) if left else (m, n), [a, g.parameter(finite(g.data("f32", (n, m) if left else (m, n))), dtype)], left_side=left,
        lower=g.pick((True, False)), unit_diagonal=g.pick((True, False)), transpose_a=g.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")),
    )  # fmt: skip


def normalisations(g: Generator) -> None:
    # XLA computes the variance as E[x^2] - E[x]^2 and multiplies out, which loses digits unless means and deviations are exact.
    dtype, dims = g.pick(WIDE), tuple(g.pick((1, 2, 4)) for _ in range(g.size(2, 3)))
    f = g.random.randrange(len(dims))
    x, n = g.parameter(g.numbers.integers(-64, 64, (g.devices, *dims)) / 16, dtype), (dims[f],)
    scale, offset, mean = (g.parameter(g.numbers.integers(-64, 64, (g.devices, *n)) / 16, dtype) for _ in range(3))
    variance = g.parameter(4.0 ** g.numbers.integers(0, 3, (g.devices, *n)) - 0.125, dtype)
    more = {"epsilon": 0.125, "feature_index": f}
    g.add("batch-norm-inference", dtype, dims, [x, scale, offset, mean, variance], **more)
    shape = Shape("tuple", (), (Shape(dtype, dims), Shape(dtype, n), Shape(dtype, n)))
    g.parts(g.add("batch-norm-training", shape, (), [x, scale, offset], **more))
    y = g.parameter(g.numbers.integers(-64, 64, (g.devices, *dims)) / 16, dtype)
    g.parts(g.add("batch-norm-grad", shape, (), [x, scale, mean, variance, y], **more))


STEPS: tuple[Callable[[Generator], None], ...] = (dots, convolutions, transforms, solvers, normalisations)
