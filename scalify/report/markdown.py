"""The report in Markdown, as for a pull request or a job summary."""

from __future__ import annotations

import re

from scalify.report.model import Finding, Place, Report, Verdict
from scalify.report.text import counterexample, headline, location, ranges, stopped, times, visible, work

SHOWN_FINDINGS = 50


def render(report: Report) -> str:
    """The report as GitHub-flavoured Markdown; nothing from a graph is read as markup, link, mention or HTML."""
    blocks = [f"## Scalify: {report.verdict}", f"{headline(report)[:1].upper()}{headline(report)[1:]}."]
    if any(output.verdict is not Verdict.VERIFIED for output in report.outputs):
        blocks.append(_outputs(report))
    blocks.extend(_finding(finding) for finding in report.findings[:SHOWN_FINDINGS])
    if len(report.findings) > SHOWN_FINDINGS:
        blocks.append(f"{len(report.findings) - SHOWN_FINDINGS} more findings are in the JSON report.")
    if report.counterexample is not None:
        blocks.append("**Differs**\n\n" + "\n".join(f"- {escape(line)}" for line in counterexample(report)))
    if report.stopped is not None:
        blocks.append(f"**Stopped:** {escape(stopped(report))}")
    if report.assumptions:
        blocks.append("**Assuming**\n\n" + "\n".join(f"- {escape(line)}" for line in report.assumptions))
    blocks.append(f"<sub>{escape(work(report))}; scalify {escape(report.tool.version)}</sub>")
    return "\n\n".join(blocks) + "\n"


def escape(text: str) -> str:
    """``text`` with every character that Markdown or HTML could read as markup escaped, on one line, without mentions or references."""
    safe = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    safe = re.sub(r"([\\`*_{}\[\]()#+!|~$:-])", r"\\\1", safe)
    return safe.replace("@", "&#64;").replace("\\#", "&#35;").replace("://", ":&#47;/").replace("www.", "www&#46;")


def code(text: str) -> str:
    """``text`` as a code span, whatever backticks it holds. Not for tables, which cut at pipes first."""
    safe = visible(text)
    fence = "`" * (max((len(run) for run in re.findall(r"`+", safe)), default=0) + 1)
    pad = " " if safe[:1] in ("`", " ", "") or safe[-1:] in ("`", " ") else ""
    return f"{fence}{pad}{safe}{pad}{fence}"


def _outputs(report: Report) -> str:
    rows = []
    for verdict in Verdict:
        found = [output.index for output in report.outputs if output.verdict is verdict]
        if found:
            rows.append(f"| {verdict} | {len(found)} | {ranges(found)} |")
    return "\n".join(["| verdict | count | outputs |", "|---|---|---|", *rows])


def _finding(finding: Finding) -> str:
    where = location(finding.distributed) or finding.distributed.instruction
    repeats = f" ({times(finding.repeats)})" if finding.repeats > 1 else ""
    lines = [
        f"### {finding.severity}: {finding.kind} at {code(where)}{repeats}",
        "",
        escape(finding.message),
        "",
        f"- distributed: {_place(finding.distributed)}",
    ]
    if finding.baseline is not None:
        place = location(finding.baseline)
        lines.append(f"- baseline: {_place(finding.baseline)}" + (f" at {code(place)}" if place else ""))
    if finding.repair:
        lines.append(f"- repair: {escape(finding.repair)}")
    if finding.distributed.stack:
        lines += ["", _stack(finding.distributed)]
    return "\n".join(lines)


def _place(place: Place) -> str:
    path = f", {code(place.op_name)}" if place.op_name else ""
    return f"{code(place.instruction)} ({code(place.opcode)}{path})"


def _stack(place: Place) -> str:
    frames = [
        f"- {code(f'{frame.file}:{frame.line}')}" + (f" in {code(frame.function)}" if frame.function else "") for frame in place.stack
    ]
    return "\n".join(["<details><summary>stack</summary>", "", *frames, "", "</details>"])
