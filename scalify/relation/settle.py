"""Entries for parameters and results that nobody listed, where only one reading is left.

Pairs come from names or equal numbers; how a pair is cut comes from the module's own shardings, else from the shapes. Anything that
admits two readings is an error that lists them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import permutations
from math import prod
from operator import mod
from typing import TYPE_CHECKING

from scalify.relation.file import Entry, Place, Spec, StepText
from scalify.relation.sharding import spec_of
from scalify.relation.syntax import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scalify.hlo.module import Sharding
    from scalify.relation.model import Mesh
    from scalify.relation.modules import Names

_MAX_AXES = 5
"""Axes that shapes alone are matched against; beyond this the number of assignments explodes."""


@dataclass(frozen=True, slots=True)
class Settled:
    """An entry that was inferred, and a sentence that says so."""

    entry: Entry
    note: str


def pair(baseline: Names, distributed: Names, open_baseline: Sequence[int], open_distributed: Sequence[int]) -> dict[int, int] | None:
    """Which open baseline number each open distributed number is; None when that is not certain.

    Names from metadata, where they are unique on both sides and all match, then equal numbers, then instruction names.
    """
    if not open_distributed:
        return {}
    parameters = distributed.kind == "parameter"
    found = _matched(baseline.metadata_names, distributed.metadata_names, open_baseline, open_distributed) if parameters else None
    if found is None and list(open_baseline) == list(open_distributed):
        found = {number: number for number in open_distributed}
    if found is None and parameters:
        found = _matched(baseline.names, distributed.names, open_baseline, open_distributed)
    return found


def _matched(
    left: Sequence[str], right: Sequence[str], open_baseline: Sequence[int], open_distributed: Sequence[int]
) -> dict[int, int] | None:
    names = [left[b] for b in open_baseline]
    wanted = [right[d] for d in open_distributed]
    if not all(map(_tells, wanted)) or len(set(names)) < len(names) or len(set(wanted)) < len(wanted) or not set(wanted) <= set(names):
        return None
    number = dict(zip(names, open_baseline, strict=True))
    return {d: number[name] for d, name in zip(open_distributed, wanted, strict=True)}


def _tells(name: str) -> bool:
    """Whether a name says more than a position: ``p1.3``, ``Arg_2`` and ``args[0]`` do not."""
    return re.sub(r"[^a-z]", "", name.lower()) not in {"", "p", "x", "in", "input", "inputs", "arg", "args", "param", "params", "parameter"}


@dataclass(frozen=True, slots=True)
class Settler:
    """Reads single pairs. ``place`` is where errors point: the list that lacks the entry."""

    mesh: Mesh
    same_mesh: bool
    baseline: Names
    distributed: Names
    shardings: Sequence[Sharding | None]
    place: Place
    memo: dict[Sharding, Spec | None] = field(default_factory=dict)

    def settle(self, pairs: Mapping[int, int]) -> Iterator[Settled]:
        """An entry for each ``{distributed: baseline}`` pair.

        Raises:
            RelationError: a pair has no reading, or several.
        """
        for number, source in pairs.items():
            spec, why = self._spec(source, number)
            steps = (StepText(self.place, spec=spec),) if any(spec) else ()
            entry = Entry(Place(self.place.file, 0, self.place.key), {}, source, number, steps=steps)
            yield Settled(entry, f"{self.distributed.kind} {number} is taken to be baseline {source}, {_words(spec)} ({why})")

    def _spec(self, source: int, number: int) -> tuple[Spec, str]:
        sharding = self.shardings[number]
        if sharding is not None and sharding not in self.memo:
            self.memo[sharding] = spec_of(sharding, self.mesh)
        spec = None if sharding is None or self.same_mesh else self.memo[sharding]
        if spec is None:
            return self._from_shapes(source, number)
        return self._checked(spec, source, number), "from the module's sharding"

    def _checked(self, spec: Spec, source: int, number: int) -> Spec:
        """A spec from a sharding, once the shapes agree with it."""
        sizes = dict(self.mesh.axes)
        dims = self.baseline.shapes[source].dims
        parts = [prod(sizes[axis] for axis in axes) for axes in (*spec, *[()] * len(dims))][: len(dims)]
        local = self.distributed.shapes[number].dims
        if (
            len(spec) == len(dims)
            and local == tuple(dim // part for dim, part in zip(dims, parts, strict=True))
            and not any(map(mod, dims, parts))
        ):
            return spec
        what = f"{self.baseline.describe(source)}, {self.distributed.describe(number)}, its sharding is {_words(spec)}"
        if local == dims and prod(parts) > 1:
            raise self.place.error(f"{what}: the module looks not partitioned yet; give the module after the SPMD partitioner")
        if len(spec) > len(dims) or local != tuple(-(-dim // part) for dim, part in zip(dims, parts, strict=True)):
            raise self.place.error(f"{what}: the shapes contradict the sharding; list it")
        if any(dim % part for dim, part in zip(dims, parts, strict=True)):
            raise self.place.error(f"{what}: the sizes do not divide, so that devices hold padding; list it with `pad`")
        return tuple(axes for axes, _ in zip(spec, dims, strict=False))

    def _from_shapes(self, source: int, number: int) -> tuple[Spec, str]:
        dims, local = self.baseline.shapes[source].dims, self.distributed.shapes[number].dims
        readings = list(self._readings(dims, local))
        if len(readings) == 1:
            return readings[0], "from the shapes"
        what = f"{self.baseline.describe(source)}, {self.distributed.describe(number)}"
        if not readings:
            raise self.place.error(
                f"{what}: not listed, and no sharding over mesh {dict(self.mesh.axes)} explains the shapes; add an entry"
            )
        listed = "; ".join(f"spec: {show_spec(spec)}" for spec in readings[:6])
        raise self.place.error(f"{what}: not listed, and the shapes leave {len(readings)} readings; choose one: {listed}")

    def _readings(self, dims: tuple[int, ...], local: tuple[int, ...]) -> Iterator[Spec]:
        """Every way to cut ``dims`` to ``local`` by whole mesh axes, each used at most once."""
        if dims == local:
            yield ()
            return
        axes = [(name, size) for name, size in self.mesh.axes if size > 1]
        if (
            self.same_mesh
            or len(dims) != len(local)
            or len(axes) > _MAX_AXES
            or any(not small or dim % small for dim, small in zip(dims, local, strict=True))
        ):
            return
        yield from _assignments([dim // small for dim, small in zip(dims, local, strict=True)], axes)


def _assignments(ratios: list[int], axes: list[tuple[str, int]]) -> Iterator[Spec]:
    """Ordered, disjoint choices of axes whose sizes multiply to each ratio, dimension by dimension."""
    partial: list[Spec] = [()]
    for ratio in ratios:
        extended: list[Spec] = []
        for spec in partial:
            free = [(name, size) for name, size in axes if name not in {a for entry in spec for a in entry}]
            for count in range(len(free) + 1):
                chosen = [c for c in permutations(free, count) if prod(size for _, size in c) == ratio]
                extended += [(*spec, tuple(name for name, _ in c)) for c in chosen]
        partial = extended
    yield from partial


def show_spec(spec: Spec) -> str:
    """A spec as written in a relation file, without trailing nulls."""
    used = max((i + 1 for i, axes in enumerate(spec) if axes), default=0)
    parts = ["null" if not axes else quoted(axes[0]) if len(axes) == 1 else f"[{', '.join(map(quoted, axes))}]" for axes in spec[:used]]
    return f"[{', '.join(parts)}]"


def _words(spec: Spec) -> str:
    cuts = [f"dimension {i} over {', '.join(axes)}" for i, axes in enumerate(spec) if axes]
    return f"cut along {' and '.join(cuts)}" if cuts else "whole on each device"
