"""One entry of a relation file, in the light of the modules: its pieces, and the data that it gives."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from operator import sub
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from scalify.errors import RelationError
from scalify.hlo.dtypes import DTYPES
from scalify.hlo.module import Shape
from scalify.relation.lower import Frame, Lowered, lower
from scalify.relation.model import Broadcast, Mesh, Piece, Recipe, Slice, Step
from scalify.relation.parse import did_you_mean
from scalify.relation.steps import simplify
from scalify.relation.values import cast, dense, per_position

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scalify.relation.coverage import Box
    from scalify.relation.file import Entry, Place, Reference
    from scalify.relation.modules import Names

Array = npt.NDArray[np.generic]
Target = tuple[int | None, int]
"""A module (None for all of them) and a number of its parameters or results."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Placed:
    """A piece with what the checks need: the distributed number, the baseline number, and the mesh axes that cut the baseline."""

    number: int
    piece: Piece
    place: Place
    cuts: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Reader:
    """Turns entries of ``inputs`` or of ``outputs`` into pieces. ``memo`` holds lowered steps: layers repeat."""

    mesh: Mesh
    sizes: Mapping[str, int]
    same_mesh: bool
    baseline: Names
    distributed: Sequence[Names]
    memo: dict[object, Lowered]

    def pieces(self, entry: Entry) -> list[Placed]:
        """The pieces of an entry that is not ignored.

        Raises:
            RelationError: the entry contradicts the modules or the mesh.
        """
        if entry.distributed is None:
            return []
        return [self._piece(entry, target) for target in self.targets(entry)]

    def targets(self, entry: Entry) -> list[Target]:
        """The distributed parameters or results that an entry speaks of; modules that agree in number and shape are not told apart."""
        place = entry.at("distributed")
        reference = entry.distributed
        count = len(self.distributed)
        if isinstance(reference, tuple):
            if entry.module is not None:
                raise entry.at("module").error("cannot stand beside a list of parameters, which has one for each module")
            if len(reference) != count:
                raise place.error(
                    f"lists {len(reference)} parameters, but there {'are' if count != 1 else 'is'} {count} distributed module{'s' * (count != 1)}"
                )
            chosen = list(enumerate(reference))
        elif entry.module is not None:
            if entry.module >= count:
                raise entry.at("module").error(f"there is no module {entry.module}; the distributed modules are 0 to {count - 1}")
            chosen = [(entry.module, reference)]
        else:
            chosen = [(module, reference) for module in range(count)]
        found = [(m, _placing(place, lambda m=m, r=r: self.distributed[m].number(r))) for m, r in chosen if r is not None]  # type: ignore[misc]
        return _merged(found, self.distributed)

    def known(self, entry: Entry) -> tuple[int, Array]:
        """Number and data of the baseline parameter that an entry with known data speaks of; shape as in ``Relation.values``."""
        number = self.baseline_number(entry)
        shape = self.baseline.shapes[number]
        mesh = self.mesh.shape if self.same_mesh else ()
        if entry.value is None and not self.same_mesh:
            key = "per_device" if entry.per_device is not None else "device_index"
            raise entry.at(key).error("the baseline runs on one device; write `distributed`")
        data, dimensions = self._data(entry, shape)
        if not self.same_mesh:
            return number, np.broadcast_to(data, shape.dims)
        full = (*mesh, *shape.dims)
        view = [full[d] if d in dimensions else 1 for d in range(len(full))]
        return number, np.broadcast_to(data.reshape(view), full)

    def baseline_number(self, entry: Entry) -> int:
        """The baseline parameter or result that an entry names."""
        assert entry.baseline is not None
        reference: Reference = entry.baseline
        return _placing(entry.at("baseline"), lambda: self.baseline.number(reference))

    # -- pieces -------------------------------------------------------------------------------------------------------
    def _piece(self, entry: Entry, target: Target) -> Placed:
        module, number = target
        names = self.distributed[module or 0]
        shape = _array(names, number, entry.at("distributed"))
        box = _box(entry, "distributed_slice", names, number)
        if entry.is_known:
            return self._known_piece(entry, target, shape, box)
        source = self.baseline_number(entry)
        origin = _array(self.baseline, source, entry.at("baseline"))
        if _kind(origin) != _kind(shape):
            raise entry.place.error(f"relates {_kind(origin)} data to {_kind(shape)} data{self._context(source, target)}")
        region = _box(entry, "baseline_slice", self.baseline, source)
        if not entry.steps and _extent(region) != _extent(box):
            context = self._context(source, target)
            raise entry.place.error(f"without spec, map or steps it is whole on each device, but the shapes differ{context}")
        lowered = self._lower(entry, (source, region), (target, box))
        steps = (*self._slice(region, origin), *lowered.steps)
        piece = Piece(Recipe(source, steps), *box, lowered.partial, region, module, entry.place.line)
        if lowered.partial and names.kind == "parameter":
            raise entry.at("map").error("[+axis] marks results that are still to be summed; a parameter cannot be partial")
        return Placed(number, piece, entry.place, lowered.cuts)

    def _lower(self, entry: Entry, source: tuple[int, Box], target: tuple[Target, Box]) -> Lowered:
        extents = _extent(source[1]), _extent(target[1])
        parts = tuple((s.map.text if s.map else s.spec, tuple(s.pad_dims.items()), tuple(s.pad_factors.items())) for s in entry.steps)
        key = (parts, extents)
        if key not in self.memo:
            context = self._context(source[0], target[0])
            frame = Frame(*extents, self.mesh, self.sizes, self.same_mesh, context, entry.place)
            self.memo[key] = lower(entry.steps, frame)
        return self.memo[key]

    def _context(self, source: int, target: Target) -> str:
        """The two shapes, for the end of an error."""
        names = self.distributed[target[0] or 0]
        return f" ({self.baseline.describe(source)}, {names.describe(target[1])})"

    def _slice(self, region: Box, origin: Shape) -> tuple[Step, ...]:
        if _extent(region) == origin.dims:
            return ()
        mesh = self.mesh.shape if self.same_mesh else ()
        return (Slice((*(0 for _ in mesh), *region[0]), (*mesh, *region[1])),)

    def _known_piece(self, entry: Entry, target: Target, shape: Shape, box: Box) -> Placed:
        local = _extent(box)
        data, dimensions = self._data(entry, Shape(shape.dtype, local))
        steps = simplify([Broadcast((*self.mesh.shape, *local), dimensions)], data.shape)
        return Placed(target[1], Piece(Recipe(data, steps), *box, (), None, target[0], entry.place.line), entry.place)

    # -- data ---------------------------------------------------------------------------------------------------------
    def _data(self, entry: Entry, shape: Shape) -> tuple[Array, tuple[int, ...]]:
        """Known data, and which dimensions of mesh and array its dimensions are."""
        rank, lead = len(shape.dims), len(self.mesh.shape)
        if entry.value is not None:
            value = entry.value
            data = _placing(entry.at("value"), lambda: dense(value, shape))
            return data, tuple(range(lead, lead + rank)) if data.ndim else ()
        if entry.per_device is not None:
            listed = entry.per_device
            data = _placing(entry.at("per_device"), lambda: per_position(listed, shape, self.mesh.size))
            return data.reshape(self.mesh.shape + data.shape[1:]), tuple(range(lead + data.ndim - 1))
        return self._device_index(entry, shape)

    def _device_index(self, entry: Entry, shape: Shape) -> tuple[Array, tuple[int, ...]]:
        place = entry.at("device_index")
        names = [axis for axis, _ in self.mesh.axes]
        axes = entry.device_index or ()
        for i, axis in enumerate(axes):
            if axis not in names:
                raise place.error(f"{axis} is not a mesh axis; {did_you_mean(axis, names)}")
            if axis in axes[:i]:
                raise place.error(f"mesh axis {axis} stands twice")
        if prod(shape.dims) != 1:
            raise place.error(f"is one number on each device, but the parameter is {shape}; write per_device")
        numbers = [names.index(axis) for axis in axes]
        extents = [self.mesh.shape[n] for n in numbers]
        data = _placing(place, lambda: cast(range(prod(extents)), shape.dtype)).reshape(extents)
        return data.transpose(np.argsort(numbers)), tuple(sorted(numbers))


def _placing(place: Place, compute: Callable[[], T]) -> T:
    """The result of ``compute``, whose errors get the place in front."""
    try:
        return compute()
    except RelationError as error:
        raise place.error(error.message) from None


def _merged(found: list[tuple[int, int]], modules: Sequence[Names]) -> list[Target]:
    """One target without module when all modules take part with the same number and shape."""
    shapes = {(number, modules[module].shapes[number]) for module, number in found}
    if len(found) == len(modules) and len(shapes) == 1:
        return [(None, found[0][1])]
    return list(found)


def _array(names: Names, number: int, place: Place) -> Shape:
    shape = names.shapes[number]
    if not shape.is_array:
        raise place.error(f"{names.describe(number)}, which is not an array")
    return shape


def _kind(shape: Shape) -> str:
    dtype = DTYPES.get(shape.dtype)
    if dtype is None:
        return shape.dtype
    return {"f": "floating-point", "c": "complex"}.get(dtype.kind, "integer")


def _box(entry: Entry, key: str, names: Names, number: int) -> Box:
    """The region that ``key`` of an entry cuts from an array, dimensions not named whole."""
    shape = names.shapes[number]
    starts, limits = [0] * shape.rank, list(shape.dims)
    slices = entry.baseline_slice if key == "baseline_slice" else entry.distributed_slice
    for dim, (low, high) in slices.items():
        if not 0 <= dim < shape.rank:
            raise entry.at(key).error(f"names dimension {dim}, but {names.describe(number)}")
        if high > shape.dims[dim]:
            raise entry.at(key).error(f"[{low}, {high}] ends beyond dimension {dim}: {names.describe(number)}")
        starts[dim], limits[dim] = low, high
    return tuple(starts), tuple(limits)


def _extent(box: Box) -> tuple[int, ...]:
    return tuple(map(sub, box[1], box[0]))
