"""Findings that are one: the same mistake in every layer."""

from __future__ import annotations

from scalify.report.model import Finding


def grouped(rows: list[Finding]) -> list[Finding]:
    """Findings of one kind at one line of source (or, without source, of one opcode) are one finding with a count."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for row in rows:
        spot = row.distributed
        key = (row.kind, row.severity, spot.opcode, spot.file or spot.instruction, spot.line, row.message)
        groups.setdefault(key, []).append(row)
    return [_counted(group) for group in groups.values()]


def _counted(group: list[Finding]) -> Finding:
    first = group[0]
    return Finding(
        first.kind, first.severity, first.message, first.distributed, first.baseline, max(first.repeats, len(group)), first.repair
    )
