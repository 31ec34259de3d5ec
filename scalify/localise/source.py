"""From an operation to the line of source that a user wants to see."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from scalify.report.model import Place

if TYPE_CHECKING:
    from scalify.hlo.module import Frame, Instruction

#: frames of these packages are a framework's helpers: the caller is what the user wrote
_HELPERS = ("/jax/_src/", "/site-packages/jax/", "/torch_xla/", "/torch/", "/functools.py", "/contextlib.py")


def place(instruction: Instruction, source_root: Path | None = None) -> Place:
    """The instruction with its source position: the innermost frame below ``source_root`` if it is given, else the innermost frame outside
    the known tracing libraries, else the innermost.
    """
    location = instruction.location
    if location is None:
        return Place(instruction.name, instruction.opcode)
    frame = _frame(location.stack, source_root)
    return Place(
        instruction.name,
        instruction.opcode,
        file=frame.file if frame else None,
        line=frame.line or None if frame else None,
        stack=location.stack,
        op_name=location.op_name,
    )


def _frame(stack: tuple[Frame, ...], root: Path | None) -> Frame | None:
    if root is not None:
        for frame in stack:
            if _below(frame.file, root):
                return frame
    for frame in stack:
        if not any(part in frame.file for part in _HELPERS):
            return frame
    return stack[0] if stack else None


def _below(file: str, root: Path) -> bool:
    path = PurePath(file)
    return path.is_relative_to(root.resolve()) or (not path.is_absolute() and ".." not in path.parts and (root / path).is_file())
