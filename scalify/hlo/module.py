"""The immutable HLO module: what every later stage reads.

Nothing here knows protobuf or text. Instructions refer to their operands by position in the computation, which
is always in topological order, so a stage is one loop without recursion.

Source: XLA's HLO semantics page and ``xla/service/hlo.proto`` (field meanings).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Shape:
    """Type of a value: an array, a tuple of shapes, or a token.

    ``dtype`` is HLO's own name (``f32``, ``bf16``, ``s32``, ``pred``, ``tuple``, ``token``, ``opaque``).
    ``dims`` are sizes in elements, major dimension first (logical order, not memory order); ``dynamic`` is empty
    when every dimension is static, else one flag a dimension. ``layout`` is minor-to-major, or None when absent.
    """

    dtype: str
    dims: tuple[int, ...] = ()
    elements: tuple[Shape, ...] = ()
    dynamic: tuple[bool, ...] = ()
    layout: tuple[int, ...] | None = field(default=None, compare=False)

    @property
    def is_tuple(self) -> bool:
        return self.dtype == "tuple"

    @property
    def is_array(self) -> bool:
        return self.dtype not in ("tuple", "token", "opaque")

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def size(self) -> int:
        """Number of elements (1 for a scalar)."""
        total = 1
        for dim in self.dims:
            total *= dim
        return total

    def __str__(self) -> str:
        if self.is_tuple:
            return "(" + ", ".join(map(str, self.elements)) + ")"
        if not self.is_array:
            return f"{self.dtype}[]"
        flags = self.dynamic or (False,) * len(self.dims)
        return f"{self.dtype}[{','.join(('<=' if f else '') + str(d) for d, f in zip(self.dims, flags, strict=True))}]"


@dataclass(frozen=True, slots=True)
class Frame:
    """One entry of a source stack. ``line`` is 1-based, 0 when unknown."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class Location:
    """Where an instruction comes from. ``stack`` is innermost frame first and may be empty."""

    op_name: str = ""
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Groups of device ids that a collective works within; an empty tuple means one group of all devices.

    ``encoding`` remembers which of the four encodings the file used: ``list``, ``device-list``, ``iota``, ``mesh``.
    """

    groups: tuple[tuple[int, ...], ...]
    encoding: str = field(default="list", compare=False)

    def resolve(self, devices: int) -> tuple[tuple[int, ...], ...]:
        """The groups written out for a program of ``devices`` devices."""
        return self.groups or (tuple(range(devices)),)


@dataclass(frozen=True, slots=True)
class Sharding:
    """An ``OpSharding``: how XLA's partitioner cuts a value over the devices.

    ``kind`` is ``replicated``, ``maximal``, ``manual``, ``tuple``, ``tiled`` or ``unknown``. For ``tiled``, ``tile`` is the tile
    assignment's shape (one entry a dimension, then the replicated subgroups) and ``devices`` the device ids in
    row-major order of that shape; ``trailing`` counts the trailing tile dimensions that do not cut the value, all replicated
    (``last_tile_dims`` other than replicated or manual give ``kind`` unknown).
    """

    kind: str
    tile: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()
    trailing: int = 0
    elements: tuple[Sharding, ...] = ()


@dataclass(frozen=True, slots=True)
class Instruction:
    """One HLO instruction.

    ``operands`` are positions in :attr:`Computation.instructions`. ``attributes`` holds only what the file gave, under the
    names of HLO text (see :mod:`scalify.hlo.opcodes` for each opcode's list). ``calls`` are names of called computations:
    ``to_apply``; ``calls`` of a fusion; ``(condition, body)`` of a while; the branches of a conditional.
    """

    name: str
    opcode: str
    shape: Shape
    operands: tuple[int, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    location: Location | None = field(default=None, compare=False)
    control: tuple[int, ...] = ()

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    @property
    def literal(self) -> npt.NDArray[np.generic]:
        """The data of a ``constant`` (bf16 and the f8 types widened to float32, 4-bit integers to int8: exactly)."""
        value: npt.NDArray[np.generic] = self.attributes["literal"]
        return value


@dataclass(frozen=True)
class Computation:
    """Instructions in topological order; ``root`` is a position."""

    name: str
    instructions: tuple[Instruction, ...]
    root: int

    @cached_property
    def parameters(self) -> tuple[int, ...]:
        """Positions of the parameters, by parameter number."""
        found = {i.attributes["index"]: p for p, i in enumerate(self.instructions) if i.opcode == "parameter"}
        return tuple(found[n] for n in range(len(found)))


@dataclass(frozen=True)
class Module:
    """A whole HLO module.

    ``aliases`` maps an output index path to ``(parameter number, parameter index path)``.
    ``num_partitions`` and ``num_replicas`` are 1 when the file does not say.
    """

    name: str
    computations: Mapping[str, Computation]
    entry_name: str
    num_partitions: int = 1
    num_replicas: int = 1
    aliases: Mapping[tuple[int, ...], tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    parameter_shardings: tuple[Sharding, ...] | None = None
    output_sharding: Sharding | None = None

    @property
    def entry(self) -> Computation:
        return self.computations[self.entry_name]

    @property
    def parameter_shapes(self) -> tuple[Shape, ...]:
        """Shapes of the entry parameters, by parameter number."""
        entry = self.entry
        return tuple(entry.instructions[p].shape for p in entry.parameters)

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """Shapes of the results: the elements of a tuple root (not of nested tuples), else the root itself."""
        shape = self.entry.instructions[self.entry.root].shape
        return shape.elements if shape.is_tuple else (shape,)

    @property
    def instruction_count(self) -> int:
        return sum(len(c.instructions) for c in self.computations.values())
