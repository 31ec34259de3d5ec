"""Matrix factorisations, Fourier transforms and batch normalisation. Source: XLA's operation semantics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.semantics.values import bounded_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.hlo.semantics.values import Array, Handler, Op


def _cholesky(op: Op, operands: Sequence[Array]) -> Array:
    """Only the named triangle is read; the other one of the result is zero. A matrix that is not positive definite gives NaN."""
    lower = op.attributes.get("lower", False)
    x = operands[0] if lower else operands[0].conj().swapaxes(-1, -2)
    result = np.full_like(x, np.nan)
    for index in np.ndindex(x.shape[:-2]):
        try:
            result[index] = np.linalg.cholesky(x[index])
        except np.linalg.LinAlgError:
            continue
    return result if lower else result.conj().swapaxes(-1, -2)


def _triangular_solve(op: Op, operands: Sequence[Array]) -> Array:
    a, b = operands
    lower, left = op.attributes.get("lower", False), op.attributes.get("left_side", False)
    a = np.tril(a) if lower else np.triu(a)
    if op.attributes.get("unit_diagonal", False):
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    transpose = str(op.attributes.get("transpose_a", "NO_TRANSPOSE"))
    a = a.conj() if transpose == "ADJOINT" else a
    a = a.swapaxes(-1, -2) if transpose in ("TRANSPOSE", "ADJOINT") else a
    return np.linalg.solve(a, b) if left else np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)


def _fft(op: Op, operands: Sequence[Array]) -> Array:
    length = tuple(op.attributes["fft_length"])
    axes = tuple(range(-len(length), 0))
    op.charge(0, bounded_size((*operands[0].shape[: -len(length)], *length)))
    transforms: dict[str, Callable[..., Any]] = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}
    kind = op.attributes["fft_type"]
    if kind not in transforms:
        raise HloError(f"unknown fft_type {kind}")
    return np.asarray(transforms[kind](operands[0], s=length, axes=axes))


def _feature_axes(op: Op, x: Array) -> tuple[int, tuple[int, ...]]:
    feature = op.attributes["feature_index"] + 1
    return feature, tuple(a for a in range(1, x.ndim) if a != feature)


def _along(vector: Array, feature: int, rank: int) -> Array:
    """A vector ``[lanes, features]`` that broadcasts along the feature axis."""
    shape = [1] * rank
    shape[0], shape[feature] = vector.shape
    return vector.reshape(shape)


def _normalised(op: Op, x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Array:
    feature, _ = _feature_axes(op, x)
    scale, offset, mean, variance = (_along(v, feature, x.ndim) for v in (scale, offset, mean, variance))
    result: Array = (x - mean) / np.sqrt(variance + op.attributes["epsilon"]) * scale + offset
    return result


def _batch_norm_training(op: Op, operands: Sequence[Array]) -> tuple[Array, ...]:
    x, scale, offset = operands
    axes = _feature_axes(op, x)[1]
    mean, variance = x.mean(axis=axes), x.var(axis=axes)
    return _normalised(op, x, scale, offset, mean, variance), mean, variance


def _batch_norm_inference(op: Op, operands: Sequence[Array]) -> Array:
    x, scale, offset, mean, variance = operands
    return _normalised(op, x, scale, offset, mean, variance)


def _batch_norm_grad(op: Op, operands: Sequence[Array]) -> tuple[Array, ...]:
    x, scale, mean, variance, gradient = operands
    feature, axes = _feature_axes(op, x)
    count = x[0].size / max(x.shape[feature], 1)
    inverse = _along(1 / np.sqrt(variance + op.attributes["epsilon"]), feature, x.ndim)
    centred = (x - _along(mean, feature, x.ndim)) * inverse
    grad_scale, grad_offset = (gradient * centred).sum(axis=axes), gradient.sum(axis=axes)
    spread_scale, spread_offset = _along(grad_scale, feature, x.ndim), _along(grad_offset, feature, x.ndim)
    grad_x = _along(scale, feature, x.ndim) * inverse * (gradient - spread_offset / count - centred * spread_scale / count)
    return grad_x, grad_scale, grad_offset


HANDLERS: dict[str, Handler] = {
    "batch-norm-grad": _batch_norm_grad,
    "batch-norm-inference": _batch_norm_inference,
    "batch-norm-training": _batch_norm_training,
    "cholesky": _cholesky,
    "fft": _fft,
    "triangular-solve": _triangular_solve,
}
