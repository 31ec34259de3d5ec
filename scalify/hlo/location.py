"""Source locations of instructions, from all the ways in which frameworks record them.

Three forms: file and line inline (old JAX, torch-xla); ids into the module's stack-frame tables (new JAX); a whole Python stack written
into ``source_file`` (Transformers NeuronX: the outermost file, a rule, then a list of ``'file:line'``, outermost first).

Source: ``OpMetadata`` of ``xla/xla_data.proto``, ``StackFrameIndexProto`` of ``xla/service/hlo.proto``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from scalify.hlo.module import Frame, Location

# Deeper stacks are cut at the outer end; also bounds the work for hostile tables.
MAX_FRAMES: Final = 128

_QUOTED: Final = re.compile(r"""['"]([^'"\n]+):(\d{1,9})['"]""")
_PLAIN: Final = re.compile(r"^[ \t]*(\S[^\n]*):(\d{1,9})[ \t]*$", re.MULTILINE)
_TRACEBACK: Final = re.compile(r'^[ \t]*File "([^"\n]+)", line (\d{1,9})(?:, in ([^\n]+))?', re.MULTILINE)


def inline_stack(source_file: str, line: int) -> tuple[Frame, ...]:
    """Frames of an inline location, innermost first. ``line`` belongs to the first file named."""
    if not source_file:
        return ()
    if "\n" not in source_file:
        return (Frame(source_file, max(line, 0)),)
    traceback = [Frame(file, int(n), function) for file, n, function in _TRACEBACK.findall(source_file)]
    found = traceback or [Frame(file, int(n)) for file, n in _QUOTED.findall(source_file) or _PLAIN.findall(source_file)]
    if not found:
        return (Frame(source_file.split("\n", 1)[0].strip(), max(line, 0)),)
    return tuple(reversed(found[-MAX_FRAMES:]))


class StackFrames:
    """The stack-frame tables of a module, each stack built once. Ids are 1-based; an id outside the tables ends the stack."""

    def __init__(self, index: Any) -> None:
        self._files = list(index.file_names)
        self._functions = list(index.function_names)
        self._locations = [(x.file_name_id, x.function_name_id, x.line) for x in index.file_locations]
        self._frames = [(x.file_location_id, x.parent_frame_id) for x in index.stack_frames]
        self._shared: dict[int, Frame | None] = {}
        self._stacks: dict[int, tuple[Frame, ...]] = {}

    def stack(self, frame_id: int) -> tuple[Frame, ...]:
        """The stack that starts at ``frame_id``, innermost frame first."""
        if frame_id not in self._stacks:
            self._stacks[frame_id] = self._walk(frame_id)
        return self._stacks[frame_id]

    def _walk(self, frame_id: int) -> tuple[Frame, ...]:
        frames: list[Frame] = []
        for _ in range(MAX_FRAMES):
            if not 0 < frame_id <= len(self._frames):
                break
            location, frame_id = self._frames[frame_id - 1]
            frame = self._frame(location)
            if frame is not None:
                frames.append(frame)
        return tuple(frames)

    def _frame(self, location: int) -> Frame | None:
        if location not in self._shared:
            self._shared[location] = self._read(location)
        return self._shared[location]

    def _read(self, location: int) -> Frame | None:
        if not 0 < location <= len(self._locations):
            return None
        file, function, line = self._locations[location - 1]
        return Frame(_entry(self._files, file), max(line, 0), _entry(self._functions, function))


def _entry(table: list[str], number: int) -> str:
    return table[number - 1] if 0 < number <= len(table) else ""


def read_location(metadata: Any, frames: StackFrames) -> Location:
    """The location in a parsed ``OpMetadata``. The tables win over the inline fields, which hold one frame only."""
    stack = frames.stack(metadata.stack_frame_id) or inline_stack(metadata.source_file, metadata.source_line)
    return Location(metadata.op_name or metadata.op_type, stack)
