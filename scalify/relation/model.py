"""What a relation file means, ready for the prover and the interpreter.

An entry of the file is lowered to a :class:`Recipe`: a short array program over one baseline array (or known data) whose result has
one leading dimension for each mesh axis, in mesh order, and then the local dimensions of the distributed array.
``result[position]`` is what the device at that mesh position holds. The steps are ordinary HLO data movement with the
ordinary meaning, so that the lifter and the NumPy interpreter read them with the code that they have already.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Mesh:
    """Ordered mesh axes. A *position* is the row-major index over the axes; ``device_ids[position]`` is the device id there."""

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(size for _, size in self.axes)

    @property
    def size(self) -> int:
        return len(self.device_ids)


@dataclass(frozen=True, slots=True)
class Slice:
    """``x[starts[0]:limits[0], ...]``, one entry a dimension."""

    starts: tuple[int, ...]
    limits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reshape:
    """Row-major reshape to ``dims``."""

    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Transpose:
    """Dimension ``i`` of the result is dimension ``permutation[i]`` of the operand."""

    permutation: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pad:
    """Zeros before and after, one ``(low, high)`` a dimension, both >= 0."""

    padding: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Broadcast:
    """HLO broadcast: operand dimension ``i`` becomes result dimension ``dimensions[i]`` (increasing); the others repeat."""

    dims: tuple[int, ...]
    dimensions: tuple[int, ...]


Step = Slice | Reshape | Transpose | Pad | Broadcast


@dataclass(frozen=True, slots=True)
class Recipe:
    """``steps`` applied in order to ``source``: a baseline parameter or output number, or known data.

    The last step's result has shape ``mesh.shape + local dims``.
    """

    source: int | npt.NDArray[np.generic]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """``recipe`` gives the region ``starts:limits`` of the distributed array (local dimensions).

    ``line`` is the line of the relation file, 0 when inferred. ``partial`` lists the mesh axes (numbers) that the distributed
    value must still be summed over before it is compared (outputs only). ``region`` is the part of the baseline array that the
    entry speaks of, as ``(starts, limits)``, None for known data. ``module`` restricts the entry to one module (MPMD), None = all.
    """

    recipe: Recipe
    starts: tuple[int, ...]
    limits: tuple[int, ...]
    partial: tuple[int, ...] = ()
    region: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    module: int | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Assumption:
    """Integer values of a parameter lie in ``low <= x < high``. ``side`` is ``baseline`` or ``distributed``."""

    side: str
    parameter: int
    low: int
    high: int


@dataclass(frozen=True)
class Relation:
    """A complete, checked relation between two modules.

    ``inputs[q]`` are the pieces that tile distributed parameter ``q``; ``outputs[q]`` those that tile distributed output ``q``
    (an ignored output is absent). ``values[p]`` is known data of baseline parameter ``p``. ``notes`` says in words what was
    inferred instead of read. With ``same_mesh`` the baseline is an SPMD module on the same mesh: the sources of recipes are then arrays
    with the mesh dimensions in front (shape ``mesh.shape + dims``).
    """

    mesh: Mesh
    inputs: Mapping[int, tuple[Piece, ...]]
    outputs: Mapping[int, tuple[Piece, ...]]
    values: Mapping[int, npt.NDArray[np.generic]] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()
    same_mesh: bool = False
    notes: tuple[str, ...] = ()
