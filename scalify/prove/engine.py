"""One e-graph for many obligations: rules are registered once, each obligation is loaded, saturated under counted limits and dropped again."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalify.errors import ConfigError, InternalError
from scalify.prove.compile import to_egglog
from scalify.prove.encode import rows
from scalify.prove.theory import CONTRADICTION, GOAL, UNDEFINED, commands

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scalify.prove.expression import Problem
    from scalify.prove.rule import Rule


SETTLING = ("index", "demand", "facts", "simplify")


class Status(Enum):
    """How a proof attempt ended."""

    PROVED = "proved"
    SATURATED = "saturated"  #: no rule has anything to add: not provable with these rules
    LIMIT = "limit"  #: a counted limit was reached first


@dataclass(frozen=True)
class Limits:
    """Counted limits of one proof attempt, so that runs agree. ``expression`` counts nodes of the obligation, ``rows`` those of the e-graph."""

    expression: int = 400
    rows: int = 6_000
    rounds: int = 12
    simplify: int = 40
    levels: int = 3


@dataclass(frozen=True)
class Outcome:
    """The end of a proof attempt.

    ``limit`` names the limit reached, or is ``undefined`` when a part of the obligation has no value for any input (1/0); ``rules`` and ``matches`` say which rules fired how often, ``assumptions`` what the proof leans on that the
    engine did not derive, ``user_rules`` which of the rules are a user's own.
    """

    status: Status
    limit: str = ""
    rules: tuple[str, ...] = ()
    matches: tuple[tuple[str, int], ...] = ()
    assumptions: tuple[str, ...] = ()
    user_rules: tuple[str, ...] = ()
    rounds: int = 0
    rows: int = 6_000

    @property
    def proved(self) -> bool:
        return self.status is Status.PROVED


class Engine:
    """Rules in an e-graph. Only for use by the thread that made it."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        from egglog import bindings  # noqa: PLC0415 - 0.3 s and 35 MB, only when there is something to prove

        self.rules = {rule.name: rule for rule in rules}
        self._folder = tempfile.mkdtemp(prefix="scalify-")
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._graph: Any = bindings.EGraph(fact_directory=self._folder)
        for command in commands():
            self._run(command)
        for rule in self.rules.values():
            rule.validate()
            for command in to_egglog(rule):
                self._add(rule, command)
        self._parsed: dict[str, Any] = {}

    def _add(self, rule: Rule, command: str) -> None:
        try:
            self._run(command)
        except InternalError as error:
            if rule.user:
                raise ConfigError(f"rule {rule.name} cannot be used: {error}") from error
            raise

    def _run(self, command: str) -> list[Any]:
        """One command; egglog's own panics are not Exceptions. The e-graph is unusable after an error."""
        try:
            return list(self._graph.run_program(*self._graph.parse_program(command)))
        except BaseException as error:
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                raise InternalError(f"egglog: {str(error)[:300]} in {command[:200]}") from error
            raise

    def prove(self, problem: Problem, limits: Limits) -> Outcome:
        """Saturate one obligation. The e-graph is as before afterwards."""
        self._run("(push)")
        try:
            self._load(problem)
            return _Attempt(self, limits).search()
        finally:
            self._run("(pop)")

    def _load(self, problem: Problem) -> None:
        for name, content in rows(problem).items():
            if content:
                path = Path(self._folder, f"{name}.tsv")
                path.write_text("".join(["\t".join(map(str, row)) + "\n" for row in content]))
                self._run(f'(input {name} "{path.name}")')

    def run(self, ruleset: str) -> tuple[bool, dict[str, int]]:
        """One iteration: whether anything changed, and how often each rule matched."""
        command = self._parsed.get(ruleset)
        if command is None:
            command = self._parsed[ruleset] = self._graph.parse_program(f"(run {ruleset} 1)")
        report = self._graph.run_program(*command)[0].report
        return report.updated, report.num_matches_per_rule

    def size(self) -> int:
        """Rows in the e-graph's tables."""
        (output,) = self._run("(print-size)")
        return sum(int(line.split()[-1].strip("()")) for line in str(output).splitlines() if line.strip("() \n"))


class _Attempt:
    """The schedule of one obligation."""

    def __init__(self, engine: Engine, limits: Limits) -> None:
        self.engine = engine
        self.limits = limits
        self.matches: dict[str, int] = {}
        self.reached = False
        self.undefined = False
        self.rows = 0
        self.round = 0

    def search(self) -> Outcome:
        """Load, then rounds of deriving facts, simplifying and expanding; rules that lean on assumptions come last."""
        while self._step("load"):
            pass
        growing: Sequence[str] = ("expand",)
        limit = ""
        while self.round < self.limits.rounds:
            self.round += 1
            full = self._settle()
            if self.reached:
                return self._end(Status.PROVED)
            if full in ("rows", UNDEFINED):
                return self._end(Status.LIMIT, full)
            limit = limit or full
            changed = [self._step(ruleset) for ruleset in growing]
            if not any(changed):
                if "assume" in growing:
                    return self._end(Status.LIMIT if limit else Status.SATURATED, limit)
                growing = ("expand", "assume")
                self._step("assume")
        self._settle()
        return self._end(Status.PROVED) if self.reached else self._end(Status.LIMIT, "rounds")

    def _settle(self) -> str:
        """Facts and simplifications until nothing changes; the name of the limit that was reached, or empty."""
        for _ in range(self.limits.simplify):
            changed = False
            for ruleset in SETTLING:
                changed = self._step(ruleset) or changed
                self.rows = self.engine.size()
                if self.undefined:
                    return UNDEFINED
                if self.rows > self.limits.rows and not self.reached:
                    return "rows"
            if self.reached or (not changed and not self._step("form")):
                return ""
        return "simplify"

    def _step(self, ruleset: str) -> bool:
        changed, matches = self.engine.run(ruleset)
        for name, count in matches.items():
            if count:
                self.matches[name] = self.matches.get(name, 0) + count
        self.undefined = self.undefined or any(name.startswith(UNDEFINED) for name in self.matches)
        self.reached = (self.reached or GOAL in self.matches) and not self.undefined
        return changed

    def _end(self, status: Status, limit: str = "") -> Outcome:
        used = sorted(name for name in self.matches if name in self.engine.rules)
        rules = [self.engine.rules[name] for name in used]
        if CONTRADICTION in self.matches:
            raise InternalError(f"two different constants became equal by the rules {', '.join(used)}")
        return Outcome(
            status,
            limit,
            tuple(used),
            tuple([(name, self.matches[name]) for name in used]),
            tuple([f"{rule.name}: {rule.requirement}" for rule in rules if rule.assumes]),
            tuple([rule.name for rule in rules if rule.user]),
            self.round,
            self.rows,
        )
