"""Entries other than plain maps: known data, slices, several modules, the same mesh on both sides, results."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalify.errors import RelationError
from scalify.hlo.literal import small_float_table
from scalify.relation.execute import apply
from scalify.relation.model import Assumption, Mesh, Piece
from scalify.relation.modules import module_positions
from scalify.relation.values import cast
from tests.relation.support import module, relation

MESH = "version: 1\nmesh: {dp: 2, tp: 3}\n"
RESULT = "outputs: [{baseline: 0, distributed: 0}]\n"


def data(entry: str, dtype: str, more: str = "") -> np.ndarray:
    """What the six devices hold of one distributed parameter given as known data."""
    found = relation(f"{MESH}inputs: [{{distributed: 0, {entry}}}]\n{RESULT}{more}", module(""), module(dtype))
    return apply(found.inputs[0][0].recipe, np.empty(0))


def test_a_scalar_value_fills_a_parameter_on_each_device() -> None:
    np.testing.assert_array_equal(data("value: 2.5", "f32[4]"), np.full((2, 3, 4), 2.5))


def test_a_nested_value_has_the_shape_of_the_parameter() -> None:
    np.testing.assert_array_equal(data("value: [[1, 2], [3, 4]]", "s8[2,2]"), np.broadcast_to([[1, 2], [3, 4]], (2, 3, 2, 2)))


def test_per_device_is_in_the_order_of_mesh_positions_whatever_the_device_ids() -> None:
    found = data("per_device: [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]", "u64[2]", "device_ids: [5, 4, 3, 2, 1, 0]\n")
    np.testing.assert_array_equal(found, np.arange(12, dtype=np.uint64).reshape(2, 3, 2))
    assert found.dtype == np.uint64


def test_per_device_scalars_fill() -> None:
    np.testing.assert_array_equal(data("per_device: [1, 2, 3, 4, 5, 6]", "f32[2]")[1, 2], [6, 6])


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ("tp", [[0, 1, 2], [0, 1, 2]]),
        ("dp", [[0, 0, 0], [1, 1, 1]]),
        ("[dp, tp]", [[0, 1, 2], [3, 4, 5]]),
        ("[tp, dp]", [[0, 2, 4], [1, 3, 5]]),
    ],
)
def test_device_index_counts_major_to_minor(axes: str, expected: list[list[int]]) -> None:
    np.testing.assert_array_equal(data(f"device_index: {axes}", "u32[]"), expected)
    np.testing.assert_array_equal(data(f"device_index: {axes}", "s32[1]")[..., 0], expected)


def test_values_are_rounded_to_the_type_of_the_parameter() -> None:
    assert data("value: 9.999999747378752e-06", "f32[]")[0, 0] == np.float32(1e-5)
    assert data("value: 1e-5", "f32[]")[0, 0] == np.float32(1e-5)
    assert data("value: 1.00390625", "bf16[]")[0, 0] == 1.0  # halfway between two bf16 values: to even
    assert data("value: 1.01171875", "bf16[]")[0, 0] == 1.015625
    assert data("value: -3.3895313892515355e+38", "bf16[]")[0, 0] == np.float32(-3.3895313892515355e38)
    assert data("value: -.inf", "f32[]")[0, 0] == -math.inf
    assert np.isnan(data("value: .nan", "bf16[]")).all()
    assert data("value: true", "pred[]").dtype == np.bool_
    assert data("value: 18446744073709551615", "u64[]")[0, 0] == np.uint64(2**64 - 1)
    assert data("value: 4.0", "s32[]")[0, 0] == 4


@pytest.mark.parametrize("dtype", ["f8e5m2", "f8e4m3fn", "f8e4m3", "f8e3m4", "f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3b11fnuz"])
def test_every_value_of_a_small_float_is_itself_and_others_go_to_the_nearest(dtype: str) -> None:
    table = np.unique(small_float_table(dtype)[np.isfinite(small_float_table(dtype))])
    np.testing.assert_array_equal(cast([float(v) for v in table], dtype), table)
    between = (table[:-1].astype(np.float64) * 0.75 + table[1:].astype(np.float64) * 0.25).tolist()
    np.testing.assert_array_equal(cast(between, dtype), table[:-1])


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**127), max_value=2.0**127))
def test_bf16_rounding_is_to_nearest_even(value: float) -> None:
    bits = int(np.array(value, np.float32).view(np.uint32))
    rounded = np.array(((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16, np.uint32).view(np.float32)
    assert cast([value], "bf16")[0] == rounded


def test_baseline_values_have_the_shape_of_the_parameter() -> None:
    found = relation(
        f"{MESH}inputs: [{{baseline: 0, value: 3}}, {{baseline: 1, value: [1, 2]}}]\n{RESULT}", module("f32[2,3] s32[2]"), module("")
    )
    np.testing.assert_array_equal(found.values[0], np.full((2, 3), 3))
    np.testing.assert_array_equal(found.values[1], [1, 2])


def test_one_entry_may_give_data_to_both_sides() -> None:
    found = relation(f"{MESH}inputs: [{{baseline: 0, distributed: 0, value: 3}}]\n{RESULT}", module("s32[]"), module("s32[]"))
    assert found.values[0] == 3
    assert (apply(found.inputs[0][0].recipe, np.empty(0)) == 3).all()


def test_slices_on_both_sides_and_data_in_between() -> None:
    entries = [
        "{baseline: 0, baseline_slice: {0: [0, 6]}, distributed: 0, distributed_slice: {0: [0, 2]}, spec: [tp]}",
        "{baseline: 0, baseline_slice: {0: [6, 9]}, distributed: 0, distributed_slice: {0: [2, 3]}, map: '(tp a) -> [tp] a'}",
        "{distributed: 0, distributed_slice: {0: [3, 5]}, value: -1}",
    ]
    found = relation(f"{MESH}inputs:\n" + "".join(f"- {e}\n" for e in entries) + RESULT, module("s32[9]"), module("s32[5]"))
    whole = np.zeros((2, 3, 5), int)
    for piece in found.inputs[0]:
        whole[:, :, piece.starts[0] : piece.limits[0]] = apply(piece.recipe, np.arange(9))
    np.testing.assert_array_equal(whole[0], whole[1])
    np.testing.assert_array_equal(whole[0], [[0, 1, 6, -1, -1], [2, 3, 7, -1, -1], [4, 5, 8, -1, -1]])
    assert [p.region for p in found.inputs[0]] == [((0,), (6,)), ((6,), (9,)), None]
    assert [p.line for p in found.inputs[0]] == [4, 5, 6]


def test_a_partial_result_is_whole_on_each_device_and_marked() -> None:
    text = f'{MESH}inputs: []\noutputs: [{{baseline: 0, distributed: 0, map: "(dp a) -> [dp +tp] a"}}]'
    (piece,) = relation(text, module("", "f32[4]"), module("", "f32[2]")).outputs[0]
    assert piece.partial == (1,)
    np.testing.assert_array_equal(apply(piece.recipe, np.arange(4)), [[[0, 1]] * 3, [[2, 3]] * 3])


def test_ignored_results_are_absent_and_noted() -> None:
    text = f"{MESH}inputs: []\noutputs:\n- {{baseline: 0, distributed: 1}}\n- {{baseline: 1, ignore: true}}\n- {{distributed: 0, ignore: true}}"
    found = relation(text, module("", "f32[4] f32[]"), module("", "f32[3] f32[4]"))
    assert list(found.outputs) == [1]
    assert found.notes == ("baseline output 1 is not compared (line 6)", "distributed output 0 is not compared (line 7)")


def test_assumptions_and_names() -> None:
    text = f"{MESH}inputs: [{{baseline: ids, distributed: p0}}]\n{RESULT}assume: [{{baseline: ids, range: [0, 32]}}, {{distributed: 0, range: [-1, 4]}}]"
    found = relation(text, module("s32[4]", names=["ids"]), module("s32[4]"))
    assert found.assumptions == (Assumption("baseline", 0, 0, 32), Assumption("distributed", 0, -1, 4))


def test_a_name_that_stands_twice_is_no_reference() -> None:
    text = f"{MESH}inputs: [{{baseline: w, distributed: 0}}]\n{RESULT}"
    with pytest.raises(RelationError, match="line 3: baseline: the name 'w' is not unique among the parameters of the baseline module"):
        relation(text, module("f32[] f32[]", names=["w", "w"]), module("f32[]"))


def test_what_is_not_listed_is_settled_only_with_one_reading_and_noted() -> None:
    text = "version: 1\nmesh: {tp: 2}\ninputs: [{baseline: 0, distributed: 0}]\noutputs: []"
    found = relation(text, module("f32[4] f32[4,6]", "f32[]"), module("f32[4] f32[4,3]", "f32[]"))
    assert found.notes == (
        "parameter 1 is taken to be baseline 1, cut along dimension 1 over tp (from the shapes)",
        "output 0 is taken to be baseline 0, whole on each device (from the shapes)",
    )
    assert found.inputs[1][0].line == 0
    with pytest.raises(RelationError, match=r"line 3: inputs: distributed parameter 1 is f32\[4,3\] .* not listed"):
        relation(
            text.replace("inputs: [{", "inputs: [{distributed: 2, value: 0}, {"),
            module("f32[4] f32[4,6] f32[]"),
            module("f32[4] f32[4,3] f32[]"),
        )


# -- several modules --------------------------------------------------------------------------------------------------
def test_modules_run_on_devices_or_on_stages() -> None:
    mesh = Mesh((("pp", 2), ("tp", 2)), (3, 2, 1, 0))
    assert module_positions(mesh, 1) == ((0, 1, 2, 3),)
    assert module_positions(mesh, 2) == ((0, 1), (2, 3))
    assert module_positions(mesh, 4) == ((3,), (2,), (1,), (0,))
    with pytest.raises(RelationError):
        module_positions(mesh, 3)


STAGES = "version: 1\nmesh: {pp: 2, tp: 2}\n"


def brief(pieces: tuple[Piece, ...]) -> list[tuple[object, int | None]]:
    return [(p.recipe.source, p.module) for p in pieces]


def test_entries_speak_of_one_module_or_of_one_parameter_in_each() -> None:
    inputs = (
        "[{baseline: 0, distributed: [0, 1]}, {baseline: 1, distributed: 1, module: 0}, {baseline: 2, distributed: [null, 0], spec: [tp]}]"
    )
    text = f"{STAGES}inputs: {inputs}\noutputs: [{{baseline: 0, distributed: 0, module: 1}}, {{distributed: 0, module: 0, ignore: true}}]"
    found = relation(text, module("f32[2] f32[3] f32[4]", "f32[5]"), module("f32[2] f32[3]", "f32[9]"), module("f32[2] f32[2]", "f32[5]"))
    assert brief(found.inputs[0]) == [(0, 0), (2, 1)]
    assert brief(found.inputs[1]) == [(0, 1), (1, 0)]
    assert brief(found.outputs[0]) == [(0, 1)]


def test_the_same_number_and_shape_in_all_modules_is_one_piece() -> None:
    text = f"{STAGES}inputs: [{{baseline: 0, distributed: 0, spec: [tp]}}]\n{RESULT}"
    found = relation(text, module("f32[4]"), module("f32[2]"), module("f32[2]"))
    assert brief(found.inputs[0]) == [(0, None)]


def test_a_result_cut_over_stages_needs_every_stage() -> None:
    text = f"{STAGES}inputs: []\noutputs:\n- {{baseline: 0, distributed: 0, module: 0, spec: [pp]}}\n- %s"
    both = [module("", "f32[2]")] * 2
    found = relation(text % "{baseline: 0, distributed: 0, module: 1, spec: [pp]}", module("", "f32[4]"), *both)
    assert brief(found.outputs[0]) == [(0, 0), (0, 1)]
    with pytest.raises(
        RelationError, match=r"line 5: outputs\[0\]: baseline output 0 is f32\[4\], but its elements \[0:4\] are not compared"
    ):
        relation(text % "{distributed: 0, module: 1, ignore: true}", module("", "f32[4]"), *both)


# -- the same mesh on both sides --------------------------------------------------------------------------------------
def test_on_the_same_mesh_entries_are_the_identity_on_each_device() -> None:
    inputs = '[{baseline: 0, distributed: 0}, {baseline: 1, distributed: 1, map: "a b -> b a"}, {baseline: 2, device_index: tp}]'
    text = f"{MESH}baseline_mesh: same\ninputs: {inputs}\n{RESULT}"
    both = module("f32[4] f32[2,3] s32[]")
    found = relation(text, both, module("f32[4] f32[3,2]"))
    assert found.same_mesh
    assert found.inputs[0][0].recipe.steps == ()
    array = np.arange(36).reshape(2, 3, 2, 3)
    np.testing.assert_array_equal(apply(found.inputs[1][0].recipe, array), array.transpose(0, 1, 3, 2))
    np.testing.assert_array_equal(found.values[2], [[0, 1, 2]] * 2)
    with pytest.raises(RelationError, match="line 4: spec: names a mesh axis, but with `baseline_mesh: same`"):
        relation(
            f"{MESH}baseline_mesh: same\ninputs: [{{baseline: 0, distributed: 0, spec: [tp]}}]\n{RESULT}",
            module("f32[3]"),
            module("f32[1]"),
        )


def test_known_data_of_a_baseline_on_the_mesh_has_the_mesh_dimensions() -> None:
    text = f"{MESH}baseline_mesh: same\ninputs: [{{baseline: 0, per_device: [0, 1, 2, 3, 4, 5]}}, {{baseline: 1, value: 7}}]\n{RESULT}"
    found = relation(text, module("s32[2] f32[]"), module(""))
    np.testing.assert_array_equal(found.values[0], np.broadcast_to(np.arange(6).reshape(2, 3, 1), (2, 3, 2)))
    np.testing.assert_array_equal(found.values[1], np.full((2, 3), 7))
