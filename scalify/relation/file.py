"""The typed content of a relation file, before it meets the modules.

Every part keeps the line that it stands on, so that a later contradiction with the graphs can name it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scalify.errors import RelationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scalify.relation.einops import Map

Reference = int | str
"""A parameter or result: its number, or its name."""
Data = bool | int | float | list["Data"]
"""A scalar or nested lists of scalars."""
Spec = tuple[tuple[str, ...], ...]
"""For each dimension the mesh axes that cut it, major to minor."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: file, line (0 for what nobody wrote), key."""

    file: str
    line: int
    key: str = ""

    def __str__(self) -> str:
        return self.file + (f": line {self.line}" if self.line else "") + (f": {self.key}" if self.key else "")

    def error(self, message: str) -> RelationError:
        return RelationError(message, str(self))


@dataclass(frozen=True, slots=True)
class StepText:
    """One step of an entry: pad dimensions, split into factors, pad factors, rearrange.

    ``pad_dims`` and ``pad_factors`` hold ``(low, high)`` zeros. ``map`` and ``spec`` exclude each other; with neither the step only pads.
    """

    place: Place
    map: Map | None = None
    spec: Spec | None = None
    pad_dims: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    pad_factors: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of ``inputs`` or ``outputs``. Exactly one of the five kinds of content is set.

    ``distributed`` is a tuple when there is one reference for each module (None: the module has no such parameter).
    ``lines`` has the line of each key.
    """

    place: Place
    lines: Mapping[str, int]
    baseline: Reference | None = None
    distributed: Reference | tuple[Reference | None, ...] | None = None
    module: int | None = None
    baseline_slice: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    distributed_slice: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    steps: tuple[StepText, ...] = ()
    value: Data | None = None
    per_device: list[Data] | None = None
    device_index: tuple[str, ...] | None = None
    ignore: bool = False

    @property
    def is_known(self) -> bool:
        """The entry gives data instead of a region of the baseline."""
        return self.value is not None or self.per_device is not None or self.device_index is not None

    def at(self, key: str) -> Place:
        """The place of ``key`` in this entry."""
        return Place(self.place.file, self.lines.get(key, self.place.line), key)


@dataclass(frozen=True, slots=True)
class AssumeText:
    """One line of ``assume``: integer values in ``low <= x < high``."""

    place: Place
    side: str
    parameter: Reference
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class RelationFile:
    """A relation file as written. ``mesh`` is in the order of the file; ``device_ids`` is None for row-major."""

    name: str
    mesh: tuple[tuple[str, int], ...]
    inputs: tuple[Entry, ...]
    outputs: tuple[Entry, ...]
    assume: tuple[AssumeText, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    device_ids: tuple[int, ...] | None = None
    same_mesh: bool = False
    lines: Mapping[str, int] = field(default_factory=dict)

    def at(self, key: str) -> Place:
        """The place of a top-level key."""
        return Place(self.name, self.lines.get(key, 0), key)
