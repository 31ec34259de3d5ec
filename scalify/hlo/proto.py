"""From a serialized ``HloModuleProto`` to :class:`scalify.hlo.module.Module`.

Checked here: ids and names are unique, operands and called computations exist, instructions can be ordered, computations do not
call themselves, parameters are numbered from 0 without gaps, the entry exists, aliases point at parameters. Fields that the schema does not
know are kept as the attribute ``unknown_fields`` (their numbers), so that no stage takes the instruction for one that it understands.

Source: ``xla/service/hlo.proto``; ``HloModule::CreateFromProto`` for what ids refer to.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import fields
from functools import partial
from itertools import chain, islice, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from scalify.errors import HloError
from scalify.hlo import payloads, schema
from scalify.hlo.build import callees_first, check_names, check_parameters, checked_aliases, printable
from scalify.hlo.location import StackFrames, read_location
from scalify.hlo.module import Computation, Instruction, Location, Module, Sharding
from scalify.hlo.order import topological_order
from scalify.hlo.payloads import Memo, Payloads, parse
from scalify.hlo.proto_attributes import READERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_OPCODE_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,63}\Z")
# Opcodes whose called computations the proto lists in another order than HLO text: a while's body comes before its condition.
_BODY_FIRST: Final = frozenset({"while"})

# Field readers that a loop in C can call.
_ID: Final = attrgetter("id")
_NAME: Final = attrgetter("name")
_OPCODE: Final = attrgetter("opcode")
_SHAPE: Final = attrgetter("shape")
_METADATA: Final = attrgetter("metadata")
_CALLED: Final = attrgetter("called_computation_ids")
_CONTROL: Final = attrgetter("control_predecessor_ids")

_T = TypeVar("_T")
_SLOTS: Final = tuple(getattr(Instruction, field.name).__set__ for field in fields(Instruction))

Positions = tuple[int, ...]
# Position by id; then, in the new order: instructions, operands, control predecessors.
_Order = tuple[dict[int, int], list[Any], list[Positions], list[Positions]]


class _Body(NamedTuple):
    """A computation whose instructions are ordered and whose operands are positions."""

    name: str
    protos: list[Any]
    operands: list[Positions]
    controls: list[Positions]
    root: int


def parse_module(data: bytes) -> Any | None:
    """``data`` as an ``HloModuleProto``; None when it is something else (no computation with an opcode in it)."""
    try:
        proto = schema.message("HloModuleProto").FromString(data)
    except DecodeError:
        return None
    first = next((i for c in proto.computations for i in c.instructions), None)
    return proto if first is not None and _OPCODE_NAME.match(first.opcode) else None


def read_module(proto: Any) -> Module:
    """The module of a parsed ``HloModuleProto``. Raises HloError, whose place is the computation and instruction."""
    return _ModuleReader(proto).module()


class _ModuleReader:
    """What the computations of one file share: names by id, decoded payloads, locations."""

    def __init__(self, proto: Any) -> None:
        self._proto = proto
        self._known = Payloads()
        self._locations = Memo(self._read_location)
        self._frames = StackFrames(proto.stack_frame_index)
        self._names = _computation_names(proto.computations)

    def module(self) -> Module:
        ordered = callees_first(self._computations())
        entry = self._entry_name()
        shardings = tuple(self._known.shardings[raw] for raw in self._proto.spmd_parameters_shardings)
        output = self._proto.spmd_output_sharding
        output_sharding = self._known.shardings[output] if output else None
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
        name: str = self._names.get(self._proto.entry_computation_id, self._proto.entry_computation_name)
        if name not in self._names.values():
            raise HloError(f"the entry computation {name[:80]!r} does not exist")
        return name

    def _aliases(self, entry: Computation) -> dict[Positions, tuple[int, Positions]]:
        entries = self._proto.input_output_alias.entries
        return checked_aliases(((tuple(a.output_shape_index), a.parameter_number, tuple(a.parameter_shape_index)) for a in entries), entry)

    def _computations(self) -> list[Computation]:
        """All computations. Their instructions are read together: most computations are reducers of a few instructions."""
        bodies = [self._body(c) for c in self._proto.computations]
        instructions = self._instructions(bodies)
        computations = []
        start = 0
        for body in bodies:
            own = instructions[start : start + len(body.protos)]
            start += len(body.protos)
            try:
                check_names([i.name for i in own])
                check_parameters(own)
            except HloError as error:
                raise error.at(printable(body.name)) from None
            computations.append(Computation(body.name, own, body.root))
        return computations

    def _body(self, proto: Any) -> _Body:
        name = self._names[proto.id]
        try:
            place, protos, operands, controls = _checked_order(proto)
        except HloError as error:
            raise error.at(printable(name)) from None
        return _Body(name, protos, operands, controls, place[proto.root_id])

    def _instructions(self, bodies: list[_Body]) -> tuple[Instruction, ...]:
        protos = list(chain.from_iterable(body.protos for body in bodies))
        names = list(map(_NAME, protos))
        if not all(names):
            names = [m.name or f"{m.opcode}.{m.id}" for m in protos]
        column = partial(_column, bodies, names)
        opcodes = column(Memo(_checked_opcode).__getitem__, map(_OPCODE, protos))
        shapes = column(self._known.shapes.__getitem__, map(_SHAPE, protos))
        attributes = column(self._attributes, opcodes, protos)
        calls = column(self._calls, opcodes, map(_CALLED, protos))
        locations = column(self._locations.__getitem__, map(_METADATA, protos))
        operands = chain.from_iterable(body.operands for body in bodies)
        controls = chain.from_iterable(body.controls for body in bodies)
        return _build(names, opcodes, shapes, operands, attributes, calls, locations, controls)

    def _attributes(self, opcode: str, m: Any) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        reader = READERS.get(opcode)
        if reader is not None:
            reader(m, self._known, attributes)
        sharding = m.sharding
        if sharding:
            attributes["sharding"] = self._known.shardings[sharding]
        frontend = m.frontend_attributes
        if frontend:
            attributes["frontend_attributes"] = self._known.get(_frontend_attributes, frontend)
        if len(UnknownFieldSet(m)):
            unknown = payloads.unknown_fields(m)
            if unknown:
                attributes["unknown_fields"] = unknown
        return attributes

    def _calls(self, opcode: str, ids: Sequence[int]) -> tuple[str, ...]:
        if not ids:
            return ()
        missing = [number for number in ids if number not in self._names]
        if missing:
            raise HloError(f"the called computation (id {missing[0]}) does not exist")
        names = tuple(self._names[number] for number in ids)
        return names[::-1] if opcode in _BODY_FIRST else names

    def _read_location(self, metadata: bytes) -> Location | None:
        return read_location(parse("OpMetadata", metadata), self._frames) if metadata else None


def _computation_names(protos: Sequence[Any]) -> dict[int, str]:
    names = {c.id: c.name or f"computation.{c.id}" for c in protos}
    if len(names) != len(protos):
        raise HloError("two computations have the same id")
    if len(set(names.values())) != len(protos):
        raise HloError("two computations have the same name")
    return names


def _checked_opcode(opcode: str) -> str:
    if not _OPCODE_NAME.match(opcode):
        raise HloError(f"{opcode[:40]!r} is not an opcode")
    return opcode


def _column(bodies: list[_Body], names: list[str], read: Callable[..., _T], *columns: Iterable[Any]) -> list[_T]:
    """``read`` of each instruction's entries in ``columns``; an error gets the names of computation and instruction."""
    values: list[_T] = []
    try:
        for value in map(read, *columns):
            values.append(value)  # noqa: PERF402 - the length tells where an error happened
    except HloError as error:
        owners = chain.from_iterable(repeat(body.name, len(body.protos)) for body in bodies)
        computation = next(islice(owners, len(values), None))
        raise error.at(printable(names[len(values)])).at(printable(computation)) from None
    return values


def _build(names: list[str], *columns: Iterable[Any]) -> tuple[Instruction, ...]:
    """Instructions from one column a field, as ``Instruction(...)`` makes them.

    The constructor of a frozen dataclass costs as much as all the rest of reading an instruction; filling the slots column by
    column costs a fifth of it.
    """
    instructions = tuple(map(Instruction.__new__, repeat(Instruction, len(names))))
    for slot, column in zip(_SLOTS, (names, *columns), strict=True):
        deque(map(slot, instructions, column), maxlen=0)
    return instructions


def _checked_order(proto: Any) -> _Order:
    protos = list(proto.instructions)
    if not protos:
        raise HloError("the computation is empty")
    numbers = list(map(_ID, protos))
    if len(set(numbers)) != len(numbers):
        raise HloError("two instructions have the same id")
    if proto.root_id not in numbers:
        raise HloError(f"the root instruction (id {proto.root_id}) does not exist")
    return _in_order(protos, numbers) or _ordered(protos, numbers)


def _in_order(protos: list[Any], numbers: list[int]) -> _Order | None:
    """The file's own order if operands always come first, the usual case; None if an operand comes later or not at all."""
    place: dict[int, int] = {}
    operands: list[Positions] = []
    try:
        for k, m in enumerate(protos):
            operands.append(tuple(map(place.__getitem__, m.operand_ids[:])))
            place[numbers[k]] = k
    except KeyError:
        return None
    if any(map(_CONTROL, protos)):
        return None
    return place, protos, operands, [()] * len(protos)


def _ordered(protos: list[Any], numbers: list[int]) -> _Order:
    """An order in which operands and control predecessors come first. HloError for missing ones and for cycles."""
    positions = {number: k for k, number in enumerate(numbers)}
    operands = [_positions(m, m.operand_ids, positions, "operand") for m in protos]
    controls = [_positions(m, m.control_predecessor_ids, positions, "control predecessor") for m in protos]
    sequence = topological_order([o + c for o, c in zip(operands, controls, strict=True)])
    if sequence is None:
        raise HloError("instructions depend on each other in a cycle")
    place = {numbers[old]: new for new, old in enumerate(sequence)}
    moved = [[tuple([place[numbers[p]] for p in before[old]]) for old in sequence] for before in (operands, controls)]
    return place, [protos[old] for old in sequence], moved[0], moved[1]


def _positions(m: Any, ids: Iterable[int], positions: dict[int, int], what: str) -> Positions:
    try:
        return tuple([positions[number] for number in ids])
    except KeyError as missing:
        raise HloError(f"{what} (id {missing.args[0]}) does not exist", printable(m.name)) from None


def _partitions(parameters: tuple[Sharding, ...], output: Sharding | None) -> int:
    """Number of partitions that the shardings speak of: a tile assignment names every partition. 1 when they do not say."""
    leaves = [leaf for s in (*parameters, *([output] if output else [])) for leaf in (s.elements or (s,))]
    return max([1, *(len(leaf.devices) for leaf in leaves if leaf.kind != "maximal")])


def _frontend_attributes(raw: bytes) -> dict[str, str]:
    return {entry.key: entry.value for entry in parse("FrontendAttributes", raw).map}
