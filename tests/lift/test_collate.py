"""One module for each device: what may differ, what may not, and what is proved of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scalify.errors import HloError
from scalify.lift.collate import PER_DEVICE, collate
from scalify.lift.pair import lift_pair
from scalify.prove.verify import DEFAULT_LIMITS, How, prove
from scalify.relation.model import Mesh
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from tests.support.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Instruction, Module

MESH = Mesh((("tp", 2),), (0, 1))
VOCABULARY = 16
RELATION = """\
version: 1
mesh: {tp: 2}
inputs:
  - {baseline: 0, distributed: 0}
  - {baseline: 1, distributed: 1, spec: [tp]}
outputs:
  - {baseline: 0, distributed: 0}
assume:
  - {baseline: 0, range: [0, 16]}
"""


def gather(b: Builder, table: int, indices: int) -> int:
    count, (rows, width) = b.shape(indices).dims, b.shape(table).dims
    assert rows
    return b.add(
        "gather", "f32", (*count, width), [table, indices],
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1, slice_sizes=(1, width),
    )  # fmt: skip


def whole() -> Module:
    b = Builder()
    ids, table = b.parameter("s32", (5,)), b.parameter("f32", (VOCABULARY, 3))
    return b.build(gather(b, table, ids))


def part(first: int, *, limit: int | None = None, share: bool = False, unsigned: bool = False, **more: Any) -> Module:
    """Rows ``first`` to ``first + 7`` of the table; ``share`` takes one constant for both uses of the first row; ``unsigned`` masks the
    indices by multiplication and makes them unsigned, as PyTorch/XLA does."""
    b = Builder()
    ids, table = b.parameter("s32", (5,)), b.parameter("f32", (VOCABULARY // 2, 3))
    start = b.constant("s32", first)
    low = b.broadcast(start, (5,))
    above = b.add("compare", "pred", (5,), [ids, low], direction="GE")
    below = b.add(
        "compare", "pred", (5,), [ids, b.broadcast(b.constant("s32", first + 8 if limit is None else limit), (5,))], direction="LT"
    )
    mine = b.like("and", above, below)
    local = b.like("subtract", ids, low if share else b.broadcast(b.constant("s32", first), (5,)))
    if unsigned:
        masked = b.add("convert", "u32", (5,), [b.like("multiply", b.add("convert", "s32", (5,), [mine]), local)])
    else:
        masked = b.add("select", "s32", (5,), [mine, local, b.broadcast(b.constant("s32", 0), (5,))])
    rows = gather(b, table, masked)
    zero = b.broadcast(b.constant("f32", 0.0), (5, 3))
    kept = b.add("select", "f32", (5, 3), [b.broadcast(mine, (5, 3), (0,)), rows, zero])
    return b.build(b.add("all-reduce", "f32", (5, 3), [kept], calls=[b.reducer("add", "f32")], replica_groups=((0, 1),)), **more)


def proved(baseline: Module, modules: Sequence[Module], text: str = RELATION) -> list[bool]:
    pair = lift_pair(baseline, modules, resolve(parse(text, "r.yaml"), baseline, modules))
    return [outcome.how is not How.OPEN for outcome in prove(pair, DEFAULT_LIMITS, tuple).outcomes]


def constants(module: Module) -> list[Instruction]:
    return [i for i in module.entry.instructions if i.opcode == "constant"]


# -- what is proved ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("share", [(False, False), (True, True), (True, False), (False, True)])
def test_a_vocabulary_cut_over_two_modules(share: tuple[bool, bool]) -> None:
    assert proved(whole(), [part(0, share=share[0]), part(8, share=share[1])]) == [True]


def test_masked_unsigned_indices() -> None:
    assert proved(whole(), [part(0, unsigned=True), part(8, unsigned=True)]) == [True]
    assert proved(whole(), [part(0, unsigned=True), part(9, unsigned=True)]) == [False]


@pytest.mark.parametrize(
    "modules", [(part(8), part(0)), (part(0), part(0)), (part(0), part(8, limit=15)), (part(0), part(7)), (part(0, limit=9), part(8))]
)
def test_wrong_constants_are_not_proved(modules: Sequence[Module]) -> None:
    assert proved(whole(), modules) == [False]


def test_permuted_devices() -> None:
    text = RELATION.replace("inputs:", "device_ids: [1, 0]\ninputs:", 1)
    assert proved(whole(), [part(8), part(0)], text) == [True], "module 0 runs on device 0, at mesh position 1"
    assert proved(whole(), [part(0), part(8)], text) == [False]


# -- the collated module -----------------------------------------------------------------------------------------------------
def test_one_module_is_handed_back() -> None:
    module = part(0)
    assert collate([module], MESH) is module


def test_differing_constants_get_data_for_every_device() -> None:
    found = constants(collate([part(0), part(8)], MESH))
    data = [i.attributes[PER_DEVICE].tolist() for i in found if PER_DEVICE in i.attributes]
    assert sorted(data) == [[0, 8], [0, 8], [8, 16]]
    assert all(("literal" in i.attributes) != (PER_DEVICE in i.attributes) for i in found)


def test_modules_of_leading_axes_run_on_all_devices_of_a_stage() -> None:
    mesh = Mesh((("pp", 2), ("tp", 3)), tuple(range(6)))
    found = constants(collate([part(0), part(8)], mesh))
    assert [0, 0, 0, 8, 8, 8] in [i.attributes[PER_DEVICE].tolist() for i in found if PER_DEVICE in i.attributes]


def scaled(factor: float, *, inside: bool = False, names: str = "a") -> Module:
    b = Builder()
    p = b.parameter("f32", (2, 3), name=f"{names}.0")
    if not inside:
        return b.build(b.like("multiply", b.broadcast(b.constant("f32", factor), (2, 3)), p))
    inner = b.computation(f"{names}_inner")
    x = inner.parameter("f32", (2, 3))
    name = inner.end(inner.like("multiply", inner.broadcast(inner.constant("f32", factor), (2, 3)), x))
    return b.build(b.add("fusion", "f32", (2, 3), [p], calls=[name], kind="kLoop"))


def by_factors(factors: Sequence[float]) -> Module:
    """The baseline of two scaled halves."""
    b = Builder()
    p = b.parameter("f32", (4, 3))
    column = b.constant("f32", np.repeat(factors, 2))
    return b.build(b.like("multiply", p, b.broadcast(column, (4, 3), (0,))))


@pytest.mark.parametrize("inside", [False, True])
def test_float_constants_and_called_computations(inside: bool) -> None:
    text = "version: 1\nmesh: {tp: 2}\ninputs:\n  - {baseline: 0, distributed: 0, spec: [tp]}\noutputs:\n  - {baseline: 0, distributed: 0, spec: [tp]}\n"
    modules = [scaled(2.0, inside=inside), scaled(3.0, inside=inside, names="b")]
    assert proved(by_factors([2.0, 3.0]), modules, text) == [True]
    assert proved(by_factors([3.0, 2.0]), modules, text) == [False]
    assert proved(by_factors([2.0, 2.0]), modules, text) == [False]


def test_entries_of_one_module() -> None:
    text = (
        "version: 1\nmesh: {tp: 2}\ninputs:\n"
        "  - {baseline: 0, distributed: 0, module: 0}\n  - {baseline: 1, distributed: 0, module: 1}\noutputs:\n"
        "  - {baseline: 0, distributed: 0, module: 0}\n  - {baseline: 1, distributed: 0, module: 1}\n"
    )

    def two(first: float, second: float) -> Module:
        b = Builder()
        rows = [b.parameter("f32", (2, 3)) for _ in range(2)]
        return b.build(
            [b.like("multiply", b.broadcast(b.constant("f32", f), (2, 3)), p) for f, p in zip((first, second), rows, strict=True)]
        )

    modules = [scaled(2.0), scaled(3.0)]
    assert proved(two(2.0, 3.0), modules, text) == [True, True]
    assert proved(two(2.0, 2.0), modules, text) == [True, False]
    assert proved(two(3.0, 2.0), modules, text) == [False, False]


def test_known_data_of_one_module() -> None:
    def shifted() -> Module:
        b = Builder()
        p, q = b.parameter("s32", (2,)), b.parameter("s32", (2,))
        return b.build(b.like("add", p, q))

    b = Builder()
    p = b.parameter("s32", (4,))
    baseline = b.build(b.like("add", p, b.constant("s32", [5, 5, 7, 7])))
    text = (
        "version: 1\nmesh: {tp: 2}\ninputs:\n  - {baseline: 0, distributed: 0, spec: [tp]}\n"
        "  - {distributed: 1, value: [5, 5], module: 0}\n  - {distributed: 1, value: [7, 7], module: 1}\n"
        "outputs:\n  - {baseline: 0, distributed: 0, spec: [tp]}\n"
    )
    assert proved(baseline, [shifted(), shifted()], text) == [True]
    assert proved(baseline, [shifted(), shifted()], text.replace("[7, 7]", "[7, 8]")) == [False]


# -- what may not differ -----------------------------------------------------------------------------------------------------
def unary(opcode: str = "negate", dims: Sequence[int] = (2,), **attributes: Any) -> Module:
    b = Builder()
    return b.build(b.add(opcode, "f32", dims, [b.parameter("f32", dims)], **attributes))


def two_parameters() -> Module:
    b = Builder()
    return b.build(b.like("negate", b.parameter("f32", (2,)), b.parameter("f32", (2,))))


def reduces(*groups: Sequence[Sequence[int]], swap: bool = False, dead: bool = False) -> Module:
    """An all-reduce of each of two parameters, added up with different weights."""
    b = Builder()
    first, second = b.parameter("f32", (2,)), b.parameter("f32", (2,))
    done: dict[int, int] = {}
    for p in (second, first) if swap else (first, second):
        done[p] = b.add("all-reduce", "f32", (2,), [p], calls=[b.reducer("add", "f32")], replica_groups=groups[0] if groups else ((0, 1),))
    if dead:
        b.add("all-reduce", "f32", (2,), [first], calls=[b.reducer("add", "f32")], replica_groups=((0, 1),))
    return b.build(b.like("subtract", done[first], done[second]))


def position(partitions: int) -> Module:
    b = Builder()
    return b.build(b.add("partition-id", "u32"), num_partitions=partitions)


DIFFERENT: dict[str, tuple[Module, Module, str]] = {
    "opcode": (unary(), unary("abs"), "instruction abs.1 has opcode abs, but module 0 has instruction negate.1: negate"),
    "shape": (unary(), unary(dims=(3,)), "shape f32"),
    "parameters": (unary(), two_parameters(), "has 2 parameters, but module 0 has 1"),
    "an attribute": (unary("all-gather", dimensions=(0,)), unary("all-gather", dimensions=(1,)), "dimensions (1,)"),
    "replica groups": (reduces(), reduces(((1, 0),)), "replica_groups"),
    "order of communication": (reduces(), reduces(swap=True), "communicate in different orders"),
    "more communication": (reduces(), reduces(dead=True), "has 3 instructions that communicate, but module 0 has 2"),
    "partitions": (unary(), replace(unary(), num_partitions=2), "other numbers of partitions"),
    "aliases": (unary(), replace(unary(), aliases={(): (0, ())}), "aliases other results"),
    "device number": (position(1), position(1), "compiled for one device"),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_modules_that_differ_in_more(case: str) -> None:
    first, second, message = DIFFERENT[case]
    with pytest.raises(HloError) as caught:
        collate([first, second], MESH)
    assert message in str(caught.value)


def test_calls_that_communicate_keep_their_order() -> None:
    def module(*, swap: bool) -> Module:
        b = Builder()
        x = b.parameter("f32", (2,))
        names = []
        for k in range(2):
            inner = b.computation(f"inner{k}")
            p = inner.parameter("f32", (2,))
            names.append(inner.end(inner.add("all-reduce", "f32", (2,), [p], calls=[b.reducer("add", "f32")], replica_groups=((0, 1),))))
        made = {k: b.add("call", "f32", (2,), [x], calls=[names[k]]) for k in ((1, 0) if swap else (0, 1))}
        return b.build(b.like("subtract", made[0], b.like("negate", made[1])))

    collate([module(swap=False)] * 2, MESH)
    with pytest.raises(HloError, match="different orders"):
        collate([module(swap=False), module(swap=True)], MESH)


def test_a_constant_that_differs_inside_of_a_loop_is_no_shared_function() -> None:
    def looping(step: float) -> Module:
        b = Builder()
        condition = b.computation("condition")
        state = condition.parameter("f32", ())
        name = condition.end(condition.add("compare", "pred", (), [state, condition.constant("f32", 9.0)], direction="LT"))
        body = b.computation("body")
        grown = body.end(body.like("add", body.constant("f32", step), body.parameter("f32", ())))
        return b.build(b.add("while", "f32", (), [b.parameter("f32", ())], calls=[name, grown]))

    text = "version: 1\nmesh: {tp: 2}\ninputs:\n  - {baseline: 0, distributed: 0}\noutputs:\n  - {baseline: 0, distributed: 0}\n"
    assert proved(looping(1.0), [looping(1.0), looping(1.0)], text) == [True]
    assert proved(looping(1.0), [looping(1.0), looping(2.0)], text) == [False]


def test_the_number_of_pairs_is_bounded() -> None:
    """Modules with many equal values, used in another order by each, would be compared in all combinations."""

    def woven(step: int, width: int = 16) -> Module:
        b = Builder()
        level = [b.parameter("f32", (16,))] * width
        for _ in range(8):
            level = [b.add("concatenate", "f32", (16,), level[k * step :] + level[: k * step], dimensions=(0,)) for k in range(width)]
        return b.build(level)

    assert collate([woven(0), woven(0)], MESH).instruction_count == woven(0).instruction_count
    with pytest.raises(HloError, match="too different to compare"):
        collate([woven(0), woven(1)], MESH)


def test_deep_graphs() -> None:
    b = Builder()
    x = b.parameter("f32", ())
    for _ in range(20_000):
        x = b.like("negate", x)
    module = b.build(x)
    assert collate([module, module], MESH).instruction_count == module.instruction_count
