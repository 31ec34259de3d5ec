"""The report: one versioned value that every rendering and every later tool reads.

``Report.to_json`` and ``Report.from_json`` are the contract with users' files and CI (schema 1). Fields may be added to the schema;
none may be renamed, removed or given another meaning. Readers ignore fields that they do not know.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from scalify import __version__
from scalify.errors import InputError
from scalify.hlo.module import Frame

SCHEMA = 1


class Verdict(StrEnum):
    """What is known about the pair of graphs, or about one output."""

    VERIFIED = "verified"
    """A proof was found."""
    REFUTED = "refuted"
    """Concrete inputs were found on which executing both graphs gives different outputs, beyond rounding."""
    UNVERIFIED = "unverified"
    """Neither; never a pass."""

    @property
    def exit_status(self) -> int:
        return {Verdict.VERIFIED: 0, Verdict.REFUTED: 1, Verdict.UNVERIFIED: 3}[self]


class Kind(StrEnum):
    """What is wrong at a place, and what that means. The list is closed: a tool may switch over it."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.meaning = meaning
        return kind

    MISSING_REDUCTION = (
        "missing-reduction",
        "A value that still has to be summed over devices is used as if it were whole (an all-reduce is missing).",
    )
    EXTRA_REDUCTION = (
        "extra-reduction",
        "A value that is whole on each device is summed over devices, which multiplies it by the size of the group.",
    )
    WRONG_GROUPS = (
        "wrong-groups",
        "A collective works within other groups of devices than the data needs (`replica_groups`, source-target pairs).",
    )
    WRONG_AXIS = "wrong-axis", "A collective, reduction or contraction works along another dimension or mesh axis than the baseline's."
    WRONG_LAYOUT = (
        "wrong-layout",
        "The elements are right and their order is not: a reshape, transpose or gather along devices mixes up dimensions.",
    )
    WRONG_SLICE = "wrong-slice", "Another part of the value is read or written than the baseline's: an offset, a bound or a shard index."
    WRONG_SCALE = "wrong-scale", "The value is the baseline's times a constant factor."
    WRONG_OPERAND = "wrong-operand", "An operand is another value than the baseline's, or operands are exchanged."
    WRONG_OPERATION = "wrong-operation", "Another operation than the baseline's: opcode, comparison direction, reducer."
    WRONG_CONSTANT = "wrong-constant", "A constant differs from the baseline's."
    PRECISION = "precision", "The distributed graph computes, stores or reduces in a narrower type than the baseline."
    OVERFLOW = (
        "overflow",
        "Equal over the reals, but the distributed graph can overflow, or divide zero by zero, where the baseline cannot.",
    )
    ALIAS = "alias", "Inputs and outputs share buffers in another way than in the baseline (`input_output_alias`)."
    UNSUPPORTED = (
        "unsupported",
        "An opcode, attribute or type whose meaning Scalify does not know; nothing is said about values that depend on it.",
    )
    UNRELATED = "unrelated", "The first value that could not be related to the baseline, with no more precise diagnosis."
    DEGENERATE = (
        "degenerate",
        "The graphs' own sizes hide a class of mistakes, for example a dimension of size 1 (a note on a verdict, not a defect).",
    )


class Severity(StrEnum):
    """``error``: the outputs are not proved because of it. ``warning``: proved, but worth a look. ``note``: for information."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class StopReason(StrEnum):
    """Why no proof was found."""

    SATURATED = "saturated"
    """Every known rule was applied; the two sides stayed different."""
    LIMIT = "limit"
    """A counted limit was reached; :attr:`Stopped.limit` names it, ``--limit NAME=N`` raises it."""
    UNSUPPORTED = "unsupported"
    """Something that Scalify has no semantics for stood in the way."""


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction and where it comes from.

    ``file`` and ``line`` (1-based) are the innermost frame in the user's own code, None when the graph does not say;
    ``stack`` is the whole stack, innermost frame first. ``op_name`` is the path that the framework recorded.
    """

    instruction: str
    opcode: str
    file: str | None = None
    line: int | None = None
    stack: tuple[Frame, ...] = ()
    op_name: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at. ``repeats`` counts the places that it stands for, this one included (the same mistake in every layer).

    ``repair`` says in words which change makes the graph verify, None when none was found.
    """

    kind: Kind
    severity: Severity
    message: str
    distributed: Place
    baseline: Place | None = None
    repeats: int = 1
    repair: str | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """The verdict on output ``index`` of the distributed module."""

    index: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why the search stopped. ``limit`` is the name of the limit, for :attr:`StopReason.LIMIT` only, and ``value`` its number; None where
    users cannot set it.
    """

    reason: StopReason
    detail: str = ""
    limit: str | None = None
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """An element of a distributed output that differs from what the relation makes of the baseline's.

    ``index`` is its place in the array of its ``device`` (a device id). Either value lies between two bounds (None: there is none), which allow
    for all rounding; integers have equal ones. ``rounding`` is how far rounding to the declared types moves the values of this output on
    these inputs, at most, in either graph.
    """

    output: int
    device: int
    index: tuple[int, ...]
    baseline: tuple[float | None, float | None]
    distributed: tuple[float | None, float | None]
    rounding: float = 0.0


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Inputs on which the graphs differ, chosen by ``seed`` and ``sampling`` (:mod:`scalify.refute.inputs`); the largest difference of each output
    that has one. ``scalify replay`` shows it again.
    """

    seed: int
    sampling: str
    outputs: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of the work done. ``seconds`` is wall time for each stage in the order of running, ``peak_rss_mib`` of this process."""

    instructions: int = 0
    terms: int = 0
    obligations: int = 0
    memo_hits: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_rss_mib: float = 0.0


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files that were compared, as the user named them."""

    baseline: str = ""
    distributed: tuple[str, ...] = ()
    relation: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """What produced the report."""

    name: str = "scalify"
    version: str = __version__


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one verification.

    ``assumptions`` says in words on what the verdict rests: value ranges, what was inferred instead of read, that numbers are reals.
    ``counterexample`` is None unless the verdict is refuted. ``stopped`` is None unless it is unverified.
    """

    verdict: Verdict
    outputs: tuple[Output, ...] = ()
    findings: tuple[Finding, ...] = ()
    counterexample: Counterexample | None = None
    assumptions: tuple[str, ...] = ()
    stats: Stats = field(default_factory=Stats)
    stopped: Stopped | None = None
    inputs: Inputs = field(default_factory=Inputs)
    tool: Tool = field(default_factory=Tool)
    schema: int = SCHEMA

    def to_json(self) -> str:
        """The report as one JSON object, indented, with a final newline; the same report always gives the same text."""
        data = dataclasses.asdict(self)
        ordered = {"schema": data.pop("schema"), **data}
        return json.dumps(ordered, indent=2, ensure_ascii=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """The report that ``to_json`` wrote.

        Raises:
            InputError: not JSON, not a report, or of a schema that this version does not know.
        """
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  a slow import that only readers of reports need

        try:
            report = TypeAdapter(cls).validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InputError(f"not a report of scalify: {first['msg']}", ".".join(map(str, first["loc"])) or None) from None
        if report.schema != SCHEMA:
            raise InputError(f"report schema {report.schema} is not known to this version, which reads schema {SCHEMA}")
        return report
