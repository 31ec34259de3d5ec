"""The report as one HTML file that needs nothing else: no script, no font, no link to another host."""

from __future__ import annotations

from html import escape

from scalify.report.model import Finding, Place, Report, Verdict
from scalify.report.text import counterexample, headline, location, ranges, stopped, times, visible, work

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h1 small{font-weight:400;font-size:1rem}
.verified{color:#1a7f37}.refuted,.error{color:#b3261e}.unverified,.warning{color:#8a5a00}.note{color:#0b5f7a}
article{border-left:4px solid currentColor;padding:.2rem 1rem;margin:1.2rem 0}article>*{color:#1a1a1a}article>h2{font-size:1.05rem;color:inherit;margin:.2rem 0}
code{font:0.9em ui-monospace,monospace;overflow-wrap:anywhere}td,th{text-align:left;padding:.1rem 1.2rem .1rem 0;vertical-align:top}footer{color:#555;font-size:.875rem;margin-top:2rem}
@media(prefers-color-scheme:dark){body,article>*{color:#e6e6e6}body{background:#161616}.verified{color:#5bd47f}.refuted,.error{color:#ff8a80}.unverified,.warning{color:#f0c060}.note{color:#70c8e8}footer{color:#aaa}}
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render(report: Report) -> str:
    """The report as a complete HTML document. All text from graphs is escaped, and the page's own policy forbids scripts and requests."""
    body = [
        f'<h1><span class="{report.verdict}">{report.verdict}</span> <small>{_text(headline(report))}</small></h1>',
        _files(report),
        _outputs(report),
        *map(_finding, report.findings),
        *[f"<p><strong>Differs:</strong> {_text(line)}</p>" for line in counterexample(report)],
        f"<p><strong>Stopped:</strong> {_text(stopped(report))}</p>" if report.stopped else "",
        _assumptions(report),
        f"<footer>{_text(work(report))}; scalify {_text(report.tool.version)}</footer>",
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>Scalify: {report.verdict}</title><style>{STYLE}</style>'
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n' + "\n".join(filter(None, body)) + "\n</body>\n</html>\n"


def _text(text: str) -> str:
    return escape(visible(text))


def _rows(rows: list[tuple[str, str]]) -> str:
    return "<table>" + "".join(f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in rows) + "</table>"


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def _files(report: Report) -> str:
    inputs = report.inputs
    rows = [("baseline", _code(inputs.baseline))] if inputs.baseline else []
    rows += [("distributed", _code(name)) for name in inputs.distributed]
    rows += [("relation", _code(inputs.relation))] if inputs.relation else []
    return _rows(rows) if rows else ""


def _outputs(report: Report) -> str:
    if all(output.verdict is Verdict.VERIFIED for output in report.outputs):
        return ""
    by_verdict = {v: [o.index for o in report.outputs if o.verdict is v] for v in Verdict}
    cells = [
        f'<tr><th scope="row" class="{v}">{v}</th><td>{len(found)}</td><td>{ranges(found)}</td></tr>'
        for v, found in by_verdict.items()
        if found
    ]
    return "<table><tr><th>verdict</th><th>count</th><th>outputs</th></tr>" + "".join(cells) + "</table>"


def _finding(finding: Finding) -> str:
    where = location(finding.distributed) or finding.distributed.instruction
    repeats = f" ({times(finding.repeats)})" if finding.repeats > 1 else ""
    rows = [("distributed", _place(finding.distributed))]
    if finding.baseline is not None:
        place = location(finding.baseline)
        rows.append(("baseline", _place(finding.baseline) + (f" at {_code(place)}" if place else "")))
    if finding.repair:
        rows.append(("repair", _text(finding.repair)))
    return (
        f'<article class="{finding.severity}"><h2>{finding.severity}: {finding.kind} at {_code(where)}{repeats}</h2>'
        f"<p>{_text(finding.message)}</p>{_rows(rows)}{_stack(finding.distributed)}</article>"
    )


def _place(place: Place) -> str:
    path = f", {_code(place.op_name)}" if place.op_name else ""
    return f"{_code(place.instruction)} ({_code(place.opcode)}{path})"


def _stack(place: Place) -> str:
    if not place.stack:
        return ""
    frames = "".join(f"<li>{_code(f'{f.file}:{f.line}')}{' in ' + _code(f.function) if f.function else ''}</li>" for f in place.stack)
    return f"<details><summary>stack</summary><ol>{frames}</ol></details>"


def _assumptions(report: Report) -> str:
    if not report.assumptions:
        return ""
    return "<h2>Assuming</h2><ul>" + "".join(f"<li>{_text(line)}</li>" for line in report.assumptions) + "</ul>"
