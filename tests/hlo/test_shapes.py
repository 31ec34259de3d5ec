"""Shape rules, one row a case: ``operands -> result`` with attributes, right or wrong."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from scalify.errors import HloError
from scalify.hlo.module import Computation, Instruction, Module, ReplicaGroups, Shape
from scalify.hlo.opcodes import OPCODES
from scalify.hlo.shape_text import read_shape
from scalify.hlo.shapes import check
from scalify.hlo.window import ConvDims, WindowDimension
from tests.support.builder import Builder

GATHER = {
    "offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "index_vector_dim": 1, "slice_sizes": (1, 8),
}  # fmt: skip
BATCHED_GATHER = {
    "offset_dims": (2,), "collapsed_slice_dims": (1,), "start_index_map": (1,), "operand_batching_dims": (0,),
    "start_indices_batching_dims": (0,), "index_vector_dim": 2, "slice_sizes": (1, 1, 8),
}  # fmt: skip
SCATTER = {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1}
DOT = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}
CONV = ConvDims(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))
W3 = (WindowDimension(3, 1, 1, 1), WindowDimension(3, 2, 1, 1))
PAIRS4 = ReplicaGroups(((0, 1), (2, 3)))
PERMUTE = {"source_target_pairs": ((0, 1), (1, 0))}

# opcode, operands, attributes, the right result, wrong results
ROWS: list[tuple[str, str, dict[str, Any], str, list[str]]] = [
    ("add", "f32[2,3]; f32[2,3]", {}, "f32[2,3]", ["f32[3,2]", "bf16[2,3]", "f32[6]"]),
    ("add", "f32[<=2,3]; f32[2,3]", {}, "f32[2,3]", ["f32[<=3,3]"]),
    ("add", "pred[2]; pred[2]", {}, "pred[2]", ["s32[2]"]),
    ("exponential", "c64[2]", {}, "c64[2]", ["f32[2]"]),
    ("floor", "bf16[2]", {}, "bf16[2]", ["bf16[]"]),
    ("not", "pred[2]", {}, "pred[2]", ["s8[2]"]),
    ("abs", "c64[2]", {}, "f32[2]", ["c64[2]"]),
    ("real", "f32[2]", {}, "f32[2]", ["c64[2]"]),
    ("complex", "f64[2]; f64[2]", {}, "c128[2]", ["c64[2]"]),
    ("is-finite", "f32[2]", {}, "pred[2]", ["f32[2]"]),
    ("convert", "f32[2]", {}, "pred[2]", ["f32[3]"]),
    ("bitcast-convert", "f32[2]", {}, "s32[2]", ["f32[3]", "s16[2]"]),
    ("bitcast-convert", "f32[2]", {}, "u8[2,4]", ["u8[4,2]"]),
    ("bitcast-convert", "u8[2,4]", {}, "f32[2]", ["f32[2,1]"]),
    ("reduce-precision", "f32[2]", {"exponent_bits": 5, "mantissa_bits": 2}, "f32[2]", ["f32[1]"]),
    ("compare", "f32[2]; f32[2]", {"direction": "LT"}, "pred[2]", ["f32[2]", "pred[]"]),
    ("select", "pred[2]; f32[2]; f32[2]", {}, "f32[2]", ["f32[]"]),
    ("select", "pred[]; f32[2]; f32[2]", {}, "f32[2]", ["pred[2]"]),
    ("clamp", "f32[]; f32[2]; f32[2]", {}, "f32[2]", ["f32[]"]),
    ("stochastic-convert", "f32[2]; u32[2]", {}, "bf16[2]", ["bf16[3]"]),
    ("broadcast", "f32[3]", {"dimensions": (1,)}, "f32[2,3]", ["f32[3,2]", "s32[2,3]", "f32[3]"]),
    ("broadcast", "f32[]", {"dimensions": ()}, "f32[2,3]", ["s32[2,3]"]),
    ("reshape", "f32[6]", {}, "f32[2,3]", ["f32[7]", "s32[6]"]),
    ("dynamic-reshape", "f32[6]; s32[]; s32[]", {}, "f32[<=2,<=3]", ["f32[6]"]),
    ("transpose", "f32[2,3]", {"dimensions": (1, 0)}, "f32[3,2]", ["f32[2,3]"]),
    ("reverse", "f32[2,3]", {"dimensions": (1,)}, "f32[2,3]", ["f32[3,2]"]),
    ("bitcast", "f32[2,3]", {}, "f32[6]", ["f32[5]", "s8[6]"]),
    ("bitcast", "f32[2]", {}, "bf16[4]", ["bf16[2]"]),
    ("bitcast", "s4[4]", {}, "s8[4]", ["s8[3]"]),
    ("copy", "(f32[2], s32[])", {}, "(f32[2], s32[])", ["(f32[2], s64[])", "(f32[2])"]),
    ("concatenate", "f32[2,3]; f32[2,4]", {"dimensions": (1,)}, "f32[2,7]", ["f32[4,3]", "f32[2,6]"]),
    ("slice", "f32[8,4]", {"starts": (1, 0), "limits": (8, 4), "strides": (3, 1)}, "f32[3,4]", ["f32[2,4]"]),
    ("dynamic-slice", "f32[8,4]; s32[]; u32[]", {"dynamic_slice_sizes": (2, 4)}, "f32[2,4]", ["f32[4,2]"]),
    ("dynamic-slice", "f32[8,4]; s32[2]", {"dynamic_slice_sizes": (2, 4)}, "f32[2,4]", ["f32[8,4]"]),
    ("dynamic-update-slice", "f32[8,4]; f32[2,4]; s32[]; s32[]", {}, "f32[8,4]", ["f32[2,4]"]),
    ("pad", "f32[8]; f32[]", {"padding": ((-2, 1, 1),)}, "f32[14]", ["f32[7]"]),
    ("pad", "f32[0]; f32[]", {"padding": ((1, 1, 5),)}, "f32[2]", ["f32[0]"]),
    ("iota", "", {"iota_dimension": 1}, "s32[2,3]", ["s32[2]", "pred[2,3]"]),
    ("get-dimension-size", "f32[<=8]", {"dimensions": (0,)}, "s32[]", ["s64[]"]),
    ("set-dimension-size", "f32[8]; s32[]", {"dimensions": (0,)}, "f32[<=8]", ["f32[<=9]"]),
    ("gather", "f32[16,8]; s32[5,1]", GATHER, "f32[5,8]", ["f32[8,5]", "s32[5,8]"]),
    ("gather", "f32[16,8]; s32[5]", GATHER, "f32[5,8]", ["f32[5,1,8]"]),
    ("gather", "f32[3,16,8]; s32[3,5,1]", BATCHED_GATHER, "f32[3,5,8]", ["f32[5,3,8]"]),
    ("scatter", "f32[16,8]; s32[5,1]; f32[5,8]", SCATTER, "f32[16,8]", ["f32[5,8]"]),
    ("scatter", "f32[16,8]; f32[16,8]; s32[5]; f32[5,4]; f32[5,8]", SCATTER, "(f32[16,8], f32[16,8])", ["f32[16,8]"]),
    ("sort", "f32[4,3]; s32[4,3]", {"dimensions": (0,)}, "(f32[4,3], s32[4,3])", ["(s32[4,3], f32[4,3])"]),
    ("sort", "f32[4]", {"dimensions": (0,)}, "f32[4]", ["f32[3]"]),
    ("topk", "bf16[4,32]", {"k": 5}, "(bf16[4,5], s32[4,5])", ["(bf16[4,5], s64[4,5])", "bf16[4,5]"]),
    ("reduce", "f32[2,3,4]; f32[]", {"dimensions": (0, 2)}, "f32[3]", ["f32[2,4]", "f32[]"]),
    ("reduce", "f32[2,3]; f32[2,3]; f32[]; f32[]", {"dimensions": (1,)}, "(f32[2], f32[2])", ["f32[2]", "(f32[2], f32[3])"]),
    ("reduce-window", "f32[8,8]; f32[]", {"window": W3}, "f32[8,4]", ["f32[8,8]"]),
    ("select-and-scatter", "f32[8,8]; f32[8,4]; f32[]", {"window": W3}, "f32[8,8]", ["f32[8,4]"]),
    ("dot", "bf16[2,3]; bf16[3,4]", DOT, "f32[2,4]", ["f32[4,2]", "s32[2,4]"]),
    ("dot", "s8[2,3]; u8[3,4]", DOT, "s32[2,4]", ["f32[2,4]"]),
    ("dot", "f32[5,2,3]; f32[5,3]", {"lhs_batch_dims": (0,), "rhs_batch_dims": (0,), "lhs_contracting_dims": (2,),
                                     "rhs_contracting_dims": (1,)}, "f32[5,2]", ["f32[2,5]"]),
    ("convolution", "f32[2,8,8,3]; f32[3,3,3,16]", {"window": W3, "dim_labels": CONV}, "f32[2,8,4,16]", ["f32[2,8,8,16]"]),
    ("convolution", "f32[2,8,8,6]; f32[3,3,3,16]", {"window": W3, "dim_labels": CONV, "feature_group_count": 2}, "f32[2,8,4,16]",
     ["f32[2,8,4,32]"]),
    ("fft", "f32[4,10]", {"fft_type": "RFFT", "fft_length": (10,)}, "c64[4,6]", ["c64[4,10]"]),
    ("fft", "c64[4,6]", {"fft_type": "IRFFT", "fft_length": (10,)}, "f32[4,10]", ["c64[4,10]"]),
    ("cholesky", "f32[2,3,3]", {}, "f32[2,3,3]", ["f32[3,3]"]),
    ("triangular-solve", "f32[3,3]; f32[3,5]", {"left_side": True}, "f32[3,5]", ["f32[5,3]"]),
    ("batch-norm-training", "f32[4,8]; f32[8]; f32[8]", {"feature_index": 1}, "(f32[4,8], f32[8], f32[8])", ["f32[4,8]"]),
    ("batch-norm-inference", "f32[4,8]; f32[8]; f32[8]; f32[8]; f32[8]", {"feature_index": 1}, "f32[4,8]", ["f32[8]"]),
    ("batch-norm-grad", "f32[4,8]; f32[8]; f32[8]; f32[8]; f32[4,8]", {"feature_index": 1}, "(f32[4,8], f32[8], f32[8])", ["f32[4,8]"]),
    ("all-reduce", "f32[4]", {"replica_groups": PAIRS4}, "f32[4]", ["f32[8]"]),
    ("all-reduce", "f32[4]; f32[2]", {"replica_groups": PAIRS4}, "(f32[4], f32[2])", ["(f32[2], f32[4])", "f32[4]"]),
    ("all-gather", "f32[4,3]", {"replica_groups": PAIRS4, "dimensions": (0,)}, "f32[8,3]", ["f32[16,3]", "f32[4,6]", "f32[4,3]"]),
    ("all-gather", "f32[4]; s32[2]", {"replica_groups": PAIRS4, "dimensions": (0,)}, "(f32[8], s32[4])", ["(f32[8], s32[2])", "f32[8]"]),
    ("all-gather", "f32[4]", {"replica_groups": ReplicaGroups(()), "dimensions": (0,)}, "f32[16]", ["f32[8]"]),
    ("all-gather-start", "f32[4]", {"replica_groups": PAIRS4, "dimensions": (0,)}, "(f32[4], f32[8])", ["(f32[8], f32[4])", "f32[8]"]),
    ("all-gather-done", "(f32[4], f32[8])", {}, "f32[8]", ["f32[4]"]),
    ("reduce-scatter", "f32[4,3]", {"replica_groups": PAIRS4, "dimensions": (0,)}, "f32[2,3]", ["f32[8,3]", "f32[4,3]"]),
    ("all-to-all", "f32[4,3]", {"replica_groups": PAIRS4, "dimensions": (0,)}, "f32[4,3]", ["f32[2,6]"]),
    ("all-to-all", "f32[4]; f32[4]", {"replica_groups": PAIRS4}, "(f32[4], f32[4])", ["f32[4]"]),
    ("collective-permute", "f32[4]", PERMUTE, "f32[4]", ["f32[2]"]),
    ("collective-permute-start", "f32[4]", PERMUTE, "(f32[4], f32[4], u32[], u32[])", ["f32[4]", "(f32[4], f32[2])"]),
    ("collective-permute-done", "(f32[4], f32[4], u32[], u32[])", {}, "f32[4]", ["u32[]"]),
    ("collective-broadcast", "f32[4]", {"replica_groups": PAIRS4}, "f32[4]", ["f32[8]"]),
    ("partition-id", "", {}, "u32[]", ["s32[]"]),
    ("replica-id", "", {}, "u32[]", ["u32[1]"]),
    ("tuple", "f32[2]; s32[]", {}, "(f32[2], s32[])", ["(f32[2])", "(s32[], f32[2])"]),
    ("tuple", "", {}, "()", ["f32[]"]),
    ("get-tuple-element", "(f32[2], s32[])", {"index": 1}, "s32[]", ["f32[2]"]),
    ("opt-barrier", "(f32[2], s32[])", {}, "(f32[2], s32[])", ["f32[2]"]),
    ("after-all", "token[]; token[]", {}, "token[]", ["f32[]"]),
    ("add-dependency", "f32[2]; token[]", {}, "f32[2]", ["token[]"]),
    ("copy-start", "f32[2]", {}, "(f32[2], f32[2], u32[])", ["f32[2]", "(f32[3], f32[2], u32[])"]),
    ("copy-done", "(f32[2], f32[2], u32[])", {}, "f32[2]", ["u32[]"]),
    ("send", "f32[2]; token[]", {}, "(f32[2], u32[], token[])", ["token[]"]),
    ("recv-done", "(f32[2], u32[], token[])", {}, "(f32[2], token[])", ["f32[2]"]),
    ("infeed", "token[]", {}, "(f32[2], token[])", ["f32[2]"]),
    ("outfeed", "f32[2]; token[]", {}, "token[]", ["f32[2]"]),
    ("rng", "f32[]; f32[]", {"distribution": "rng_uniform"}, "f32[8]", ["s32[8]"]),
    ("rng-bit-generator", "u64[2]", {}, "(u64[2], u32[8])", ["(u64[3], u32[8])", "(u64[2], f32[8])"]),
    ("rng-get-and-update-state", "", {"delta": 1}, "u64[1]", ["f32[1]"]),
]  # fmt: skip

# opcode, operands, attributes, result, what is said
CONTRADICTIONS: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("add", "f32[2]; f32[3]", {}, "f32[2]", "operands differ"),
    ("add", "f32[2]; s32[2]", {}, "f32[2]", "operands differ"),
    ("add", "f32[2]", {}, "f32[2]", "needs 2 operands, got 1"),
    ("floor", "s32[2]", {}, "s32[2]", "not defined on s32"),
    ("and", "f32[2]; f32[2]", {}, "f32[2]", "not defined on f32"),
    ("subtract", "pred[2]; pred[2]", {}, "pred[2]", "not defined on pred"),
    ("compare", "f32[2]; f32[2]", {}, "pred[2]", "lacks direction"),
    ("select", "pred[3]; f32[2]; f32[2]", {}, "f32[2]", "predicate"),
    ("select", "s32[2]; f32[2]; f32[2]", {}, "f32[2]", "predicate"),
    ("clamp", "f32[3]; f32[2]; f32[]", {}, "f32[2]", "bound"),
    ("broadcast", "f32[3]", {"dimensions": (2,)}, "f32[2,3]", "out of range"),
    ("broadcast", "f32[3,3]", {"dimensions": (1, 1)}, "f32[2,3]", "twice"),
    ("broadcast", "f32[1]", {"dimensions": (0,)}, "f32[2]", "does not fit dimension 0"),
    ("transpose", "f32[2,3]", {"dimensions": (0, 0)}, "f32[2,2]", "twice"),
    ("concatenate", "f32[2,3]; f32[3,3]", {"dimensions": (1,)}, "f32[2,6]", "outside dimension 1"),
    ("slice", "f32[8]", {"starts": (1,), "limits": (9,), "strides": (1,)}, "f32[8]", "outside of a dimension of size 8"),
    ("slice", "f32[8]", {"starts": (0,), "limits": (8,), "strides": (0,)}, "f32[8]", "outside"),
    ("dynamic-slice", "f32[8]; s32[]", {"dynamic_slice_sizes": (9,)}, "f32[9]", "do not fit"),
    ("dynamic-slice", "f32[8]; f32[]", {"dynamic_slice_sizes": (2,)}, "f32[2]", "must be integers"),
    ("dynamic-update-slice", "f32[8]; f32[9]; s32[]", {}, "f32[8]", "update"),
    ("pad", "f32[2]; f32[]", {"padding": ((-3, 0, 0),)}, "f32[0]", "negative"),
    ("pad", "f32[2]; s32[]", {"padding": ((1, 0, 0),)}, "f32[3]", "padding value"),
    ("gather", "f32[16,8]; f32[5,1]", GATHER, "f32[5,8]", "must be integers"),
    ("gather", "f32[16,8]; s32[5,2]", GATHER, "f32[5,8]", "index vector"),
    ("gather", "f32[16,4]; s32[5,1]", GATHER, "f32[5,8]", "slice_sizes"),
    ("gather", "f32[4,16,8]; s32[3,5,1]", BATCHED_GATHER, "f32[3,5,8]", "batching dimension"),
    ("scatter", "f32[16,8]; s32[5,1]; f32[5,9]", SCATTER, "f32[16,8]", "window"),
    ("scatter", "f32[16,8]; s32[5,1]; f32[4,8]", SCATTER, "f32[16,8]", "do not fit the indices"),
    ("sort", "f32[4]; s32[3]", {"dimensions": (0,)}, "(f32[4], s32[3])", "differ in their dimensions"),
    ("topk", "f32[4]", {"k": 5}, "(f32[5], s32[5])", "k=5"),
    ("reduce", "f32[2,3]; f32[1]", {"dimensions": (0,)}, "f32[3]", "scalar"),
    ("reduce", "f32[2,3]; s32[]", {"dimensions": (0,)}, "f32[3]", "initial value"),
    ("reduce", "s32[2,3]; s32[]", {"dimensions": (0,)}, "s32[3]", "reducer"),
    ("dot", "f32[2,3]; f32[4,4]", DOT, "f32[2,4]", "contracting dimensions differ"),
    ("dot", "f32[2,3]; s32[3,4]", DOT, "f32[2,4]", "cannot multiply"),
    ("convolution", "f32[2,8,8,4]; f32[3,3,3,16]", {"window": W3, "dim_labels": CONV}, "f32[2,8,4,16]", "input features"),
    ("convolution", "f32[2,8,8,3]; f32[5,3,3,16]", {"window": W3, "dim_labels": CONV}, "f32[2,8,4,16]", "window has size 3"),
    ("reduce-window", "f32[8]; f32[]", {"window": W3}, "f32[8]", "rank 2"),
    ("all-gather", "f32[4]", {"replica_groups": ReplicaGroups(((0, 1, 2), (3,))), "dimensions": (0,)}, "f32[8]", "differ in size"),
    ("all-to-all", "f32[3]", {"replica_groups": PAIRS4, "dimensions": (0,)}, "f32[3]", "does not divide"),
    ("all-to-all", "f32[4]", {"replica_groups": PAIRS4}, "f32[4]", "operands for groups"),
    ("collective-permute", "f32[4]", {"source_target_pairs": ((0, 1), (2, 1))}, "f32[4]", "target twice"),
    ("get-tuple-element", "(f32[2])", {"index": 1}, "f32[2]", "index=1"),
    ("get-tuple-element", "f32[2]", {"index": 0}, "f32[2]", "index=0"),
    ("cholesky", "f32[2,3]", {}, "f32[2,3]", "square"),
    ("custom-call", "f32[2]", {}, "f32[2]", "lacks custom_call_target"),
]

REDUCED = {"reduce", "reduce-window", "all-reduce", "all-reduce-start", "reduce-scatter", "scatter"}


def module_of(opcode: str, operands: str, attributes: dict[str, Any], result: str) -> Module:
    """A module of 4 partitions with one instruction of ``opcode``; reducers add f32, comparators compare."""
    b = Builder()
    places = [b.parameter(read_shape(text.strip())) for text in operands.split(";") if text.strip()]
    calls = []
    if opcode in REDUCED:
        pairs = {"reduce": len(places) // 2, "reduce-window": len(places) // 2, "scatter": len(places) // 2}.get(opcode, 1)
        calls = [_adder(b, pairs)]
    elif opcode == "sort":
        calls = [_comparator(b, "sorts", [b.shape(p).dtype for p in places])]
    elif opcode == "select-and-scatter":
        calls = [_comparator(b, "selects", ["f32"]), _adder(b, 1)]
    return b.build(b.add(opcode, read_shape(result), (), places, calls=calls, name="tested", **attributes), num_partitions=4)


def _adder(b: Builder, values: int) -> str:
    if values == 1:
        return b.reducer("add", "f32")
    inner = b.computation("add_all")
    places = [inner.parameter("f32") for _ in range(2 * values)]
    return inner.end(inner.tuple(*[inner.like("add", places[k], places[k + values]) for k in range(values)]))


def _comparator(b: Builder, name: str, dtypes: list[str]) -> str:
    inner = b.computation(name)
    places = [inner.parameter(dtype) for dtype in dtypes for _ in range(2)]
    return inner.end(inner.add("compare", "pred", (), places[:2], direction="LT"))


@pytest.mark.parametrize(("opcode", "operands", "attributes", "result"), [row[:4] for row in ROWS])
def test_right_shapes_pass(opcode: str, operands: str, attributes: dict[str, Any], result: str) -> None:
    check(module_of(opcode, operands, attributes, result))


@pytest.mark.parametrize(("opcode", "operands", "attributes", "result"), [(*row[:3], wrong) for row in ROWS for wrong in row[4]])
def test_wrong_results_are_named(opcode: str, operands: str, attributes: dict[str, Any], result: str) -> None:
    with pytest.raises(HloError, match=rf"^main\.tested: {opcode} "):
        check(module_of(opcode, operands, attributes, result))


@pytest.mark.parametrize(("opcode", "operands", "attributes", "result", "message"), CONTRADICTIONS)
def test_contradictions_say_what_is_wrong(opcode: str, operands: str, attributes: dict[str, Any], result: str, message: str) -> None:
    with pytest.raises(HloError, match=rf"^main\.tested: {opcode} .*{message}"):
        check(module_of(opcode, operands, attributes, result))


def test_every_required_attribute_is_missed() -> None:
    for opcode in OPCODES.values():
        if opcode.required:
            instruction = Instruction("tested", opcode.name, Shape("f32"))
            module = Module("m", {"main": Computation("main", (instruction,), 0)}, "main")
            with pytest.raises(HloError, match=r"lacks|numbered"):
                check(module)


def test_unknown_opcodes_and_custom_calls_are_free() -> None:
    check(module_of("not-an-opcode", "f32[2]", {}, "s32[7]"))
    check(module_of("custom-call", "f32[2]", {"custom_call_target": "x"}, "(s32[7], token[])"))


def test_a_literal_must_fit_its_shape() -> None:
    b = Builder()
    with pytest.raises(HloError, match="literal has dimensions"):
        check(b.build(b.add("constant", "f32", (3,), literal=np.zeros(2, np.float32))))


@pytest.mark.parametrize(("groups", "options", "factor"), [
    (ReplicaGroups(()), {"num_replicas": 2, "num_partitions": 3}, 6),
    (ReplicaGroups(((0, 1),)), {"num_partitions": 4, "channel_id": 1}, 8),
    (ReplicaGroups(((0, 1),)), {"num_partitions": 4, "channel_id": 1, "use_global_device_ids": True}, 2),
    (ReplicaGroups(()), {}, 7),
])  # fmt: skip
def test_group_size_by_mode(groups: ReplicaGroups, options: dict[str, Any], factor: int) -> None:
    counts = {key: options.pop(key, 1) for key in ("num_partitions", "num_replicas")}
    b = Builder()
    x = b.parameter("f32", (5,))
    check(b.build(b.add("all-gather", "f32", (5 * factor,), [x], replica_groups=groups, dimensions=(0,), **options), **counts))


def while_module(condition: str = "pred[]", body: str = "(f32[2], s32[])", operand: str = "(f32[2], s32[])") -> Module:
    b = Builder()
    inner, outer = b.computation("condition"), b.computation("body")
    inner.parameter(read_shape(operand))
    test = inner.end(inner.add("custom-call", read_shape(condition), (), [], custom_call_target="x"))
    outer.parameter(read_shape(operand))
    step = outer.end(outer.add("custom-call", read_shape(body), (), [], custom_call_target="x"))
    x = b.parameter(read_shape("(f32[2], s32[])"))
    return b.build(b.add("while", read_shape("(f32[2], s32[])"), (), [x], calls=[test, step], name="tested"))


def test_while() -> None:
    check(while_module())
    for wrong, message in (({"condition": "s32[]"}, "must return pred"), ({"body": "f32[2]"}, "must return what it takes"),
                           ({"operand": "(f32[3], s32[])"}, "parameter 0 of condition")):  # fmt: skip
        with pytest.raises(HloError, match=rf"^main\.tested: while .*{message}"):
            check(while_module(**wrong))


@pytest.mark.parametrize("opcode", ["call", "fusion", "map"])
@pytest.mark.parametrize("wrong", [False, True])
def test_calls_take_what_they_are_given(opcode: str, *, wrong: bool) -> None:
    b = Builder()
    inner = b.computation("inner")
    dims = () if opcode == "map" else (3,)
    y = inner.parameter("s32" if wrong else "f32", dims)
    name = inner.end(inner.like("negate", y))
    x = b.parameter("f32", (3,))
    module = b.build(b.add(opcode, "f32", (3,), [x], calls=[name], name="tested"))
    if not wrong:
        check(module)
        return
    with pytest.raises(HloError, match=rf"^main\.tested: {opcode} parameter 0 of inner is s32"):
        check(module)


@pytest.mark.parametrize(("selector", "count", "right"), [("pred", 2, True), ("s32", 3, True), ("pred", 3, False), ("f32", 2, False)])
def test_conditional(selector: str, count: int, *, right: bool) -> None:
    b = Builder()
    names = []
    for k in range(count):
        inner = b.computation(f"branch{k}")
        names.append(inner.end(inner.parameter("f32", (2,))))
    s, x = b.parameter(selector), b.parameter("f32", (2,))
    module = b.build(b.add("conditional", "f32", (2,), [s, *[x] * count], calls=names, name="tested"))
    if right:
        check(module)
        return
    with pytest.raises(HloError, match=r"^main\.tested: conditional "):
        check(module)


def test_async_forms() -> None:
    b = Builder()
    inner = b.computation("wrapped")
    name = inner.end(inner.like("negate", inner.parameter("f32", (3,))))
    x = b.parameter("f32", (3,))
    start = b.add("async-start", read_shape("((f32[3]), f32[3], s32[])"), (), [x], calls=[name])
    update = b.add("async-update", b.shape(start), (), [start], calls=[name])
    check(b.build(b.add("async-done", "f32", (3,), [update], calls=[name])))


def test_a_long_module_is_checked_quickly_and_without_recursion() -> None:
    b = Builder()
    x = b.parameter("f32", (4, 8))
    for k in range(30_000):
        x = b.like("add", x, x) if k % 2 else b.like("tanh", x)
    module = b.build(x)
    begin = time.perf_counter()
    check(module)
    assert time.perf_counter() - begin < 1.5  # ten times what it takes on an idle machine
