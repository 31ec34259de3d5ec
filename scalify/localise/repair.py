"""What a distributed graph would need to verify: values replaced by repaired ones, and what follows from them lifted again.

A value of a correct graph that the baseline does not have (a partial result, another order of summation) cannot be replaced by anything without
breaking what follows. So the first operation that can be repaired is the one to blame, and the repair says what it does wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scalify.lift.einsum import total
from scalify.lift.layout import Layout, Value
from scalify.lift.linear import scale
from scalify.lift.pair import claimed
from scalify.lift.terms import FRESH, LimitReached, View, quotient
from scalify.localise.known import COLLECTIVES, Known, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from scalify.lift.lifter import Lifter
    from scalify.lift.pair import Claim, Pair
    from scalify.lift.program import Operation
    from scalify.lift.terms import Number, Term

BUDGET = 12_000  #: blocks of values lifted again, all attempts together
COUNTERPARTS = 4


@dataclass(frozen=True)
class Repair:
    """``change`` is ``sum``, ``group``, ``scale``, ``skip``, ``order``, ``baseline`` or ``operand``: summed over mesh axes, a reduction done as a sum over other mesh axes,
    multiplied by ``factor``, left out, or replaced by the value of the baseline's ``counterpart``. ``value`` is what is replaced; ``proved`` counts the failing claims that verify with it.
    """

    operation: Operation
    change: str
    value: int
    axes: tuple[str, ...] = ()
    factor: Number = 1
    counterpart: Operation | None = None
    proved: int = 0

    @property
    def text(self) -> str:
        if self.change == "sum":
            return f"verifies if an all-reduce over {' and '.join(self.axes)} comes before it"
        if self.change == "group":
            return f"verifies if it adds over {' and '.join(self.axes)}"
        if self.change == "scale":
            return f"verifies if the result is multiplied by {self.factor}"
        if self.change == "skip":
            return f"verifies without this `{self.operation.opcode}`"
        if self.change == "order":
            return "verifies with an operand in the baseline's order"
        if self.change == "operand":
            name = f" of the baseline's `{self.counterpart.instruction.name}`" if self.counterpart else ""
            return f"verifies with the value{name} as an operand"
        assert self.counterpart is not None
        return f"verifies if this gives what the baseline's `{self.counterpart.instruction.name}` gives"


class Repairs:
    """The attempts on one pair. ``claims`` are those that were not proved."""

    def __init__(self, pair: Pair, known: Known, claims: Sequence[Claim], budget: int = BUDGET) -> None:
        self.pair = pair
        self.known = known
        self.claims = claims
        self.left = budget
        self.lifter = pair.distributed
        self._uses = _uses(pair)
        self._makers = {r: o for o in pair.baseline.program.operations for r in o.results}

    def first(self, suspects: Sequence[Operation], others: Sequence[Operation]) -> Repair | None:
        """The first repair of a suspect with which all claims verify, else the one with which most do; failing that one of another operation.

        Other operations are not given baseline values: just before an output that always helps.
        """
        best = self._best((o, self._proposals(o)) for o in suspects)
        if best is not None and best.proved == len(self.claims):
            return best
        other = self._best((o, self._own(o)) for o in others)
        return other if other is not None and (best is None or other.proved > best.proved) else best

    def _best(self, operations: Iterable[tuple[Operation, Iterator[tuple[Repair, Value]]]]) -> Repair | None:
        best: Repair | None = None
        for operation, proposals in operations:
            for repair, value in proposals:
                if self.left <= 0:
                    return best
                proved = self._proved(repair.value, value)
                if proved > (best.proved if best else 0):
                    best = replace(repair, operation=operation, proved=proved)
                if proved == len(self.claims):
                    return best
        return best

    # -- proposals -------------------------------------------------------------------------------------------------------------
    def _proposals(self, operation: Operation) -> Iterator[tuple[Repair, Value]]:
        if len(operation.results) == 1:
            yield from self._own(operation)
            yield from self._counterparts(operation)
            yield from self._operands(operation)

    def _own(self, operation: Operation) -> Iterator[tuple[Repair, Value]]:
        """Changes of what the distributed graph has itself."""
        if len(operation.results) == 1:
            yield from self._sums(operation)
            yield from self._groups(operation)
            yield from self._scales(operation)
            yield from self._skips(operation)
            yield from self._orders(operation)

    def _sums(self, operation: Operation) -> Iterator[tuple[Repair, Value]]:
        """Operands, or the result, that are partial: their sums."""
        for number in (*operation.operands, operation.results[0]) if operation.opcode not in COLLECTIVES else ():
            if self.known.status(number) is not Status.PARTIAL:
                continue
            value = self.lifter.values[number]
            axes = self.known.partial_slots(value)
            if axes is not None:
                names, slots = axes
                yield Repair(operation, "sum", number, axes=names), Value(value.layout, (total(self.pair.store, value.views[0], slots),))

    def _groups(self, operation: Operation) -> Iterator[tuple[Repair, Value]]:
        """A reduction over devices done as a sum over other mesh axes."""
        if operation.opcode != "all-reduce" or len(operation.operands) != 1:
            return
        value = self.lifter.values[operation.operands[0]]
        if value.layout.plain and value.layout is self.lifter.values[operation.results[0]].layout:
            for names, slots in self.known.axis_sets(value.layout, value.views[0]):
                summed = total(self.pair.store, value.views[0], slots)
                yield Repair(operation, "group", operation.results[0], axes=names), Value(value.layout, (summed,))

    def _scales(self, operation: Operation) -> Iterator[tuple[Repair, Value]]:
        """Another multiple of the term, as the baseline has it."""
        result = operation.results[0]
        value = self.lifter.values[result]
        view = value.views[0]
        if view.term.kind == "one" or not view.coef:
            return
        for coef in self.known.coefficients.get(view.term, ())[:3]:
            if coef and coef != view.coef:
                factor = quotient(coef, view.coef)
                views = tuple([scale(self.pair.store, v, factor) for v in value.views])
                yield Repair(operation, "scale", result, factor=factor), Value(value.layout, views)

    def _skips(self, operation: Operation) -> Iterator[tuple[Repair, Value]]:
        """An operand of the same type in the place of the result."""
        shapes = self.lifter.program.shapes
        result = operation.results[0]
        target = self.lifter.values[result].layout
        for operand in dict.fromkeys(operation.operands):
            value = self.lifter.values[operand]
            same = shapes[operand].dtype == shapes[result].dtype and shapes[operand].dims == shapes[result].dims
            if same and value.layout.key == target.key:
                yield Repair(operation, "skip", result), Value(target, value.views)

    def _orders(self, operation: Operation) -> Iterator[tuple[Repair, Value]]:
        """Operands in another order than the baseline's: in its own order."""
        for operand in operation.operands:
            value = self.lifter.values[operand]
            if self.known.status(operand) is not Status.REORDERED or not value.layout.plain:
                continue
            view = value.views[0]
            tried = {view}
            for other in self.known.operations.get((view.coef, view.term), ())[:COUNTERPARTS]:
                theirs = self.pair.baseline.values[other.results[0]]
                placed = place_view(theirs, value.layout) if theirs.layout.plain else None
                if placed is not None and placed not in tried:
                    tried.add(placed)
                    yield Repair(operation, "order", operand, counterpart=other), Value(value.layout, (placed,))

    def _counterparts(self, operation: Operation) -> Iterator[tuple[Repair, Value]]:
        """Values that the baseline makes of the same operands."""
        result = operation.results[0]
        value = self.lifter.values[result]
        if not value.layout.plain:
            return
        for other in self._candidates(operation):
            theirs = self.pair.baseline.values[other.results[0]]
            placed = place_view(theirs, value.layout) if theirs.layout.plain else None
            if placed is not None and placed != value.views[0]:
                yield Repair(operation, "baseline", result, counterpart=other), Value(value.layout, (placed,))

    def _operands(self, operation: Operation) -> Iterator[tuple[Repair, Value]]:
        """The operand that the baseline's operation has and this one has not: tells more of an operation whose result is partial."""
        mine = {self._key(self.lifter, o): o for o in operation.operands}
        for other in self._candidates(operation):
            theirs = {self._key(self.pair.baseline, o): o for o in other.operands}
            strange, missing = [o for k, o in mine.items() if k not in theirs], [o for k, o in theirs.items() if k not in mine]
            if other.opcode != operation.opcode or len(strange) != 1 or len(missing) != 1:
                continue
            old, new = self.lifter.values[strange[0]], self.pair.baseline.values[missing[0]]
            placed = place_view(new, old.layout) if new.layout.plain and old.layout.plain else None
            if placed is not None and placed != old.views[0]:
                yield Repair(operation, "operand", strange[0], counterpart=self._makers.get(missing[0])), Value(old.layout, (placed,))

    @staticmethod
    def _key(lifter: Lifter, value: int) -> tuple[tuple[Number, Term], ...]:
        return tuple([(v.coef, v.term) for v in lifter.values[value].views])

    def _candidates(self, operation: Operation) -> list[Operation]:
        """The baseline's operations on the same operands: those of the same opcode and with the most operands in common first."""
        mine = {v.term for o in operation.operands for v in self.lifter.values[o].views if v.term.kind != "one"}
        scores: dict[int, tuple[int, Operation]] = {}
        for term in mine:
            for other in self._uses.get(term, ()):
                score, _ = scores.get(id(other), (0, other))
                scores[id(other)] = score + 1, other
        ranked = sorted(scores.values(), key=lambda s: (s[1].opcode != operation.opcode, -s[0]))
        return [other for _, other in ranked[:COUNTERPARTS]]

    # -- attempts --------------------------------------------------------------------------------------------------------------
    def _proved(self, number: int, value: Value) -> int:
        """How many of the claims verify with another value; everything is put back afterwards."""
        lifter = self.lifter
        saved = {number: lifter.values[number]}
        marks = len(lifter.unsupported), len(lifter.exponentials)
        lifter.values[number] = value
        try:
            self._spread(saved)
            return sum(self._holds(c) for c in self.claims if c.actual in saved)
        except LimitReached:
            self.left = 0
            return 0
        finally:
            lifter.values.update(saved)
            del lifter.unsupported[marks[0] :], lifter.exponentials[marks[1] :]

    def _spread(self, saved: dict[int, Value]) -> None:
        """Lifts again what depends on the values in ``saved`` and notes the old values there."""
        lifter = self.lifter
        self.left -= len(lifter.program.operations) // 100
        for operation in lifter.program.operations:
            if not any(o in saved for o in operation.operands) or any(r in saved for r in operation.results):
                continue
            self.left -= sum([lifter.values[r].layout.count for r in operation.results])
            before = {r: lifter.values[r] for r in operation.results}
            lifter.lift(operation)
            if any(lifter.values[r] != v for r, v in before.items()):
                saved.update(before)

    def _holds(self, claim: Claim) -> bool:
        expected, actual = claimed(self.pair, claim)
        return expected.views == actual.views


def _uses(pair: Pair) -> dict[Term, list[Operation]]:
    """The baseline's own operations by the terms of their operands; a term with many users says little."""
    found: dict[Term, list[Operation]] = {}
    lifter = pair.baseline
    for operation in lifter.program.operations[: pair.own]:
        if len(operation.results) != 1:
            continue
        for term in {v.term for o in operation.operands for v in lifter.values[o].views if v.term.kind != "one"}:
            users = found.setdefault(term, [])
            if len(users) < 16:
                users.append(operation)
    return found


def place_view(value: Value, target: Layout) -> View | None:
    """The one view of a baseline value in the slots that the same axes have in a distributed value; None if it has other axes."""
    names: dict[int, int] = {}
    there = dict(zip(target.flat_key, target.blocks[0].slots, strict=True))
    for key, slots in zip(value.layout.flat_key, value.layout.blocks[0].slots, strict=True):
        if key in there:
            names.update(zip(slots, there[key], strict=True))
    coef, term, at = value.views[0]
    if any(s < FRESH and s not in names for s in at):
        return None
    placed = tuple([names.get(s, s) for s in at])
    return View(coef, term, placed) if len(set(placed)) == len(placed) else None
