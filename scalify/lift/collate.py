"""One module for each device (MPMD) as one module for all: the same instructions, with constants that differ between devices.

Modules are compared from their results downwards, all at once: a node is one instruction of every module. So the names, the order of
instructions and the sharing of equal constants may differ; opcodes, shapes, attributes and data flow may not. Instructions that
communicate must also come in one order in all modules, because that order decides which of them meet at run time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.module import Computation, Instruction, Module
from scalify.relation.modules import module_positions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from scalify.relation.model import Mesh

PER_DEVICE = "per_device"  #: attribute of a constant: its data on every device, ``[mesh positions, *dims]``

MOST_NODES = 4  #: nodes for each instruction of the first module; more only when modules share values in very different ways

_COMMUNICATES = ("replica_groups", "source_target_pairs", "channel_id")
_EFFECTS = frozenset({"infeed", "outfeed", "send", "recv", "custom-call"})
_NUMBERS = frozenset({"partition-id", "replica-id"})

Row = tuple[int, ...]  # one position for each module
Names = tuple[str, ...]  # one computation for each module


def collate(modules: Sequence[Module], mesh: Mesh) -> Module:
    """The module that all devices of the mesh run; where constants differ they have :data:`PER_DEVICE` data instead of a literal.

    :raises HloError: the modules differ in more than their constants.
    """
    if len(modules) == 1:
        return modules[0]
    return _Collation(modules, mesh).result()


@dataclass
class _Part:
    """The computation made from one computation of every module."""

    name: str
    sources: tuple[Computation, ...]
    rows: list[Instruction] = field(default_factory=list)
    made: dict[Row, int] = field(default_factory=dict)


class _Collation:
    def __init__(self, modules: Sequence[Module], mesh: Mesh) -> None:
        self.modules = modules
        places = module_positions(mesh, len(modules))
        self.owner = [0] * mesh.size
        for number, positions in enumerate(places):
            for position in positions:
                self.owner[position] = number
        self.talking = [_talking(m) for m in modules]
        self.parts: dict[Names, _Part] = {}
        self.names: set[str] = set()
        self.pending: list[_Part] = []
        self.done: dict[str, Computation] = {}
        self.left = MOST_NODES * modules[0].instruction_count + 64

    def result(self) -> Module:
        first = self.modules[0]
        for number, module in enumerate(self.modules):
            if (module.num_partitions, module.num_replicas) != (first.num_partitions, first.num_replicas):
                raise HloError(
                    f"is compiled for other numbers of partitions and replicas than module 0, {first.name}",
                    f"module {number}, {module.name}",
                )
            if module.aliases != first.aliases:
                raise HloError(f"aliases other results with parameters than module 0, {first.name}", f"module {number}, {module.name}")
        self._part(tuple([m.entry_name for m in self.modules]))
        while self.pending:
            part = self.pending.pop()
            self.done[part.name] = self._computation(part)
        return replace(first, computations=self.done)

    def _part(self, names: Names) -> str:
        """The name of the computation made from these."""
        found = self.parts.get(names)
        if found is None:
            name = names[0]
            while name in self.names:
                name = f"{names[0]}, {len(self.names)}"
            self.names.add(name)
            sources = tuple([m.computations[n] for m, n in zip(self.modules, names, strict=True)])
            found = self.parts[names] = _Part(name, sources)
            self.pending.append(found)
        return found.name

    def _computation(self, part: _Part) -> Computation:
        """All parameters, then what the root needs, operands first."""
        for number, count in enumerate([len(c.parameters) for c in part.sources]):
            if count != len(part.sources[0].parameters):
                raise self._differ(part, number, f"has {count} parameters", f"{len(part.sources[0].parameters)}")
        stack = [tuple(row) for row in zip(*[c.parameters for c in part.sources], strict=True)][::-1]
        root = tuple([c.root for c in part.sources])
        stack.insert(0, root)
        while stack:
            row = stack[-1]
            if row in part.made:
                stack.pop()
                continue
            instructions = [c.instructions[p] for c, p in zip(part.sources, row, strict=True)]
            operands = self._operands(part, instructions)
            missing = [o for o in operands if o not in part.made]
            if missing:
                stack.extend(reversed(missing))
                continue
            part.made[row] = self._emit(part, instructions, operands)
            stack.pop()
        self._check_order(part)
        return _in_first_order(part, part.made[root])

    def _operands(self, part: _Part, instructions: Sequence[Instruction]) -> list[Row]:
        """The nodes of the operands. :raises HloError: the instructions differ."""
        first = instructions[0]
        for number, other in enumerate(instructions):
            found, wanted = _difference(other, first)
            if found:
                raise self._differ(part, number, f"instruction {other.name} has {found}", f"instruction {first.name}: {wanted}")
        if first.opcode in _NUMBERS and self.modules[0].num_partitions * self.modules[0].num_replicas == 1:
            raise HloError(f"{first.opcode} in a module that was compiled for one device has no meaning among several modules", first.name)
        return list(zip(*[i.operands for i in instructions], strict=True))

    def _emit(self, part: _Part, instructions: Sequence[Instruction], operands: Sequence[Row]) -> int:
        first = instructions[0]
        self.left -= 1
        if self.left < 0:
            raise HloError("the modules share values in ways too different to compare them instruction by instruction", part.name)
        calls = tuple([self._part(names) for names in zip(*[i.calls for i in instructions], strict=True)])
        made = replace(first, operands=tuple([part.made[o] for o in operands]), calls=calls, control=())
        if first.opcode == "constant":
            made = self._constant(made, instructions)
        part.rows.append(made)
        return len(part.rows) - 1

    def _constant(self, made: Instruction, instructions: Sequence[Instruction]) -> Instruction:
        if all("literal" in i.attributes for i in instructions):
            first = made.literal.tobytes()
            if all(i.literal.tobytes() == first for i in instructions):
                return made
            return replace(made, attributes={PER_DEVICE: np.stack([instructions[m].literal for m in self.owner])})
        return replace(made, attributes={k: v for k, v in made.attributes.items() if k != "literal"})

    def _check_order(self, part: _Part) -> None:
        """The k-th instruction that communicates is the k-th one in every module."""
        places = [
            {p: k for k, p in enumerate([q for q, i in enumerate(c.instructions) if _communicates(i, talking)])}
            for c, talking in zip(part.sources, self.talking, strict=True)
        ]
        counts = [len(p) for p in places]
        if min(counts) != max(counts):
            number = next(n for n, count in enumerate(counts) if count != counts[0])
            raise self._differ(part, number, f"has {counts[number]} instructions that communicate", str(counts[0]))
        for row, at in part.made.items():
            if row[0] in places[0]:
                ordinals = [p[q] for p, q in zip(places, row, strict=True)]
                if min(ordinals) != max(ordinals):
                    raise HloError("the modules communicate in different orders", part.rows[at].name)

    def _differ(self, part: _Part, number: int, found: str, wanted: str) -> HloError:
        module = self.modules[number]
        where = f"module {number}, {module.name}: {part.sources[number].name}"
        return HloError(f"{found}, but module 0 has {wanted}; modules of one mesh may differ in constants only", where)


def _in_first_order(part: _Part, root: int) -> Computation:
    """The computation with its instructions in the order of the first module, operands first as there."""
    rows = sorted(part.made, key=lambda row: row[0])
    place = {part.made[row]: number for number, row in enumerate(rows)}
    ordered = [part.rows[part.made[row]] for row in rows]
    moved = [replace(i, operands=tuple([place[o] for o in i.operands])) for i in ordered]
    return Computation(part.name, tuple(moved), place[root])


def _communicates(instruction: Instruction, talking: AbstractSet[str]) -> bool:
    if any(name in instruction.attributes for name in _COMMUNICATES) or instruction.opcode in _EFFECTS:
        return True
    return any(c in talking for c in instruction.calls)


def _talking(module: Module) -> set[str]:
    """The computations that communicate, themselves or through others that they call."""
    callers: dict[str, list[str]] = {}
    for computation in module.computations.values():
        for instruction in computation.instructions:
            for name in instruction.calls:
                callers.setdefault(name, []).append(computation.name)
    found: set[str] = set()
    pending = [c.name for c in module.computations.values() if any(_communicates(i, found) for i in c.instructions)]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += callers.get(name, ())
    return found


def _difference(other: Instruction, first: Instruction) -> tuple[str, str]:
    """What differs, in both, in words; empty where nothing does."""
    if other is first:
        return "", ""
    if other.opcode != first.opcode:
        return f"opcode {other.opcode}", first.opcode
    if other.shape != first.shape:
        return f"shape {other.shape}", str(first.shape)
    if len(other.operands) != len(first.operands):
        return f"{len(other.operands)} operands", str(len(first.operands))
    if len(other.calls) != len(first.calls):
        return f"{len(other.calls)} called computations", str(len(first.calls))
    for name in sorted({*other.attributes, *first.attributes} - {"literal"}):
        a, b = other.attributes.get(name), first.attributes.get(name)
        if not _same(a, b):
            return f"{name} {_short(a)}", _short(b)
    return "", ""


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and bool(a == b)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
