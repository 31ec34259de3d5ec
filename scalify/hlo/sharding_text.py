"""Shardings and replica groups as HLO text.

Source: ``HloSharding::ToString``, ``NamedSharding::ToString``, ``MeshAxesReplicaGroupList::ToString`` and their parsers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from scalify.errors import HloError
from scalify.hlo import groups, shardings
from scalify.hlo.groups import AxisRef, Ids
from scalify.hlo.lexer import split, without_comments
from scalify.hlo.module import ReplicaGroups, Sharding

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTEGERS: Final = re.compile(r"\s*(?:\d{1,10}\s*(?:,\s*\d{1,10}\s*)*)?")
_TILES: Final = re.compile(
    r"\s*devices=\[([\d,\s]*)\]\s*(?:<=\s*\[([\d,\s]*)\](?:T\(([\d,\s]*)\))?|([\d,\s]*))\s*(last_tile_dim_replicate)?\s*(?:last_tile_dims=\{([\w,\s]*)\})?"
)
_MAXIMAL: Final = re.compile(r"\s*maximal\s+device=([\d,\s]*)")
# What may follow the sharding itself and does not change what each device holds.
_TAIL: Final = re.compile(r"(?:\s*,?\s*(?:shard_(?:as|like)\s+\d+|metadata=\{.*\}))*\s*\Z", re.DOTALL)
_IOTA: Final = re.compile(r"\[(\d+),(\d+)\]<=\[([\d,]*)\](?:T\(([\d,]*)\))?\Z")
_MESH: Final = re.compile(r"mesh\[([^\]]*)\]\s*(?:,\s*device_ids=\(((?:[^()]|\([^()]*\))*)\))?\s*,?\s*")
_AXIS: Final = re.compile(r"\s*'?([^'=,]+?)'?\s*=\s*(\d{1,10})\s*\Z")
_REF: Final = re.compile(r"\s*'?([^'{}:,]+?)'?(?::\((\d{1,10})\)(\d{1,10}))?\s*\Z")
_IOTA_IDS: Final = re.compile(r"\s*\[([\d,\s]*)\](?:T\(([\d,\s]*)\))?\s*\Z")


def integers(text: str) -> tuple[int, ...]:
    """The numbers, not negative, in a comma-separated list."""
    if not _INTEGERS.fullmatch(text):
        raise HloError(f"{text[:40]!r} is not a list of numbers")
    return tuple(map(int, text.split(","))) if text.strip() else ()


def read_sharding(text: str) -> Sharding:
    """A sharding with its braces."""
    return _sharding(without_comments(text).strip(), 0)


def _sharding(text: str, depth: int) -> Sharding:
    if not (text.startswith("{") and text.endswith("}")):
        raise HloError(f"{text[:60]!r} is not a sharding")
    inner = text[1:-1].strip()
    if not inner or inner.startswith("{"):
        if depth >= shardings.MAX_NESTING:
            raise HloError(f"shardings are nested deeper than {shardings.MAX_NESTING}")
        return Sharding("tuple", elements=tuple(_sharding(part, depth + 1) for part in split(inner)))
    return _leaf(inner)


def _leaf(inner: str) -> Sharding:
    for kind in ("replicated", "manual", "unknown", "unreduced"):
        if inner.startswith(kind) and _TAIL.match(inner, len(kind)):
            return Sharding("unknown" if kind == "unreduced" else kind)
    if inner.startswith("mesh["):
        return _named(inner)
    maximal = _MAXIMAL.match(inner)
    if maximal and _TAIL.match(inner, maximal.end()):
        return Sharding("maximal", devices=integers(maximal[1]))
    tiles = _TILES.match(inner)
    if tiles is None or not _TAIL.match(inner, tiles.end()):
        raise HloError(f"{inner[:60]!r} is not a sharding")
    return _tiled(tiles)


def _tiled(match: re.Match[str]) -> Sharding:
    tile, reshape, permutation, devices, replicate, subgroups = match.groups()
    ids = (
        np.array(integers(devices), dtype=np.int64) if reshape is None else groups.iota_ids(integers(reshape), integers(permutation or ""))
    )
    kinds = [kind.strip() for kind in subgroups.split(",") if kind.strip()] if subgroups else []
    replicated = all(kind == "replicated" for kind in kinds)
    return shardings.tiled(integers(tile), ids, len(kinds) or int(bool(replicate)), replicated=replicated)


def _named(text: str) -> Sharding:
    """``mesh['x'=2,'y'=2], [{'y'}, {}], replicated={'x'}``."""
    sizes, ids, names, end = _mesh(text)
    parts = split(text[end:])
    dims = [part for part in parts if part.startswith("[")]
    if len(dims) > 1:
        raise HloError(f"{text[:60]!r} is not a sharding")
    refs = [_refs(part[1:-1], names) for part in split(dims[0][1:-1])] if dims else []
    replicated = all(part.startswith(("[", "replicated", "metadata")) for part in parts)
    return shardings.named(sizes, ids, refs, replicated=replicated)


def _mesh(text: str) -> tuple[tuple[int, ...], Ids | None, list[str], int]:
    """Sizes, device ids and names of the axes, and where the mesh ends in ``text``."""
    match = _MESH.match(text)
    if match is None:
        raise HloError(f"{text[:60]!r} is not a mesh")
    axes = [_AXIS.match(part) for part in split(match[1])]
    if not all(axes):
        raise HloError(f"{text[:60]!r} is not a mesh")
    names, sizes = [axis[1] for axis in axes if axis], tuple(int(axis[2]) for axis in axes if axis)
    if len(set(names)) != len(names):
        raise HloError("two axes of a mesh have one name")
    return sizes, None if match[2] is None else _device_ids(match[2]), names, match.end()


def _device_ids(text: str) -> Ids:
    iota = _IOTA_IDS.match(text)
    return groups.iota_ids(integers(iota[1]), integers(iota[2] or "")) if iota else np.array(integers(text), dtype=np.int64)


def _refs(text: str, names: Sequence[str]) -> list[AxisRef]:
    return [_ref(part, names) for part in split(text) if part != "?"]


def _ref(text: str, names: Sequence[str]) -> AxisRef:
    match = _REF.match(text)
    if match is None or match[1] not in names:
        raise HloError(f"{text[:40]!r} is not an axis of the mesh")
    return AxisRef(names.index(match[1]), int(match[2] or 0), int(match[3] or 0))


def read_groups(text: str) -> ReplicaGroups:
    """Replica groups in any of their forms: ``{{0,1},{2,3}}``, ``[2,2]<=[4]``, ``mesh['x'=2,'y'=2] {'x'}``."""
    if text.startswith("mesh["):
        sizes, ids, names, end = _mesh(text)
        axes = text[end:].strip()
        if not (axes.startswith("{") and axes.endswith("}")):
            raise HloError(f"{text[:60]!r} names no mesh axes")
        return groups.mesh_groups(sizes, ids, _refs(axes[1:-1], names))
    iota = _IOTA.match(text)
    if iota:
        return groups.iota_groups(int(iota[1]), int(iota[2]), integers(iota[3]), integers(iota[4] or ""))
    return groups.groups_of(read_lists(text), "list")


def read_lists(text: str) -> tuple[tuple[int, ...], ...]:
    """``{{0,1},{2,3}}``: lists of numbers, not negative."""
    parts = split(text[1:-1]) if text.startswith("{") and text.endswith("}") else [""]
    if not all(part.startswith("{") and part.endswith("}") for part in parts):
        raise HloError(f"{text[:60]!r} is not a list of lists of numbers")
    return tuple(integers(part[1:-1]) for part in parts)


def write_lists(lists: Sequence[Sequence[int]]) -> str:
    """The text that :func:`read_lists` takes back."""
    return "{" + ",".join("{" + ",".join(map(str, numbers)) + "}" for numbers in lists) + "}"


def write_sharding(sharding: Sharding) -> str:
    """The text of ``sharding`` with its braces, which :func:`read_sharding` takes back."""
    if sharding.kind == "tuple":
        return "{" + ", ".join(map(write_sharding, sharding.elements)) + "}"
    devices = ",".join(map(str, sharding.devices))
    if sharding.kind == "maximal":
        return f"{{maximal device={devices}}}"
    if not sharding.tile:
        return f"{{{sharding.kind}}}"
    return f"{{devices=[{','.join(map(str, sharding.tile))}]{devices}{_subgroups(sharding)}}}"


def _subgroups(sharding: Sharding) -> str:
    if not sharding.trailing:
        return ""
    if sharding.kind == "tiled" and sharding.trailing == 1:
        return " last_tile_dim_replicate"
    kind = "replicated" if sharding.kind == "tiled" else "unreduced"
    return f" last_tile_dims={{{', '.join([kind] * sharding.trailing)}}}"
