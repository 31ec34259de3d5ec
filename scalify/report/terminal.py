"""The report for a terminal."""

from __future__ import annotations

import io

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scalify.report.model import Finding, Place, Report, Severity, Verdict
from scalify.report.text import counterexample, headline, location, ranges, stopped, times, visible, work

STYLES = {
    Verdict.VERIFIED: "bold green",
    Verdict.REFUTED: "bold red",
    Verdict.UNVERIFIED: "bold yellow",
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.NOTE: "bold cyan",
}
SHOWN_FINDINGS = 20
SHOWN_FRAMES = 6


def render(report: Report, *, width: int = 100, color: bool = False, verbose: bool = False) -> str:
    """The report as text of ``width`` columns, with ANSI colours if ``color``. ``verbose`` shows each finding, whole stacks and the work done."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in _parts(report, verbose=verbose):
        console.print(part, soft_wrap=isinstance(part, Text))
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def _parts(report: Report, *, verbose: bool) -> list[RenderableType]:
    shown = report.findings if verbose else report.findings[:SHOWN_FINDINGS]
    parts: list[RenderableType] = [Text.assemble((report.verdict.upper(), STYLES[report.verdict]), f"  {headline(report)}")]
    if any(output.verdict is not Verdict.VERIFIED for output in report.outputs):
        parts.append(_outputs(report))
    parts.extend(_finding(finding, verbose=verbose) for finding in shown)
    if len(shown) < len(report.findings):
        parts.append(Text(f"{len(report.findings) - len(shown)} more findings: --verbose shows them, --json writes them"))
    parts.extend(Text.assemble(("differs  ", "bold"), line) for line in counterexample(report)[:SHOWN_FINDINGS])
    if report.stopped is not None:
        parts.append(Text.assemble(("stopped  ", "bold"), stopped(report)))
    if report.assumptions:
        parts.append(_assumptions(report))
    parts.append(Text(work(report), style="dim"))
    return parts


def _outputs(report: Report) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for title in ("verdict", "count", "outputs"):
        table.add_column(title, justify="right" if title == "count" else "left", header_style="dim")
    for verdict in Verdict:
        found = [output.index for output in report.outputs if output.verdict is verdict]
        if found:
            table.add_row(Text(verdict, style=STYLES[verdict]), str(len(found)), ranges(found))
    return Padding(table, (1, 0, 0, 2))


def _finding(finding: Finding, *, verbose: bool) -> RenderableType:
    where = location(finding.distributed) or f"instruction {visible(finding.distributed.instruction)}"
    head = Text.assemble((finding.severity, STYLES[finding.severity]), "  ", (finding.kind, "bold"), "  ", (where, "underline"))
    if finding.repeats > 1:
        head.append(f"  ({times(finding.repeats)})")
    details = Table.grid(padding=(0, 2, 0, 0))
    details.add_column(style="dim", no_wrap=True)
    details.add_column(overflow="fold")
    for name, value in _details(finding, verbose=verbose):
        details.add_row(name, Text(value))
    return Group(Text(), head, Padding(Text(visible(finding.message)), (0, 0, 0, 4)), Padding(details, (0, 0, 0, 4)))


def _details(finding: Finding, *, verbose: bool) -> list[tuple[str, str]]:
    rows = [("distributed", _describe(finding.distributed))]
    if finding.baseline is not None:
        place = location(finding.baseline)
        rows.append(("baseline", _describe(finding.baseline) + (f" at {place}" if place else "")))
    if finding.repair:
        rows.append(("repair", visible(finding.repair)))
    frames = finding.distributed.stack if verbose else finding.distributed.stack[:SHOWN_FRAMES]
    rows.extend(
        ("stack" if n == 0 else "", visible(f"{f.file}:{f.line}" + (f" in {f.function}" if f.function else "")))
        for n, f in enumerate(frames)
    )
    if len(frames) < len(finding.distributed.stack):
        rows.append(("", f"{len(finding.distributed.stack) - len(frames)} more frames"))
    return rows


def _describe(place: Place) -> str:
    path = f", {place.op_name}" if place.op_name else ""
    return visible(f"{place.instruction} ({place.opcode}{path})")


def _assumptions(report: Report) -> RenderableType:
    lines = [Text.assemble("  - ", visible(line)) for line in report.assumptions]
    return Group(Text(), Text("assuming", style="bold"), *lines)
