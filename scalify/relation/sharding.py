"""XLA shardings as mesh axes.

A tiled sharding lists devices in the order of its tiles. Along each tile dimension the position of the device is a mixed-radix number:
digits ``(stride, size)``. The boundaries of all digits of all shardings, when each divides the next, are the strides of a mesh on which every
sharding is a PartitionSpec. Where no permutation is needed, positions are device ids; else the order of one of the shardings is tried.
Source: ``OpSharding`` in ``xla/xla_data.proto``.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from scalify.relation.model import Mesh

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from scalify.hlo.module import Module, Sharding
    from scalify.relation.file import Spec

    Array = npt.NDArray[np.int64]

Digit = tuple[int, int]
"""``(stride, size)`` of a mixed-radix digit of a mesh position."""

_MAX_ORDERS = 8


def module_shardings(module: Module, *, outputs: bool) -> list[Sharding | None]:
    """The sharding of each parameter or result, None where the module does not say."""
    if outputs:
        sharding = module.output_sharding
        found = None if sharding is None else sharding.elements if sharding.kind == "tuple" else (sharding,)
        count = len(module.output_shapes)
    else:
        entry = module.entry
        count = len(entry.parameters)
        found = module.parameter_shardings or tuple(entry.instructions[p].attribute("sharding") for p in entry.parameters)
    return list(found) if found is not None and len(found) == count else [None] * count


def derive_mesh(shardings: Sequence[Sharding], devices: int) -> Mesh | None:
    """The coarsest mesh, axes ``m0``, ``m1``, ... from major to minor, on which every tiled sharding is a PartitionSpec; None if there is none."""
    tiled = [s for s in dict.fromkeys(shardings) if s.kind == "tiled" and len(s.devices) == devices]
    for order in _orders(tiled, devices):
        position = _positions(order)
        digits = [_digits(s, position) for s in tiled]
        if any(d is None for d in digits):
            continue
        cuts = sorted({1, devices, *(b for d in digits for tile in d or () for stride, size in tile for b in (stride, stride * size))})
        if all(high % low == 0 for low, high in pairwise(cuts)):
            sizes = [high // low for low, high in pairwise(cuts)][::-1] or [1]
            return Mesh(tuple((f"m{i}", size) for i, size in enumerate(sizes)), order)
    return None


def order_on(axes: tuple[tuple[str, int], ...], shardings: Sequence[Sharding]) -> Mesh | None:
    """A mesh with the given axes, its devices ordered so that every tiled sharding is a PartitionSpec; None if no tried order does."""
    devices = prod(size for _, size in axes)
    tiled = [s for s in dict.fromkeys(shardings) if s.kind == "tiled" and len(s.devices) == devices]
    meshes = (Mesh(axes, order) for order in _orders(tiled, devices))
    return next((mesh for mesh in meshes if all(spec_of(s, mesh) is not None for s in tiled)), None)


def spec_of(sharding: Sharding, mesh: Mesh) -> Spec | None:
    """The sharding as mesh axes for each dimension; None when it does not fit the mesh or is not a tiling."""
    if sharding.kind == "replicated":
        return ()
    if sharding.kind != "tiled" or len(sharding.devices) != mesh.size:
        return None
    digits = _digits(sharding, _positions(mesh.device_ids))
    if digits is None:
        return None
    spec = []
    for tile in digits[: len(digits) - sharding.trailing]:
        axes = [_axes_of(digit, mesh) for digit in tile]
        if any(a is None for a in axes):
            return None
        spec.append(tuple(name for a in axes for name in a or ()))
    return tuple(spec)


def _orders(tiled: Sequence[Sharding], devices: int) -> list[tuple[int, ...]]:
    """Device orders worth trying: by id, then those that shardings list."""
    permutations = (s.devices for s in tiled if sorted(s.devices) == list(range(devices)))
    return list(dict.fromkeys([tuple(range(devices)), *permutations]))[:_MAX_ORDERS]


def _positions(order: tuple[int, ...]) -> Array:
    position = np.zeros(len(order), dtype=np.int64)
    position[list(order)] = np.arange(len(order))
    return position


def _digits(sharding: Sharding, position: Array) -> list[list[Digit]] | None:
    """Digits of each tile dimension, major to minor; None when positions are not a sum of digits."""
    if prod(sharding.tile) != len(position) or sorted(sharding.devices) != list(range(len(position))):
        return None
    tiles = position[list(sharding.devices)].reshape(sharding.tile)
    rank = len(sharding.tile)
    offsets = [tiles[tuple(slice(None) if d == k else 0 for d in range(rank))] for k in range(rank)]
    total = np.zeros_like(tiles)
    for k, offset in enumerate(offsets):
        total = total + offset.reshape([-1 if d == k else 1 for d in range(rank)])
    if tiles.flat[0] != 0 or not np.array_equal(total, tiles):
        return None
    digits = [_radix(offset) for offset in offsets]
    return None if any(d is None for d in digits) else [d for d in digits if d is not None]


def _radix(offsets: Array) -> list[Digit] | None:
    """A sequence that starts at 0 as a mixed-radix number, major to minor: ``[0, 4, 1, 5]`` is ``[(1, 2), (4, 2)]``."""
    digits: list[Digit] = []
    while len(offsets) > 1:
        stride = int(offsets[1])
        straight = offsets == stride * np.arange(len(offsets))
        run = len(offsets) if straight.all() else int(straight.argmin())
        if stride <= 0 or len(offsets) % run:
            return None
        heads = offsets[::run]
        if not np.array_equal(offsets.reshape(-1, run), heads[:, None] + stride * np.arange(run)):
            return None
        digits.insert(0, (stride, run))
        offsets = heads
    return digits


def _axes_of(digit: Digit, mesh: Mesh) -> tuple[str, ...] | None:
    """The consecutive mesh axes, major to minor, that make up a digit."""
    stride, size = digit
    names: list[str] = []
    below = 1
    for name, extent in reversed(mesh.axes):
        if extent > 1 and stride <= below < stride * size:
            if below == stride * prod(dict(mesh.axes)[n] for n in names) and below * extent <= stride * size:
                names.insert(0, name)
            else:
                return None
        below *= extent
    return tuple(names) if prod(dict(mesh.axes)[n] for n in names) == size else None
