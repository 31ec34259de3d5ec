"""Decoding of the repeated parts of an HLO proto, each distinct payload once: shapes, shardings, device lists.

Source: ``ShapeProto``, ``OpSharding``, ``NamedShardingProto``, ``CollectiveDeviceListProto`` of ``xla/xla_data.proto``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from scalify.errors import HloError
from scalify.hlo import groups, schema, shardings
from scalify.hlo.groups import AxisRef, Ids
from scalify.hlo.module import ReplicaGroups, Shape, Sharding
from scalify.hlo.shardings import MAX_NESTING

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")

MAX_ELEMENTS: Final = (1 << 63) - 1
# NumPy's limit too.
MAX_RANK: Final = 64
MAX_LISTED_DEVICES: Final = 1 << 22

# ``PrimitiveType`` by number.
ELEMENT_TYPES: Final[dict[int, str]] = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32", 12: "f64",
    13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4", 22: "u4",
    23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3", 29: "f8e3m4", 30: "s1", 31: "u1",
    32: "f4e2m1fn", 33: "f8e8m0fnu",
}  # fmt: skip

_SHARDING_KINDS: Final = {0: "replicated", 1: "maximal", 2: "tuple", 3: "tiled", 4: "manual"}


def parse(name: str, raw: bytes) -> Any:
    """``raw`` as a message of :mod:`scalify.hlo.schema`; HloError if it is not one."""
    try:
        return schema.message(name).FromString(raw)
    except DecodeError:
        raise HloError(f"a {name} is damaged") from None


def unknown_fields(message: Any) -> tuple[int, ...]:
    """Numbers of the fields that the schema does not declare. An empty message counts as absent: it says only defaults."""
    unknown = UnknownFieldSet(message)
    return tuple(sorted({unknown[k].field_number for k in range(len(unknown)) if unknown[k].data != b""}))


class Memo(dict[_K, _V]):
    """``memo[raw]`` is ``decode(raw)``, computed once for equal ``raw``. A dict, so that a known payload costs one lookup in C."""

    def __init__(self, decode: Callable[[_K], _V]) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, raw: _K) -> _V:
        value = self[raw] = self._decode(raw)
        return value


class Payloads:
    """Decoded payloads of one file: one :class:`Memo` for each decoder.

    Device lists have a budget for the whole file, because a few bytes of an iota list stand for many device ids.
    """

    def __init__(self) -> None:
        self._memos: Memo[Any, Memo[Any, Any]] = Memo(Memo)
        devices = _Budget()
        self.shapes: Memo[bytes, Shape] = Memo(read_shape)
        self.shardings: Memo[bytes, Sharding] = Memo(partial(read_sharding, budget=devices))
        self.group_lists: Memo[tuple[bytes, ...], ReplicaGroups] = Memo(_read_group_list)
        self.device_lists: Memo[bytes, ReplicaGroups] = Memo(partial(_read_device_list, budget=devices))
        self.iota_lists: Memo[bytes, ReplicaGroups] = Memo(partial(_read_iota_list, budget=devices))
        self.mesh_lists: Memo[bytes, ReplicaGroups] = Memo(partial(_read_mesh_list, budget=devices))

    def get(self, decode: Callable[[_K], _V], raw: _K) -> _V:
        """``decode(raw)``, computed once for equal ``raw``."""
        value: _V = self._memos[decode][raw]
        return value


class _Budget:
    """How many more device ids the lists of a file may be written out to."""

    def __init__(self) -> None:
        self._left = MAX_LISTED_DEVICES

    def spend(self, sizes: Sequence[int]) -> None:
        self._left -= groups.device_count(sizes)
        if self._left < 0:
            raise HloError(f"the device lists of the file have more than {MAX_LISTED_DEVICES} entries")


def read_shape(raw: bytes, depth: int = 0) -> Shape:
    """A serialized ``ShapeProto``. HloError for unknown element types, negative sizes, more than 2^63 - 1 elements."""
    proto = parse("ShapeProto", raw)
    dtype = ELEMENT_TYPES.get(proto.element_type)
    if dtype is None:
        raise HloError(f"element type number {proto.element_type} is not known")
    if dtype == "tuple":
        if depth >= MAX_NESTING:
            raise HloError(f"tuples are nested deeper than {MAX_NESTING}")
        return Shape(dtype, elements=tuple(read_shape(element, depth + 1) for element in proto.tuple_shapes))
    return _array_shape(dtype, proto)


def _array_shape(dtype: str, proto: Any) -> Shape:
    dims = tuple(proto.dimensions)
    if len(dims) > MAX_RANK or any(d < 0 for d in dims) or math.prod(max(d, 1) for d in dims) > MAX_ELEMENTS:
        raise HloError(f"{dtype}{list(dims)[:8]} is not a possible shape")
    dynamic = tuple(proto.is_dynamic_dimension)
    if dynamic and len(dynamic) != len(dims):
        raise HloError(f"{dtype}{list(dims)[:8]} has {len(dynamic)} flags for dynamic dimensions")
    layout = tuple(proto.layout.minor_to_major) if proto.HasField("layout") else None
    if layout is not None and sorted(layout) != list(range(len(dims))):
        raise HloError(f"layout {list(layout)[:8]} does not fit {dtype}{list(dims)[:8]}")
    return Shape(dtype, dims, (), dynamic if any(dynamic) else (), layout)


def read_sharding(raw: bytes, depth: int = 0, *, budget: _Budget) -> Sharding:
    """A serialized ``OpSharding``."""
    proto = parse("OpSharding", raw)
    if proto.named_sharding:
        return _named(proto.named_sharding, depth, budget)
    kind = "unknown" if unknown_fields(proto) else _SHARDING_KINDS.get(proto.type, "unknown")
    if kind == "tuple":
        if depth >= MAX_NESTING:
            raise HloError(f"shardings are nested deeper than {MAX_NESTING}")
        return Sharding(kind, elements=tuple(read_sharding(element, depth + 1, budget=budget) for element in proto.tuple_shardings))
    if kind == "maximal":
        return Sharding(kind, devices=tuple(proto.tile_assignment_devices))
    return _tiled(proto, budget) if kind == "tiled" else Sharding(kind)


def _tiled(proto: Any, budget: _Budget) -> Sharding:
    tile = tuple(proto.tile_assignment_dimensions)
    budget.spend(tile)
    if proto.iota_reshape_dims:
        ids = groups.iota_ids(tuple(proto.iota_reshape_dims), tuple(proto.iota_transpose_perm))
    else:
        ids = np.array(proto.tile_assignment_devices, dtype=np.int64)
    subgroups = tuple(proto.last_tile_dims)
    trailing = len(subgroups) or int(proto.replicate_on_last_tile_dim)
    return shardings.tiled(tile, ids, trailing, replicated=not any(subgroups))


def _named(raw: bytes, depth: int, budget: _Budget) -> Sharding:
    """A ``NamedShardingProto`` as the tile assignment that it stands for."""
    proto = parse("NamedShardingProto", raw)
    if proto.tuple_shardings:
        if depth >= MAX_NESTING:
            raise HloError(f"shardings are nested deeper than {MAX_NESTING}")
        return Sharding("tuple", elements=tuple(_named(element, depth + 1, budget) for element in proto.tuple_shardings))
    sizes, ids = _mesh(proto.mesh, budget)
    by_dimension = [[_ref(axis) for axis in dim.axes] for dim in proto.dim_shardings]
    return shardings.named(sizes, ids, by_dimension, replicated=not (proto.unreduced_axes or unknown_fields(proto)))


def _mesh(proto: Any, budget: _Budget) -> tuple[tuple[int, ...], Ids | None]:
    """Sizes of the axes, and the device ids in row-major order (None for 0, 1, 2, ...)."""
    sizes = tuple(axis.size for axis in proto.axes)
    budget.spend(sizes)
    if proto.HasField("iota"):
        return sizes, groups.iota_ids(tuple(proto.iota.iota_reshape_dims), tuple(proto.iota.iota_transpose_perm))
    return sizes, np.array(proto.device_ids, dtype=np.int64) if proto.device_ids else None


def _ref(proto: Any) -> AxisRef:
    if not proto.HasField("sub_axis_info"):
        return AxisRef(proto.mesh_axis_index)
    return AxisRef(proto.mesh_axis_index, proto.sub_axis_info.pre_size or -1, proto.sub_axis_info.size)


def _read_group_list(raw: tuple[bytes, ...]) -> ReplicaGroups:
    """Field 49: one serialized ``ReplicaGroup`` a group."""
    return groups.groups_of([tuple(parse("ReplicaGroup", group).replica_ids) for group in raw], "list")


def _read_device_list(raw: bytes, budget: _Budget) -> ReplicaGroups:
    """Field 87: groups listed, or an iota list inside."""
    proto = parse("CollectiveDeviceListProto", raw)
    if proto.HasField("iota_replica_group_list"):
        return _iota(proto.iota_replica_group_list, budget)
    return groups.groups_of([tuple(group.replica_ids) for group in proto.replica_groups], "device-list")


def _read_iota_list(raw: bytes, budget: _Budget) -> ReplicaGroups:
    """Field 92."""
    return _iota(parse("IotaReplicaGroupListProto", raw), budget)


def _iota(proto: Any, budget: _Budget) -> ReplicaGroups:
    budget.spend((proto.num_replica_groups, proto.num_devices_per_group))
    return groups.iota_groups(
        proto.num_replica_groups, proto.num_devices_per_group, tuple(proto.iota_reshape_dims), tuple(proto.iota_transpose_perm)
    )


def _read_mesh_list(raw: bytes, budget: _Budget) -> ReplicaGroups:
    """Field 93."""
    proto = parse("MeshAxesReplicaGroupListProto", raw)
    if unknown_fields(proto) or unknown_fields(proto.mesh):
        raise HloError("a mesh in replica_groups has fields that are not known")
    sizes, ids = _mesh(proto.mesh, budget)
    return groups.mesh_groups(sizes, ids, [_ref(axis) for axis in proto.axes])
