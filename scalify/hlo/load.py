"""Reading a graph file, whatever its form: HLO protos (bare, in ``HloProto``, in ``HloSnapshot``) and HLO text, each also gzipped.

The form is told by the content, never by the file's name. Memory is bounded: a file, and what it unpacks to, may have ``limit`` bytes.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import DecodeError

from scalify.errors import HloError
from scalify.hlo import schema
from scalify.hlo.proto import parse_module, read_module

if TYPE_CHECKING:
    from scalify.hlo.module import Module

DEFAULT_LIMIT: Final = 1 << 30

_GZIP: Final = b"\x1f\x8b"
_MLIR_BYTECODE: Final = b"ML\xefR"
# HloSnapshot holds HloProto holds HloModuleProto, each as field 1.
_WRAPPERS: Final = 2
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_MLIR: Final = re.compile(r"\s*(//[^\n]*\n\s*)*(#\w+ *=|#loc|module\b|func\.func\b|builtin\.module\b)")


def load(path: str | Path, limit: int = DEFAULT_LIMIT) -> Module:
    """The module in the file at ``path``. Raises HloError, with the path in front, when it cannot be read."""
    where = str(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise HloError(f"cannot be read: {error.strerror or error}", where) from None
    except ValueError:
        raise HloError("is not a possible file name", repr(where)) from None
    return load_bytes(data, where, limit)


def load_bytes(data: bytes, where: str, limit: int = DEFAULT_LIMIT) -> Module:
    """The module in ``data``; ``where`` names its origin in errors."""
    if len(data) > limit:
        raise HloError(f"is larger than the limit of {limit} bytes", where)
    if data.startswith(_GZIP):
        data = _gunzip(data, where, limit)
    if not data.strip():
        raise HloError("is empty", where)
    text = _as_text(data)
    return _load_proto(data, where) if text is None else _load_text(text, where)


def _gunzip(data: bytes, where: str, limit: int) -> bytes:
    """All members of a gzip file; stops at ``limit``, so that a small file cannot fill the memory."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(limit + 1)
    except EOFError:
        raise HloError("is a gzip file that ends too early", where) from None
    except (OSError, zlib.error) as error:
        raise HloError(f"is a damaged gzip file ({error})", where) from None
    if len(unpacked) > limit:
        raise HloError(f"unpacks to more than the limit of {limit} bytes", where)
    return unpacked


def _as_text(data: bytes) -> str | None:
    """``data`` decoded if it is text: a serialized proto always holds control characters among its field tags."""
    if _CONTROL.search(data, 0, 4096):
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _load_text(text: str, where: str) -> Module:
    if _MLIR.match(text):
        raise HloError("is MLIR text; convert it to HLO first", where)
    from scalify.hlo.text import parse  # noqa: PLC0415 - protos are the usual case and do not need the text reader

    return parse(text, where)


def _load_proto(data: bytes, where: str) -> Module:
    if data.startswith(_MLIR_BYTECODE):
        raise HloError("is MLIR bytecode (StableHLO); convert it to HLO first", where)
    proto = _find_module(data)
    if proto is None:
        raise HloError("is neither HLO text nor a serialized HLO module (or it is damaged)", where)
    try:
        return read_module(proto)
    except HloError as error:
        raise error.at(where) from None


def _find_module(data: bytes) -> Any | None:
    """The ``HloModuleProto`` in ``data``: ``data`` itself, or what its field 1 holds, up to the depth of ``HloSnapshot``."""
    for _ in range(_WRAPPERS + 1):
        proto = parse_module(data)
        if proto is not None:
            return proto
        try:
            data = schema.message("HloProto").FromString(data).hlo_module
        except DecodeError:
            return None
    return None
