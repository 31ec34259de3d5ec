"""One obligation: two views that should be equal although their terms differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.lift.terms import LimitReached
from scalify.prove.engine import Engine, Limits, Outcome, Status
from scalify.prove.expression import Problem, problem

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from scalify.lift.terms import Store, View
    from scalify.prove.rule import Rule


class Prover:
    """Rules and the memo of what was tried with them; one for a run, used by one thread.

    ``assume``: whether rules whose conditions are assumed instead of derived take part. The outcome lists what was assumed.
    """

    def __init__(self, rules: Iterable[Rule], limits: Limits | None = None, *, assume: bool = False) -> None:
        self.rules = tuple([rule for rule in rules if assume or not rule.assumes])
        self.limits = limits or Limits()
        self.memo: dict[Hashable, Outcome] = {}
        self.hits = 0
        self._engine: Engine | None = None

    def prove(self, expected: View, actual: View) -> Outcome:
        """Whether the views are equal wherever their slots point, as far as the rules tell.

        Cuts at shared terms as high as possible first, then deeper, up to ``limits.levels`` shared terms below.
        """
        if expected == actual:
            return Outcome(Status.PROVED)
        outcome = Outcome(Status.SATURATED)
        before: Hashable = None
        for level in range(self.limits.levels + 1):
            try:
                found = problem(expected, actual, level, self.limits.expression)
            except LimitReached as reached:
                return outcome if level else Outcome(Status.LIMIT, reached.name)
            key = found.key()
            if key == before:
                break
            before = key
            outcome = self._settle(key, found)
            if outcome.proved:
                break
        return outcome

    def _settle(self, key: Hashable, found: Problem) -> Outcome:
        known = self.memo.get(key)
        if known is not None:
            self.hits += 1
            return known
        if self._engine is None:
            self._engine = Engine(self.rules)
        outcome = self.memo[key] = self._engine.prove(found, self.limits)
        return outcome


def prove(store: Store, expected: View, actual: View, rules: Iterable[Rule], limits: Limits | None = None) -> Outcome:
    """:class:`Prover` for a single obligation; the laws that a proof assumes are noted in ``store.used``."""
    outcome = Prover(rules, limits).prove(expected, actual)
    if outcome.proved:
        store.used.update(outcome.assumptions)
    return outcome
