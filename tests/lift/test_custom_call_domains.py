"""Decompositions of custom calls against their reference semantics in the prime field: equal as formulas, not only as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scalify.hlo.interpret import evaluate
from scalify.lift.custom_calls import Opaque, Registry, expand
from scalify.lift.known_calls import BUILT_IN
from tests.support.builder import Builder

if TYPE_CHECKING:
    from scalify.hlo.module import Module

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def module(target: str, operands: int, config: str) -> Module:
    b = Builder()
    values = [b.parameter("f32", dims) for dims in ((2, 3, 4), (4,), ())[:operands]]
    more: dict[str, Any] = {"backend_config": config} if config else {}
    return b.build(b.add("custom-call", "f32", (2, 3, 4), values, custom_call_target=target, **more))


@pytest.mark.parametrize(
    ("target", "operands", "config"),
    [
        ("AwsNeuronRmsNorm", 3, "2"),
        ("AwsNeuronSoftmax", 1, "1"),
        ("AwsNeuronGelu", 1, ""),
        ("AwsNeuronGeluApprxTanh", 1, ""),
        ("AwsNeuronSilu", 1, ""),
        ("AwsNeuronErf", 1, ""),
        ("AwsNeuronTransferWithStaticRing", 1, ""),
    ],
)
def test_decompositions_are_the_reference_semantics(target: str, operands: int, config: str) -> None:
    call = module(target, operands, config)
    expanded = expand(call, BUILT_IN)
    assert all(i.opcode != "custom-call" for c in expanded.computations.values() for i in c.instructions)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((2, *s.dims)) for s in call.parameter_shapes]
    direct, decomposed = (evaluate(m, inputs, 2, domain="field", seed=3).outputs[0][0] for m in (call, expanded))
    assert (direct == decomposed).all()


@pytest.mark.parametrize("domain", ["f64", "rational", "field"])
def test_registered_opaque_calls_are_functions_of_their_rows(domain: str) -> None:
    registry = Registry({"Mystery": Opaque(lambda _: [((0, 0),)])})
    expanded = expand(module("Mystery", 1, ""), registry)
    x = np.random.default_rng(0).integers(-8, 8, (2, 2, 3, 4)) / 4
    x[1, 1] = x[0, 0]
    found = evaluate(expanded, [x], 2, domain=domain).outputs[0][0]
    assert (found[1, 1] == found[0, 0]).all()
    assert (found[1, 0] != found[0, 0]).any()
