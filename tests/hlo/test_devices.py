"""Replica groups in their four encodings and shardings, against brute force."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.hlo.module import Sharding
from tests.support.protos import inst, make, one, raw, refused, with_one

# Device lists


def groups_of(**fields: Any) -> tuple[tuple[int, ...], ...]:
    groups: tuple[tuple[int, ...], ...] = (
        one(inst(3, "all-reduce", called_computation_ids=[7], **fields)).attributes["replica_groups"].groups
    )
    return groups


@st.composite
def iota_lists(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    dims = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    permutation = draw(st.permutations(range(len(dims))))
    total = math.prod(dims)
    return dims, list(permutation), draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))


@settings(max_examples=60, deadline=None)
@given(iota_lists(), st.booleans())
def test_iota_groups(drawn: tuple[list[int], list[int], int], nested: bool) -> None:
    dims, permutation, count = drawn
    total = math.prod(dims)
    fields = {
        "num_replica_groups": count,
        "num_devices_per_group": total // count,
        "iota_reshape_dims": dims,
        "iota_transpose_perm": permutation,
    }
    iota = make("IotaReplicaGroupListProto", **fields)
    wrapped = raw("CollectiveDeviceListProto", iota_replica_group_list=iota)
    found = groups_of(collective_device_list=wrapped) if nested else groups_of(iota_collective_device_list=iota.SerializeToString())
    expected = np.arange(total).reshape(dims).transpose(permutation).reshape(count, -1)
    assert found == tuple(map(tuple, expected.tolist()))


@st.composite
def meshes(draw: st.DrawFn) -> tuple[list[int], list[int], list[tuple[int, int, int]]]:
    """Axis sizes, device ids in mesh order, and disjoint references (axis, pre-size, size) in any order."""
    factors = [draw(st.lists(st.integers(2, 3), min_size=1, max_size=3)) for _ in range(draw(st.integers(1, 3)))]
    parts = [(axis, math.prod(fs[:k]), f) for axis, fs in enumerate(factors) for k, f in enumerate(fs)]
    chosen = draw(st.lists(st.sampled_from(parts), unique=True))
    sizes = [math.prod(fs) for fs in factors]
    ids = draw(st.permutations(range(math.prod(sizes)))) if math.prod(sizes) <= 200 else list(range(math.prod(sizes)))
    return sizes, list(ids), chosen


def digit(position: int, sizes: list[int], ref: tuple[int, int, int]) -> int:
    """The coordinate of a mesh position along a part of an axis, by division alone."""
    axis, before, size = ref
    coordinate = position // math.prod(sizes[axis + 1 :]) % sizes[axis]
    return coordinate // (sizes[axis] // (before * size)) % size


@settings(max_examples=60, deadline=None)
@given(meshes())
def test_mesh_groups(drawn: tuple[list[int], list[int], list[tuple[int, int, int]]]) -> None:
    sizes, ids, refs = drawn
    mesh = make("MeshProto", axes=[make("MeshAxis", name=str(k), size=s) for k, s in enumerate(sizes)], device_ids=ids)
    axes = [make("AxisRefProto", mesh_axis_index=a, sub_axis_info=make("SubAxis", pre_size=p, size=s)) for a, p, s in refs]
    found = groups_of(mesh_axes_replica_group_list=raw("MeshAxesReplicaGroupListProto", mesh=mesh, axes=axes))
    expected: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    everything = [(a, p, s) for a, size in enumerate(sizes) for p, s in all_parts(size, [(q, t) for b, q, t in refs if b == a])]
    for position, device in enumerate(ids):
        fixed = tuple(digit(position, sizes, part) for part in everything if part not in refs)
        expected.setdefault(fixed, []).append((tuple(digit(position, sizes, part) for part in refs), device))
    assert sorted(found) == sorted(tuple(device for _, device in sorted(group)) for group in expected.values())


def all_parts(size: int, refs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The axis cut at every reference's ends."""
    cuts = sorted({1, size, *(p for p, _ in refs), *(p * s for p, s in refs)})
    return [(low, high // low) for low, high in pairwise(cuts)]


def test_mesh_of_the_new_exporters() -> None:
    """``mesh['axis_0'=4,'axis_1'=1,'axis_2'=2], device_ids=([2,4]T(1,0)) {'axis_0'}``, as jaxlib 0.10 writes it."""
    data = b"\n.\n\n\n\x06axis_0\x10\x04\n\n\n\x06axis_1\x10\x01\n\n\n\x06axis_2\x10\x02\x1a\x08\n\x02\x02\x04\x12\x02\x01\x00\x12\x00"
    assert groups_of(mesh_axes_replica_group_list=data) == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_empty_groups_mean_all_devices() -> None:
    assert groups_of() == ()
    assert groups_of(replica_groups=[b""]) == ()
    assert groups_of(
        collective_device_list=raw("CollectiveDeviceListProto", replica_groups=[make("ReplicaGroup", replica_ids=[1, 0])])
    ) == ((1, 0),)


def iota_list(groups: int, size: int, dims: list[int], permutation: list[int]) -> bytes:
    return raw(
        "IotaReplicaGroupListProto",
        num_replica_groups=groups,
        num_devices_per_group=size,
        iota_reshape_dims=dims,
        iota_transpose_perm=permutation,
    )


def mesh_list(sizes: list[int], *refs: Any, **fields: Any) -> bytes:
    mesh = make("MeshProto", axes=[make("MeshAxis", size=s) for s in sizes], **fields)
    return raw("MeshAxesReplicaGroupListProto", mesh=mesh, axes=refs)


def part(axis: int, pre_size: int, size: int) -> Any:
    return make("AxisRefProto", mesh_axis_index=axis, sub_axis_info=make("SubAxis", pre_size=pre_size, size=size))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"replica_groups": [raw("ReplicaGroup", replica_ids=[0, 1]), raw("ReplicaGroup", replica_ids=[1])]}, "a device occurs twice"),
        ({"replica_groups": [raw("ReplicaGroup", replica_ids=[-1])]}, "device ids in replica_groups must be between"),
        ({"iota_collective_device_list": iota_list(2, 3, [8], [0])}, "needs 6 devices, the device list has 8"),
        ({"iota_collective_device_list": iota_list(1, 1 << 40, [1 << 40], [0])}, "more than 131072 devices"),
        ({"iota_collective_device_list": iota_list(0, 8, [8], [0])}, "must be positive"),
        ({"iota_collective_device_list": iota_list(2, 4, [2, 4], [0, 0])}, "is not a permutation of 2 dimensions"),
        ({"mesh_axes_replica_group_list": mesh_list([2, 2], part(2, 1, 2))}, "mesh axis 2 does not exist"),
        ({"mesh_axes_replica_group_list": mesh_list([8], part(0, 1, 4), part(0, 2, 2))}, "mesh axes overlap"),
        ({"mesh_axes_replica_group_list": mesh_list([8], part(0, 3, 2))}, "do not divide their axis"),
        ({"mesh_axes_replica_group_list": mesh_list([8], part(0, 4, 4))}, "do not divide their axis"),
        ({"mesh_axes_replica_group_list": mesh_list([8], part(0, 0, 4))}, "must be positive"),
        ({"mesh_axes_replica_group_list": mesh_list([8], device_ids=[0, 1])}, "needs 8 devices, the device list has 2"),
    ],
)
def test_damaged_device_lists(fields: dict[str, Any], message: str) -> None:
    refused(with_one(inst(3, "all-reduce", called_computation_ids=[7], **fields)), message)


# Shardings


def sharding_of(**fields: Any) -> Sharding:
    sharding: Sharding = one(inst(3, "negate", sharding=raw("OpSharding", **fields))).attributes["sharding"]
    return sharding


def test_tiled_shardings() -> None:
    tile = {"type": 3, "tile_assignment_dimensions": [2, 1, 2]}
    assert sharding_of(**tile, tile_assignment_devices=[3, 1, 0, 2]) == Sharding("tiled", (2, 1, 2), (3, 1, 0, 2))
    iota = sharding_of(**tile, iota_reshape_dims=[2, 2], iota_transpose_perm=[1, 0], replicate_on_last_tile_dim=True)
    assert iota == Sharding("tiled", (2, 1, 2), (0, 2, 1, 3), trailing=1)
    assert sharding_of(**tile, iota_reshape_dims=[4], last_tile_dims=[0, 0]).trailing == 2
    assert sharding_of(**tile, iota_reshape_dims=[4], last_tile_dims=[0, 6]).kind == "unknown"
    assert sharding_of(type=6).kind == "unknown"


def test_named_sharding_is_a_tile_assignment() -> None:
    """Dimension 0 over axis b, dimension 1 over nothing, a replicated, on mesh [a=2, b=3]."""
    mesh = make("MeshProto", axes=[make("MeshAxis", name="a", size=2), make("MeshAxis", name="b", size=3)])
    dims = [make("DimensionSharding", axes=[make("AxisRefProto", mesh_axis_index=1)]), make("DimensionSharding")]
    named = {"mesh": mesh, "dim_shardings": dims}
    expected = Sharding("tiled", (3, 1, 2), (0, 3, 1, 4, 2, 5), trailing=1)
    assert sharding_of(named_sharding=raw("NamedShardingProto", **named)) == expected
    unreduced = raw("NamedShardingProto", **named, unreduced_axes=[make("AxisRefProto")])
    assert sharding_of(named_sharding=unreduced).kind == "unknown"
    pair = raw("NamedShardingProto", tuple_shardings=[raw("NamedShardingProto", **named), raw("NamedShardingProto", mesh=mesh)])
    assert sharding_of(named_sharding=pair) == Sharding("tuple", elements=(expected, Sharding("replicated")))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": 3, "tile_assignment_dimensions": [2], "tile_assignment_devices": [0, 0]}, "does not name every device once"),
        ({"type": 3, "tile_assignment_dimensions": [3], "tile_assignment_devices": [0, 1]}, "needs 3 devices"),
        ({"type": 3, "tile_assignment_dimensions": [1 << 50], "iota_reshape_dims": [1 << 50]}, "more than 131072 devices"),
        (
            {"type": 3, "tile_assignment_dimensions": [2], "iota_reshape_dims": [2], "last_tile_dims": [0, 0]},
            "2 subgroups and 1 tile dimensions",
        ),
    ],
)
def test_damaged_shardings(fields: dict[str, Any], message: str) -> None:
    refused(with_one(inst(3, "negate", sharding=raw("OpSharding", **fields))), message)
