"""A relation file and its modules to a complete, checked :class:`~scalify.relation.model.Relation`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scalify.errors import RelationError
from scalify.hlo.dtypes import DTYPES
from scalify.relation.coverage import MAX_BOXES, Box, first_overlap, show, uncovered, volume
from scalify.relation.entries import Placed, Reader
from scalify.relation.model import Assumption, Mesh, Piece, Relation
from scalify.relation.modules import Names, listed, module_positions
from scalify.relation.settle import Settler, pair
from scalify.relation.sharding import module_shardings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scalify.hlo.module import Module
    from scalify.relation.file import AssumeText, Entry, Place, RelationFile
    from scalify.relation.lower import Lowered

Array = npt.NDArray[np.generic]


def resolve(file: RelationFile, baseline: Module, distributed: Sequence[Module]) -> Relation:
    """What ``file`` means for the modules. ``distributed`` is one module, one for each device, or one for each stage.

    Parameters and results that the file does not list are settled where only one reading is left, and noted in ``Relation.notes``.

    Raises:
        RelationError: the file contradicts the modules or itself, or leaves something open; the message names file, line and key.
    """
    return complete(file, baseline, distributed)[0]


def complete(file: RelationFile, baseline: Module, distributed: Sequence[Module]) -> tuple[Relation, RelationFile]:
    """:func:`resolve`, and the file with the settled entries added."""
    mesh = Mesh(file.mesh, file.device_ids or tuple(range(prod(size for _, size in file.mesh))))
    _check_devices(file, mesh, baseline, distributed)
    inputs = _Section(file, mesh, baseline, distributed, outputs=False).read()
    outputs = _Section(file, mesh, baseline, distributed, outputs=True).read()
    if not outputs.pieces:
        raise file.at("outputs").error("no result is compared; relate at least one")
    relation = Relation(
        mesh=mesh,
        inputs=inputs.grouped(),
        outputs=outputs.grouped(),
        values={number: data for number, (data, _) in inputs.values.items()},
        assumptions=tuple(_assumptions(file, inputs)),
        same_mesh=file.same_mesh,
        notes=(*inputs.notes, *outputs.notes),
    )
    return relation, replace(file, inputs=(*file.inputs, *inputs.settled), outputs=(*file.outputs, *outputs.settled))


def _check_devices(file: RelationFile, mesh: Mesh, baseline: Module, distributed: Sequence[Module]) -> None:
    """The mesh has as many devices as the modules were compiled for, where they say so."""
    place = file.at("mesh")
    if not distributed:
        raise place.error("there is no distributed module")
    try:
        width = len(module_positions(mesh, len(distributed))[0])
    except RelationError as error:
        raise place.error(error.message) from None
    modules = [*distributed, *([baseline] if file.same_mesh else [])]
    for module in modules:
        devices = module.num_partitions * module.num_replicas
        if devices not in (1, width, mesh.size):
            raise place.error(f"has {mesh.size} devices, but module {module.name} was compiled for {devices}")


@dataclass
class _Section:
    """``inputs`` or ``outputs`` of a file while it is read."""

    file: RelationFile
    mesh: Mesh
    module: Module
    modules: Sequence[Module]
    outputs: bool
    pieces: list[Placed] = field(default_factory=list)
    values: dict[int, tuple[Array, Place]] = field(default_factory=dict)
    ignored: dict[tuple[int | None, int], Place] = field(default_factory=dict)
    ignored_baseline: set[int] = field(default_factory=set)
    settled: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place = self.file.at("outputs" if self.outputs else "inputs")
        self.baseline = Names(self.module, "baseline", outputs=self.outputs)
        several = len(self.modules) > 1
        self.distributed = [
            Names(module, "distributed", outputs=self.outputs, number=number if several else None)
            for number, module in enumerate(self.modules)
        ]
        memo: dict[object, Lowered] = {}
        self.reader = Reader(self.mesh, self.file.sizes, self.file.same_mesh, self.baseline, self.distributed, memo)

    def read(self) -> _Section:
        for entry in self.file.outputs if self.outputs else self.file.inputs:
            if entry.ignore:
                self._ignore(entry)
                continue
            if entry.is_known and entry.baseline is not None:
                self._value(entry)
            self.pieces += self.reader.pieces(entry)
        self._settle()
        self._check_listed()
        self._check_tiling()
        self._check_regions()
        return self

    def grouped(self) -> dict[int, tuple[Piece, ...]]:
        """Pieces by distributed number, in the order of their numbers."""
        found: dict[int, list[Piece]] = {}
        for placed in self.pieces:
            found.setdefault(placed.number, []).append(placed.piece)
        return {number: tuple(found[number]) for number in sorted(found)}

    def of(self, module: int) -> dict[int, list[Placed]]:
        """Pieces that one module sees, by distributed number."""
        found: dict[int, list[Placed]] = {}
        for placed in self.pieces:
            if placed.piece.module in (None, module):
                found.setdefault(placed.number, []).append(placed)
        return found

    # -- reading ------------------------------------------------------------------------------------------------------
    def _ignore(self, entry: Entry) -> None:
        if entry.baseline is not None:
            number = self.reader.baseline_number(entry)
            self.ignored_baseline.add(number)
            self.notes.append(f"baseline output {number} is not compared (line {entry.place.line})")
        if entry.distributed is not None:
            for module, number in self.reader.targets(entry):
                self.ignored[module, number] = entry.place
                where = "" if module is None else f" of module {module}"
                self.notes.append(f"distributed output {number}{where} is not compared (line {entry.place.line})")

    def _value(self, entry: Entry) -> None:
        number, data = self.reader.known(entry)
        if number in self.values:
            raise entry.at("baseline").error(f"baseline parameter {number} has a value already on line {self.values[number][1].line}")
        self.values[number] = data, entry.place

    # -- checks -------------------------------------------------------------------------------------------------------
    def _settle(self) -> None:
        """Add entries for what is not listed, where a certain pairing and a single reading are left."""
        open_baseline = self._open(self.baseline, self._used())
        open_distributed = self._open(self.distributed[0], self._seen(0))
        pairs = pair(self.baseline, self.distributed[0], open_baseline, open_distributed) or {}
        shardings = module_shardings(self.modules[0], outputs=self.outputs)
        settler = Settler(self.mesh, self.file.same_mesh, self.baseline, self.distributed[0], shardings, self.place)
        for settled in settler.settle(pairs):
            self.settled.append(settled.entry)
            self.notes.append(settled.note)
            self.pieces += self.reader.pieces(settled.entry)

    def _check_listed(self) -> None:
        """Every parameter and result of both sides is spoken of."""
        for module, names in enumerate(self.distributed):
            self._check_all(names, self._open(names, self._seen(module)))
        self._check_all(self.baseline, self._open(self.baseline, self._used()))

    def _seen(self, module: int) -> set[int]:
        """Distributed numbers of a module that entries speak of."""
        return set(self.of(module)) | {n for m, n in self.ignored if m in (None, module)}

    def _used(self) -> set[int]:
        """Baseline numbers that entries speak of."""
        sources = {p.piece.recipe.source for p in self.pieces if isinstance(p.piece.recipe.source, int)}
        return sources | set(self.values) | self.ignored_baseline

    def _open(self, names: Names, seen: set[int]) -> list[int]:
        try:
            return [number for number in listed(names) if number not in seen]
        except RelationError as error:
            raise self.place.error(error.message) from None

    def _check_all(self, names: Names, missing: list[int]) -> None:
        if missing:
            more = f", nor are {len(missing) - 1} more" if len(missing) > 1 else ""
            name = names.names[missing[0]]
            raise self.place.error(f"{names.describe(missing[0])} (named {name}) and is not listed{more}; add an entry")

    def _check_tiling(self) -> None:
        """The pieces of each distributed array cover it once."""
        for module, names in enumerate(self.distributed):
            for number, placed in self.of(module).items():
                if (both := self.ignored.get((None, number), self.ignored.get((module, number)))) is not None:
                    raise both.error(f"{names.kind} {number} is ignored here and related on line {placed[0].place.line}")
                self._check_tiles(names, number, placed)

    def _check_tiles(self, names: Names, number: int, placed: list[Placed]) -> None:
        boxes: list[Box] = [(p.piece.starts, p.piece.limits) for p in placed]
        if len(boxes) > MAX_BOXES:
            raise placed[-1].place.error(f"{names.describe(number)}: more than {MAX_BOXES} pieces")
        overlap = first_overlap(boxes)
        if overlap is not None:
            first, second = (placed[i] for i in overlap)
            what = f"{names.describe(number)}; line {first.place.line} and this line both give"
            raise second.place.error(f"{what} {_part(boxes[overlap[0]], boxes[overlap[1]], names.shapes[number].dims)}")
        if sum(volume(box) for box in boxes) != names.shapes[number].size:
            gap = uncovered(boxes, names.shapes[number].dims)
            raise placed[0].place.error(f"{names.describe(number)}, but no entry gives its elements {show(gap) if gap else ''}".rstrip())
        self._check_sources(names, placed)

    def _check_sources(self, names: Names, placed: list[Placed]) -> None:
        """Slices of one baseline array for one distributed array do not overlap in part: that is a mistyped boundary."""
        regions: dict[int, list[Placed]] = {}
        for p in placed:
            if isinstance(p.piece.recipe.source, int):
                regions.setdefault(p.piece.recipe.source, []).append(p)
        for source, group in regions.items():
            boxes = [p.piece.region for p in group if p.piece.region is not None]
            overlap = first_overlap(boxes, allow_equal=True)
            if overlap is not None:
                first, second = overlap
                raise group[second].place.error(
                    f"takes {show(boxes[second])} of baseline {names.kind} {source}, which overlaps {show(boxes[first])} "
                    f"of line {group[first].place.line}"
                )

    def _check_regions(self) -> None:
        """Every element of a compared baseline result is compared; input elements that no device gets are noted."""
        regions: dict[int, list[Placed]] = {}
        for placed in self.pieces:
            if isinstance(placed.piece.recipe.source, int):
                regions.setdefault(placed.piece.recipe.source, []).append(placed)
        for source, group in regions.items():
            boxes = list(self._covered(group))
            gap = uncovered(list(dict.fromkeys(boxes)), self.baseline.shapes[source].dims)
            if gap is None:
                continue
            if self.outputs:
                raise group[0].place.error(f"{self.baseline.describe(source)}, but its elements {show(gap)} are not compared")
            self.notes.append(f"elements {show(gap)} of baseline parameter {source} reach no device")

    def _covered(self, group: list[Placed]) -> Iterable[Box]:
        """Regions that are surely seen in whole: by all modules together, or by one whose axes do not cut the region."""
        count = len(self.modules)
        axes = set(range(len(self.mesh.axes) if count == self.mesh.size else _leading(self.mesh, count)))
        parts: dict[object, set[int]] = {}
        for placed in group:
            piece = placed.piece
            assert piece.region is not None
            modules = parts.setdefault((piece.region, piece.recipe.steps), set())
            if piece.module is not None:
                modules.add(piece.module)
            if piece.module is None or not placed.cuts & axes or len(modules) == count:
                yield piece.region


def _leading(mesh: Mesh, count: int) -> int:
    """How many leading mesh axes multiply to ``count``."""
    number, product = 0, 1
    for size in mesh.shape:
        if product == count:
            break
        product *= size
        number += 1
    return number


def _part(first: Box, second: Box, dims: tuple[int, ...]) -> str:
    shared = (tuple(map(max, first[0], second[0])), tuple(map(min, first[1], second[1])))
    return "it" if volume(shared) == prod(dims) else f"its elements {show(shared)}"


def _assumptions(file: RelationFile, inputs: _Section) -> Iterable[Assumption]:
    for text in file.assume:
        names = inputs.baseline if text.side == "baseline" else inputs.distributed[0]
        try:
            number = names.number(text.parameter)
        except RelationError as error:
            raise text.place.error(error.message) from None
        dtype = DTYPES.get(names.shapes[number].dtype)
        if dtype is None or not (dtype.is_integer or dtype.kind == "pred"):
            raise text.place.error(f"{names.describe(number)}; a range needs integers")
        if text.side == "baseline" and number in inputs.values:
            _check_range(text, inputs.values[number])
        yield Assumption(text.side, number, text.low, text.high)


def _check_range(text: AssumeText, value: tuple[Array, Place]) -> None:
    data, place = value
    low, high = (int(f(data)) for f in (np.min, np.max)) if data.size else (text.low, text.low)
    if low < text.low or high >= text.high:
        raise text.place.error(f"[{text.low}, {text.high}] contradicts the value on line {place.line}")
