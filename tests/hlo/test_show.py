"""What ``scalify show`` says about a module, and that no name of the file can steer the terminal."""

from __future__ import annotations

from scalify.hlo.show import device_ids, show
from tests.support.protos import computation, hlo, inst, make, raw, read, reducer, shape, tuple_shape, with_one

TILED = raw(
    "OpSharding", type=3, tile_assignment_dimensions=[2, 1, 2], tile_assignment_devices=[0, 2, 1, 3], replicate_on_last_tile_dim=True
)


def module_text() -> str:
    groups = [raw("ReplicaGroup", replica_ids=[0, 1]), raw("ReplicaGroup", replica_ids=[2, 3])]
    metadata = raw("OpMetadata", source_file="model.py", source_line=3)
    body = [
        inst(1, "parameter", "f32", (4, 8), name="weights", sharding=TILED),
        inst(2, "all-reduce", "f32", (4, 8), [1], called_computation_ids=[7], replica_groups=groups, metadata=metadata),
        inst(3, "all-reduce", "f32", (4, 8), [2], called_computation_ids=[8], replica_groups=groups, metadata=metadata),
        inst(4, "custom-call", "bf16", (4, 8), [3], custom_call_target="AwsNeuronRmsNorm"),
        inst(5, "collective-permute", "bf16", (4, 8), [4], source_target_pairs=[make("SourceTarget", source=0, target=5)]),
        inst(6, "tuple", operands=[5], shape=tuple_shape(shape("bf16", (4, 8)))),
    ]
    alias = make("HloInputOutputAliasProto", entries=[make("AliasEntryProto", output_shape_index=[0])])
    module = read(hlo([reducer(7), reducer(8, "sum.2"), computation(body)], input_output_alias=alias))
    assert device_ids(module) == {0, 1, 2, 3, 5}
    return show(module)


def test_summary() -> None:
    lines = [line.strip() for line in module_text().splitlines()]
    for line in (
        "module test",
        "entry main; 12 instructions in 3 computations",
        "1 partitions, 1 replicas; collectives name 5 devices, 0 to 5",
        "0  weights  f32[4,8]  tiled [2,1] x 2 copies on {0,2,1,3}",
        "0  bf16[4,8]    in the buffer of parameter 0",
        "2  all-reduce by add   f32[4,8] -> f32[4,8]    {0,1}, {2,3}",
        "1  collective-permute  bf16[4,8] -> bf16[4,8]  0->5",
        "1  AwsNeuronRmsNorm",
        "5  parameter",
        "9  f32",
        "sum    3 instructions  called once",
        "2   model.py",
    ):
        assert line in lines


def test_large_groups_are_cut() -> None:
    iota = raw("IotaReplicaGroupListProto", num_replica_groups=64, num_devices_per_group=2, iota_reshape_dims=[128])
    text = show(read(with_one(inst(3, "all-gather", "f32", (4, 8), [1], dimensions=[1], iota_collective_device_list=iota))))
    assert "all-gather along 1  f32[4,8] -> f32[4,8]  64 groups of 2: {0,1}, ..." in text
    assert "all devices" in show(read(with_one(inst(3, "all-reduce", "f32", (4, 8), [1], called_computation_ids=[7]))))


def test_names_cannot_steer_the_terminal() -> None:
    evil = "[red]\x1b[31m\n\u202e" + "x" * 500
    body = [
        inst(1, "parameter", name=evil, metadata=raw("OpMetadata", source_file=evil.replace("\n", ""))),
        inst(2, "custom-call", operands=[1], custom_call_target=evil),
    ]
    text = show(read(hlo([computation(body, name=evil)], name=evil)))
    assert all(line.isprintable() for line in text.splitlines())
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 400
    assert "[red]\\x1b[31m\\n\\u202e" in text


def test_unknown_fields_are_shown() -> None:
    plain = inst(3, "negate", "f32", (4, 8), [1])
    extended = type(plain).FromString(plain.SerializeToString() + b"\xb2\x05\x01a")
    assert "fields of the file that are not understood\n  1  negate: 86\n" in show(read(with_one(extended)))
