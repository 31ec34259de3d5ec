"""Each edit of the table on a small pair with one mistake: the finding names the operation, the kind of mistake and a repair that verifies.

The baseline is made with ``right``, the distributed graph with ``wrong``; on all devices everything is replicated unless the relation says more. The
faulty operation is called ``fault``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scalify.api import Options, verify
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from scalify.report.model import Kind, Report, Verdict
from tests.support.builder import Builder

if TYPE_CHECKING:
    from scalify.hlo.module import Module

TP = 4
Make = Callable[[Builder], int]


def module(make: Make, devices: int) -> Module:
    builder = Builder()
    return builder.build(make(builder), num_partitions=devices)


def judged(right: Make, wrong: Make, specs: dict[int, str], result: str, mesh: str = f"tp: {TP}") -> Report:
    baseline, distributed = module(right, 1), module(wrong, TP)
    inputs = [
        f"  - {{baseline: {n}, distributed: {n}{', spec: ' + specs[n] if n in specs else ''}}}"
        for n in range(len(baseline.parameter_shapes))
    ]
    text = "\n".join(
        ["version: 1", f"mesh: {{{mesh}}}", "inputs:", *inputs, "outputs:", f"  - {{baseline: 0, distributed: 0{result}}}", ""]
    )
    relation = resolve(parse(text, "relation.yaml"), baseline, [distributed])
    return verify(baseline, [distributed], relation, Options(limits={"obligations": 0, "sweep": 0}))


@dataclass(frozen=True)
class Case:
    """``make(builder, faulty)`` gives the root; the baseline is made without the fault."""

    make: Callable[[Builder, bool], int]
    kind: Kind
    words: str  # what the repair says
    specs: dict[int, str] = field(default_factory=dict)
    result: str = ""
    baseline: Callable[[Builder], int] | None = None
    mesh: str = f"tp: {TP}"

    def report(self, *, faulty: bool) -> Report:
        right = self.baseline or (lambda b: self.make(b, False))
        return judged(right, lambda b: self.make(b, faulty), self.specs, self.result, self.mesh)


def used(b: Builder, value: int) -> int:
    """Something behind the faulty operation, so that it is not the output itself."""
    return b.like("exponential", value)


def transposed(b: Builder, faulty: bool) -> int:
    x = b.parameter("f32", (6, 6, 3))
    return used(b, b.add("transpose", "f32", (6, 6, 3), [x], dimensions=(0, 1, 2) if faulty else (1, 0, 2), name="fault"))


def reshaped(b: Builder, faulty: bool) -> int:
    x = b.parameter("f32", (6, 4, 3))
    rows = b.add("transpose", "f32", (4, 6, 3), [x], dimensions=(1, 0, 2), name="turned")
    return used(b, b.add("reshape", "f32", (24, 3), [rows if faulty else x], name="fault"))


def contracted(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6, 6)), b.parameter("f32", (6, 5))
    dim = 0 if faulty else 1
    return used(b, b.add("dot", "f32", (6, 5), [x, y], lhs_contracting_dims=(dim,), rhs_contracting_dims=(0,), name="fault"))


def batched(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6, 6, 3)), b.parameter("f32", (6, 5, 3))
    dims = (1, 0) if faulty else (0, 1)
    made = b.add(
        "dot",
        "f32",
        (6, 6, 5),
        [x, y],
        lhs_batch_dims=dims[:1],
        rhs_batch_dims=(0,),
        lhs_contracting_dims=(2,),
        rhs_contracting_dims=(2,),
        name="fault",
    )
    return used(b, made)


def reduced(b: Builder, faulty: bool) -> int:
    x = b.parameter("f32", (6, 6))
    zero = b.constant("f32", 0.0)
    return used(b, b.add("reduce", "f32", (6,), [x, zero], calls=[b.reducer("add", "f32")], dimensions=(0 if faulty else 1,), name="fault"))


def maximal(b: Builder, faulty: bool) -> int:
    x = b.parameter("f32", (6, 5))
    zero = b.constant("f32", 0.0)
    reducer = b.reducer("maximum" if faulty else "add", "f32")
    return used(b, b.add("reduce", "f32", (6,), [x, zero], calls=[reducer], dimensions=(1,), name="fault"))


def spread(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6,)), b.parameter("f32", (6, 6))
    return used(b, b.like("multiply", b.broadcast(x, (6, 6), (0,) if faulty else (1,), name="fault"), y))


def counted(b: Builder, faulty: bool) -> int:
    x = b.parameter("f32", (6, 6))
    index = b.add("iota", "f32", (6, 6), iota_dimension=0 if faulty else 1, name="fault")
    return used(b, b.like("multiply", index, x))


def reversed_(b: Builder, faulty: bool) -> int:
    x = b.parameter("f32", (6, 6))
    return used(b, b.add("reverse", "f32", (6, 6), [x], dimensions=(0 if faulty else 1,), name="fault"))


def sliced(b: Builder, faulty: bool) -> int:
    x = b.parameter("f32", (12, 5))
    start = 4 if faulty else 8
    return used(b, b.add("slice", "f32", (4, 5), [x], starts=(start, 0), limits=(start + 4, 5), strides=(1, 1), name="fault"))


def padded(b: Builder, faulty: bool) -> int:
    x, zero = b.parameter("f32", (6, 5)), b.constant("f32", 0.0)
    padding = ((0, 2, 0), (0, 0, 0)) if faulty else ((2, 0, 0), (0, 0, 0))
    return used(b, b.add("pad", "f32", (8, 5), [x, zero], padding=padding, name="fault"))


def joined(b: Builder, faulty: bool) -> int:
    x, y, z = (b.parameter("f32", dims) for dims in ((3, 5), (3, 5), (2, 5)))
    parts = [y, x, z] if faulty else [x, y, z]
    return used(b, b.add("concatenate", "f32", (8, 5), parts, dimensions=(0,), name="fault"))


def compared(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6, 5)), b.parameter("f32", (6, 5))
    test = b.add("compare", "pred", (6, 5), [x, y], direction="LT" if faulty else "GE", name="fault")
    return used(b, b.like("select", test, x, b.like("tanh", y)))


def selected(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6, 5)), b.parameter("f32", (6, 5))
    test = b.add("compare", "pred", (6, 5), [x, y], direction="GE")
    branches = (b.like("tanh", x), b.like("logistic", y))
    return used(b, b.like("select", test, *(branches[::-1] if faulty else branches), name="fault"))


def divided(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6, 5)), b.parameter("f32", (6, 5))
    return used(b, b.like("divide", *((y, x) if faulty else (x, y)), name="fault"))


def constant(b: Builder, faulty: bool) -> int:
    x = b.parameter("f32", (6, 5))
    table = np.arange(30.0).reshape(6, 5)
    return used(b, b.like("multiply", x, b.constant("f32", table + faulty, name="fault")))


def opcode(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6, 5)), b.parameter("f32", (6, 5))
    return used(b, b.like("maximum" if faulty else "minimum", x, y, name="fault"))


def parameter(b: Builder, faulty: bool) -> int:
    x, y, z = (b.parameter("f32", (6, 5)) for _ in range(3))
    return used(b, b.like("multiply", b.like("add", x, y), y if faulty else z, name="fault"))


def unused(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6, 5)), b.parameter("f32", (6, 5))
    total = b.like("add", x, b.like("tanh", y), name="total")
    return used(b, b.like("multiply", x if faulty else total, y, name="fault"))


def addend(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6, 5)), b.parameter("f32", (6, 5))
    return used(b, b.like("multiply", x if faulty else b.like("add", x, b.like("tanh", y)), y, name="fault"))


def scaled(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6, 5)), b.parameter("f32", (6, 5))
    half = b.broadcast(b.constant("f32", 0.5), (6, 5))
    return used(b, b.like("add", x if faulty else b.like("multiply", x, half), y, name="fault"))


def needless(b: Builder, faulty: bool) -> int:
    x, y = b.parameter("f32", (6, 5)), b.parameter("f32", (6, 5))
    return used(b, b.like("multiply", b.like("tanh", x, name="fault") if faulty else x, y))


def looked_up(b: Builder, faulty: bool) -> int:
    x, i = b.parameter("f32", (6, 6)), b.parameter("s32", (4, 1))
    dim = 1 if faulty else 0
    made = b.add(
        "gather",
        "f32",
        (4, 6),
        [x, i],
        offset_dims=(1,),
        collapsed_slice_dims=(0,),
        start_index_map=(dim,),
        index_vector_dim=1,
        slice_sizes=(1, 6),
        name="fault",
    )
    return used(b, made)


LOCAL = {
    "another permutation": Case(transposed, Kind.WRONG_LAYOUT, "verifies with dimensions={1,0,2}"),
    "merged in another order": Case(reshaped, Kind.WRONG_LAYOUT, "verifies without `turned` before it"),
    "another contraction": Case(contracted, Kind.WRONG_AXIS, "verifies with lhs_contracting_dims={1}"),
    "another batch dimension": Case(batched, Kind.WRONG_AXIS, "verifies with lhs_batch_dims={0}"),
    "another reduced dimension": Case(reduced, Kind.WRONG_AXIS, "verifies along dimensions {1}"),
    "another reducer": Case(maximal, Kind.WRONG_OPERATION, "verifies if it reduces with `add`"),
    "another broadcast dimension": Case(spread, Kind.WRONG_AXIS, "verifies with dimensions={1}"),
    "another iota dimension": Case(counted, Kind.WRONG_AXIS, "verifies along dimension 1"),
    "another reversed dimension": Case(reversed_, Kind.WRONG_LAYOUT, "verifies along dimension 1"),
    "another slice": Case(sliced, Kind.WRONG_SLICE, "verifies if it reads 8:12"),
    "padding on the other side": Case(padded, Kind.WRONG_SLICE, "verifies with the padding on the other side"),
    "another order of parts": Case(joined, Kind.WRONG_LAYOUT, "verifies in the order"),
    "another comparison": Case(compared, Kind.WRONG_OPERATION, "verifies if it is GE"),
    "branches exchanged": Case(selected, Kind.WRONG_OPERAND, "verifies if they change places"),
    "operands exchanged": Case(divided, Kind.WRONG_OPERAND, "verifies if they change places"),
    "another constant": Case(constant, Kind.WRONG_CONSTANT, "as in the baseline"),
    "another opcode": Case(opcode, Kind.WRONG_OPERATION, "verifies if it is `minimum`"),
    "another parameter": Case(parameter, Kind.WRONG_OPERAND, "instead"),
    "a value that nothing uses": Case(unused, Kind.WRONG_OPERAND, "verifies if it uses `total` instead"),
    "a lost addend": Case(addend, Kind.WRONG_OPERAND, "comes before it"),
    "a lost factor": Case(scaled, Kind.WRONG_SCALE, "is multiplied by 0.5"),
    "an operation too many": Case(needless, Kind.WRONG_OPERATION, "verifies without `fault`"),
    "another index dimension": Case(looked_up, Kind.WRONG_AXIS, "verifies with start_index_map={0}"),
}


def check(case: Case) -> None:
    assert case.report(faulty=False).verdict is Verdict.VERIFIED
    report = case.report(faulty=True)
    assert report.verdict is Verdict.REFUTED
    first = report.findings[0]
    assert first.repair is not None
    assert case.words in first.repair
    assert first.kind is case.kind
    assert first.distributed.instruction == "fault"


@pytest.mark.parametrize("name", LOCAL)
def test_a_local_mistake(name: str) -> None:
    check(LOCAL[name])


# -- communication -------------------------------------------------------------------------------------------------------------
def summed(groups: tuple[tuple[int, ...], ...], reducer: str = "add") -> Callable[[Builder], int]:
    def make(b: Builder) -> int:
        x, y = b.parameter("f32", (6, 2)), b.parameter("f32", (2, 5))
        part = b.add("dot", "f32", (6, 5), [x, y], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
        return used(b, b.like("all-reduce", part, calls=[b.reducer(reducer, "f32")], replica_groups=groups, name="fault"))

    return make


def product(b: Builder) -> int:
    x, y = b.parameter("f32", (6, 8)), b.parameter("f32", (8, 5))
    return used(b, b.add("dot", "f32", (6, 5), [x, y], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,)))


def gathered(groups: tuple[tuple[int, ...], ...]) -> Callable[[Builder], int]:
    def make(b: Builder) -> int:
        x = b.parameter("f32", (2, 5))
        return used(b, b.add("all-gather", "f32", (8, 5), [x], dimensions=(0,), replica_groups=groups, name="fault"))

    return make


def whole(b: Builder) -> int:
    return used(b, b.parameter("f32", (8, 5)))


def shard(offset: Callable[[Builder], int]) -> Callable[[Builder], int]:
    def make(b: Builder) -> int:
        x = b.parameter("f32", (8, 5))
        zero = b.constant("s32", 0)
        return used(b, b.add("dynamic-slice", "f32", (2, 5), [x, offset(b), zero], dynamic_slice_sizes=(2, 5), name="fault"))

    return make


def own_rows(b: Builder) -> int:
    return b.like("multiply", b.add("convert", "s32", (), [b.add("partition-id", "u32")]), b.constant("s32", 2))


def sent(step: int) -> Callable[[Builder], int]:
    def make(b: Builder) -> int:
        x = b.parameter("f32", (2, 5))
        pairs = tuple((d, (d + step) % TP) for d in range(TP))
        return used(b, b.like("collective-permute", x, source_target_pairs=pairs, name="fault"))

    return make


def rotated(b: Builder) -> int:
    """Rows in the order of a shift by one shard."""
    x = b.parameter("f32", (8, 5))
    last = b.add("slice", "f32", (2, 5), [x], starts=(6, 0), limits=(8, 5), strides=(1, 1))
    rest = b.add("slice", "f32", (6, 5), [x], starts=(0, 0), limits=(6, 5), strides=(1, 1))
    return used(b, b.add("concatenate", "f32", (8, 5), [last, rest], dimensions=(0,)))


ALL = ((0, 1, 2, 3),)
ROWS, COLUMNS = {0: "[null, tp]", 1: "[tp]"}, {0: "[tp]"}


@pytest.mark.parametrize(
    ("right", "wrong", "baseline", "specs", "result", "kind", "words"),
    [
        (summed(ALL), summed(((0, 1), (2, 3))), product, ROWS, "", Kind.WRONG_GROUPS, "verifies if it runs over tp"),
        (summed(ALL), summed(ALL, "maximum"), product, ROWS, "", Kind.WRONG_OPERATION, "verifies if it reduces with `add`"),
        (gathered(ALL), gathered(((0, 2, 1, 3),)), whole, COLUMNS, "", Kind.WRONG_GROUPS, "verifies if it runs over tp: {{0,1,2,3}}"),
        (gathered(ALL), gathered(((3, 2, 1, 0),)), whole, COLUMNS, "", Kind.WRONG_GROUPS, "verifies if it runs over tp: {{0,1,2,3}}"),
        (sent(1), sent(-1), rotated, COLUMNS, ", spec: [tp]", Kind.WRONG_GROUPS, "verifies with the pairs reversed"),
        (sent(1), sent(2), rotated, COLUMNS, ", spec: [tp]", Kind.WRONG_GROUPS, "one +1 along tp"),
        (shard(own_rows), shard(lambda b: b.constant("s32", 0)), whole, {}, ", spec: [tp]", Kind.WRONG_SLICE, "2 times the index along tp"),
    ],
)
def test_a_mistake_in_communication(
    right: Make, wrong: Make, baseline: Make, specs: dict[int, str], result: str, kind: Kind, words: str
) -> None:
    assert judged(baseline, right, specs, result).verdict is Verdict.VERIFIED
    first = judged(baseline, wrong, specs, result).findings[0]
    assert first.repair is not None
    assert words in first.repair
    assert first.kind is kind
    assert first.distributed.instruction == "fault"


# -- no repair -----------------------------------------------------------------------------------------------------------------
def test_two_mistakes_have_no_single_repair() -> None:
    def make(b: Builder, faulty: bool) -> int:
        x, y = b.parameter("f32", (6, 5)), b.parameter("f32", (6, 5))
        a = b.like("divide", *((y, x) if faulty else (x, y)))
        return used(b, b.like("subtract", *((y, b.like("tanh", a)) if faulty else (b.like("tanh", a), y))))

    report = judged(lambda b: make(b, False), lambda b: make(b, True), {}, "")
    assert report.verdict is Verdict.REFUTED
    assert report.findings
    assert all(f.repair is None for f in report.findings)


def test_the_expected_output_is_not_offered_in_the_place_of_the_output() -> None:
    """Anything verifies with that."""

    def make(b: Builder, faulty: bool) -> int:
        x = b.parameter("f32", (6, 5))
        h = b.like("tanh", b.like("cosine" if faulty else "sine", b.like("logistic" if faulty else "exponential", x)))
        return b.add("transpose", "f32", (5, 6), [h], dimensions=(1, 0))

    report = judged(lambda b: make(b, False), lambda b: make(b, True), {}, "")
    assert report.verdict is Verdict.REFUTED
    assert all(f.repair is None for f in report.findings)


def test_trying_edits_leaves_no_trace() -> None:
    """A second run over the same modules says the same."""
    case = LOCAL["a lost addend"]
    assert case.report(faulty=True).findings == case.report(faulty=True).findings


def test_the_same_mistake_in_every_layer() -> None:
    """One edit, with the number of places."""

    def make(b: Builder, faulty: bool) -> int:
        h = b.parameter("f32", (6, 8))
        for _ in range(4):
            w = b.parameter("f32", (8, 8 if not faulty else 2))
            v = b.parameter("f32", (8 if not faulty else 2, 8))
            inner = b.like(
                "tanh", b.add("dot", "f32", (6, b.shape(w).dims[1]), [h, w], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
            )
            h = b.like("add", b.add("dot", "f32", (6, 8), [inner, v], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,)), h)
        return h

    specs = {n: "[null, tp]" if n % 2 else "[tp]" for n in range(1, 9)}
    report = judged(lambda b: make(b, False), lambda b: make(b, True), specs, "")
    first = report.findings[0]
    assert first.kind is Kind.MISSING_REDUCTION
    assert first.repair is not None
    assert "and so at 3 more" in first.repair
    assert first.repeats == 4
