"""A tensor-parallel MLP with one fault at a time: the first finding names the faulty instruction and the kind of mistake.

``tanh(x w1 + b1) w2 * 0.5 - b2`` over ``tp``: columns of ``w1`` and rows of ``w2`` are sharded. The faulty instruction is called ``fault``
(where something is left out, its operand is).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from scalify.api import Options, verify
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from scalify.report.model import Finding, Kind, Report, Verdict
from tests.support.builder import Builder

if TYPE_CHECKING:
    from scalify.hlo.module import Module

TP = 4
ROWS, WIDTH, INNER = 6, 8, 16
RELATION = f"""
version: 1
mesh: {{tp: {TP}}}
inputs:
  - {{baseline: 0, distributed: 0}}
  - {{baseline: 1, distributed: 1, spec: [null, tp]}}
  - {{baseline: 2, distributed: 2, spec: [tp]}}
  - {{baseline: 3, distributed: 3, spec: [tp]}}
  - {{baseline: 4, distributed: 4}}
  - {{baseline: 5, distributed: 5}}
outputs:
  - {{baseline: 0, distributed: 0}}
"""
Fault = Callable[["Layer", int], int]


class Layer(Builder):
    """The MLP on ``devices``; ``faults`` replace single steps by name."""

    def __init__(self, devices: int, faults: dict[str, Fault] | None = None) -> None:
        super().__init__("layer")
        self.devices = devices
        self.faults = faults or {}

    def step(self, name: str, right: Fault, value: int) -> int:
        return self.faults.get(name, right)(self, value)

    def made(self) -> Module:
        inner = INNER // self.devices
        x, w1, self.b1, self.w2, self.b2, self.other = (
            self.parameter("f32", dims) for dims in ((ROWS, WIDTH), (WIDTH, inner), (inner,), (inner, WIDTH), (WIDTH,), (WIDTH,))
        )
        h = self.step("first", lambda b, v: b.dot(v, w1), x)
        h = self.step("bias", lambda b, v: b.like("add", v, b.spread(b.b1, v, 1)), h)
        h = self.step("activation", lambda b, v: b.like("tanh", v), h)
        h = self.step("second", lambda b, v: b.dot(v, b.w2), h)
        if self.devices > 1:
            h = self.step("reduction", lambda b, v: b.reduced(v), h)
        h = self.step("scale", lambda b, v: b.scaled(v, 0.5), h)
        h = self.step("shift", lambda b, v: b.like("subtract", v, b.spread(b.b2, v, 1)), h)
        return self.build(h, num_partitions=self.devices)

    def dot(self, left: int, right: int, **more: Any) -> int:
        dims = (self.shape(left).dims[0], self.shape(right).dims[1])
        return self.add("dot", "f32", dims, [left, right], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,), **more)

    def spread(self, vector: int, like: int, dim: int) -> int:
        return self.broadcast(vector, self.shape(like).dims, (dim,))

    def scaled(self, value: int, factor: float, **more: Any) -> int:
        return self.add(
            "multiply", "f32", self.shape(value).dims, [value, self.broadcast(self.constant("f32", factor), self.shape(value).dims)], **more
        )

    def reduced(self, value: int, opcode: str = "add", groups: tuple[tuple[int, ...], ...] = (), **more: Any) -> int:
        shape = self.shape(value)
        return self.add("all-reduce", "f32", shape.dims, [value], calls=[self.reducer(opcode, "f32")], replica_groups=groups, **more)


def judged(faults: dict[str, Fault]) -> Report:
    baseline, distributed = Layer(1).made(), Layer(TP, faults).made()
    relation = resolve(parse(RELATION, "relation.yaml"), baseline, [distributed])
    return verify(baseline, [distributed], relation, Options(limits={"obligations": 0, "sweep": 0}))


def first(faults: dict[str, Fault]) -> Finding:
    found = judged(faults)
    assert found.verdict is not Verdict.VERIFIED
    return found.findings[0]


def test_the_layer_is_right() -> None:
    assert judged({}).verdict is Verdict.VERIFIED


FAULTS: dict[str, tuple[str, Fault, Kind]] = {
    "the all-reduce is missing": (
        "second",
        lambda b, v: b.dot(v, b.w2, name="fault"),
        Kind.MISSING_REDUCTION,
    ),
    "an all-reduce too many": ("scale", lambda b, v: b.scaled(b.reduced(v, name="fault"), 0.5), Kind.EXTRA_REDUCTION),
    "groups of two": ("reduction", lambda b, v: b.reduced(v, groups=((0, 1), (2, 3)), name="fault"), Kind.WRONG_GROUPS),
    "the greatest instead of the sum": ("reduction", lambda b, v: b.reduced(v, "maximum", name="fault"), Kind.WRONG_OPERATION),
    "another factor": (
        "scale",
        lambda b, v: b.like("multiply", v, b.broadcast(b.constant("f32", 0.25, name="fault"), b.shape(v).dims)),
        Kind.WRONG_CONSTANT,
    ),
    "another bias": (
        "shift",
        lambda b, v: b.like("subtract", v, b.broadcast(b.other, b.shape(v).dims, (1,), name="fault")),
        Kind.WRONG_OPERAND,
    ),
    "operands exchanged": (
        "shift",
        lambda b, v: b.like("subtract", b.spread(b.b2, v, 1), v, name="fault"),
        Kind.WRONG_OPERAND,
    ),
    "another activation": ("activation", lambda b, v: b.like("logistic", v, name="fault"), Kind.WRONG_OPERATION),
    "an activation too many": (
        "scale",
        lambda b, v: b.like("abs", b.scaled(v, 0.5), name="fault"),
        Kind.WRONG_OPERATION,
    ),
    "reversed rows": (
        "activation",
        lambda b, v: b.add("reverse", "f32", b.shape(v).dims, [b.like("tanh", v)], dimensions=(0,), name="fault"),
        Kind.WRONG_LAYOUT,
    ),
    "passed to the next device": (
        "activation",
        lambda b, v: b.add(
            "collective-permute",
            "f32",
            b.shape(v).dims,
            [b.like("tanh", v)],
            source_target_pairs=tuple((d, (d + 1) % TP) for d in range(TP)),
            name="fault",
        ),
        Kind.WRONG_GROUPS,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_named(name: str) -> None:
    step, fault, kind = FAULTS[name]
    faults = {step: fault}
    if kind is Kind.MISSING_REDUCTION:
        faults["reduction"] = lambda b, v: v
    found = first(faults)
    assert found.distributed.instruction == "fault"
    assert found.kind is kind
    assert found.repair


def test_a_dropped_activation_shows_at_its_user() -> None:
    found = first({"activation": lambda b, v: v})
    assert found.distributed.opcode == "dot"
    assert found.kind is Kind.WRONG_OPERAND


def test_two_faults_are_two_findings() -> None:
    """No single repair helps: each suspect is named."""
    found = judged(
        {
            "first": lambda b, v: b.like("abs", b.dot(v, 1), name="fault"),
            "shift": lambda b, v: b.like("add", v, b.spread(b.b2, v, 1), name="other"),
        }
    )
    assert "fault" in {f.distributed.instruction for f in found.findings}
