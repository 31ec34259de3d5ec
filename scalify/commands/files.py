"""Files at both ends of a command: inputs checked before anything is read, outputs before any work is done."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from scalify.errors import InternalError, UsageError

LARGEST_GRAPH = 1 << 30
"""Bytes of one graph file. Real graphs of the largest models are tens of megabytes, without weights."""
LARGEST_TEXT = 16 << 20
"""Bytes of one relation, rule or registry file."""


def check_input(path: Path, largest: int) -> Path:
    """``path`` if it is a file of at most ``largest`` bytes that can be read.

    Raises:
        UsageError: otherwise, with the reason.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise UsageError(_reason(error), str(path)) from None
    if stat.S_ISDIR(status.st_mode):
        raise UsageError("is a folder, not a file", str(path))
    if status.st_size > largest:
        raise UsageError(f"has {status.st_size:,} bytes; at most {largest:,} are read", str(path))
    if not os.access(path, os.R_OK):
        raise UsageError("permission denied", str(path))
    return path


def check_outputs(outputs: list[Path], inputs: list[Path]) -> None:
    """Make sure that each output can be written and overwrites neither an input nor another output.

    Raises:
        UsageError: one cannot, or does.
    """
    taken = {_resolved(path): path for path in inputs}
    for path in outputs:
        place = _resolved(path)
        if place in taken and not _is_special(path):
            raise UsageError(f"this output would overwrite {taken[place]}", str(path))
        taken[place] = path
        _check_writable(path, place)


def write(path: Path, text: str) -> None:
    """Write the file as a whole or not at all: a reader never sees half of it.

    Raises:
        InternalError: the file system refuses (it was writable when the work began).
    """
    try:
        if _is_special(path):
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path, text)
    except OSError as error:
        raise InternalError(f"{path}: cannot be written: {_reason(error)}") from error


def _replace(path: Path, text: str) -> None:
    target = path.resolve()  # a symbolic link stays one
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(_mode(target))
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _mode(target: Path) -> int:
    """Permissions for the file: those that it has, or what the user's umask gives to new ones (mkstemp is stricter)."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: symbolic links in a circle
        raise UsageError(_reason(error), str(path)) from None


def _check_writable(path: Path, place: Path) -> None:
    if path.is_dir():
        raise UsageError("is a folder, not a file", str(path))
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError("permission denied", str(path))
    if _is_special(path):
        return
    try:
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", suffix=".tmp"):
            pass
    except OSError as error:
        raise UsageError(f"cannot be written: {_reason(error)}", str(path)) from None


def _is_special(path: Path) -> bool:
    """A pipe, terminal or device such as /dev/stdout, which can only be written in place."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:]
