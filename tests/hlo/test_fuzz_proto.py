"""Damaged and hostile HLO protos: HloError in one line or a module, in bounded time and memory, and nothing else."""

from __future__ import annotations

import gzip
import math
import random
import resource
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from scalify.errors import HloError
from scalify.hlo.load import load_bytes
from scalify.hlo.schema import message
from tests.support.protos import computation, hlo, inst, make, raw, reducer, shape, tuple_shape, with_one

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 5.0
MIB = 400

# What the bytes fields of the schema hold.
INSIDE = {
    "shape": "ShapeProto", "tuple_shapes": "ShapeProto", "metadata": "OpMetadata", "literal": "LiteralProto", "window": "Window",
    "convolution_dimension_numbers": "ConvolutionDimensionNumbers", "slice_dimensions": "SliceDimensions", "padding_config": "PaddingConfig",
    "dot_dimension_numbers": "DotDimensionNumbers", "gather_dimension_numbers": "GatherDimensionNumbers", "sharding": "OpSharding",
    "scatter_dimension_numbers": "ScatterDimensionNumbers", "replica_groups": "ReplicaGroup", "tuple_shardings": "OpSharding",
    "frontend_attributes": "FrontendAttributes", "collective_device_list": "CollectiveDeviceListProto", "named_sharding": "NamedShardingProto",
    "iota_collective_device_list": "IotaReplicaGroupListProto", "mesh_axes_replica_group_list": "MeshAxesReplicaGroupListProto",
    "spmd_output_sharding": "OpSharding", "spmd_parameters_shardings": "OpSharding",
}  # fmt: skip
NUMBERS = (0, 1, -1, 2, 3, 7, 64, 1 << 17, (1 << 31) - 1)
LARGE = (*NUMBERS, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))
EMPTY: dict[int, Any] = {FieldDescriptor.TYPE_STRING: "", FieldDescriptor.TYPE_BYTES: b""}
WORDS = ("", "while", "constant", "parameter", "all-reduce", "iota", "sort", "[red]", "\x1b[31m", "a\nb", "x" * 300, "main")


def seed() -> Any:
    """A module with every kind of payload in it."""
    mesh = make("MeshProto", axes=[make("MeshAxis", name="a", size=2), make("MeshAxis", name="b", size=4)])
    half = make("AxisRefProto", mesh_axis_index=1, sub_axis_info=make("SubAxis", pre_size=2, size=2))
    tiled = raw(
        "OpSharding", type=3, tile_assignment_dimensions=[2, 4], iota_reshape_dims=[4, 2], iota_transpose_perm=[1, 0], last_tile_dims=[0]
    )
    named = raw("NamedShardingProto", mesh=mesh, dim_shardings=[make("DimensionSharding", axes=[half]), make("DimensionSharding")])
    iota = make(
        "IotaReplicaGroupListProto", num_replica_groups=2, num_devices_per_group=4, iota_reshape_dims=[4, 2], iota_transpose_perm=[1, 0]
    )
    groups: list[dict[str, Any]] = [
        {"replica_groups": [raw("ReplicaGroup", replica_ids=[0, 1])]},
        {"collective_device_list": raw("CollectiveDeviceListProto", iota_replica_group_list=iota)},
        {"iota_collective_device_list": iota.SerializeToString()},
        {"mesh_axes_replica_group_list": raw("MeshAxesReplicaGroupListProto", mesh=mesh, axes=[half])},
    ]
    body = [
        inst(1, "parameter", "f32", (4, 8), sharding=tiled, metadata=raw("OpMetadata", stack_frame_id=1)),
        inst(2, "parameter", "f32", (4, 8), parameter_number=1, sharding=raw("OpSharding", named_sharding=named)),
        *(inst(3 + k, "all-reduce", "f32", (4, 8), [1], called_computation_ids=[7], **fields) for k, fields in enumerate(groups)),
        inst(8, "constant", "s32", (2, 2), literal=raw("LiteralProto", shape=shape("s32", (2, 2), (0, 1)), s32s=[1, 2, 3, 4])),
        inst(9, "constant", "bf16", (2,), literal=raw("LiteralProto", shape=shape("bf16", (2,)), bf16s=b"abcd")),
        inst(10, "dot", "f32", (4, 4), [1, 2], dot_dimension_numbers=raw("DotDimensionNumbers", lhs_contracting_dimensions=[1])),
        inst(
            11,
            "slice",
            "f32",
            (2,),
            [10],
            slice_dimensions=[raw("SliceDimensions", limit=2)],
            metadata=raw("OpMetadata", source_file="a:1\n"),
        ),
        inst(12, "convolution", "f32", (2,), [10, 11], window=raw("Window", dimensions=[make("WindowDimension", size=2)])),
        inst(13, "gather", "f32", (2,), [10, 8], gather_dimension_numbers=raw("GatherDimensionNumbers", offset_dims=[1])),
        inst(
            14, "pad", "f32", (2,), [10, 9], padding_config=raw("PaddingConfig", dimensions=[make("PaddingDimension", interior_padding=1)])
        ),
        inst(15, "tuple", operands=[13, 14], shape=tuple_shape(shape("f32", (2,)), tuple_shape(shape("token")))),
    ]
    frames = make("StackFrameIndexProto", file_names=["a"], file_locations=[make("FileLocation", file_name_id=1)])
    frames.stack_frames.add(file_location_id=1, parent_frame_id=1)
    alias = make("HloInputOutputAliasProto", entries=[make("AliasEntryProto", output_shape_index=[0])])
    return hlo([reducer(7), computation(body)], stack_frame_index=frames, input_output_alias=alias, spmd_output_sharding=tiled)


SEED = seed()
DATA: bytes = SEED.SerializeToString()


def truncate(rng: random.Random) -> bytes:
    return DATA[: rng.randrange(len(DATA))]


def flip_bits(rng: random.Random) -> bytes:
    data = bytearray(DATA)
    for _ in range(rng.choice((1, 3, 20))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def cut_out(rng: random.Random) -> bytes:
    start = rng.randrange(len(DATA))
    return DATA[:start] + DATA[start + rng.randrange(1, 60) :]


def change_fields(rng: random.Random) -> bytes:
    module = type(SEED).FromString(DATA)
    for _ in range(rng.randint(1, 3)):
        change(rng, module)
    data: bytes = module.SerializeToString()
    return data


def change(rng: random.Random, proto: Any) -> None:
    """Change one field somewhere in ``proto``, mostly one that is set, going into submessages and payloads."""
    present = [field for field, _ in proto.ListFields()]
    field = rng.choice(present if present and rng.random() < 0.8 else proto.DESCRIPTOR.fields)
    with suppress(ValueError, TypeError, DecodeError):  # a number that the type cannot hold, a payload that is damaged already
        if field.is_repeated:
            change_list(rng, getattr(proto, field.name), field)
        elif field.message_type:
            change(rng, getattr(proto, field.name))
        else:
            setattr(proto, field.name, other(rng, getattr(proto, field.name), field.name))


def change_list(rng: random.Random, values: Any, field: Any) -> None:
    if field.message_type:
        change(rng, rng.choice(values) if values and rng.random() < 0.8 else values.add())
    elif not values or rng.random() < 0.3:
        values.append(other(rng, values[0] if values else EMPTY.get(field.type, 1), field.name))
    elif rng.random() < 0.2:
        del values[rng.randrange(len(values))]
    else:
        k = rng.randrange(len(values))
        values[k] = other(rng, values[k], field.name)


def other(rng: random.Random, value: Any, name: str) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((*LARGE, value + 1, value - 1))
    if isinstance(value, float):
        return rng.choice((math.inf, math.nan, 0.0))
    if isinstance(value, str):
        return rng.choice(WORDS)
    return payload(rng, value, name)


def payload(rng: random.Random, value: bytes, name: str) -> bytes:
    if name not in INSIDE or rng.random() < 0.2:
        return rng.choice((b"", b"\xff", b"\x08\x01", value * 2, value[:-1]))
    inner = message(INSIDE[name]).FromString(value)
    change(rng, inner)
    data: bytes = inner.SerializeToString()
    return data


def watched(data: bytes) -> bool:
    """Read ``data``; whether it was a module. Fails on anything but HloError, on long messages, and beyond the limits."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    try:
        load_bytes(data, "file")
    except HloError as error:
        text = str(error)
    else:
        text = ""
    assert time.process_time() - start < SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < MIB
    assert "\n" not in text
    assert len(text) < 1000
    return not text


def test_the_seed_is_a_module() -> None:
    assert watched(DATA)


@pytest.mark.parametrize("damage", [truncate, flip_bits, cut_out, change_fields])
def test_damaged(damage: Callable[[random.Random], bytes]) -> None:
    results = {watched(damage(random.Random(k))) for k in range(400 if damage is change_fields else 100)}  # noqa: S311 - damage, not secrets
    assert False in results


def nested(kind: str, field: str, depth: int) -> bytes:
    data = b""
    for _ in range(depth):
        data = raw(
            kind, **{field: [data]}, **({"element_type": 13} if kind == "ShapeProto" else {"type": 2} if kind == "OpSharding" else {})
        )
    return data


def iota_bomb(total: int, count: int) -> bytes:
    """``count`` different device lists of ``total`` devices each, in a few bytes."""
    lists = [
        raw(
            "IotaReplicaGroupListProto", num_replica_groups=1 << k, num_devices_per_group=total >> k, iota_reshape_dims=[1 << j, total >> j]
        )
        for k in range(16)
        for j in range(16)
    ]
    body = [inst(1, "parameter")] + [inst(2 + k, "all-reduce", operands=[1], iota_collective_device_list=lists[k]) for k in range(count)]
    data: bytes = hlo([computation(body)]).SerializeToString()
    return data


def call_chain(length: int, *, closed: bool) -> bytes:
    bodies = [computation([inst(1, "call", called_computation_ids=[k + 1])], k, f"c{k}") for k in range(length)]
    last = inst(1, "call", called_computation_ids=[0]) if closed else inst(1, "parameter")
    data: bytes = hlo([computation([last], length, "last"), *reversed(bodies)]).SerializeToString()
    return data


def mesh_of(axes: int, refs: int) -> bytes:
    mesh = make("MeshProto", axes=[make("MeshAxis", size=1)] * axes)
    named = raw("MeshAxesReplicaGroupListProto", mesh=mesh, axes=[make("AxisRefProto")] * refs)
    return with_one(inst(3, "all-reduce", called_computation_ids=[7], mesh_axes_replica_group_list=named))


HOSTILE = {
    "tuples in tuples": with_one(inst(3, "tuple", shape=nested("ShapeProto", "tuple_shapes", 3000))),
    "shardings in shardings": with_one(inst(3, "negate", sharding=nested("OpSharding", "tuple_shardings", 3000))),
    "named shardings": with_one(
        inst(3, "negate", sharding=raw("OpSharding", named_sharding=nested("NamedShardingProto", "tuple_shardings", 3000)))
    ),
    "many large device lists": iota_bomb(1 << 17, 256),
    "one huge device list": iota_bomb(1 << 62, 1),
    "mesh of 100 axes": mesh_of(100, 0),
    "100 references": mesh_of(1, 100),
    "rank 200": with_one(inst(3, "negate", "f32", (1,) * 200)),
    "many huge dimensions": with_one(inst(3, "negate", "f32", (1 << 62,) * 100_000)),
    "huge empty literal": with_one(inst(3, "constant", "f32", (0, 1 << 62), literal=raw("LiteralProto", shape=shape("f32", (0, 1 << 62))))),
    "closed chain of calls": call_chain(3000, closed=True),
    "gzip bomb": gzip.compress(gzip.compress(b"\0" * 10_000_000)),
    "colons": with_one(inst(3, "negate", metadata=raw("OpMetadata", source_file="\n" + ":1" * 200_000 + "x"))),
    "quotes": with_one(inst(3, "negate", metadata=raw("OpMetadata", source_file="\n" + "'" * 200_000))) + b"\xff",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(name: str) -> None:
    assert watched(HOSTILE[name]) == (name == "colons")


def test_long_chain_of_calls_needs_no_recursion() -> None:
    assert watched(call_chain(3000, closed=False))
