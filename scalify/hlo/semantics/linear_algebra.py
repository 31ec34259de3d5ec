"""Matrix factorisations, Fourier transforms and batch normalisation, written in the domain's arithmetic.

Source: XLA's operation semantics. Factorisation and substitution go column by column, all matrices at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from scalify.errors import HloError
from scalify.hlo.dtypes import COMPLEX_PART, DTYPES
from scalify.hlo.semantics.values import OVERHEAD, bounded_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.arithmetic.domain import Domain
    from scalify.hlo.semantics.values import Array, Handler, Op


class _Numbers:
    """The domain's arithmetic of one type under short names; operands broadcast."""

    def __init__(self, domain: Domain, dtype: str) -> None:
        self.domain = domain
        self.dtype = dtype
        self.part = COMPLEX_PART.get(dtype, dtype)

    def __call__(self, opcode: str, *operands: Array) -> Array:
        return self.domain.apply(opcode, operands, self.dtype)

    def total(self, x: Array, axes: tuple[int, ...]) -> Array:
        """The sum, also of no elements."""
        if any(x.shape[a] == 0 for a in axes):
            return np.zeros([n for a, n in enumerate(x.shape) if a not in axes], x.dtype)
        return self.domain.reduce("add", x, axes, self.dtype)

    def number(self, value: float) -> Array:
        return self.domain.number(value, self.dtype)

    def conjugate(self, x: Array) -> Array:
        if not DTYPES[self.dtype].is_complex:
            return x
        imaginary = self.domain.apply("imag", [x], self.dtype)
        return self.domain.complex(self.domain.apply("real", [x], self.dtype), self.domain.apply("negate", [imaginary], self.part))


def _cholesky(op: Op, operands: Sequence[Array]) -> Array:
    """Only the named triangle is read; the other one of the result is zero. A matrix that is not positive definite gives NaN."""
    f = _Numbers(op.domain, op.dtype)
    lower = op.attributes.get("lower", False)
    x = operands[0] if lower else f.conjugate(operands[0].swapaxes(-1, -2))
    result = np.zeros_like(x)
    size = x.shape[-1]
    op.charge(x.size * size + OVERHEAD * size)
    for k in range(size):
        done = result[..., k:, :k]
        products = f("multiply", done, f.conjugate(done[..., :1, :]))
        column = f("subtract", x[..., k:, k], f.total(products, (products.ndim - 1,)))
        pivot = _real_root(f, column[..., :1])
        result[..., k:, k] = f("divide", column, pivot)
        result[..., k : k + 1, k] = pivot
    result = _poisoned(f, result)
    return result if lower else f.conjugate(result.swapaxes(-1, -2))


def _real_root(f: _Numbers, x: Array) -> Array:
    """The root of a pivot, which is real in a Hermitian matrix."""
    if not DTYPES[f.dtype].is_complex:
        return f("sqrt", x)
    part = f.domain.apply("sqrt", [f.domain.apply("real", [x], f.dtype)], f.part)
    return f.domain.complex(part, np.zeros_like(part))


def _poisoned(f: _Numbers, result: Array) -> Array:
    """All of a matrix NaN where a pivot is not positive."""
    pivots = np.diagonal(result, axis1=-2, axis2=-1)
    real = f.domain.apply("real", [pivots], f.dtype)
    if not f.domain.ordered:
        return result
    bad = np.asarray(~f.domain.compare("GT", real, np.zeros_like(real), f.part).all(axis=-1))
    return np.where(bad[..., None, None], f.number(math.nan), result)


def _triangular_solve(op: Op, operands: Sequence[Array]) -> Array:
    """``op(a) x = b`` or ``x op(a) = b`` by substitution; only the named triangle of ``a`` is read."""
    f = _Numbers(op.domain, op.dtype)
    a, b = operands
    lower, left = op.attributes.get("lower", False), op.attributes.get("left_side", False)
    transpose = str(op.attributes.get("transpose_a", "NO_TRANSPOSE"))
    a = f.conjugate(a) if transpose == "ADJOINT" else a
    # x a = b is a' x' = b'
    if (transpose in ("TRANSPOSE", "ADJOINT")) == left:
        a, lower = a.swapaxes(-1, -2), not lower
    b = b if left else b.swapaxes(-1, -2)
    op.charge(b.size * a.shape[-1] + OVERHEAD * a.shape[-1])
    solved = _substituted(f, a, b, lower=lower, unit=op.attributes.get("unit_diagonal", False))
    return solved if left else solved.swapaxes(-1, -2)


def _substituted(f: _Numbers, a: Array, b: Array, *, lower: bool, unit: bool) -> Array:
    size = a.shape[-1]
    result = np.zeros_like(b)
    for k in range(size) if lower else reversed(range(size)):
        done = slice(0, k) if lower else slice(k + 1, size)
        products = f("multiply", a[..., k, done, None], result[..., done, :])
        row = f("subtract", b[..., k, :], f.total(products, (products.ndim - 2,)))
        result[..., k, :] = row if unit else f("divide", row, a[..., k, k, None])
    return result


def _fft(op: Op, operands: Sequence[Array]) -> Array:
    """Over the last dimensions, one at a time; real inputs and outputs keep half of the last one."""
    kind, lengths = op.attributes["fft_type"], tuple(op.attributes["fft_length"])
    x, domain = operands[0], op.domain
    if kind not in ("FFT", "IFFT", "RFFT", "IRFFT"):
        raise HloError(f"unknown fft_type {kind}")
    if len(lengths) >= x.ndim:
        raise HloError("fft_length has more dimensions than the operand")
    dtype = "c128" if "f64" in (op.source, op.dtype) or "c128" in (op.source, op.dtype) else "c64"
    if kind == "RFFT":
        x = domain.convert(x, op.source, dtype)
    axes = range(x.ndim - len(lengths), x.ndim)
    for axis, length in list(zip(axes, lengths, strict=True))[:: -1 if kind == "RFFT" else 1]:
        last = axis == x.ndim - 1
        if kind == "IRFFT" and last:
            x = _completed(_Numbers(domain, dtype), x, length)
        x = _transformed(op, x, axis, length, dtype)
        x = x[..., : length // 2 + 1] if kind == "RFFT" and last else x
    return domain.apply("real", [x], dtype) if kind == "IRFFT" else x


def _completed(f: _Numbers, x: Array, length: int) -> Array:
    """All coefficients of a real signal from the first half of them; the imaginary parts of the two real ones are not read."""
    x = x[..., : length // 2 + 1]
    if x.shape[-1] != length // 2 + 1:
        raise HloError(f"{x.shape[-1]} coefficients for a signal of length {length}")
    real = f.domain.apply("real", [x], f.dtype)
    alone = np.isin(np.arange(x.shape[-1]), [0, length / 2])
    x = np.where(alone, f.domain.complex(real, np.zeros_like(real)), x)
    return np.concatenate([x, f.conjugate(x[..., 1 : (length + 1) // 2][..., ::-1])], axis=-1)


def _transformed(op: Op, x: Array, axis: int, length: int, dtype: str) -> Array:
    """The discrete Fourier transform along an axis as a matrix product."""
    if x.shape[axis] != length:
        raise HloError(f"a transform of length {length} of a dimension of size {x.shape[axis]}")
    op.charge(x.size * length, bounded_size((length, length)))
    f = _Numbers(op.domain, dtype)
    inverse = op.attributes["fft_type"] in ("IFFT", "IRFFT")
    roots = op.domain.root_of_unity(length, dtype) if length else np.zeros(0, x.dtype)
    place = np.arange(length)
    matrix = roots[np.outer(place, place if inverse else -place) % max(length, 1)]
    moved = np.moveaxis(x, axis, -1)
    product = op.domain.matmul(moved.reshape(1, -1, length), matrix[None], dtype).reshape(moved.shape)
    return np.moveaxis(f("divide", product, f.number(length)) if inverse and length else product, -1, axis)


def _feature_axes(op: Op, x: Array) -> tuple[int, tuple[int, ...]]:
    feature = op.attributes["feature_index"] + 1
    return feature, tuple(a for a in range(1, x.ndim) if a != feature)


def _along(vector: Array, feature: int, rank: int) -> Array:
    """A vector ``[lanes, features]`` that broadcasts along the feature axis."""
    shape = [1] * rank
    shape[0], shape[feature] = vector.shape
    return vector.reshape(shape)


def _deviation(op: Op, f: _Numbers, variance: Array) -> Array:
    return f("sqrt", f("add", variance, f.number(op.attributes.get("epsilon", 0.0))))


def _normalised(op: Op, x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Array:
    f = _Numbers(op.domain, op.source)
    feature, _ = _feature_axes(op, x)
    scale, offset, mean, variance = (_along(v, feature, x.ndim) for v in (scale, offset, mean, variance))
    centred = f("divide", f("subtract", x, mean), _deviation(op, f, variance))
    return f("add", f("multiply", centred, scale), offset)


def _batch_norm_training(op: Op, operands: Sequence[Array]) -> tuple[Array, ...]:
    x, scale, offset = operands
    f = _Numbers(op.domain, op.source)
    feature, axes = _feature_axes(op, x)
    count = f.number(x[0].size / max(x.shape[feature], 1))
    mean = f("divide", f.total(x, axes), count)
    centred = f("subtract", x, _along(mean, feature, x.ndim))
    variance = f("divide", f.total(f("multiply", centred, centred), axes), count)
    return _normalised(op, x, scale, offset, mean, variance), mean, variance


def _batch_norm_inference(op: Op, operands: Sequence[Array]) -> Array:
    x, scale, offset, mean, variance = operands
    return _normalised(op, x, scale, offset, mean, variance)


def _batch_norm_grad(op: Op, operands: Sequence[Array]) -> tuple[Array, ...]:
    x, scale, mean, variance, gradient = operands
    f = _Numbers(op.domain, op.source)
    feature, axes = _feature_axes(op, x)
    count = f.number(x[0].size / max(x.shape[feature], 1))
    deviation = _deviation(op, f, _along(variance, feature, x.ndim))
    centred = f("divide", f("subtract", x, _along(mean, feature, x.ndim)), deviation)
    grad_scale, grad_offset = f.total(f("multiply", gradient, centred), axes), f.total(gradient, axes)
    mean_scale, mean_offset = (f("divide", _along(v, feature, x.ndim), count) for v in (grad_scale, grad_offset))
    rest = f("subtract", f("subtract", gradient, mean_offset), f("multiply", centred, mean_scale))
    grad_x = f("multiply", f("divide", _along(scale, feature, x.ndim), deviation), rest)
    return grad_x, grad_scale, grad_offset


HANDLERS: dict[str, Handler] = {
    "batch-norm-grad": _batch_norm_grad,
    "batch-norm-inference": _batch_norm_inference,
    "batch-norm-training": _batch_norm_training,
    "cholesky": _cholesky,
    "fft": _fft,
    "triangular-solve": _triangular_solve,
}
