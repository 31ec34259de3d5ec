"""The table of all that a proof may lean on, with the kind of proof of each: rules, laws of normal forms, transfer functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalify.prove.proof.axioms import AXIOMS
from scalify.prove.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scalify.prove.rule import Entry

#: what the kinds of proof mean
MEANING = {
    "z3": "proved by z3 for axes and lists of operands of any size, elements and functions uninterpreted",
    "exhaustive": "checked for all small sizes and attributes, with symbolic elements",
}


@dataclass(frozen=True)
class Row:
    """One line of the table; ``sort`` is ``rule``, ``law`` or ``transfer``. ``milliseconds`` is what the proof took, 0 when unknown."""

    sort: str
    name: str
    family: str
    statement: str
    requirement: str
    why: str
    kind: str
    milliseconds: int = 0
    user: bool = False


def row(entry: Entry) -> Row:
    """The line of a rule or a law."""
    record = entry.proof
    user = isinstance(entry, Rule) and entry.user
    sort = "rule" if isinstance(entry, Rule) else "law"
    kind, time = (record.kind, record.milliseconds) if record is not None else ("", 0)
    return Row(sort, entry.name, entry.family, entry.statement, entry.requirement, entry.why, kind, time, user)


def line(found: Row, width: int) -> str:
    """A line for the terminal."""
    condition = f"   if {found.requirement}" if found.requirement else ""
    time = f", {found.milliseconds} ms" if found.milliseconds else ""
    yours = ", yours" if found.user else ""
    return f"{found.name:{width}}  {found.family:11}  {found.statement}{condition}   [{found.kind or 'no proof'}{time}{yours}]"


HEAD = """\
# Rules

What a `verified` verdict may lean on: the rewrite rules of the search, the laws behind the normal forms of terms, and the transfer functions that read
HLO opcodes. Written by `scalify rules --markdown`; `scalify rules --check` proves everything again.

A rule without a proof cannot be registered. The rules of other packages and of your own files are proved when they are loaded, and a verdict that leans
on one says so. For every condition below there is an instance that is wrong without it; the checks fail when one is dropped.
"""
_TITLES = {"rule": "Rewrite rules", "law": "Laws of the normal forms", "transfer": "Transfer functions"}


def markdown(rows: Sequence[Row]) -> str:
    """The whole table as a page; without times, so that it only changes when a rule does."""
    parts = [HEAD, "| proof | means |\n|---|---|\n" + "".join([f"| {kind} | {text} |\n" for kind, text in MEANING.items()])]
    for sort, title in _TITLES.items():
        mine = [r for r in rows if r.sort == sort]
        if mine:
            parts.append(f"## {title}\n\n{_summary(mine)}\n\n{_table(mine)}")
    listed = "".join([f"| {_cell(a.name)} | {_cell(a.statement)} | {_cell(a.justification)} |\n" for a in AXIOMS])
    parts.append(f"## What the proofs believe\n\n| axiom | statement | because |\n|---|---|---|\n{listed}")
    return "\n".join(parts)


def _summary(rows: Sequence[Row]) -> str:
    counts = ", ".join([f"{sum(r.kind == kind for r in rows)} {kind}" for kind in MEANING if any(r.kind == kind for r in rows)])
    return f"{len(rows)}: {counts}."


def _table(rows: Iterable[Row]) -> str:
    found = ["| name | family | statement | if | because | proof |\n|---|---|---|---|---|---|\n"]
    found += [f"| {' | '.join(map(_cell, (r.name, r.family, r.statement, r.requirement, r.why, r.kind)))} |\n" for r in rows]
    return "".join(found)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;").replace("[", "\\[")
