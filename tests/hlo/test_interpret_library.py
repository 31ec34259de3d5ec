"""Custom calls, batch normalisation, factorisations and transforms against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from scalify.errors import HloError
from tests.support.interpreter import evaluate, single, tuple_shape

RNG = np.random.default_rng(0)


def custom(target: str, x: np.ndarray, **more: object) -> np.ndarray:
    return single("custom-call", ("f32", x.shape), [("f32", x)], custom_call_target=target, **more)


@pytest.mark.parametrize("target", ["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "AwsNeuronTransferWithStaticRing"])
def test_identities(target: str) -> None:
    x = RNG.standard_normal((2, 3))
    assert custom(target, x).tolist() == x.tolist()


@pytest.mark.parametrize("axis", [0, 1])
def test_rms_norm(axis: int) -> None:
    x, weight = RNG.standard_normal((4, 5)), RNG.standard_normal((4, 5)[axis])
    operands = [("f32", x), ("f32", weight), ("f32", np.array(0.1))]
    result = single("custom-call", ("f32", (4, 5)), operands, custom_call_target="AwsNeuronRmsNorm", backend_config=str(axis))
    spread = weight[:, None] if axis == 0 else weight
    np.testing.assert_allclose(result, x / np.sqrt((x * x).mean(axis=axis, keepdims=True) + 0.1) * spread, rtol=1e-14)


def test_activations() -> None:
    x = RNG.standard_normal((2, 3))
    exp = np.exp(x)
    np.testing.assert_allclose(custom("AwsNeuronSoftmax", x), exp / exp.sum(axis=1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(custom("AwsNeuronSilu", x), x / (1 + np.exp(-x)), rtol=1e-13)
    gelu = [[v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in row] for row in x.tolist()]
    np.testing.assert_allclose(custom("AwsNeuronGelu", x), gelu, rtol=1e-13)
    np.testing.assert_allclose(custom("AwsNeuronGeluApprxTanh", x), gelu, atol=1e-3)


@pytest.mark.parametrize("target", ["TopK", "AwsNeuronTopK"])
def test_top_k(target: str) -> None:
    x = np.array([[[3.0, 1.0, 3.0, 2.0]]])
    shape = tuple_shape(("f32", (1, 2)), ("u32", (1, 2)))
    values, places = evaluate("custom-call", shape, [("f32", x)], custom_call_target=target, backend_config="2")
    assert values.tolist() == [[[3.0, 3.0]]]
    assert places.tolist() == [[[0, 2]]]


def test_unknown_custom_call() -> None:
    with pytest.raises(HloError, match="'mystery' has no reference semantics"):
        custom("mystery", np.zeros(1))


def test_batch_norm() -> None:
    x, scale, offset = RNG.standard_normal((4, 3, 2)), RNG.standard_normal(3), RNG.standard_normal(3)
    shape = tuple_shape(("f32", (4, 3, 2)), ("f32", (3,)), ("f32", (3,)))
    more: dict[str, Any] = {"epsilon": 0.1, "feature_index": 1}
    operands = [("f32", x[None]), ("f32", scale[None]), ("f32", offset[None])]
    out, mean, variance = (r[0] for r in evaluate("batch-norm-training", shape, operands, **more))
    np.testing.assert_allclose(mean, x.mean(axis=(0, 2)))
    np.testing.assert_allclose(variance, x.var(axis=(0, 2)))
    expected = (x - mean[:, None]) / np.sqrt(variance[:, None] + 0.1) * scale[:, None] + offset[:, None]
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    inference = [("f32", v) for v in (x, scale, offset, mean, variance)]
    np.testing.assert_allclose(single("batch-norm-inference", ("f32", (4, 3, 2)), inference, **more), expected, rtol=1e-12)


def test_batch_norm_grad_is_the_derivative() -> None:
    x, scale, gradient = RNG.standard_normal((4, 3)), RNG.standard_normal(3), RNG.standard_normal((4, 3))

    def loss(x: np.ndarray, scale: np.ndarray) -> float:
        normal = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 0.1)
        return float((normal * scale * gradient).sum())

    shape = tuple_shape(("f64", (4, 3)), ("f64", (3,)), ("f64", (3,)))
    operands = [("f64", v[None]) for v in (x, scale, x.mean(axis=0), x.var(axis=0), gradient)]
    grad_x, grad_scale, grad_offset = (r[0] for r in evaluate("batch-norm-grad", shape, operands, epsilon=0.1, feature_index=1))
    for index in np.ndindex(4, 3):
        moved = x.copy()
        moved[index] += 1e-6
        assert grad_x[index] == pytest.approx((loss(moved, scale) - loss(x, scale)) / 1e-6, abs=1e-4)
    np.testing.assert_allclose(grad_scale, [loss(x, np.eye(3)[n]) for n in range(3)], rtol=1e-9)
    np.testing.assert_allclose(grad_offset, gradient.sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reads_one_triangle(lower: bool) -> None:
    a = RNG.standard_normal((2, 3, 3))
    positive = a @ a.swapaxes(1, 2) + np.eye(3)
    seen = np.tril(positive) if lower else np.triu(positive)
    factor = single("cholesky", ("f64", (2, 3, 3)), [("f64", seen)], lower=lower)
    product = factor @ factor.swapaxes(1, 2) if lower else factor.swapaxes(1, 2) @ factor
    np.testing.assert_allclose(product, positive)


@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE"])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve(left_side: bool, lower: bool, transpose: str, unit: bool) -> None:
    a, b = RNG.standard_normal((3, 3)) + 3 * np.eye(3), RNG.standard_normal((3, 3))
    more = {"left_side": left_side, "lower": lower, "unit_diagonal": unit, "transpose_a": transpose}
    x = single("triangular-solve", ("f64", (3, 3)), [("f64", a), ("f64", b)], **more)
    t = np.tril(a) if lower else np.triu(a)
    t = t - np.diag(np.diag(t)) + np.eye(3) if unit else t
    t = t.T if transpose == "TRANSPOSE" else t
    np.testing.assert_allclose(t @ x if left_side else x @ t, b, atol=1e-12)


def test_fft() -> None:
    x = RNG.standard_normal((2, 6))
    spectrum = single("fft", ("c64", (2, 4)), [("f32", x)], fft_type="RFFT", fft_length=(6,))
    np.testing.assert_allclose(spectrum, np.fft.rfft(x))
    np.testing.assert_allclose(single("fft", ("f32", (2, 6)), [("c64", spectrum)], fft_type="IRFFT", fft_length=(6,)), x)
    z = single("fft", ("c64", (2, 6)), [("c64", x + 0j)], fft_type="FFT", fft_length=(2, 6))
    np.testing.assert_allclose(z, np.fft.fft2(x))
