"""Device lists written out: iota tiles, device meshes with split axes, replica groups.

Everything here is arithmetic on small integer arrays of device ids; the readers of protos and of text share it.

Source: ``IotaReplicaGroupListProto``, ``MeshProto`` and ``AxisRefProto`` of ``xla/xla_data.proto``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from scalify.errors import HloError
from scalify.hlo.module import ReplicaGroups

if TYPE_CHECKING:
    from collections.abc import Sequence

Ids = npt.NDArray[np.int64]

# Above any machine there is; keeps a hostile `[1000000000]` from filling the memory.
MAX_DEVICES: Final = 1 << 17
# NumPy arrays have at most 64 dimensions: a split mesh has its factors in front of the references.
MAX_DIMENSIONS: Final = 32


@dataclass(frozen=True, slots=True)
class AxisRef:
    """A mesh axis (by number), or the part of it that has size ``size`` after the factors of product ``pre_size`` (0 = whole axis)."""

    axis: int
    pre_size: int = 0
    size: int = 0


def device_count(sizes: Sequence[int]) -> int:
    """Product of ``sizes``; HloError unless all are positive, few, and the product is at most :data:`MAX_DEVICES`."""
    _check_rank(sizes)
    if any(size < 1 for size in sizes):
        raise HloError(f"device dimensions must be positive, not {list(sizes)[:8]}")
    count = 1
    for size in sizes:
        count *= size
        if count > MAX_DEVICES:
            raise HloError(f"more than {MAX_DEVICES} devices in one device list")
    return count


def _check_rank(dimensions: Sequence[object]) -> None:
    if len(dimensions) > MAX_DIMENSIONS:
        raise HloError(f"a device list has {len(dimensions)} dimensions, more than {MAX_DIMENSIONS}")


def iota_ids(reshape: Sequence[int], permutation: Sequence[int]) -> Ids:
    """``arange(n)`` reshaped to ``reshape`` and transposed by ``permutation`` (empty = not transposed); shape as transposed."""
    ids = np.arange(device_count(reshape), dtype=np.int64).reshape(tuple(reshape))
    if not permutation:
        return ids
    if sorted(permutation) != list(range(len(reshape))):
        raise HloError(f"{list(permutation)[:8]} is not a permutation of {len(reshape)} dimensions")
    return ids.transpose(tuple(permutation))


def tile_ids(tile: Sequence[int], ids: Ids) -> Ids:
    """``ids`` in row-major order, reshaped to ``tile``; HloError if the counts differ."""
    if device_count(tile) != ids.size:
        raise HloError(f"{list(tile)[:8]} needs {device_count(tile)} devices, the device list has {ids.size}")
    return ids.reshape(tuple(tile))


def groups_of(rows: Sequence[Sequence[int]], encoding: str) -> ReplicaGroups:
    """Checked groups: ids are not negative, no id occurs twice. Empty rows are dropped (XLA's old way to say "all devices")."""
    groups = tuple(tuple(row) for row in rows if len(row))
    seen = [device for group in groups for device in group]
    if len(set(seen)) != len(seen):
        raise HloError("a device occurs twice in replica_groups")
    if seen and (min(seen) < 0 or max(seen) >= MAX_DEVICES):
        raise HloError(f"device ids in replica_groups must be between 0 and {MAX_DEVICES - 1}")
    return ReplicaGroups(groups, encoding)


def iota_groups(groups: int, group_size: int, reshape: Sequence[int], permutation: Sequence[int]) -> ReplicaGroups:
    """The form ``[groups, group_size]<=[reshape]T(permutation)``."""
    return groups_of(tile_ids((groups, group_size), iota_ids(reshape, permutation)).tolist(), "iota")


def mesh_groups(sizes: Sequence[int], ids: Ids | None, refs: Sequence[AxisRef]) -> ReplicaGroups:
    """The form ``mesh[sizes], device_ids=ids {refs}``: devices that differ only in ``refs`` form a group.

    ``ids`` (any shape, row-major over the axes) defaults to ``arange``. Within a group the first axis of ``refs`` is the major one.
    """
    rest, named = split_mesh(sizes, ids, refs)
    return groups_of(named.reshape(-1, math.prod(named.shape[rest:])).tolist(), "mesh")


def split_mesh(sizes: Sequence[int], ids: Ids | None, refs: Sequence[AxisRef]) -> tuple[int, Ids]:
    """The mesh as an array whose last dimensions are ``refs`` in order, and the number of the dimensions before them.

    The dimensions in front are the factors of the mesh that no reference names, in mesh order.
    HloError if references overlap, do not divide their axis, or name no axis.
    """
    _check_rank(refs)
    mesh = tile_ids(sizes, np.arange(device_count(sizes), dtype=np.int64) if ids is None else ids)
    bounds = _bounds(sizes, refs)
    factors = [(axis, low, high) for axis, cuts in enumerate(bounds) for low, high in pairwise(cuts)]
    named = [k for ref in refs for k in _factors_of(ref, sizes, factors)]
    if len(set(named)) != len(named):
        raise HloError("mesh axes overlap in one device list")
    rest = [k for k in range(len(factors)) if k not in set(named)]
    split = mesh.reshape([high // low for _, low, high in factors]).transpose(rest + named)
    lengths = [size_of(ref, sizes) for ref in refs]
    return len(rest), split.reshape([*split.shape[: len(rest)], *lengths])


def size_of(ref: AxisRef, sizes: Sequence[int]) -> int:
    """Number of devices along ``ref``."""
    return ref.size if ref.pre_size else sizes[ref.axis]


def _bounds(sizes: Sequence[int], refs: Sequence[AxisRef]) -> list[list[int]]:
    """For each axis the products of leading factors at which it is cut, from 1 to its size."""
    cuts: list[set[int]] = [{1, size} for size in sizes]
    for ref in refs:
        if not 0 <= ref.axis < len(sizes):
            raise HloError(f"mesh axis {ref.axis} does not exist: the mesh has {len(sizes)}")
        if ref.pre_size < 0 or (ref.pre_size and ref.size < 1):
            raise HloError("sizes of a mesh sub-axis must be positive")
        cuts[ref.axis] |= {ref.pre_size, ref.pre_size * ref.size} if ref.pre_size else set()
    bounds = [sorted(cut) for cut in cuts]
    if any(high % low for cut in bounds for low, high in pairwise(cut)) or any(c[-1] != s for c, s in zip(bounds, sizes, strict=True)):
        raise HloError("mesh sub-axes do not divide their axis")
    return bounds


def _factors_of(ref: AxisRef, sizes: Sequence[int], factors: Sequence[tuple[int, int, int]]) -> list[int]:
    low, high = (ref.pre_size, ref.pre_size * ref.size) if ref.pre_size else (1, sizes[ref.axis])
    return [k for k, (axis, start, end) in enumerate(factors) if axis == ref.axis and low <= start and end <= high]
