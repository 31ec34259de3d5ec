from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalify.errors import InputError
from scalify.hlo.module import Frame
from scalify.report.model import Finding, Kind, Place, Report, Severity, Verdict
from tests.support.reports import HOSTILE, unverified, verified

frames = st.builds(Frame, st.text(), st.integers(0, 10**6), st.text())
places = st.builds(
    Place, st.text(), st.text(), st.none() | st.text(), st.none() | st.integers(1, 10**6), st.lists(frames, max_size=3).map(tuple)
)
findings = st.builds(Finding, st.sampled_from(Kind), st.sampled_from(Severity), st.text(), places, st.none() | places, st.integers(1, 200))


@pytest.mark.parametrize("report", [verified(), unverified(), unverified(HOSTILE)])
def test_reading_gives_what_was_written(report: Report) -> None:
    assert Report.from_json(report.to_json()) == report


@given(st.lists(findings, max_size=3))
def test_any_finding_survives(found: list[Finding]) -> None:
    report = dataclasses.replace(verified(), findings=tuple(found))
    assert Report.from_json(report.to_json()) == report


def test_contract_of_schema_1() -> None:
    data = json.loads(unverified().to_json())
    assert data["schema"] == 1
    assert {"verdict", "outputs", "findings", "counterexample", "assumptions", "stats", "stopped", "tool"} <= data.keys()
    assert data["outputs"][0] == {"index": 0, "verdict": "unverified"}
    finding = data["findings"][0]
    assert {"kind", "severity", "message", "distributed", "baseline", "repeats", "repair"} <= finding.keys()
    assert {"instruction", "opcode", "file", "line", "stack"} <= finding["distributed"].keys()
    assert {"instructions", "terms", "obligations", "memo_hits", "seconds", "peak_rss_mib"} <= data["stats"].keys()


def test_fields_of_a_later_version_are_ignored() -> None:
    data = json.loads(verified().to_json())
    data["later"] = {"more": 1}
    data["stats"]["later"] = 2
    assert Report.from_json(json.dumps(data)) == verified()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a report"),
        ("[]", "not a report"),
        ('{"verdict": "proved"}', "verdict: not a report"),
        ('{"verdict": "verified", "schema": 2}', "schema 2"),
        ('{"verdict": "verified", "outputs": ' + "[" * 10_000, "not a report"),
    ],
)
def test_other_text_is_an_input_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Report.from_json(text)


def test_exit_statuses() -> None:
    assert {verdict: verdict.exit_status for verdict in Verdict} == {Verdict.VERIFIED: 0, Verdict.REFUTED: 1, Verdict.UNVERIFIED: 3}


def test_each_kind_says_what_it_means() -> None:
    assert len({kind.meaning for kind in Kind}) == len(Kind)
    assert Kind("missing-reduction") is Kind.MISSING_REDUCTION
