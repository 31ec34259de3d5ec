"""``scalify replay``: what a report says can be seen again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scalify.cli import main
from scalify.hlo.printer import to_text
from scalify.report.model import Report, Verdict
from tests.refute.test_search import ROWS, TP, row_parallel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A right and a wrong distributed graph beside their baseline, and the report on the wrong one."""
    for name, module in [("baseline", row_parallel(1)), ("right", row_parallel(TP)), ("wrong", row_parallel(TP, scale=2.0))]:
        (tmp_path / f"{name}.hlo").write_text(to_text(module))
    (tmp_path / "relation.yaml").write_text(ROWS)
    files = [str(tmp_path / n) for n in ("baseline.hlo", "wrong.hlo")]
    relation, report = str(tmp_path / "relation.yaml"), str(tmp_path / "report.json")
    assert main(["verify", *files, "--relation", relation, "--json", report, "--quiet"]) == 1
    return tmp_path


def test_the_difference_is_shown_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report.from_json((folder / "report.json").read_bytes())
    assert report.verdict is Verdict.REFUTED
    assert report.counterexample is not None
    (found,) = report.counterexample.outputs
    assert main(["replay", str(folder / "report.json")]) == 1
    line = capsys.readouterr().out
    assert f"output 0[{found.index[0]}, {found.index[1]}] on device {found.device} is " in line


def test_a_mended_graph_no_longer_differs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(folder / "report.json"), "--distributed", str(folder / "right.hlo")]) == 3
    assert "do not differ" in capsys.readouterr().out


def test_the_inputs_can_be_had(folder: Path) -> None:
    assert main(["replay", str(folder / "report.json"), "--save", str(folder / "inputs")]) == 1
    x = np.load(folder / "inputs" / "baseline_parameter_0.npy", allow_pickle=False)
    parts = np.load(folder / "inputs" / "distributed_parameter_0.npy", allow_pickle=False)
    assert (np.concatenate([parts[0], parts[1]], axis=1) == x[0]).all()


def test_what_cannot_be_replayed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads((folder / "report.json").read_text())
    (folder / "verified.json").write_text(json.dumps(data | {"verdict": "verified", "counterexample": None}))
    (folder / "lost.json").write_text(json.dumps(data | {"inputs": data["inputs"] | {"baseline": "nowhere.hlo"}}))
    (folder / "broken.json").write_text("{")
    (folder / "sampling.json").write_text(json.dumps(data | {"counterexample": data["counterexample"] | {"sampling": "other"}}))
    for name, message in [
        ("verified", "no counterexample"),
        ("lost", "nowhere.hlo"),
        ("broken", "not a report"),
        ("absent", "absent.json"),
        ("sampling", "sampling"),
    ]:
        assert main(["replay", str(folder / f"{name}.json")]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert len(error.splitlines()) == 1
