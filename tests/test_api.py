"""The library's entry point: options, limits, what a report says of a proof."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

from scalify.api import Options, verify
from scalify.errors import UsageError
from scalify.hlo.module import Module, ReplicaGroups
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from scalify.report.model import Kind, StopReason, Verdict
from tests.support.builder import Builder
from tests.support.relations import identity

if TYPE_CHECKING:
    from scalify.relation.model import Relation

RELATION = """
version: 1
mesh: {tp: 2}
inputs:
  - {baseline: 0, distributed: 0, spec: [null, tp]}
  - {baseline: 1, distributed: 1, spec: [tp]}
outputs:
  - {baseline: 0, distributed: 0}
"""
MATMUL: dict[str, Any] = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,), "lhs_batch_dims": (), "rhs_batch_dims": ()}


def row_parallel(devices: int, *, reduced: bool = True, dtype: str = "f32") -> Module:
    """``tanh(x w)`` with the contraction cut over the devices."""
    b = Builder()
    x, w = b.parameter("f32", (4, 8 // devices)), b.parameter("f32", (8 // devices, 6))
    y = b.add("dot", dtype, (4, 6), [x, w], **MATMUL)
    if devices > 1 and reduced:
        y = b.add("all-reduce", dtype, (4, 6), [y], calls=[b.reducer("add", dtype)], replica_groups=groups(devices))
    y = b.add("convert", "f32", (4, 6), [y]) if dtype != "f32" else y
    return b.build(b.like("tanh", y), num_partitions=devices)


def groups(devices: int) -> ReplicaGroups:
    return ReplicaGroups((tuple(range(devices)),))


def relate(baseline: Module, distributed: Module) -> Relation:
    return resolve(parse(RELATION, "relation"), baseline, [distributed])


def test_a_right_pair_is_verified() -> None:
    baseline, distributed = row_parallel(1), row_parallel(2)
    report = verify(baseline, [distributed], relate(baseline, distributed))
    assert report.verdict is Verdict.VERIFIED
    assert [o.verdict for o in report.outputs] == [Verdict.VERIFIED]
    assert report.stopped is None
    assert report.assumptions
    assert report.stats.instructions == baseline.instruction_count + distributed.instruction_count


def test_a_missing_sum_is_named() -> None:
    baseline, distributed = row_parallel(1), row_parallel(2, reduced=False)
    report = verify(baseline, [distributed], relate(baseline, distributed))
    assert report.verdict is Verdict.REFUTED
    assert report.stopped is None
    assert report.counterexample is not None
    assert [d.output for d in report.counterexample.outputs] == [0]
    first = report.findings[0]
    assert first.kind is Kind.MISSING_REDUCTION
    assert first.distributed.opcode == "dot"  # the partial result; a sum after it makes the pair verify
    assert first.repair
    assert "tp" in first.message


def test_narrowing_is_a_finding_and_no_refusal() -> None:
    baseline, distributed = row_parallel(1), row_parallel(2, dtype="bf16")
    report = verify(baseline, [distributed], relate(baseline, distributed))
    assert report.verdict is Verdict.VERIFIED
    assert {f.kind for f in report.findings} == {Kind.PRECISION}


def test_exact_precision_keeps_roundings() -> None:
    baseline = row_parallel(1)
    options = Options(precision="exact")
    assert verify(baseline, [baseline], identity(baseline), options).verdict is Verdict.VERIFIED
    for distributed in (row_parallel(2), row_parallel(2, dtype="bf16")):
        assert verify(baseline, [distributed], relate(baseline, distributed), options).verdict is Verdict.UNVERIFIED


def test_an_unknown_limit_is_a_usage_error() -> None:
    baseline = row_parallel(1)
    with pytest.raises(UsageError, match="no limit 'patience'"):
        verify(baseline, [baseline], identity(baseline), Options(limits={"patience": 3}))


def test_a_limit_stops_with_its_name() -> None:
    baseline = row_parallel(1)
    report = verify(baseline, [baseline], identity(baseline), Options(limits={"terms": 2}))
    assert report.verdict is Verdict.UNVERIFIED
    assert report.stopped is not None
    assert (report.stopped.reason, report.stopped.limit, report.stopped.value) == (StopReason.LIMIT, "terms", 2)


def test_the_collector_is_as_it_was() -> None:
    baseline = row_parallel(1)
    gc.enable()
    verify(baseline, [baseline], identity(baseline))
    assert gc.isenabled()
