"""From a serialized ``HloModuleProto`` to :class:`scalify.hlo.module.Module`.

Checked here: ids and names are unique, operands and called computations exist, instructions can be ordered, computations do not
call themselves, parameters are numbered from 0 without gaps, the entry exists, aliases point at parameters. Fields that the schema does not
know are kept as the attribute ``unknown_fields`` (their numbers), so that no stage takes the instruction for one that it understands.

Source: ``xla/service/hlo.proto``; ``HloModule::CreateFromProto`` for what ids refer to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import DecodeError

from scalify.errors import HloError
from scalify.hlo import payloads, schema
from scalify.hlo.proto_attributes import READERS
from scalify.hlo.location import StackFrames, read_location
from scalify.hlo.module import Computation, Instruction, Location, Module, Sharding
from scalify.hlo.order import topological_order
from scalify.hlo.payloads import Payloads, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPCODE: Final = re.compile(r"[a-z][a-z0-9-]{0,63}\Z")
# Opcodes whose called computations the proto lists in another order than HLO text: a while's body comes before its condition.
_BODY_FIRST: Final = frozenset({"while"})

Positions = tuple[int, ...]


def parse_module(data: bytes) -> Any | None:
    """``data`` as an ``HloModuleProto``; None when it is something else (no computation with an opcode in it)."""
    try:
        proto = schema.message("HloModuleProto").FromString(data)
    except DecodeError:
        return None
    first = next((i for c in proto.computations for i in c.instructions), None)
    return proto if first is not None and _OPCODE.match(first.opcode) else None


def read_module(proto: Any) -> Module:
    """The module of a parsed ``HloModuleProto``. Raises HloError, whose place is the computation and instruction."""
    return _ModuleReader(proto).module()


class _ModuleReader:
    """What the computations of one file share: names by id, decoded payloads, locations."""

    def __init__(self, proto: Any) -> None:
        self._proto = proto
        self._known = Payloads()
        self._frames = StackFrames(proto.stack_frame_index)
        self._names = _computation_names(proto.computations)
        self._surprises = _has_unknown_fields(proto)

    def module(self) -> Module:
        computations = [self._computation(c) for c in self._proto.computations]
        ordered = _callees_first(computations)
        entry = self._entry_name()
        shardings = tuple(payloads.read_sharding(raw) for raw in self._proto.spmd_parameters_shardings)
        output = self._proto.spmd_output_sharding
        output_sharding = payloads.read_sharding(output) if output else None
        assignment = self._proto.device_assignment
        return Module(
            name=self._proto.name,
            computations=ordered,
            entry_name=entry,
            num_partitions=max(assignment.computation_count, 1)
            if assignment.computation_count
            else _partitions(shardings, output_sharding),
            num_replicas=max(assignment.replica_count, 1),
            aliases=self._aliases(ordered[entry]),
            parameter_shardings=shardings or None,
            output_sharding=output_sharding,
        )

    def _entry_name(self) -> str:
        name = self._names.get(self._proto.entry_computation_id, self._proto.entry_computation_name)
        if name not in self._names.values():
            raise HloError(f"the entry computation {name[:80]!r} does not exist")
        return name

    def _aliases(self, entry: Computation) -> dict[Positions, tuple[int, Positions]]:
        aliases: dict[Positions, tuple[int, Positions]] = {}
        for alias in self._proto.input_output_alias.entries:
            output = tuple(alias.output_shape_index)
            if not 0 <= alias.parameter_number < len(entry.parameters):
                raise HloError(f"output {list(output)} is aliased with parameter {alias.parameter_number}, which does not exist")
            if output in aliases:
                raise HloError(f"output {list(output)} is aliased twice")
            aliases[output] = (alias.parameter_number, tuple(alias.parameter_shape_index))
        return aliases

    def _computation(self, proto: Any) -> Computation:
        name = self._names[proto.id]
        try:
            return self._checked_computation(name, proto)
        except HloError as error:
            raise error.at(name[:200]) from None

    def _checked_computation(self, name: str, proto: Any) -> Computation:
        protos = list(proto.instructions)
        if not protos:
            raise HloError("the computation is empty")
        ids = [m.id for m in protos]
        positions = {number: k for k, number in enumerate(ids)}
        if len(positions) != len(ids):
            raise HloError("two instructions have the same id")
        order, protos, operands, controls = _ordered(protos, positions)
        if proto.root_id not in positions:
            raise HloError(f"the root instruction (id {proto.root_id}) does not exist")
        instructions = tuple([self._instruction(m, o, c) for m, o, c in zip(protos, operands, controls, strict=True)])
        _check_names(instructions)
        _check_parameters(instructions)
        return Computation(name, instructions, order[positions[proto.root_id]])

    def _instruction(self, m: Any, operands: Positions, control: Positions) -> Instruction:
        opcode = m.opcode
        name = m.name or f"{opcode}.{m.id}"
        try:
            if not _OPCODE.match(opcode):
                raise HloError(f"{opcode[:40]!r} is not an opcode")
            attributes = self._attributes(m, opcode)
            calls = self._calls(m, opcode)
            shape = self._known.get(payloads.read_shape, m.shape)
            return Instruction(name, opcode, shape, operands, attributes, calls, self._location(m.metadata), control)
        except HloError as error:
            raise error.at(name[:200]) from None

    def _attributes(self, m: Any, opcode: str) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        reader = READERS.get(opcode)
        if reader is not None:
            reader(m, self._known, attributes)
        sharding = m.sharding
        if sharding:
            attributes["sharding"] = self._known.get(payloads.read_sharding, sharding)
        frontend = m.frontend_attributes
        if frontend:
            attributes["frontend_attributes"] = self._known.get(_frontend_attributes, frontend)
        if self._surprises:
            unknown = payloads.unknown_fields(m)
            if unknown:
                attributes["unknown_fields"] = unknown
        return attributes

    def _calls(self, m: Any, opcode: str) -> tuple[str, ...]:
        ids = m.called_computation_ids
        if not ids:
            return ()
        missing = [number for number in ids if number not in self._names]
        if missing:
            raise HloError(f"the called computation (id {missing[0]}) does not exist")
        names = tuple(self._names[number] for number in ids)
        return names[::-1] if opcode in _BODY_FIRST else names

    def _location(self, metadata: bytes) -> Location | None:
        return self._known.get(self._read_location, metadata) if metadata else None

    def _read_location(self, metadata: bytes) -> Location:
        return read_location(parse("OpMetadata", metadata), self._frames)


def _computation_names(protos: Sequence[Any]) -> dict[int, str]:
    names = {c.id: c.name or f"computation.{c.id}" for c in protos}
    if len(names) != len(protos):
        raise HloError("two computations have the same id")
    if len(set(names.values())) != len(protos):
        raise HloError("two computations have the same name")
    return names


def _has_unknown_fields(proto: Any) -> bool:
    """Whether any part of the module has fields that the schema does not declare: asked once, in C, instead of for each instruction."""
    before = proto.ByteSize()
    copy = type(proto)()
    copy.CopyFrom(proto)
    copy.DiscardUnknownFields()
    return bool(copy.ByteSize() != before)


def _ordered(protos: list[Any], positions: dict[int, int]) -> tuple[list[int], list[Any], list[Positions], list[Positions]]:
    """New position of each old one, instructions, operands and control predecessors in an order where operands come first."""
    operands = [_positions(m, m.operand_ids[:], positions, "operand") for m in protos]
    controls = [_positions(m, m.control_predecessor_ids[:], positions, "control predecessor") for m in protos]
    if all(not before or max(before) < k for k, before in enumerate(operands)) and not any(controls):
        return list(range(len(protos))), protos, operands, controls
    sequence = topological_order([o + c for o, c in zip(operands, controls, strict=True)])
    if sequence is None:
        raise HloError("instructions depend on each other in a cycle")
    place = [0] * len(sequence)
    for new, old in enumerate(sequence):
        place[old] = new
    moved = [[tuple([place[p] for p in before[old]]) for old in sequence] for before in (operands, controls)]
    return place, [protos[old] for old in sequence], moved[0], moved[1]


def _positions(m: Any, ids: list[int], positions: dict[int, int], what: str) -> Positions:
    try:
        return tuple([positions[number] for number in ids])
    except KeyError as missing:
        raise HloError(f"{what} (id {missing.args[0]}) does not exist", m.name[:200]) from None


def _check_names(instructions: tuple[Instruction, ...]) -> None:
    if len({i.name for i in instructions}) == len(instructions):
        return
    seen: set[str] = set()
    for instruction in instructions:
        if instruction.name in seen:
            raise HloError("two instructions have this name", instruction.name[:200])
        seen.add(instruction.name)


def _check_parameters(instructions: tuple[Instruction, ...]) -> None:
    numbers = sorted(i.attributes["index"] for i in instructions if i.opcode == "parameter")
    if numbers != list(range(len(numbers))):
        raise HloError(f"parameters must be numbered 0 to {len(numbers) - 1}, once each, not {numbers[:8]}")


def _callees_first(computations: list[Computation]) -> dict[str, Computation]:
    """The computations by name, each after those that it calls."""
    place = {c.name: k for k, c in enumerate(computations)}
    calls = [tuple({place[name] for i in c.instructions for name in i.calls}) for c in computations]
    sequence = topological_order(calls)
    if sequence is None:
        raise HloError("computations call each other in a cycle")
    return {computations[k].name: computations[k] for k in sequence}


def _partitions(parameters: tuple[Sharding, ...], output: Sharding | None) -> int:
    """Number of partitions that the shardings speak of: a tile assignment names every partition. 1 when they do not say."""
    leaves = [leaf for s in (*parameters, *([output] if output else [])) for leaf in (s.elements or (s,))]
    return max([1, *(len(leaf.devices) for leaf in leaves if leaf.kind != "maximal")])


def _frontend_attributes(raw: bytes) -> dict[str, str]:
    return {entry.key: entry.value for entry in parse("FrontendAttributes", raw).map}
