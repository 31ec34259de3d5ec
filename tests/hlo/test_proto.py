"""The reader of HLO protos: structure, attributes, device lists, shardings, locations."""

from __future__ import annotations

from typing import Any

import pytest

from scalify.hlo.module import Frame, Instruction, Sharding
from scalify.hlo.proto_attributes import API_VERSIONS
from scalify.hlo.window import ConvDims, WindowDimension
from tests.support.protos import computation, hlo, inst, make, one, raw, read, reducer, refused, shape, tuple_shape, with_one

# Structure


def test_operands_are_positions_and_the_constructor_agrees() -> None:
    found = one(inst(9, "add", "f32", (4, 8), [2, 1]))
    assert found == Instruction("add.9", "add", found.shape, (1, 0), {}, (), None, ())
    assert str(found.shape) == "f32[4,8]"
    assert hash(found.shape) == hash(type(found.shape)("f32", (4, 8)))


def test_instructions_out_of_order_are_sorted() -> None:
    body = [inst(5, "negate", operands=[4]), inst(4, "abs", operands=[3], control_predecessor_ids=[8]), inst(3, "parameter"), inst(8, "iota", "f32", (2,), dimensions=[0])]  # fmt: skip
    entry = read(hlo([computation(body, root=5)])).entry
    assert [i.opcode for i in entry.instructions] == ["parameter", "iota", "abs", "negate"]
    assert entry.root == 3
    assert entry.instructions[2].control == (1,)
    assert entry.instructions[2].operands == (0,)


def test_long_chain_in_reverse_needs_no_recursion() -> None:
    n = 20_000
    body = [inst(k, "negate", operands=[k - 1]) for k in range(n, 1, -1)] + [inst(1, "parameter")]
    entry = read(hlo([computation(body, root=n)])).entry
    assert entry.root == n - 1
    assert all(i.operands == (k - 1,) for k, i in enumerate(entry.instructions) if k)


def test_callees_come_first_and_while_is_condition_then_body() -> None:
    condition = computation([inst(20, "parameter"), inst(21, "compare", "pred", operands=[20, 20], comparison_direction="LT")], 2, "cond")
    body = computation([inst(30, "parameter"), inst(31, "negate", operands=[30])], 3, "body")
    entry = computation([inst(1, "parameter"), inst(2, "while", operands=[1], called_computation_ids=[3, 2])], 9, "main")
    module = read(hlo([entry, body, condition], entry_computation_id=9, entry_computation_name="main"))
    assert list(module.computations)[-1] == "main"
    assert module.entry.instructions[1].calls == ("cond", "body")


def test_unnamed_instructions_get_a_name() -> None:
    assert one(inst(3, "negate", operands=[1], name="")).name == "negate.3"


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (hlo([computation([inst(1, "negate", operands=[7])])]), r"main: negate.1: operand \(id 7\) does not exist"),
        (hlo([computation([inst(1, "negate", operands=[2]), inst(2, "negate", operands=[1])])]), "main: instructions depend on each other in a cycle"),
        (hlo([computation([inst(1, "negate", operands=[1])])]), "cycle"),
        (hlo([computation([inst(1, "parameter"), inst(1, "negate", operands=[1], name="b")])]), "two instructions have the same id"),
        (hlo([computation([inst(1, "parameter", name="a"), inst(2, "negate", operands=[1], name="a")])]), "main: a: two instructions have this name"),
        (hlo([computation([inst(1, "parameter")], root=5)]), r"the root instruction \(id 5\) does not exist"),
        (hlo([computation([inst(1, "parameter", parameter_number=1)])]), r"parameters must be numbered 0 to 0, once each, not \[1\]"),
        (hlo([computation([inst(1, "parameter"), inst(2, "parameter")])]), r"numbered 0 to 1, once each, not \[0, 0\]"),
        (hlo([reducer(7), computation([inst(1, "parameter")], 7)]), "two computations have the same id"),
        (hlo([reducer(7, "main"), computation([inst(1, "parameter")])]), "two computations have the same name"),
        (hlo([computation([inst(1, "parameter")]), computation([], 2, "empty", 0)]), "empty: the computation is empty"),
        (hlo([computation([inst(1, "call", called_computation_ids=[5])])]), r"call.1: the called computation \(id 5\) does not exist"),
        (hlo([computation([inst(1, "call", called_computation_ids=[1])])]), "computations call each other in a cycle"),
        (hlo([computation([inst(1, "parameter")])], entry_computation_id=8, entry_computation_name="x"), "the entry computation 'x' does not exist"),
        (hlo([computation([inst(1, "parameter"), inst(2, "Evil [red]", operands=[1])])]), "'Evil \\[red\\]' is not an opcode"),
        (hlo([computation([inst(1, "parameter", shape=raw("ShapeProto", element_type=99))])]), "element type number 99 is not known"),
        (hlo([computation([inst(1, "parameter", "f32", (-1,))])]), r"f32\[-1\] is not a possible shape"),
        (hlo([computation([inst(1, "parameter", "f32", (1 << 40, 1 << 40))])]), "is not a possible shape"),
        (hlo([computation([inst(1, "parameter", shape=shape("f32", (2, 2), (0, 0)))])]), r"layout \[0, 0\] does not fit"),
        (hlo([computation([inst(1, "parameter", shape=b"\xff")])]), "parameter.1: a ShapeProto is damaged"),
    ],
)  # fmt: skip
def test_inconsistent_modules_are_refused(module: Any, message: str) -> None:
    refused(module, message)


def test_deeply_nested_tuples_are_refused() -> None:
    nested = shape("f32")
    for _ in range(200):
        nested = tuple_shape(nested)
    refused(with_one(inst(3, "tuple", shape=nested)), "tuples are nested deeper than 32")


def test_shapes() -> None:
    found = one(
        inst(3, "tuple", shape=tuple_shape(shape("bf16", (2, 3), is_dynamic_dimension=[True, False]), shape("token"), tuple_shape()))
    )
    assert str(found.shape) == "(bf16[<=2,3], token[], ())"
    assert one(inst(3, "negate", shape=shape("f32", (2, 3), (0, 1)), operands=[1])).shape.layout == (0, 1)


def test_unknown_fields_are_kept_and_empty_ones_are_not() -> None:
    plain = inst(3, "negate", "f32", (4, 8), [1])
    extended = type(plain).FromString(plain.SerializeToString() + b"\xc8\x05\x01" + b"\xb2\x05\x00")  # field 89 is known; 86 is empty
    assert "unknown_fields" not in one(extended).attributes
    extended = type(plain).FromString(plain.SerializeToString() + b"\xb2\x05\x01a")
    assert one(extended).attributes["unknown_fields"] == (86,)
    wrong_type = type(plain).FromString(plain.SerializeToString() + b"\x40\x01")  # field 8 is a message, here a number
    assert one(wrong_type).attributes["unknown_fields"] == (8,)


# Module


def test_module_fields() -> None:
    entries = [make("AliasEntryProto", output_shape_index=[1], parameter_number=0, parameter_shape_index=[2])]
    module = read(
        with_one(
            inst(3, "tuple", shape=tuple_shape(shape("f32", (4, 8))), operands=[1]),
            input_output_alias=make("HloInputOutputAliasProto", entries=entries),
            device_assignment=make("DeviceAssignmentProto", replica_count=2, computation_count=4),
            spmd_parameters_shardings=[b"", raw("OpSharding", type=3, tile_assignment_dimensions=[4, 1], iota_reshape_dims=[4])],
            spmd_output_sharding=raw("OpSharding", type=2, tuple_shardings=[b""]),
        )
    )
    assert module.aliases == {(1,): (0, (2,))}
    assert (module.num_replicas, module.num_partitions) == (2, 4)
    assert module.parameter_shardings == (Sharding("replicated"), Sharding("tiled", (4, 1), (0, 1, 2, 3)))
    assert module.output_sharding == Sharding("tuple", elements=(Sharding("replicated"),))


def test_partitions_from_shardings_and_default() -> None:
    sharding = raw("OpSharding", type=3, tile_assignment_dimensions=[2, 1], tile_assignment_devices=[1, 0])
    assert read(with_one(inst(3, "negate", operands=[1]), spmd_output_sharding=sharding)).num_partitions == 2
    assert read(with_one(inst(3, "negate", operands=[1]))).num_partitions == 1


@pytest.mark.parametrize("number", [-1, 2])
def test_alias_of_a_missing_parameter(number: int) -> None:
    entries = [make("AliasEntryProto", parameter_number=number)]
    refused(
        with_one(inst(3, "negate", operands=[1]), input_output_alias=make("HloInputOutputAliasProto", entries=entries)),
        "which does not exist",
    )


# Attributes: one line for each reader

DOT = raw("DotDimensionNumbers", lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0], lhs_batch_dimensions=[2])
DOT_ATTRIBUTES = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,), "lhs_batch_dims": (2,), "rhs_batch_dims": ()}
WINDOW = raw(
    "Window", dimensions=[make("WindowDimension", size=3, stride=2, padding_low=-1, padding_high=1, window_dilation=4, base_dilation=5)]
)
WINDOW_DIMS = (WindowDimension(3, 2, -1, 1, lhs_dilate=5, rhs_dilate=4),)
CONV = raw(
    "ConvolutionDimensionNumbers", input_batch_dimension=0, input_feature_dimension=1, input_spatial_dimensions=[2],
    kernel_input_feature_dimension=1, kernel_output_feature_dimension=0, kernel_spatial_dimensions=[2],
    output_batch_dimension=2, output_feature_dimension=0, output_spatial_dimensions=[1],
)  # fmt: skip
CONV_DIMS = ConvDims(0, 1, (2,), 1, 0, (2,), 2, 0, (1,))
GATHER = raw("GatherDimensionNumbers", offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1)
SCATTER = raw(
    "ScatterDimensionNumbers", update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1
)


@pytest.mark.parametrize(
    ("opcode", "fields", "attributes"),
    [
        ("get-tuple-element", {"tuple_index": 2}, {"index": 2}),
        ("broadcast", {"dimensions": [0, 2]}, {"dimensions": (0, 2)}),
        ("broadcast", {}, {"dimensions": ()}),
        ("transpose", {"dimensions": [1, 0]}, {"dimensions": (1, 0)}),
        ("iota", {"dimensions": [1]}, {"iota_dimension": 1}),
        ("sort", {"dimensions": [1], "is_stable": True}, {"dimensions": (1,), "is_stable": True}),
        ("dot", {"dot_dimension_numbers": DOT}, DOT_ATTRIBUTES),
        ("dot", {}, dict.fromkeys(DOT_ATTRIBUTES, ())),
        (
            "ragged-dot",
            {"ragged_dot_dimension_numbers": raw("RaggedDotDimensionNumbers", dot_dimension_numbers=make("DotDimensionNumbers").FromString(DOT), rhs_group_dimensions=[0])},
            DOT_ATTRIBUTES | {"lhs_ragged_dims": (), "rhs_group_dims": (0,)},
        ),
        (
            "slice",
            {"slice_dimensions": [raw("SliceDimensions", start=1, limit=4, stride=2), raw("SliceDimensions", limit=8)]},
            {"starts": (1, 0), "limits": (4, 8), "strides": (2, 1)},
        ),
        ("dynamic-slice", {"dynamic_slice_sizes": [1, 8]}, {"dynamic_slice_sizes": (1, 8)}),
        (
            "pad",
            {"padding_config": raw("PaddingConfig", dimensions=[make("PaddingDimension", edge_padding_low=-1, edge_padding_high=2), make("PaddingDimension", interior_padding=3)])},
            {"padding": ((-1, 2, 0), (0, 0, 3))},
        ),
        (
            "gather",
            {"gather_dimension_numbers": GATHER, "gather_slice_sizes": [1, 8], "indices_are_sorted": True},
            {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "operand_batching_dims": (), "start_indices_batching_dims": (),
             "index_vector_dim": 1, "slice_sizes": (1, 8), "indices_are_sorted": True},
        ),
        (
            "scatter",
            {"scatter_dimension_numbers": SCATTER, "unique_indices": True},
            {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,), "input_batching_dims": (),
             "scatter_indices_batching_dims": (), "index_vector_dim": 1, "indices_are_sorted": False, "unique_indices": True},
        ),
        ("compare", {"comparison_direction": "GE", "comparison_type": "TOTALORDER"}, {"direction": "GE", "type": "TOTALORDER"}),
        ("compare", {"comparison_direction": "NE"}, {"direction": "NE"}),
        ("collective-permute", {"source_target_pairs": [make("SourceTarget", source=0, target=1)], "channel_id": 4}, {"source_target_pairs": ((0, 1),), "channel_id": 4}),
        ("send", {"channel_id": 3, "is_host_transfer": True}, {"channel_id": 3, "is_host_transfer": True}),
        (
            "custom-call",
            {"custom_call_target": "AwsNeuronTopK", "backend_config": b"a\xff", "custom_call_api_version": 2, "custom_call_has_side_effect": True,
             "output_operand_aliasing": [make("OutputOperandAliasing", output_shape_index=[0], operand_index=1)]},
            {"custom_call_target": "AwsNeuronTopK", "backend_config": "a\\xff", "api_version": API_VERSIONS[2], "custom_call_has_side_effect": True,
             "output_to_operand_aliasing": (((0,), 1, ()),)},
        ),
        ("while", {"backend_config": b"{}"}, {"backend_config": "{}"}),
        ("fusion", {"fusion_kind": "kLoop"}, {"kind": "kLoop"}),
        ("reduce-window", {"window": WINDOW}, {"window": WINDOW_DIMS}),
        (
            "convolution",
            {"window": WINDOW, "convolution_dimension_numbers": CONV, "feature_group_count": 2},
            {"window": WINDOW_DIMS, "dim_labels": CONV_DIMS, "feature_group_count": 2, "batch_group_count": 1},
        ),
        ("rng", {"distribution": 1}, {"distribution": "rng_uniform"}),
        ("rng-bit-generator", {"rng_algorithm": 1}, {"algorithm": "rng_three_fry"}),
        ("rng-get-and-update-state", {"delta": 5}, {"delta": 5}),
        ("fft", {"fft_type": 2, "fft_length": [8]}, {"fft_type": "RFFT", "fft_length": (8,)}),
        ("cholesky", {"cholesky_options": raw("CholeskyOptions", lower=True)}, {"lower": True}),
        (
            "triangular-solve",
            {"triangular_solve_options": raw("TriangularSolveOptions", left_side=True, transpose_a=2)},
            {"left_side": True, "lower": False, "unit_diagonal": False, "transpose_a": "TRANSPOSE"},
        ),
        ("topk", {"k": 3, "largest": True}, {"k": 3, "largest": True}),
        ("batch-norm-training", {"epsilon": 0.5, "feature_index": 1}, {"epsilon": 0.5, "feature_index": 1}),
        ("reduce-precision", {"exponent_bits": 8, "mantissa_bits": 7}, {"exponent_bits": 8, "mantissa_bits": 7}),
        ("infeed", {"infeed_config": b"in"}, {"infeed_config": "in"}),
        ("outfeed", {"outfeed_config": b"out"}, {"outfeed_config": "out"}),
        ("domain", {"domain_exit_sharding": raw("OpSharding", type=4)}, {"domain_entry": Sharding("replicated"), "domain_exit": Sharding("manual")}),
        ("negate", {"sharding": raw("OpSharding", type=1, tile_assignment_devices=[3])}, {"sharding": Sharding("maximal", devices=(3,))}),
        ("negate", {"frontend_attributes": raw("FrontendAttributes", map=[make("Attribute", key="a", value="b")])}, {"frontend_attributes": {"a": "b"}}),
        ("exponential", {}, {}),
        ("all-reduce-done", {}, {}),
    ],
)  # fmt: skip
def test_attributes(opcode: str, fields: dict[str, Any], attributes: dict[str, Any]) -> None:
    assert one(inst(3, opcode, **fields)).attributes == attributes


@pytest.mark.parametrize(
    ("opcode", "fields", "message"),
    [
        ("compare", {"comparison_direction": "ABOUT"}, "comparison direction 'ABOUT' is not known"),
        ("iota", {"dimensions": [0, 1]}, "iota needs one dimension, not 2"),
        ("rng", {"distribution": 9}, "random distribution number 9 is not known"),
        ("fft", {"fft_type": -1}, "FFT type number -1 is not known"),
        ("dot", {"dot_dimension_numbers": b"\x0a\x05"}, "a DotDimensionNumbers is damaged"),
    ],
)
def test_damaged_attributes(opcode: str, fields: dict[str, Any], message: str) -> None:
    refused(with_one(inst(3, opcode, **fields)), f"main: {opcode}.3: {message}")


def test_collective() -> None:
    groups = [raw("ReplicaGroup", replica_ids=[0, 2]), raw("ReplicaGroup", replica_ids=[3, 1])]
    found = one(
        inst(3, "all-gather", dimensions=[1], replica_groups=groups, channel_id=2, use_global_device_ids=True, constrain_layout=True)
    )
    assert found.attributes["replica_groups"].groups == ((0, 2), (3, 1))
    assert found.attributes["replica_groups"].encoding == "list"
    rest = {k: v for k, v in found.attributes.items() if k != "replica_groups"}
    assert rest == {"dimensions": (1,), "channel_id": 2, "use_global_device_ids": True, "constrain_layout": True}
    reduced = one(inst(3, "all-reduce", all_reduce_id=5, called_computation_ids=[7]))
    assert reduced.calls == ("sum",)
    assert reduced.attributes["channel_id"] == 5
    assert reduced.attributes["replica_groups"].resolve(3) == ((0, 1, 2),)


# Locations


def stack_of(metadata: bytes, **fields: Any) -> tuple[Frame, ...]:
    location = one(inst(3, "negate", operands=[1], metadata=metadata), **fields).location
    assert location is not None
    return location.stack


def test_inline_location() -> None:
    location = one(inst(3, "negate", metadata=raw("OpMetadata", op_name="jit(f)/neg", source_file="a.py", source_line=7))).location
    assert location is not None
    assert (location.op_name, location.stack) == ("jit(f)/neg", (Frame("a.py", 7),))
    assert one(inst(3, "negate")).location is None


def test_stack_inside_source_file_is_innermost_first() -> None:
    text = "src/main.py\n----\n['src/main.py:46', 'src/llama/model.py:231', 'lib/scribe.py:553']"
    assert stack_of(raw("OpMetadata", source_file=text, source_line=46)) == (
        Frame("lib/scribe.py", 553), Frame("src/llama/model.py", 231), Frame("src/main.py", 46),
    )  # fmt: skip


def test_other_stacks_inside_source_file() -> None:
    assert stack_of(raw("OpMetadata", source_file="a.py:1\nb.py:2\n")) == (Frame("b.py", 2), Frame("a.py", 1))
    traceback = 'File "a.py", line 3, in f\n    g()\n  File "b c.py", line 4, in g\n'
    assert stack_of(raw("OpMetadata", source_file=traceback)) == (Frame("b c.py", 4, "g"), Frame("a.py", 3, "f"))
    assert stack_of(raw("OpMetadata", source_file="a.py\nnothing", source_line=9)) == (Frame("a.py", 9),)


FRAMES = make(
    "StackFrameIndexProto",
    file_names=["user.py", "lib.py"],
    function_names=["forward", "dot"],
    file_locations=[
        make("FileLocation", file_name_id=1, function_name_id=1, line=10),
        make("FileLocation", file_name_id=2, function_name_id=2, line=20),
    ],
    stack_frames=[make("StackFrame", file_location_id=1), make("StackFrame", file_location_id=2, parent_frame_id=1)],
)


def test_stack_frame_tables() -> None:
    both = raw("OpMetadata", stack_frame_id=2, source_file="lib.py", source_line=20)
    assert stack_of(both, stack_frame_index=FRAMES) == (Frame("lib.py", 20, "dot"), Frame("user.py", 10, "forward"))
    assert stack_of(raw("OpMetadata", stack_frame_id=9, source_file="x.py", source_line=1), stack_frame_index=FRAMES) == (Frame("x.py", 1),)


def test_circular_stack_frames_end() -> None:
    tables = make("StackFrameIndexProto")
    tables.CopyFrom(FRAMES)
    tables.stack_frames[0].parent_frame_id = 2
    assert 2 <= len(stack_of(raw("OpMetadata", stack_frame_id=2), stack_frame_index=tables)) <= 200
