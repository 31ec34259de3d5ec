"""Sweeping: the distributed program is lifted once more, and every new value that an obligation proves equal to a baseline value becomes that value.

Without it a single difference that only saturation can bridge (a fused kernel in the first layer) would make everything behind it new. Candidates are the
baseline's values over the same axes that share terms with the new value; equal obligations, as in repeated layers, are settled once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.hlo.dtypes import DTYPES
from scalify.lift.einsum import total
from scalify.lift.instance import OPERANDS
from scalify.lift.layout import Layout, Value
from scalify.lift.pair import Pair, relift
from scalify.lift.terms import FRESH, Term, View
from scalify.prove.engine import Limits
from scalify.prove.obligation import Prover

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation
    from scalify.prove.rule import Rule

DEPTH = 6  #: levels of terms between a shared term and the values above it
CLIMB = 200  #: terms looked at on the way up
CANDIDATES = 3
COMMON = 24  #: a term with more users than this says nothing of where it is used


EACH = Limits(expression=200, rows=2_000, rounds=8, levels=0)
"""What one obligation of a sweep may cost; there may be many."""


def sweeper(rules: Iterable[Rule]) -> Prover:
    """A prover for the obligations of a sweep."""
    return Prover(rules, EACH)


class Sweep:
    """One sweep over a pair. ``limit`` bounds the obligations that are not in the prover's memo; ``merged`` counts values proved equal."""

    def __init__(self, pair: Pair, prover: Prover, limit: int) -> None:
        self.pair = pair
        self.prover = prover
        self.limit = limit
        self.merged = 0
        self.assumed: set[str] = set()
        self.fired: set[str] = set()
        self.user_rules: set[str] = set()
        self.known = pair.distributed.known_terms
        self._users = _users(pair.store.terms[: self.known])
        self._values = _values(pair.baseline, pair.own)

    def run(self) -> Pair:
        """The pair with the distributed program lifted again."""
        return relift(self.pair, self._settle)

    def _settle(self, lifter: Lifter, operation: Operation) -> None:
        for result in operation.results:
            value = lifter.values[result]
            if len(self.prover.memo) >= self.limit or not self._eligible(lifter, result, value):
                continue
            for expected in self._candidates(value):
                outcome = self.prover.prove(expected, value.views[0])
                if outcome.proved:
                    self.merged += 1
                    self.assumed.update(outcome.assumptions)
                    self.fired.update(outcome.rules)
                    self.user_rules.update(outcome.user_rules)
                    lifter.values[result] = Value(value.layout, (expected,))
                    break

    def _eligible(self, lifter: Lifter, result: int, value: Value) -> bool:
        """New floating-point values in one block, partial sums excepted."""
        dtype = DTYPES.get(lifter.dtype(result))
        if dtype is None or not dtype.is_float or not value.layout.plain or lifter.is_known(value.views[0]):
            return False
        view = value.views[0]
        block = value.layout.blocks[0]
        devices = {s: block.sizes[s] for s in value.layout.slots(0, block) if s in view.at}
        return not devices or total(self.pair.store, view, devices).term.id >= self.known

    def _candidates(self, value: Value) -> Iterator[View]:
        """Baseline values over the same axes that share terms with the new one, in the slots of the new one; the nearest first."""
        wanted = _axes(value.layout, value.views[0])
        found = 0
        leaves = _frontier(value.views[0].term, self.known)
        for term in self._above(leaves):
            if term in self._values and not _made_of(term, leaves):
                continue
            for layout, view in self._values.get(term, ()):
                if _axes(layout, view) != wanted:
                    continue
                placed = _placed(layout, view, value.layout)
                if placed is not None:
                    yield placed
                    found += 1
                    if found >= CANDIDATES:
                        return
                break

    def _above(self, leaves: list[Term]) -> Iterator[Term]:
        """Baseline terms above shared terms, by levels."""
        level = leaves
        seen = set(level)
        for _ in range(DEPTH):
            level = [u for t in level if len(self._users.get(t, ())) <= COMMON for u in self._users.get(t, ()) if u not in seen]
            for user in level:
                if user not in seen:
                    seen.add(user)
                    yield user
            if len(seen) > CLIMB:
                return


def _users(terms: list[Term]) -> dict[Term, list[Term]]:
    found: dict[Term, list[Term]] = {}
    for term in terms:
        for operand, _ in OPERANDS[term.kind](term):
            users = found.setdefault(operand, [])
            if len(users) <= COMMON and (not users or users[-1] is not term):
                users.append(term)
    return found


def _values(lifter: Lifter, count: int) -> dict[Term, list[tuple[Layout, View]]]:
    """The one-block values of the baseline's own operations, by term; a few for each coefficient."""
    found: dict[Term, list[tuple[Layout, View]]] = {}
    for operation in lifter.program.operations[:count]:
        for result in operation.results:
            value = lifter.values[result]
            if value.layout.plain:
                same = found.setdefault(value.views[0].term, [])
                if len(same) < COMMON and all(v.coef != value.views[0].coef for _, v in same):
                    same.append((value.layout, value.views[0]))
    return found


def _frontier(term: Term, known: int) -> list[Term]:
    """The first terms of the baseline below a new term."""
    found: dict[Term, None] = {}
    pending, seen = [term], {term}
    while pending and len(seen) < CLIMB:
        top = pending.pop()
        for operand, _ in OPERANDS[top.kind](top):
            if operand in seen:
                continue
            seen.add(operand)
            if operand.id < known:
                found[operand] = None
            else:
                pending.append(operand)
    return list(found)


def _made_of(term: Term, leaves: list[Term]) -> bool:
    """Whether the term is an expression over the leaves and constants alone, as far as a small walk tells."""
    stop = set(leaves)
    pending, seen = [term], {term}
    while pending:
        top = pending.pop()
        operands = OPERANDS[top.kind](top)
        if (not operands and top.kind == "at") or len(seen) > CLIMB:
            return False
        for operand, _ in operands:
            if operand not in stop and operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return True


def _slots_by_axis(layout: Layout) -> dict[int, tuple[int, ...]] | None:
    """The slots of each factor by the identity of its axis; None when an axis occurs twice."""
    block = layout.blocks[0]
    found: dict[int, tuple[int, ...]] = {}
    for key, slots in zip(layout.flat_key, block.slots, strict=True):
        if key in found:
            return None
        found[key] = slots
    return found


def _axes(layout: Layout, view: View) -> frozenset[int]:
    """The identities of the axes that a view varies over."""
    used = {s for s in view.at if s < FRESH}
    return frozenset([key for key, slots in zip(layout.flat_key, layout.blocks[0].slots, strict=True) if used & set(slots)])


def _placed(layout: Layout, view: View, target: Layout) -> View | None:
    """The view with its slots replaced by those of the same axes in another layout."""
    here, there = _slots_by_axis(layout), _slots_by_axis(target)
    if here is None or there is None:
        return None
    names: dict[int, int] = {}
    for key, slots in here.items():
        if key in there:
            names.update(zip(slots, there[key], strict=True))
    if any(s not in names for s in view.at):
        return None
    return View(view.coef, view.term, tuple([names[s] for s in view.at]))
