"""The contract of the command line: exit statuses, one line for each mistake, whole files or none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scalify.cli import main
from scalify.errors import HloError, InternalError
from scalify.report.model import Output, Report, Verdict
from tests.support.reports import HOSTILE, unverified, verified

CASE = Path(__file__).parent / "cases" / "jax_tp_mlp_tp2"
QUESTION = ["verify", str(CASE / "baseline.hlo.pb"), str(CASE / "distributed.hlo.pb"), "--relation", str(CASE / "relation.yaml")]


def answer(monkeypatch: pytest.MonkeyPatch, outcome: Report | BaseException) -> None:
    """Let the pipeline end like this, whatever it is asked."""

    def verify(*_: Any) -> Report:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr("scalify.api.verify", verify)


@pytest.mark.parametrize(
    ("report", "status"),
    [(verified(), 0), (Report(Verdict.REFUTED, (Output(0, Verdict.REFUTED),)), 1), (unverified(), 3)],
    ids=["verified", "refuted", "unverified"],
)
def test_the_exit_status_is_the_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Report, status: int
) -> None:
    answer(monkeypatch, report)
    written = tmp_path / "report.json"
    assert main([*QUESTION, "--json", str(written)]) == status
    read = Report.from_json(written.read_bytes())
    assert read.verdict is report.verdict
    assert read.inputs.baseline == QUESTION[1]
    assert "read" in read.stats.seconds
    assert read.stats.peak_rss_mib > 1
    shown = capsys.readouterr()
    assert shown.out.startswith(report.verdict.upper())
    assert not shown.err


@pytest.mark.parametrize(
    ("outcome", "status", "line"),
    [
        (HloError("unknown", "file: instruction"), 2, "scalify: error: file: instruction: unknown\n"),
        (InternalError("broken"), 4, "scalify: error: internal: broken (--traceback shows where; please report it)\n"),
        (
            ZeroDivisionError("a\nb"),
            4,
            "scalify: error: internal: ZeroDivisionError: a\\x0ab (--traceback shows where; please report it)\n",
        ),
        (RecursionError("deep"), 4, "scalify: error: internal: RecursionError: deep (--traceback shows where; please report it)\n"),
        (MemoryError(), 4, "scalify: error: out of memory; smaller --limit values need less\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_every_failure_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, outcome: BaseException, status: int, line: str
) -> None:
    answer(monkeypatch, outcome)
    assert main([*QUESTION, "--json", str(tmp_path / "report.json")]) == status
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", line)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_traceback_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: str) -> None:
    answer(monkeypatch, ZeroDivisionError("x"))
    if how == "environment":
        monkeypatch.setenv("SCALIFY_TRACEBACK", "1")
    assert main([*QUESTION, *(["--traceback"] if how == "option" else [])]) == 4
    error = capsys.readouterr().err
    assert "Traceback (most recent call last)" in error
    assert error.endswith("scalify: error: internal: ZeroDivisionError: x\n")


def test_quiet_prints_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer(monkeypatch, unverified())
    assert main([*QUESTION, "--quiet"]) == 3
    assert capsys.readouterr() == ("", "")


def test_all_formats_are_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answer(monkeypatch, unverified(HOSTILE))
    names = ("json", "html", "sarif", "markdown")
    assert main([*QUESTION, "--quiet", *(part for name in names for part in (f"--{name}", str(tmp_path / name)))]) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert all(path.stat().st_size > 500 for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["prove"], "invalid choice"),
        (["verify", "a"], "DISTRIBUTED"),
        ([*QUESTION, "--limit", "nodes"], "NAME=N"),
        ([*QUESTION, "--precision", "half"], "invalid choice"),
        ([*QUESTION, "--mesh", "tp=2"], "--mesh is for inferred relations"),
        ([*QUESTION, "--json", "/absent/folder/report"], "/absent/folder/report: cannot be written"),
        ([*QUESTION, "--json", QUESTION[1]], "would overwrite"),
        (["verify", "/absent/graph", QUESTION[2]], "/absent/graph: no such file"),
        (["verify", QUESTION[4], QUESTION[2]], "relation.yaml"),
        (["verify", QUESTION[1], QUESTION[2], "--relation", QUESTION[1]], "baseline.hlo.pb"),
        (["show", "/absent/graph"], "no such file"),
        (["relate", QUESTION[1], QUESTION[2], "--output", QUESTION[2]], "would overwrite"),
    ],
)
def test_wrong_usage_is_status_2_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    answer(monkeypatch, AssertionError("the work must not start"))
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("scalify: error: ")
    assert shown.err.count("\n") == 1
    assert message in shown.err


def test_help_teaches_and_is_quick() -> None:
    script = "import sys; from scalify.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\nprint(*sorted(sys.modules), file=sys.stderr)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "examples:" in shown.stdout
    assert not {"numpy", "google.protobuf", "rich", "egglog", "pydantic", "yaml"} & set(shown.stderr.split())


@pytest.mark.parametrize("command", ["verify", "relate", "show"])
def test_each_command_has_examples(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"  scalify {command}" in capsys.readouterr().out


def test_a_reader_that_goes_away_is_no_failure() -> None:
    command = f"{sys.executable} -m scalify show {QUESTION[1]} --text | head -c 1"
    shown = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True, check=True)
    assert shown.stderr == ""
