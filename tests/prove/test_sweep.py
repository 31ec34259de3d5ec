"""Sweeping: differences that only saturation bridges, in the middle of a deep graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scalify.api import Options, verify
from scalify.report.model import Verdict
from tests.support.builder import Builder
from tests.support.relations import identity

if TYPE_CHECKING:
    from scalify.hlo.module import Module

SIZE = 32
DIMS = (4, SIZE)
MATMUL: dict[str, Any] = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,), "lhs_batch_dims": (), "rhs_batch_dims": ()}


def network(layers: int, *, fused: bool, wrong: int | None = None) -> Module:
    """``x + silu(x w)`` for each layer; the logistic function is one operation or ``1 / (1 + exp(-x))``."""
    b = Builder()
    x = b.parameter("f32", DIMS)
    weights = [b.parameter("f32", (SIZE, SIZE)) for _ in range(layers)]
    for layer, weight in enumerate(weights):
        h = b.add("dot", "f32", DIMS, [x, weight], **MATMUL)
        gate = b.like("logistic", h) if fused else expanded(b, h, negated=layer != wrong)
        x = b.like("add", x, b.like("multiply", h, gate))
    return b.build(x)


def expanded(b: Builder, h: int, *, negated: bool) -> int:
    one = b.broadcast(b.constant("f32", 1.0), DIMS)
    power = b.like("exponential", b.like("negate", h) if negated else h)
    return b.like("divide", one, b.like("add", one, power))


@pytest.mark.parametrize("layers", [1, 3, 12])
def test_a_fused_kernel_in_every_layer(layers: int) -> None:
    baseline = network(layers, fused=True)
    report = verify(baseline, [network(layers, fused=False)], identity(baseline))
    assert report.verdict is Verdict.VERIFIED
    assert report.stats.obligations <= 16


def test_layers_cost_no_more_obligations() -> None:
    few, many = (network(n, fused=True) for n in (4, 16))
    counts = [verify(m, [network(n, fused=False)], identity(m)).stats.obligations for n, m in ((4, few), (16, many))]
    assert counts[0] == counts[1]


def test_a_wrong_layer_is_not_bridged() -> None:
    baseline = network(4, fused=True)
    report = verify(baseline, [network(4, fused=False, wrong=2)], identity(baseline))
    assert report.verdict is Verdict.REFUTED


def test_no_sweep_without_a_budget() -> None:
    baseline = network(3, fused=True)
    options = Options(limits={"sweep": 0, "obligations": 0})
    report = verify(baseline, [network(3, fused=False)], identity(baseline), options)
    assert report.verdict is Verdict.UNVERIFIED
    assert report.stopped is not None
    assert report.stopped.limit == "obligations"
