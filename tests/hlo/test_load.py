"""What the loader takes, and what it says about files that it does not take."""

from __future__ import annotations

import gzip
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import HloError
from scalify.hlo.load import load, load_bytes
from tests.support.protos import inst, raw, with_one

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODULE = with_one(inst(3, "add", "f32", (4, 8), [1, 2]))
PROTO = raw("HloProto", hlo_module=MODULE, buffer_assignment=b"\x0a\x02\x08\x01")
SNAPSHOT = raw("HloProto", hlo_module=PROTO)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("data", [MODULE, PROTO, SNAPSHOT], ids=["HloModuleProto", "HloProto", "HloSnapshot"])
def test_every_wrapping_gives_the_same_module(data: bytes, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"  # the name says nothing
    path.write_bytes(pack(data))
    module = load(path)
    assert module.name == "test"
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "parameter", "add"]


def test_gzip_members_are_joined() -> None:
    assert load_bytes(gzip.compress(MODULE[:40]) + gzip.compress(MODULE[40:]), "x").name == "test"


def test_missing_file_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(HloError, match=r"^.*/none\.pb: cannot be read: No such file or directory$"):
        load(tmp_path / "none.pb")


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HloError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_impossible_file_name() -> None:
    with pytest.raises(HloError, match="is not a possible file name"):
        load("a\0b")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\x00\x01\x02\x03", "is neither HLO text nor a serialized HLO module"),
        (MODULE[:-1], "is neither HLO text nor a serialized HLO module"),
        (gzip.compress(MODULE)[:-9], "is a gzip file that ends too early"),
        (b"\x1f\x8b\x08" + b"\0" * 7 + b"\x07" * 40, "is a damaged gzip file"),
        (gzip.compress(MODULE)[:-8] + b"\0" * 8, "is a damaged gzip file"),
        (gzip.compress(b""), "is empty"),
        (b"ML\xefR" + b"\0" * 20, "is MLIR bytecode"),
        (b"// note\nmodule @jit_f {\n}\n", "is MLIR text"),
        (raw("HloModuleProto", name="x"), "is neither HLO text"),
    ],
)  # fmt: skip
def test_refused_in_one_line(data: bytes, message: str) -> None:
    with pytest.raises(HloError, match=f"^file: {message}") as caught:
        load_bytes(data, "file")
    assert "\n" not in str(caught.value)


def test_unpacking_is_bounded() -> None:
    bomb = gzip.compress(b"\0" * 1_000_000)
    with pytest.raises(HloError, match="unpacks to more than the limit of 50000 bytes"):
        load_bytes(bomb, "file", limit=50_000)
    with pytest.raises(HloError, match="is larger than the limit of 100 bytes"):
        load_bytes(MODULE, "file", limit=100)


def test_the_limit_itself_is_allowed() -> None:
    assert load_bytes(gzip.compress(MODULE), "file", limit=len(MODULE)).name == "test"


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(HloError):
        load_bytes(b"\x08" + data, "file")


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(SNAPSHOT) - 1), st.sampled_from([MODULE, PROTO, SNAPSHOT]))
def test_truncated_files(length: int, data: bytes) -> None:
    """A cut file is refused, or the cut fell between two fields and what is left is a whole module."""
    with suppress(HloError):
        load_bytes(data[:length], "file")
