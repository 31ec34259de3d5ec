"""Transfer functions against the definitions of their opcodes, and that wrong ones are found."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from scalify.lift import transfer
from scalify.lift.transfer import TRANSFERS as LIFTED
from scalify.lift.transfer import opaque
from scalify.prove.proof.opcodes import congruence, entry, specification
from scalify.prove.proof.opcodes.checks import check
from scalify.prove.proof.opcodes.elements import Elements
from scalify.prove.proof.opcodes.table import TRANSFERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from scalify.prove.proof.opcodes.elements import Element
    from scalify.prove.proof.opcodes.specification import Arrays, Index


def test_every_opcode_that_is_lifted_has_a_definition() -> None:
    assert set(transfer.TRANSFERS) == set(TRANSFERS)
    assert entry.missing() == []


@pytest.mark.parametrize("opcode", TRANSFERS)
def test_transfer_functions(opcode: str) -> None:
    """Every 23rd operation; ``scalify rules --check`` takes all."""
    found = TRANSFERS[opcode].check(every=23)
    assert not found.wrong
    assert found.checked


def _arrays(a: Arrays, **changed: object) -> Arrays:
    return dataclasses.replace(a, operation=dataclasses.replace(a.operation, attributes={**a.attributes, **changed}))


def _inverse_transpose(a: Arrays, r: int, device: int, index: Index) -> Element:
    return a.x(0, device, tuple([index[d] for d in a.attributes["dimensions"]]))


def _without_stride(a: Arrays, r: int, device: int, index: Index) -> Element:
    return ORIGINAL["slice"](_arrays(a, strides=(1,) * len(index)), r, device, index)


def _unclamped(a: Arrays, r: int, device: int, index: Index) -> Element:
    starts = [max(0, specification.whole(a.x(1 + d, device, ()))) % n for d, n in enumerate(a.dims(0))]
    return a.x(0, device, tuple([(s + i) % n for s, i, n in zip(starts, index, a.dims(0), strict=True)]))


def _without_initial(a: Arrays, r: int, device: int, index: Index) -> Element:
    x = a.x
    neutral = {"add": 0, "multiply": 1, "maximum": -99, "minimum": 99}.get(a.operation.reducer, 0)
    return ORIGINAL["reduce"](dataclasses.replace(a, x=lambda k, d, i: neutral if k == 1 else x(k, d, i)), r, device, index)


def _sorted_group(a: Arrays, r: int, device: int, index: Index) -> Element:
    groups = dataclasses.replace(
        a.attributes["replica_groups"], groups=tuple(tuple(sorted(g)) for g in a.attributes["replica_groups"].groups)
    )
    return ORIGINAL[a.operation.opcode](_arrays(a, replica_groups=groups), r, device, index)


def _own_group_only(a: Arrays, r: int, device: int, index: Index) -> Element:
    return a.x(r, device, index)


def _kept_where_no_source(a: Arrays, r: int, device: int, index: Index) -> Element:
    found = [s for s, t in a.attributes["source_target_pairs"] if t == device]
    return a.x(r, found[0] if found else device, index)


ORIGINAL = dict(specification.DEFINITIONS)
WRONG: dict[str, Callable[[Arrays, int, int, Index], Element]] = {
    "transpose": _inverse_transpose,
    "slice": _without_stride,
    "dynamic-slice": _unclamped,
    "reduce": _without_initial,
    "all-gather": _sorted_group,
    "reduce-scatter": _sorted_group,
    "all-to-all": _sorted_group,
    "all-reduce": _own_group_only,
    "collective-permute": _kept_where_no_source,
}


@pytest.mark.parametrize("opcode", WRONG)
def test_another_definition_is_not_the_one(opcode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(specification.DEFINITIONS, opcode, WRONG[opcode])
    operations = TRANSFERS[opcode].operations
    assert operations is not None
    assert check(operations()).wrong


@pytest.mark.parametrize("opcode", [o for o, t in TRANSFERS.items() if t.operations is not None])
def test_a_result_that_is_off_by_one_is_found(opcode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = specification.DEFINITIONS[opcode]

    def shifted(a: Arrays, r: int, device: int, index: Index) -> Element:
        return a.elements.add([original(a, r, device, index), 1])

    monkeypatch.setitem(specification.DEFINITIONS, opcode, shifted)
    assert TRANSFERS[opcode].check(every=23).wrong


def test_transfer_functions_that_are_exchanged_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for opcode, other in (("add", "subtract"), ("maximum", "minimum"), ("floor", "ceil"), ("divide", "remainder")):
        monkeypatch.setitem(LIFTED, opcode, LIFTED[other])
        assert TRANSFERS[opcode].check().wrong


def test_an_opaque_key_that_leaves_something_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opaque, "attributes_key", lambda attributes: ())
    assert "are one value" in congruence.check_variants(congruence.sort()).wrong
    monkeypatch.setattr(opaque, "computation_key", lambda module, computation: ())
    assert "are one value" in congruence.check_variants(congruence.sort()).wrong


def test_elements() -> None:
    e = Elements()
    x, y, p = e.symbol("x"), e.symbol("y"), e.truth("p")
    assert e.add([x, y]) == e.add([y, x])
    assert e.multiply([e.add([x, y]), e.add([x, e.negative(y)])]) == e.add([e.power(x, 2), e.negative(e.power(y, 2))])
    assert e.add([x, e.negative(x)]) == 0
    assert e.greatest([x, e.greatest([y, x, 2]), 1]) == e.greatest([2, y, x])
    assert e.differ([(e.select(p, x, y), e.add([e.multiply([p, x]), e.multiply([e.add([1, e.negative(p)]), y])]))]) is None
    assert e.differ([(e.least([x, y]), e.add([x, y, e.negative(e.greatest([x, y]))]))]) is None
    assert e.differ([(e.least([x, y]), x)]) is not None
    assert e.differ([(1, 2)]) == "1 instead of 2"
