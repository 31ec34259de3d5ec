"""Every folder of tests/cases is a question with its expected answer; the command line must give it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalify.cli import main
from scalify.report.model import Report, Severity, Verdict

CASES = sorted(path.parent for path in Path(__file__).parent.glob("cases/*/case.yaml"))
ALLOWED = {
    "verified": {Verdict.VERIFIED},
    "not-verified": {Verdict.REFUTED, Verdict.UNVERIFIED},
    "not-refuted": {Verdict.VERIFIED, Verdict.UNVERIFIED},
}


def graphs(folder: Path) -> list[str]:
    """The baseline, then the distributed modules in the order of devices."""
    distributed = sorted(folder.glob("distributed*.hlo.pb*"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)])
    return [str(path) for path in (*folder.glob("baseline.hlo.pb*"), *distributed)]


def test_there_are_cases() -> None:
    assert len(CASES) >= 20


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_case(folder: Path, tmp_path: Path) -> None:
    case = yaml.safe_load((folder / "case.yaml").read_text())
    written = tmp_path / "report.json"
    status = main(["verify", *graphs(folder), "--relation", str(folder / "relation.yaml"), "--json", str(written), "--quiet"])
    report = Report.from_json(written.read_bytes())
    assert report.verdict in ALLOWED[case["expect"]], report
    assert status == report.verdict.exit_status
    if report.verdict is not Verdict.VERIFIED:
        check_findings(report, case)


def check_findings(report: Report, case: dict[str, Any]) -> None:
    """A verdict that is not a pass names at least one place, at the expected line where the case knows it."""
    defects = [finding for finding in report.findings if finding.severity is not Severity.NOTE]
    assert defects
    if "finding" in case:
        place = defects[0].distributed
        assert (place.file or "").endswith(case["finding"]["file"])
        assert place.line == case["finding"]["line"]
