"""HLO text of a module, which :func:`scalify.hlo.text.parse` takes back to an equal module.

XLA's own parser takes it too, unless the module has something that XLA's text cannot say (names with unusual characters, fields of a
proto that the reader did not know).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from scalify.errors import HloError
from scalify.hlo import literal_text
from scalify.hlo.attributes import ATTRIBUTES, Kind
from scalify.hlo.lexer import Scanner, quote
from scalify.hlo.shape_text import write_shape, write_shapes
from scalify.hlo.sharding_text import write_sharding
from scalify.hlo.spelling import SPELLINGS, write_aliases

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scalify.hlo.module import Computation, Frame, Instruction, Location, Module, Shape

_PLAIN_NAME: Final = re.compile(r"[\w.\-]+\Z")
# Written elsewhere than among the attributes, or several under one name.
_SPECIAL: Final = frozenset({"literal", "starts", "limits", "strides", "domain_entry", "domain_exit"})
# Names of the called computations, where it is not to_apply.
_CALLS: Final[dict[str, tuple[str, ...]]] = {
    "while": ("condition", "body"),
    "select-and-scatter": ("select", "scatter"),
}
_CALL_LISTS: Final = {"conditional": "branch_computations", "custom-call": "called_computations"}
# XLA's parser insists on columns and an end, which a module here does not have.
_LOCATION: Final = "{{file_name_id={0} function_name_id={1} line={2} end_line={2} column=0 end_column=0}}"
_CALLS_ONE: Final = frozenset({"fusion", "async-start", "async-update", "async-done"})


@dataclass(frozen=True, slots=True)
class Style:
    """``percent``: names begin with ``%``. ``operand_shapes``: operands carry their type. ``locations``: source locations are written."""

    percent: bool = True
    operand_shapes: bool = False
    locations: bool = True


def to_text(module: Module, style: Style = Style()) -> str:
    """``module`` as HLO text; constants are complete, so the text may be long."""
    return "\n".join(_Printer(module, style).lines()) + "\n"


@dataclass(slots=True)
class _Frames:
    """Stack-frame tables in the making. Ids are 1-based; equal stacks share their frames."""

    files: dict[str, int] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)
    locations: dict[tuple[int, int, int], int] = field(default_factory=dict)
    frames: dict[tuple[int, int], int] = field(default_factory=dict)

    def number(self, stack: Iterable[Frame]) -> int:
        """The id of a stack, innermost frame first."""
        parent = 0
        for frame in reversed(tuple(stack)):
            file = self.files.setdefault(frame.file, len(self.files) + 1)
            function = self.functions.setdefault(frame.function, len(self.functions) + 1)
            location = self.locations.setdefault((file, function, frame.line), len(self.locations) + 1)
            parent = self.frames.setdefault((location, parent), len(self.frames) + 1)
        return parent

    def lines(self) -> list[str]:
        if not self.frames:
            return []
        return [
            *_table("FileNames", map(quote, self.files)),
            *_table("FunctionNames", map(quote, self.functions)),
            *_table("FileLocations", (_LOCATION.format(a, b, c) for a, b, c in self.locations)),
            # XLA writes the parent's id one too high, so that 1 is none.
            *_table("StackFrames", (f"{{file_location_id={a} parent_frame_id={b + 1}}}" for a, b in self.frames)),
        ]


def _table(title: str, rows: Iterable[str]) -> list[str]:
    return [title, *(f"{k} {row}" for k, row in enumerate(rows, 1)), ""]


class _Printer:
    def __init__(self, module: Module, style: Style) -> None:
        self._module = module
        self._style = style
        self._sigil = "%" if style.percent else ""
        self._tables = _Frames()

    def lines(self) -> list[str]:
        bodies = [line for computation in self._module.computations.values() for line in self._computation(computation)]
        return [self._header(), "", *self._tables.lines(), *bodies]

    def _header(self) -> str:
        module = self._module
        parts = [f"HloModule {_name(module.name)}"]
        if module.aliases:
            parts.append("input_output_alias=" + write_aliases([(out, *target) for out, target in module.aliases.items()]))
        parts.append(f"entry_computation_layout={{({write_shapes(module.parameter_shapes)})->{self._result(module.entry)}}}")
        if module.num_replicas != 1:
            parts.append(f"replica_count={module.num_replicas}")
        if module.num_partitions != 1:
            parts.append(f"num_partitions={module.num_partitions}")
        shardings = _partitioner_shardings(module)
        if shardings:
            parts.append("frontend_attributes=" + SPELLINGS[Kind.STRINGS].write(shardings))
        return ", ".join(parts)

    def _result(self, computation: Computation) -> str:
        return write_shape(computation.instructions[computation.root].shape)

    def _computation(self, computation: Computation) -> list[str]:
        instructions = computation.instructions
        parameters = ", ".join(
            f"{_name(instructions[p].name)}: {write_shape(instructions[p].shape, layout=False)}" for p in computation.parameters
        )
        result = write_shape(instructions[computation.root].shape, layout=False)
        entry = "ENTRY " if computation.name == self._module.entry_name else ""
        head = f"{entry}{self._reference(computation.name)} ({parameters}) -> {result} {{"
        return [head, *(self._line(computation, k) for k in range(len(instructions))), "}", ""]

    def _reference(self, name: str) -> str:
        return self._sigil + _name(name)

    def _line(self, computation: Computation, position: int) -> str:
        i = computation.instructions[position]
        root = "ROOT " if position == computation.root else ""
        head = f"  {root}{self._reference(i.name)} = {write_shape(i.shape)} {i.opcode}({self._arguments(computation, i)})"
        return ", ".join(
            [head, *self._attributes(i), *self._calls(computation, i), *self._control(computation, i), *self._metadata(i.location)]
        )

    def _arguments(self, computation: Computation, i: Instruction) -> str:
        if i.opcode == "parameter":
            return str(i.attributes["index"])
        if i.opcode == "constant":
            return literal_text.write_literal(i.attributes["literal"]) if "literal" in i.attributes else "{...}"
        operands = [computation.instructions[p] for p in i.operands]
        return ", ".join(self._operand_type(operand.shape) + self._reference(operand.name) for operand in operands)

    def _operand_type(self, shape: Shape) -> str:
        return write_shape(shape) + " " if self._style.operand_shapes else ""

    def _attributes(self, i: Instruction) -> list[str]:
        attributes = i.attributes
        special = []
        if "starts" in attributes:
            bounds = zip(attributes["starts"], attributes["limits"], attributes["strides"], strict=True)
            special.append("slice={" + ", ".join(f"[{a}:{b}:{c}]" for a, b, c in bounds) + "}")
        if "domain_entry" in attributes:
            entry, leave = write_sharding(attributes["domain_entry"]), write_sharding(attributes["domain_exit"])
            special.append(f'domain={{kind="sharding", entry={entry}, exit={leave}}}')
        hidden = _SPECIAL | {"index"} if i.opcode == "parameter" else _SPECIAL
        return special + [f"{key}={_value(key, value)}" for key, value in attributes.items() if key not in hidden]

    def _calls(self, computation: Computation, i: Instruction) -> list[str]:
        if not i.calls:
            return []
        names = [self._reference(name) for name in i.calls]
        keys = _CALLS.get(i.opcode)
        if keys is not None and len(keys) == len(names):
            return [f"{key}={name}" for key, name in zip(keys, names, strict=True)]
        if i.opcode in _CALLS_ONE and len(names) == 1:
            return [f"calls={names[0]}"]
        if i.opcode == "conditional" and len(names) == 2 and _selector(computation, i) == "pred":
            # XLA's parser takes a list of branches only with a number.
            return [f"true_computation={names[0]}", f"false_computation={names[1]}"]
        if len(names) == 1 and i.opcode not in _CALL_LISTS:
            return [f"to_apply={names[0]}"]
        return [f"{_CALL_LISTS.get(i.opcode, 'calls')}={{{', '.join(names)}}}"]

    def _control(self, computation: Computation, i: Instruction) -> list[str]:
        names = ", ".join(self._reference(computation.instructions[p].name) for p in i.control)
        return [f"control-predecessors={{{names}}}"] if names else []

    def _metadata(self, location: Location | None) -> list[str]:
        if location is None or not self._style.locations:
            return []
        words = [f"op_name={quote(location.op_name)}"]
        stack = location.stack
        if len(stack) == 1 and stack[0].file and "\n" not in stack[0].file and not stack[0].function:
            words += [f"source_file={quote(stack[0].file)}", f"source_line={stack[0].line}"]
        elif stack:
            words.append(f"stack_frame_id={self._tables.number(stack)}")
        return [f"metadata={{{' '.join(words)}}}"]


def _partitioner_shardings(module: Module) -> dict[str, str]:
    """XLA's text has no place of its own for these two; as frontend attributes, XLA carries them along."""
    shardings = {}
    if module.parameter_shardings is not None:
        shardings["spmd_parameters_shardings"] = f"{{{', '.join(map(write_sharding, module.parameter_shardings))}}}"
    if module.output_sharding is not None:
        shardings["spmd_output_sharding"] = write_sharding(module.output_sharding)
    return shardings


def _selector(computation: Computation, i: Instruction) -> str:
    """The type of what chooses a branch."""
    return computation.instructions[i.operands[0]].shape.dtype if i.operands else ""


def _name(name: str) -> str:
    return name if _PLAIN_NAME.match(name) else quote(name)


def _value(key: str, value: Any) -> str:
    kind = ATTRIBUTES.get(key)
    if kind is not None and kind is not Kind.LITERAL:
        return SPELLINGS[kind].write(value)
    return _raw(str(value))


def _raw(value: str) -> str:
    """An attribute that no table knows: its own text where that reads back, else in quotes."""
    scanner = Scanner(value, "")
    if not value or value[0].isspace() or '"' in value or "/" in value:
        return quote(value)
    try:
        return value if scanner.value() == value else quote(value)
    except HloError:
        return quote(value)
