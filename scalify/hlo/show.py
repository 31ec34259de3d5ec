"""What a user wants to know of a module, as text: ``scalify show``.

All names come from the file and are escaped: they can steer neither a terminal nor the layout.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from scalify.hlo.build import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scalify.hlo.module import Computation, Instruction, Module, ReplicaGroups, Shape, Sharding

ROWS: Final = 1000
FILES: Final = 15
NAME: Final = 60
LISTED: Final = 32

Row = tuple[str, ...]


def show(module: Module) -> str:
    """A summary of ``module``, lines that end with a newline."""
    every = [i for c in module.computations.values() for i in c.instructions]
    sections = [
        _head(module, every),
        _table("parameters", _parameters(module)),
        _table("outputs", _outputs(module)),
        _table("collectives", _collectives(module)),
        _table("custom calls", _counted(_name(i.attribute("custom_call_target", "")) for i in every if i.opcode == "custom-call")),
        _table("opcodes", _counted(_name(i.opcode) for i in every)),
        _table("element types", _counted(leaf.dtype for i in every for leaf in _leaves(i.shape))),
        _table("called computations", _called(module, every)),
        _table(f"source files, the {FILES} with most instructions", _counted(_file(i) for i in every)[:FILES]),
        _table("fields of the file that are not understood", _counted(_unknown(i) for i in every if "unknown_fields" in i.attributes)),
    ]
    return "\n".join(section for section in sections if section)


def device_ids(module: Module) -> set[int]:
    """The device ids that the module's collectives name."""
    found: set[int] = set()
    for instruction in (i for c in module.computations.values() for i in c.instructions):
        groups = instruction.attribute("replica_groups")
        rows = groups.groups if groups is not None else instruction.attribute("source_target_pairs", ())
        found.update(device for row in rows for device in row)
    return found


def _head(module: Module, every: Sequence[Instruction]) -> str:
    ids = device_ids(module)
    named = f"; collectives name {len(ids)} devices, {min(ids)} to {max(ids)}" if ids else ""
    return (
        f"module {_name(module.name)}\n"
        f"  entry {_name(module.entry_name)}; {len(every)} instructions in {len(module.computations)} computations\n"
        f"  {module.num_partitions} partitions, {module.num_replicas} replicas{named}\n"
    )


def _table(title: str, rows: Sequence[Row]) -> str:
    """Rows under a title, in columns; the empty text when there are none."""
    if not rows:
        return ""
    shown = rows[:ROWS]
    widths = [max(len(row[k]) for row in shown) for k in range(len(shown[0]))]
    lines = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    if len(rows) > ROWS:
        lines.append(f"  and {len(rows) - ROWS} more")
    return "\n".join([title, *lines, ""])


def _counted(names: Iterable[str]) -> list[Row]:
    """Names with their counts, the most frequent first, then by name."""
    return [(str(count), name) for name, count in sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))]


def _parameters(module: Module) -> list[Row]:
    entry = module.entry
    rows: list[Row] = []
    for number, position in enumerate(entry.parameters):
        instruction = entry.instructions[position]
        sharding = instruction.attribute("sharding") or _entry(module.parameter_shardings, number)
        rows.append((str(number), _name(instruction.name), _shape(instruction.shape), _sharding(sharding)))
    return rows


def _entry(shardings: Sequence[Sharding] | None, number: int) -> Sharding | None:
    return shardings[number] if shardings and number < len(shardings) else None


def _outputs(module: Module) -> list[Row]:
    sharding = module.output_sharding
    rows: list[Row] = []
    for number, shape in enumerate(module.output_shapes):
        own = _entry(sharding.elements, number) if sharding is not None and sharding.kind == "tuple" else sharding
        rows.append((str(number), _shape(shape), _sharding(own), _alias(module, number)))
    return rows


def _alias(module: Module, output: int) -> str:
    found = module.aliases.get((output,)) or (module.aliases.get(()) if output == 0 else None)
    if found is None:
        return ""
    parameter, path = found
    return f"in the buffer of parameter {parameter}" + "".join(f"[{k}]" for k in path)


def _collectives(module: Module) -> list[Row]:
    """One row for each kind: opcode, operand and result shapes, attributes and groups."""
    kinds: Counter[Row] = Counter()
    for computation in module.computations.values():
        for instruction in computation.instructions:
            if "replica_groups" in instruction.attributes or "source_target_pairs" in instruction.attributes:
                kinds[_collective(instruction, computation, module)] += 1
    return [(str(count), *row) for row, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))]


def _collective(instruction: Instruction, computation: Computation, module: Module) -> Row:
    operands = ", ".join(_shape(computation.instructions[p].shape) for p in instruction.operands[:4])
    dims = instruction.attribute("dimensions")
    reducer = f" by {_reducer(module.computations[instruction.calls[0]])}" if instruction.calls else ""
    where = f" along {dims[0]}" if dims else ""
    groups = instruction.attribute("replica_groups")
    members = _pairs(instruction.attribute("source_target_pairs", ())) if groups is None else _groups(groups)
    return f"{instruction.opcode}{reducer}{where}", f"{operands} -> {_shape(instruction.shape)}", members


def _reducer(computation: Computation) -> str:
    """The opcode of a reducer's result: the name of its computation differs from one collective to the next."""
    return _name(computation.instructions[computation.root].opcode)


def _groups(groups: ReplicaGroups) -> str:
    if not groups.groups:
        return "all devices"
    if sum(map(len, groups.groups)) <= LISTED:
        return _rows(groups.groups)
    return f"{len(groups.groups)} groups of {len(groups.groups[0])}: {_rows([groups.groups[0][:LISTED]])}, ..."


def _pairs(pairs: Sequence[tuple[int, int]]) -> str:
    arrows = ", ".join(f"{source}->{target}" for source, target in pairs[:LISTED])
    return arrows + (f", ... {len(pairs)} pairs" if len(pairs) > LISTED else "")


def _rows(rows: Sequence[Sequence[int]]) -> str:
    return ", ".join("{" + ",".join(map(str, row)) + "}" for row in rows)


def _called(module: Module, every: Sequence[Instruction]) -> list[Row]:
    calls = Counter(name for i in every for name in i.calls)
    counts = Counter((_name(name), len(module.computations[name].instructions), times) for name, times in calls.items())
    rows = sorted(counts, key=lambda row: (-row[1], row[0]))
    return [(_name(name), f"{size} instructions", f"called {times} times" if times > 1 else "called once") for name, size, times in rows]


def _file(instruction: Instruction) -> str:
    location = instruction.location
    return printable(location.stack[0].file) if location is not None and location.stack else "(not recorded)"


def _unknown(instruction: Instruction) -> str:
    return f"{_name(instruction.opcode)}: {', '.join(map(str, instruction.attributes['unknown_fields'][:8]))}"


def _leaves(shape: Shape) -> Iterable[Shape]:
    """The shapes in ``shape`` that are not tuples."""
    waiting = [shape]
    while waiting:
        found = waiting.pop()
        if found.is_tuple:
            waiting.extend(found.elements)
        else:
            yield found


def _shape(shape: Shape) -> str:
    return printable(str(shape), 2 * NAME)


def _sharding(sharding: Sharding | None) -> str:
    if sharding is None:
        return ""
    if sharding.kind == "tuple":
        return printable("(" + ", ".join(_sharding(element) for element in sharding.elements[:8]) + ")", 2 * NAME)
    if not sharding.tile:
        return sharding.kind + (f" on {sharding.devices[0]}" if sharding.devices else "")
    cut = sharding.tile[: len(sharding.tile) - sharding.trailing]
    copies = f" x {math.prod(sharding.tile[-sharding.trailing :])} copies" if sharding.trailing else ""
    order = "" if sharding.devices == tuple(range(len(sharding.devices))) else f" on {_rows([sharding.devices[:LISTED]])}"
    return f"{sharding.kind} [{','.join(map(str, cut))}]{copies}{order}"


def _name(text: str) -> str:
    return printable(text, NAME)
