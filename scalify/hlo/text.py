"""From HLO text to :class:`scalify.hlo.module.Module`.

Both styles are read: ``%`` before names or not, types on operands or not. What is checked is what the reader of protos checks, and also that
types on operands agree with the operands. Attributes without meaning for the result are dropped, unknown ones kept as their text.

Source: ``xla/hlo/parser/hlo_parser.cc``; grammar of XLA's HLO text as printed by ``HloModule::ToString``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from scalify.errors import HloError
from scalify.hlo import literal_text, shape_text, spelling
from scalify.hlo.attributes import ATTRIBUTES, COMMON, DEFAULTS, IGNORED, IGNORED_ELSEWHERE
from scalify.hlo.build import callees_first, check_names, check_parameters, checked_aliases
from scalify.hlo.lexer import NAME, STRING, Scanner, split, unquote, without_comments
from scalify.hlo.location import StackFrames, read_location
from scalify.hlo.module import Computation, Instruction, Location, Module, Shape
from scalify.hlo.opcodes import OPCODES
from scalify.hlo.order import topological_order
from scalify.hlo.shape_rules.base import agree
from scalify.hlo.sharding_text import read_sharding

if TYPE_CHECKING:
    from collections.abc import Callable

_HEADER: Final = re.compile(r"HloModule\s+")
_TABLE: Final = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames)\b")
_ROW: Final = re.compile(rf"(\d{{1,9}})\s*({STRING.pattern}|\{{[^{{}}]*\}})", re.DOTALL)
_ENTRY: Final = re.compile(r"ENTRY\s+")
_HEAD: Final = re.compile(rf"(ROOT\s+)?{NAME.pattern}\s*=\s*", re.DOTALL)
_OPCODE: Final = re.compile(r"\s*([a-z][a-z0-9-]{0,63})\s*(?=\()")
_PLAIN_NAMES: Final = re.compile(r"\(((?:%?[\w.\-]+(?:,\s*%?[\w.\-]+)*)?)\)")
_PLAIN_TEXT: Final = re.compile(r'\(((?:[^()"/]++|/\*.*?\*/)*+)\)', re.DOTALL)
_KEY: Final = re.compile(r"([\w.\-]+)\s*=[ \t]*")
_MESH_REST: Final = re.compile(r"(?:,\s*device_ids=\((?:[^()]|\([^()]*\))*\))?\s*,?\s*\{[^{}]*\}")
_SLICE: Final = re.compile(r"\[\s*(\d{1,19})\s*:\s*(\d{1,19})\s*(?::\s*(\d{1,19})\s*)?\]")
_FIELD: Final = re.compile(rf"(\w+)\s*=\s*({STRING.pattern}|\{{[^{{}}]*\}}|[^\s,{{}}]+)", re.DOTALL)

# Attributes that name called computations, in the order of Instruction.calls.
_CALLS: Final = (
    "to_apply", "calls", "called_computations", "condition", "body", "branch_computations", "true_computation", "false_computation",
    "select", "scatter",
)  # fmt: skip


def parse(text: str, where: str) -> Module:
    """The module in ``text``. Raises :class:`HloError` as ``where: line N: message``."""
    return _ModuleReader(Scanner(text, where)).module()


@dataclass(slots=True)
class _Draft:
    """An instruction whose operands are still names. ``start`` is its place in the text."""

    start: int
    name: str
    opcode: str
    shape: Shape
    is_root: bool
    operands: list[str] = field(default_factory=list)
    operand_shapes: list[Shape | None] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, tuple[str, ...]] = field(default_factory=dict)
    location: Location | None = None
    control: list[str] = field(default_factory=list)


class _ModuleReader:
    """Reads one text from front to back. Values that occur again are decoded once."""

    def __init__(self, scanner: Scanner) -> None:
        self._scan = scanner
        self._shapes: dict[str, Shape] = {}
        self._values: dict[tuple[str, str], Any] = {}
        self._locations: dict[str, Location] = {}
        self._frames = StackFrames(_frame_tables({}))

    def module(self) -> Module:
        self._scan.skip()
        self._scan.take(_HEADER, "HloModule")
        name = self._scan.name()
        header = self._header()
        self._frames = StackFrames(_frame_tables(self._tables()))
        computations, entry = self._computations()
        try:
            ordered = callees_first(computations)
            return Module(name, ordered, entry, **_header_fields(header, ordered[entry]))
        except HloError as error:
            raise error.at(self._scan.where) from None

    def _header(self) -> dict[str, str]:
        header: dict[str, str] = {}
        while self._scan.skip() == ",":
            self._scan.position += 1
            self._scan.skip()
            key = self._scan.take(_KEY, "an attribute")[1]
            header[key] = self._scan.value()
        return header

    def _tables(self) -> dict[str, list[str]]:
        tables: dict[str, list[str]] = {}
        while True:
            self._scan.skip()
            title = _TABLE.match(self._scan.text, self._scan.position)
            if title is None:
                return tables
            self._scan.position = title.end()
            tables[title[1]] = self._rows()

    def _rows(self) -> list[str]:
        rows: list[str] = []
        while self._scan.skip().isdecimal():
            row = self._scan.take(_ROW, "a row of a table")
            if int(row[1]) != len(rows) + 1:
                self._scan.fail(f"rows of a table must be numbered 1, 2, 3, ..., not {row[1]}", row.start())
            rows.append(row[2])
        return rows

    def _computations(self) -> tuple[list[Computation], str]:
        """All computations and the entry's name: the one marked, else the last."""
        computations: dict[str, Computation] = {}
        calls: list[tuple[int, str]] = []
        entry = None
        while self._scan.skip():
            start = self._scan.position
            is_entry = _ENTRY.match(self._scan.text, start)
            computation = self._computation(is_entry.end() if is_entry else start, calls)
            if computation.name in computations or (entry is not None and is_entry):
                self._scan.fail("two computations have this name" if computation.name in computations else "a second ENTRY", start)
            computations[computation.name] = computation
            entry = computation.name if is_entry else entry
        if not computations:
            self._scan.fail("the module has no computation")
        for start, name in calls:
            if name not in computations:
                self._scan.fail(f"the called computation {name[:80]!r} does not exist", start)
        return list(computations.values()), entry if entry is not None else next(reversed(computations))

    def _computation(self, start: int, calls: list[tuple[int, str]]) -> Computation:
        self._scan.position = start
        name = self._scan.name()
        if self._scan.skip() == "(":
            self._scan.balanced()
            self._scan.expect("->")
            self._scan.skip()
            self._shape()
        self._scan.expect("{")
        drafts: list[_Draft] = []
        while self._scan.skip() != "}":
            drafts.append(self._instruction())
        self._scan.position += 1
        self._header()  # execution_thread and the like
        calls.extend((draft.start, called) for draft in drafts for names in draft.calls.values() for called in names)
        return self._finished(name, drafts, start)

    def _finished(self, name: str, drafts: list[_Draft], start: int) -> Computation:
        """Names become positions; ``start`` is the computation's place in the text."""
        roots = [k for k, draft in enumerate(drafts) if draft.is_root]
        if len(roots) > 1:
            self._scan.fail("a second ROOT", drafts[roots[1]].start)
        places = {draft.name: k for k, draft in enumerate(drafts)}
        operands = [self._positions(draft, draft.operands, places) for draft in drafts]
        controls = [self._positions(draft, draft.control, places) for draft in drafts]
        self._check_operand_shapes(drafts, operands)
        try:
            return _assembled(name, drafts, operands, controls, roots[0] if roots else len(drafts) - 1)
        except HloError as error:
            inner = f"{error.where}: " if error.where else ""
            raise self._scan.error(f"{name[:200]}: {inner}{error.message}", start) from None

    def _positions(self, draft: _Draft, names: list[str], places: dict[str, int]) -> tuple[int, ...]:
        try:
            return tuple([places[name] for name in names])
        except KeyError as missing:
            self._scan.fail(f"{draft.name[:80]} uses {missing.args[0][:80]!r}, which its computation does not have", draft.start)

    def _check_operand_shapes(self, drafts: list[_Draft], operands: list[tuple[int, ...]]) -> None:
        for draft, positions in zip(drafts, operands, strict=True):
            for shape, position in zip(draft.operand_shapes, positions, strict=False):
                if shape is not None and not agree(shape, drafts[position].shape):
                    message = f"{draft.name[:80]} takes {drafts[position].name[:80]} as {shape}, it is declared {drafts[position].shape}"
                    self._scan.fail(message, draft.start)

    def _instruction(self) -> _Draft:
        start = self._scan.position
        head = self._scan.take(_HEAD, "an instruction")
        name = head[2] or unquote(head[3])
        shape = self._shape()
        opcode = self._scan.take(_OPCODE, "an opcode")[1]
        draft = _Draft(start, name, opcode, shape, bool(head[1]))
        if opcode == "constant":
            self._constant(draft)
        elif opcode == "parameter":
            draft.attributes["index"] = self._decoded("index", self._arguments(), spelling.integer)
        else:
            self._operands(draft)
        self._attributes(draft)
        return draft

    def _arguments(self) -> str:
        """The text between the parentheses here."""
        plain = _PLAIN_TEXT.match(self._scan.text, self._scan.position)
        if plain is None:
            return self._scan.balanced()[1:-1].strip()
        self._scan.position = plain.end()
        return plain[1].strip()

    def _constant(self, draft: _Draft) -> None:
        start = self._scan.position
        try:
            literal = literal_text.read_literal(self._arguments(), draft.shape)
        except HloError as error:
            raise error if error.where else self._scan.error(error.message, start) from None
        if literal is not None:
            draft.attributes["literal"] = literal

    def _operands(self, draft: _Draft) -> None:
        plain = _PLAIN_NAMES.match(self._scan.text, self._scan.position)
        if plain is not None:
            self._scan.position = plain.end()
            draft.operands = [name.strip().removeprefix("%") for name in plain[1].split(",")] if plain[1] else []
            return
        self._scan.position += 1
        while self._scan.skip() != ")":
            if draft.operands:
                self._scan.expect(",")
                self._scan.skip()
            draft.operand_shapes.append(self._optional_shape())
            self._scan.skip()
            draft.operands.append(self._scan.name())
        self._scan.position += 1

    def _optional_shape(self) -> Shape | None:
        scan = self._scan
        begins = scan.text.startswith("(", scan.position) or shape_text.ARRAY.match(scan.text, scan.position)
        return self._shape() if begins else None

    def _shape(self) -> Shape:
        start = self._scan.position
        is_tuple = self._scan.text.startswith("(", start)
        text = self._scan.balanced() if is_tuple else self._scan.take(shape_text.ARRAY, "a shape")[0]
        shape = self._shapes.get(text)
        if shape is None:
            try:
                shape = self._shapes[text] = shape_text.read_shape(text)
            except HloError as error:
                raise self._scan.error(error.message, start) from None
        return shape

    def _attributes(self, draft: _Draft) -> None:
        seen: set[str] = set()
        while self._scan.skip() == ",":
            self._scan.position += 1
            self._scan.skip()
            key = self._scan.take(_KEY, "an attribute")[1]
            if key in seen:
                self._scan.fail(f"{draft.name[:80]} has {key} twice")
            seen.add(key)
            self._attribute(draft, key)
        if "dim_labels" in seen:
            draft.attributes = {"feature_group_count": 1, "batch_group_count": 1} | draft.attributes
        draft.attributes = DEFAULTS.get(draft.opcode, {}) | draft.attributes

    def _attribute(self, draft: _Draft, key: str) -> None:
        if key == "replica_groups" and self._scan.text.startswith("mesh[", self._scan.position):
            start = self._scan.position
            self._scan.value()
            self._scan.take(_MESH_REST, "the axes of the mesh")
            text = self._scan.text[start : self._scan.position]
        else:
            text = self._scan.value()
        if key == "metadata":
            draft.location = self._location(text)
        elif key in _CALLS:
            draft.calls[key] = self._decoded("calls", text, _names)
        elif key == "control-predecessors":
            draft.control.extend(self._decoded("calls", text, _names))
        elif key == "slice":
            draft.attributes.update(self._decoded(key, text, _slice))
        elif key == "domain":
            draft.attributes.update(self._decoded(key, text, _domain))
        elif not _is_ignored(draft.opcode, key):
            kind = ATTRIBUTES.get(key)
            draft.attributes[key] = self._decoded(key, text, spelling.SPELLINGS[kind].read if kind else spelling.read_string)

    def _decoded(self, key: str, text: str, read: Callable[[str], Any]) -> Any:
        if (key, text) not in self._values:
            try:
                self._values[key, text] = read(text)
            except HloError as error:
                raise self._scan.error(f"{key}: {error.message}") from None
        return self._values[key, text]

    def _location(self, text: str) -> Location:
        location = self._locations.get(text)
        if location is None:
            location = self._locations[text] = read_location(_record(text), self._frames)
        return location


def _is_ignored(opcode: str, key: str) -> bool:
    if key in IGNORED:
        return True
    row = OPCODES.get(opcode)
    return key in IGNORED_ELSEWHERE and row is not None and key not in row.optional | row.required | COMMON


def _assembled(name: str, drafts: list[_Draft], operands: list[tuple[int, ...]], controls: list[tuple[int, ...]], root: int) -> Computation:
    """The computation, in an order where operands and control predecessors come first."""
    if not drafts:
        raise HloError("the computation is empty")
    check_names([draft.name for draft in drafts])
    sequence = topological_order([a + b for a, b in zip(operands, controls, strict=True)])
    if sequence is None:
        raise HloError("instructions depend on each other in a cycle")
    place = {old: new for new, old in enumerate(sequence)}
    moved = [[tuple([place[p] for p in before[old]]) for old in sequence] for before in (operands, controls)]
    instructions = tuple(_instruction(drafts[old], a, b) for old, a, b in zip(sequence, *moved, strict=True))
    check_parameters(instructions)
    return Computation(name, instructions, place[root])


def _instruction(draft: _Draft, operands: tuple[int, ...], control: tuple[int, ...]) -> Instruction:
    calls = tuple([name for key in _CALLS for name in draft.calls.get(key, ())]) if draft.calls else ()
    return Instruction(draft.name, draft.opcode, draft.shape, operands, draft.attributes, calls, draft.location, control)


def _names(text: str) -> tuple[str, ...]:
    """One name, or several in braces."""
    parts = split(without_comments(text)[1:-1]) if text.startswith("{") else [text]
    matches = [NAME.fullmatch(part) for part in parts]
    if not all(matches):
        raise HloError(f"{text[:60]!r} is not a name or a list of names")
    return tuple(match[1] or unquote(match[2]) for match in matches if match)


def _slice(text: str) -> dict[str, tuple[int, ...]]:
    text = without_comments(text)
    if _SLICE.sub("", text).strip(" \n\t{},"):
        raise HloError(f"{text[:60]!r} is not a list of [start:limit:stride]")
    bounds = [(int(start), int(limit), int(stride or 1)) for start, limit, stride in _SLICE.findall(text)]
    return {name: tuple(bound[k] for bound in bounds) for k, name in enumerate(("starts", "limits", "strides"))}


def _domain(text: str) -> dict[str, Any]:
    parts = dict(part.split("=", 1) for part in split(text[1:-1]) if "=" in part)
    if {"entry", "exit"} - parts.keys():
        raise HloError(f"{text[:60]!r} lacks entry or exit")
    return {f"domain_{side}": read_sharding(parts[side]) for side in ("entry", "exit")}


def _fields(text: str) -> dict[str, str]:
    """``{a=1 b="c"}``."""
    return {key: spelling.read_string(value) for key, value in _FIELD.findall(text)}


def _number(fields: dict[str, str], key: str) -> int:
    value = fields.get(key, "0")
    return int(value) if re.fullmatch(r"-?\d{1,18}", value) else 0


def _record(text: str) -> SimpleNamespace:
    """Metadata in the form that :func:`read_location` takes."""
    fields = _fields(text)
    strings = {key: fields.get(key, "") for key in ("op_name", "op_type", "source_file")}
    return SimpleNamespace(**strings, source_line=_number(fields, "source_line"), stack_frame_id=_number(fields, "stack_frame_id"))


def _frame_tables(tables: dict[str, list[str]]) -> SimpleNamespace:
    """Stack-frame tables in the form that :class:`StackFrames` takes. In text the parent's id is one too high, so that 1 is none."""
    locations = [_fields(row) for row in tables.get("FileLocations", ())]
    frames = [_fields(row) for row in tables.get("StackFrames", ())]
    return SimpleNamespace(
        file_names=[spelling.read_string(row) for row in tables.get("FileNames", ())],
        function_names=[spelling.read_string(row) for row in tables.get("FunctionNames", ())],
        file_locations=[SimpleNamespace(**{k: _number(f, k) for k in ("file_name_id", "function_name_id", "line")}) for f in locations],
        stack_frames=[
            SimpleNamespace(file_location_id=_number(f, "file_location_id"), parent_frame_id=_number(f, "parent_frame_id") - 1)
            for f in frames
        ],
    )


def _header_fields(header: dict[str, str], entry: Computation) -> dict[str, Any]:
    header = spelling.read_strings(header.get("frontend_attributes", "{}")) | header
    shardings = header.get("spmd_parameters_shardings")
    output = header.get("spmd_output_sharding")
    return {
        "num_partitions": _count(header, "num_partitions"),
        "num_replicas": _count(header, "replica_count"),
        "aliases": checked_aliases(spelling.read_aliases(header.get("input_output_alias", "{}")), entry),
        "parameter_shardings": tuple(map(read_sharding, split(shardings[1:-1]))) if shardings is not None else None,
        "output_sharding": read_sharding(output) if output is not None else None,
    }


def _count(header: dict[str, str], key: str) -> int:
    count = spelling.integer(header.get(key, "1"))
    if count < 1:
        raise HloError(f"{key} must be positive, not {count}")
    return count
