"""Words that all renderings share, and text from graphs made safe to show: a name must not steer the terminal or break a line."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, assert_never

from scalify.report.model import Difference, Place, Report, StopReason, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 2_000
"""Characters of one message, path or name that a rendering shows."""


def visible(text: str) -> str:
    """``text`` on one line: control, format, surrogate and unassigned characters as escapes, cut after :data:`LONGEST` characters.

    Format characters include the bidirectional overrides, which can show a path other than the one that is meant.
    """
    if text.isascii() and text.isprintable() and len(text) <= LONGEST:
        return text
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return "".join(_escape(c) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else c for c in cut)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def location(place: Place) -> str:
    """``file:line``, ``file``, or the empty text when the graph records neither."""
    if place.file is None:
        return ""
    return visible(f"{place.file}:{place.line}" if place.line else place.file)


def times(repeats: int) -> str:
    """``same in N places`` for a finding that stands for several, else the empty text."""
    return f"same in {repeats} places" if repeats > 1 else ""


def seconds(value: float) -> str:
    """A duration with three significant digits: ``12 ms``, ``3.41 s``."""
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.3g} s" if value < 1000 else f"{value:.0f} s"


def ranges(numbers: Sequence[int]) -> str:
    """Increasing numbers in short: ``0, 3-7, 9``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def headline(report: Report) -> str:
    """One sentence that states the verdict and how many outputs it holds for."""
    total = len(report.outputs)
    match report.verdict:
        case Verdict.VERIFIED:
            return (
                f"all {total} outputs of the distributed graph are proved equal to the baseline's"
                if total != 1
                else "the output is proved equal to the baseline's"
            )
        case Verdict.REFUTED:
            return f"the graphs differ: {_share(report, Verdict.REFUTED)} with concrete inputs that show it"
        case Verdict.UNVERIFIED:
            return f"no proof for {_share(report, Verdict.UNVERIFIED)}"
        case other:
            assert_never(other)


def _share(report: Report, verdict: Verdict) -> str:
    found = sum(output.verdict is verdict for output in report.outputs)
    return f"{found} of {len(report.outputs)} outputs" if len(report.outputs) != 1 else "the output"


def stopped(report: Report) -> str:
    """Why the search stopped, as a sentence, or the empty text."""
    if report.stopped is None:
        return ""
    limit, value = report.stopped.limit, report.stopped.value
    reached = (
        f"the limit {limit}={value} was reached; raise it with --limit" if value is not None else f"the fixed limit {limit} was reached"
    )
    reason = {
        StopReason.SATURATED: "all known rules were applied and the two sides stayed different",
        StopReason.LIMIT: reached,
        StopReason.UNSUPPORTED: "something has no known semantics",
    }[report.stopped.reason]
    return visible(f"{reason}: {report.stopped.detail}" if report.stopped.detail else reason)


def counterexample(report: Report) -> list[str]:
    """The concrete values that differ, a line for each output; and what the inputs may have that users know to be impossible."""
    found = report.counterexample
    if found is None:
        return []
    lines = [difference(d) for d in found.outputs]
    if found.sampling == "wide":
        lines.append("with integers that the relation does not bound: if they cannot occur, an `assume` entry with their range says so")
    return lines


def difference(found: Difference) -> str:
    """An element that differs, with both values."""
    place = f"output {found.output}[{', '.join(map(str, found.index))}] on device {found.device}"
    line = f"{place} is {_value(found.distributed)}, the baseline's {_value(found.baseline)}"
    return f"{line} (rounding moves it by {found.rounding:.1g} at most)" if found.rounding else line


def _value(bounds: tuple[float | None, float | None]) -> str:
    low, high = bounds
    if low is None or high is None:
        return f"above {low:.6g}" if low is not None else f"below {high:.6g}" if high is not None else "unbounded"
    return f"{(low + high) / 2:.7g}"


def work(report: Report) -> str:
    """What was done and what it took, on one line."""
    stats = report.stats
    counts = f"{stats.instructions} instructions, {stats.terms} terms, {stats.obligations} obligations"
    reused = f" ({stats.memo_hits} reused)" if stats.memo_hits else ""
    stages = ", ".join(f"{visible(name)} {seconds(value)}" for name, value in stats.seconds.items())
    timing = f"; {seconds(sum(stats.seconds.values()))} ({stages})" if stages else ""
    memory = f"; {stats.peak_rss_mib:.0f} MiB" if stats.peak_rss_mib else ""
    return counts + reused + timing + memory
