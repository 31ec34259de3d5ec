"""The findings of a report: what is wrong, grouped over repeats; what may overflow; what is narrower."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.localise.grouping import grouped
from scalify.localise.precision import narrowed
from scalify.localise.source import place
from scalify.report.model import Finding, Kind, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scalify.lift.pair import Pair
    from scalify.lift.program import Operation


def find(pair: Pair, open_values: Sequence[int], source_root: Path | None = None, risky: Sequence[Operation] = ()) -> tuple[Finding, ...]:
    """All findings, errors first. ``open_values`` are the distributed values of the claims that were not proved, ``risky`` the operations that may
    overflow where the baseline does not.
    """
    errors: list[Finding] = []
    if open_values:
        from scalify.localise.faults import faults  # noqa: PLC0415 - most pairs have none

        errors = faults(pair, open_values, source_root)
    return (*errors, *_overflows(risky, source_root), *_precision(pair, source_root))


def _overflows(risky: Sequence[Operation], source_root: Path | None) -> list[Finding]:
    text = "`{}` can overflow: the baseline subtracts a maximum first, which makes no difference over the reals only"
    return grouped([Finding(Kind.OVERFLOW, Severity.ERROR, text.format(o.opcode), place(o.instruction, source_root)) for o in risky])


def _precision(pair: Pair, source_root: Path | None) -> list[Finding]:
    rows = []
    for operation, dtype, wider in narrowed(pair.baseline, pair.distributed, pair.own):
        message = f"`{operation.opcode}` is in {dtype}, the baseline has this value in {wider}"
        rows.append(Finding(Kind.PRECISION, Severity.WARNING, message, place(operation.instruction, source_root)))
    return grouped(rows)
