from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from scalify.commands.files import check_input, check_outputs, write
from scalify.errors import InternalError, UsageError


def test_inputs_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"12345")
    for path, reason in (
        (tmp_path / "absent", "no such file"),
        (tmp_path, "folder"),
        (large, "5 bytes; at most 4"),
        (Path("a\0b"), "null byte"),
    ):
        with pytest.raises(UsageError, match=reason) as caught:
            check_input(path, 4)
        assert str(caught.value).startswith(str(path))
    assert check_input(large, 5) == large


def test_outputs_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path, "folder"),
        (tmp_path / "absent" / "report", "cannot be written: no such file"),
        (Path("a\0b"), "null byte"),
    ):
        with pytest.raises(UsageError, match=reason):
            check_outputs([path], [])


def test_outputs_must_not_overwrite_inputs_or_each_other(tmp_path: Path) -> None:
    graph = tmp_path / "graph"
    graph.write_text("x")
    (tmp_path / "link").symlink_to(graph)
    for outputs in ([graph], [tmp_path / "link"], [tmp_path / "a", tmp_path / "." / "a"]):
        with pytest.raises(UsageError, match="would overwrite"):
            check_outputs(outputs, [graph])


def test_checking_leaves_no_file_behind(tmp_path: Path) -> None:
    check_outputs([tmp_path / "a", tmp_path / "b"], [])
    assert list(tmp_path.iterdir()) == []


def test_writing_replaces_the_whole_file_and_keeps_permissions(tmp_path: Path) -> None:
    path = tmp_path / "report"
    write(path, "first, and long")
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~current_umask()
    path.chmod(0o640)
    write(path, "second")
    assert path.read_text() == "second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["report"]


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    write(link, "x")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "x"


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_outputs([pipe], [])
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write(pipe, "x")
    reader.join(10)
    assert read == ["x"]


def test_a_folder_that_went_away_is_an_internal_failure(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="cannot be written"):
        write(tmp_path / "absent" / "report", "x")
