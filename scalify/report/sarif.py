"""The report in SARIF 2.1.0, for code scanning.

Source: OASIS Static Analysis Results Interchange Format 2.1.0, sections 3.27 (result), 3.29 (physicalLocation), 3.33 (logicalLocation),
3.44 (stack).
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from scalify.report.model import Finding, Kind, Place, Report, Severity
from scalify.report.text import headline, visible

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def render(report: Report) -> str:
    """The report as one SARIF log with one run; a finding without a source file is located by its instruction alone."""
    driver = {"name": report.tool.name, "semanticVersion": report.tool.version, "rules": [_rule(kind) for kind in Kind]}
    run = {
        "tool": {"driver": driver},
        "results": [_result(finding) for finding in report.findings],
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": report.verdict, "summary": headline(report)},
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=True) + "\n"


def _rule(kind: Kind) -> dict[str, Any]:
    return {"id": kind, "name": kind.title().replace("-", ""), "shortDescription": {"text": kind.meaning}}


def _result(finding: Finding) -> dict[str, Any]:
    text = visible(finding.message) + (f" Repair: {visible(finding.repair)}." if finding.repair else "")
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "ruleIndex": list(Kind).index(finding.kind),
        "level": LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(finding.distributed)],
        "occurrenceCount": finding.repeats,
        "partialFingerprints": {"scalify/v1": f"{finding.kind}:{finding.distributed.file or ''}:{finding.distributed.op_name}"},
    }
    if finding.baseline is not None:
        result["relatedLocations"] = [{"id": 0, "message": {"text": "baseline"}, **_location(finding.baseline)}]
    if finding.distributed.stack:
        result["stacks"] = [_stack(finding.distributed)]
    return result


def _location(place: Place) -> dict[str, Any]:
    logical = {"name": visible(place.instruction), "kind": "element"}
    if place.op_name:
        logical["fullyQualifiedName"] = visible(place.op_name)
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if place.file:
        location["physicalLocation"] = _physical(place.file, place.line)
    return location


def _physical(file: str, line: int | None) -> dict[str, Any]:
    path = PurePosixPath(file.replace("\\", "/"))
    uri = quote(str(path), safe="/")
    physical: dict[str, Any] = {"artifactLocation": {"uri": f"file://{uri}" if path.is_absolute() else uri}}
    if line:
        physical["region"] = {"startLine": line}
    return physical


def _stack(place: Place) -> dict[str, Any]:
    frames = []
    for frame in place.stack:
        logical = [{"name": visible(frame.function), "kind": "function"}] if frame.function else []
        location = {"physicalLocation": _physical(frame.file, frame.line), **({"logicalLocations": logical} if logical else {})}
        frames.append({"location": location})
    return {"message": {"text": "stack, innermost frame first"}, "frames": frames}
