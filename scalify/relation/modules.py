"""Where modules run, and what the parameters and results of a module are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.errors import RelationError
from scalify.relation.parse import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Instruction, Module, Shape
    from scalify.relation.file import Reference
    from scalify.relation.model import Mesh


def module_positions(mesh: Mesh, count: int) -> tuple[tuple[int, ...], ...]:
    """The mesh positions that each of ``count`` distributed modules runs on.

    One module runs everywhere. As many modules as devices: module ``i`` runs on device ``i``. Else the modules are stages along the leading
    mesh axes, whose sizes must multiply to ``count``.

    Raises:
        RelationError: ``count`` fits neither.
    """
    if count != mesh.size:
        return _stages(mesh, count)
    position = {device: position for position, device in enumerate(mesh.device_ids)}
    return tuple((position[device],) for device in range(count))


def _stages(mesh: Mesh, count: int) -> tuple[tuple[int, ...], ...]:
    leading = 1
    for size in (1, *mesh.shape):
        leading *= size
        if leading == count:
            width = mesh.size // count
            return tuple(tuple(range(i * width, (i + 1) * width)) for i in range(count))
    raise RelationError(
        f"{count} distributed modules do not fit mesh {dict(mesh.axes)}: give one, {mesh.size} (one for each device), or one for each stage of the leading axes"
    )


class Names:
    """Numbers, shapes and names of the parameters or results of one module."""

    def __init__(self, module: Module, side: str, *, outputs: bool, number: int | None = None) -> None:
        self.side = side
        self.owner = f"{side} module" + ("" if number is None else f" {number}")
        self._suffix = "" if number is None else f" of module {number}"
        self.kind = "output" if outputs else "parameter"
        self.shapes: tuple[Shape, ...] = module.output_shapes if outputs else module.parameter_shapes
        self.instructions = _results(module) if outputs else [module.entry.instructions[p] for p in module.entry.parameters]
        self._numbers: dict[str, int] | None = None

    def number(self, reference: Reference) -> int:
        """The number that ``reference`` means.

        Raises:
            RelationError: there is no such number or name, or the name is not unique.
        """
        if isinstance(reference, str):
            return self._by_name(reference)
        if reference >= len(self.shapes):
            have = f"{self.kind}s 0 to {len(self.shapes) - 1}" if self.shapes else f"no {self.kind}s"
            raise RelationError(f"there is no {self.kind} {reference}; the {self.owner} has {have}")
        return reference

    def describe(self, number: int) -> str:
        """Side, number and shape, for errors."""
        return f"{self.side} {self.kind} {number}{self._suffix} is {self.shapes[number]}"

    @property
    def names(self) -> list[str]:
        """Instruction names by number; all the same instruction's when a module returns one value several times."""
        return [instruction.name for instruction in self.instructions]

    @property
    def metadata_names(self) -> list[str]:
        """What the framework called each parameter (``op_name``), empty where the module does not say."""
        return [instruction.location.op_name if instruction.location else "" for instruction in self.instructions]

    def _by_name(self, name: str) -> int:
        if self._numbers is None:
            self._numbers = {}
            for number, instruction in enumerate(self.instructions):
                for alias in {instruction.name, instruction.location.op_name if instruction.location else ""} - {""}:
                    self._numbers[alias] = -1 if alias in self._numbers else number
        if name not in self._numbers:
            raise RelationError(f"the {self.owner} has no {self.kind} named {name!r}; {did_you_mean(name, self.names)}")
        number = self._numbers[name]
        if number < 0:
            raise RelationError(f"the name {name!r} is not unique among the {self.kind}s of the {self.owner}; use the number")
        return number


def _results(module: Module) -> list[Instruction]:
    """The instruction of each result; the root itself where the root is not a ``tuple`` instruction."""
    entry = module.entry
    root = entry.instructions[entry.root]
    if root.opcode == "tuple":
        return [entry.instructions[p] for p in root.operands]
    return [root] * len(module.output_shapes)


def listed(names: Names) -> Sequence[int]:
    """The numbers that a relation must speak of: tokens and empty tuples carry no data.

    Raises:
        RelationError: a parameter or result is a tuple of arrays, which relations cannot speak of.
    """
    for number, shape in enumerate(names.shapes):
        if shape.is_tuple and shape.elements:
            raise RelationError(f"{names.describe(number)}: a tuple inside of the {names.kind}s; flatten it when exporting")
    return [number for number, shape in enumerate(names.shapes) if shape.is_array]
