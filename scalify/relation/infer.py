"""A relation without a file: from the shardings that the distributed module carries, or from shapes with one reading."""

from __future__ import annotations

import re
from itertools import chain
from math import prod
from typing import TYPE_CHECKING

from scalify.errors import RelationError, UsageError
from scalify.relation.einops import is_name
from scalify.relation.file import RelationFile
from scalify.relation.parse import MAX_DEVICES
from scalify.relation.resolve import complete
from scalify.relation.sharding import derive_mesh, module_shardings, order_on
from scalify.relation.write import write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Module, Sharding
    from scalify.relation.model import Mesh, Relation

Axes = tuple[tuple[str, int], ...]
_WHERE = "inferred relation"


def parse_mesh(text: str) -> Axes:
    """Mesh axes from a command line: ``dp=2,tp=4``.

    Raises:
        UsageError: not of that form, an axis twice, or too many devices.
    """
    axes: list[tuple[str, int]] = []
    for part in text.split(","):
        name, _, size = part.strip().partition("=")
        if not is_name(name) or not re.fullmatch(r"[1-9][0-9]{0,6}", size):
            raise UsageError(f"a mesh is written name=size[,name=size ...], such as dp=2,tp=4; not {text[:80]!r}")
        if name in dict(axes):
            raise UsageError(f"mesh axis {name} stands twice in {text[:80]!r}")
        axes.append((name, int(size)))
    if prod(size for _, size in axes) > MAX_DEVICES:
        raise UsageError(f"mesh {text[:80]!r} has more than {MAX_DEVICES} devices")
    return tuple(axes)


def infer(baseline: Module, distributed: Sequence[Module], mesh: Axes | None = None) -> tuple[Relation, str]:
    """The relation that the modules alone leave as the only one, and the text of its relation file.

    ``mesh`` names the axes; without it they are derived from the shardings of the distributed module and called ``m0``, ``m1``, ... A baseline that
    is itself an SPMD module is taken to run on the same mesh, related device by device.

    Raises:
        RelationError: something has no reading, or several; the message lists them.
    """
    if not distributed:
        raise RelationError("there is no distributed module", _WHERE)
    same_mesh = _devices(baseline) > 1
    found = _mesh(distributed, mesh)
    file = RelationFile(_WHERE, found.axes, (), (), device_ids=found.device_ids, same_mesh=same_mesh)
    relation, completed = complete(file, baseline, distributed)
    return relation, write(completed)


def _devices(module: Module) -> int:
    return module.num_partitions * module.num_replicas


def _device_count(distributed: Sequence[Module]) -> int:
    """Devices that the modules speak of: what they were compiled for, else all ids in the groups of their collectives."""
    count = max(_devices(distributed[0]), len(distributed))
    if count > 1:
        return count
    groups = (
        instruction.attribute("replica_groups")
        for computation in distributed[0].computations.values()
        for instruction in computation.instructions
    )
    ids = {device for group in groups if group is not None for devices in group.groups for device in devices}
    return len(ids) if ids and ids == set(range(len(ids))) else count


def _mesh(distributed: Sequence[Module], axes: Axes | None) -> Mesh:
    module = distributed[0]
    shardings: list[Sharding] = []
    if len(distributed) == 1:
        both = chain(module_shardings(module, outputs=False), module_shardings(module, outputs=True))
        shardings = [s for s in both if s is not None]
    if axes is None:
        found = derive_mesh(shardings, _device_count(distributed))
        hint = "its shardings do not fit one mesh; name the axes with --mesh, or write a relation file"
    else:
        found = order_on(axes, shardings)
        hint = f"its shardings do not fit mesh {dict(axes)}"
    if found is None:
        raise RelationError(f"module {module.name}: {hint}", _WHERE)
    return found
