"""Shardings written out, whichever of their encodings the file used.

Source: ``OpSharding`` and ``NamedShardingProto`` of ``xla/xla_data.proto``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from scalify.errors import HloError
from scalify.hlo import groups
from scalify.hlo.module import Sharding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.groups import AxisRef, Ids

# Tuples deeper than this are refused: shapes and shardings of tuples are compared and printed recursively.
MAX_NESTING: Final = 32


def tiled(tile: Sequence[int], ids: Ids, subgroups: int, *, replicated: bool) -> Sharding:
    """A tile assignment. The last ``subgroups`` dimensions of ``tile`` cut nothing; ``replicated`` says that they hold equal data."""
    devices = _device_tuple(groups.tile_ids(tile, ids))
    if subgroups > len(tile):
        raise HloError(f"a sharding has {subgroups} subgroups and {len(tile)} tile dimensions")
    # Only replicated subgroups hold equal data; what a manual or unreduced one holds is not said.
    return Sharding("tiled" if replicated else "unknown", tuple(tile), devices, subgroups)


def named(sizes: Sequence[int], ids: Ids | None, by_dimension: Sequence[Sequence[AxisRef]], *, replicated: bool) -> Sharding:
    """The tile assignment that a sharding by mesh axes stands for. ``replicated`` says that all other axes hold equal data."""
    if not sizes:
        return Sharding("maximal", devices=tuple(ids.ravel().tolist())) if ids is not None else Sharding("replicated")
    rest, split = groups.split_mesh(sizes, ids, [ref for refs in by_dimension for ref in refs])
    cut = tuple(math.prod(groups.size_of(ref, sizes) for ref in refs) for refs in by_dimension)
    replicas = math.prod(split.shape[:rest])
    devices = _device_tuple(split.reshape(replicas, -1).T)
    if replicated and math.prod(cut) == 1:
        return Sharding("replicated")
    return Sharding("tiled" if replicated else "unknown", (*cut, replicas), devices, 1)


def _device_tuple(ids: Ids) -> tuple[int, ...]:
    devices: tuple[int, ...] = tuple(ids.ravel().tolist())
    if sorted(devices) != list(range(len(devices))):
        raise HloError("a sharding does not name every device once")
    return devices
