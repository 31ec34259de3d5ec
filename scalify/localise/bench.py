"""Trying an edit of the distributed program: the edited operations and what depends on them lifted again, the claims compared.

Nothing is changed for good. An attempt is cheap: values keep the layouts that inference gave them, only the cone of the edit is lifted, and where a
value comes out that the baseline does not have the attempt may end at once. But an edit may need other axes than inference found, or contradict
them. :meth:`Bench.anew` infers them again, at the price of lifting the whole pair: what an attempt finds counts when that confirms it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

from scalify.errors import InputError
from scalify.lift.pair import claimed
from scalify.lift.terms import BUDGETS, LimitReached
from scalify.lift.unroll import cone
from scalify.localise.known import Known, Status
from scalify.prove.instances import equal_by_instances

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from scalify.hlo.module import Shape
    from scalify.lift.layout import Axes, Value
    from scalify.lift.pair import Claim, Pair
    from scalify.lift.program import Operation
    from scalify.lift.terms import Term

    Changes = Mapping[int, tuple[Operation, ...]]

MOVEMENT = frozenset({"reshape", "transpose", "broadcast", "bitcast", "copy", "convert", "slice", "concatenate", "gather"})
COUNTERPARTS = 6  #: baseline operations that are looked at for one of the distributed program's
NEAR = 40  #: operations before another whose results may stand in for its operands
COSTLY = 1_000  #: what an attempt counts for that reached a limit
UNLIMITED = 1 << 30
SHARE = 25  #: an attempt may spend this fraction of what the store allows to lifting, or what lifting has spent
TERMS = 4_000  #: new terms of one attempt, beside one for each operation
INSTANCES = 500  #: new terms of one comparison instance by instance
SMALL = 64  #: terms of a value that is compared so


class Attempt(NamedTuple):
    """How far an edit helps: the position of the first value behind it that the baseline does not have (the program's length if there is
    none), and the failing claims that verify.
    """

    reached: int
    proved: int


class Bench:
    """One failing pair. ``claims`` are those that were not proved; ``left`` counts down the work that may still be done: values lifted, and nodes
    asked for.

    ``positions`` gives the operation that makes each value, ``users`` the positions of those that use it.
    """

    def __init__(self, pair: Pair, known: Known, claims: Sequence[Claim]) -> None:
        self.pair = pair
        self.known = known
        self.claims = claims
        self.left = 0
        self.lifter = pair.distributed
        self.program = self.lifter.program
        self.operations = self.program.operations
        self.positions: dict[int, int] = {}
        self.users: dict[int, list[int]] = {}
        for position, operation in enumerate(self.operations):
            self.positions.update(dict.fromkeys(operation.results, position))
            for operand in dict.fromkeys(operation.operands):
                self.users.setdefault(operand, []).append(position)
        self.makers = {r: o for o in pair.baseline.program.operations for r in o.results}
        self.unused = [r for o in self.operations for r in o.results if r not in self.users and r not in self.program.outputs]
        self._uses = _uses(pair)
        self._answers = {v.term for c in claims for v in pair.baseline.values[c.expected].views}
        self._spent = {name: min(spent, BUDGETS[name]) for name, spent in pair.store.spent.items()}
        self._horizons: dict[int, int] = {}
        self._own = len(self.program.shapes)
        self._indices = frozenset(self.program.known)
        self._reach = self._reaching()

    def _reaching(self) -> set[int]:
        """The values that a failing claim depends on."""
        found: set[int] = set()
        pending = [c.actual for c in self.claims]
        while pending:
            value = pending.pop()
            if value not in found:
                found.add(value)
                pending.extend(self.operations[self.positions[value]].operands)
        return found

    def failing(self) -> list[int]:
        """The positions of the operations whose results the baseline does not have, as far as failing claims depend on them."""
        return [p for p, o in enumerate(self.operations) if any(r in self._reach and self.known.status(r) is Status.NEW for r in o.results)]

    def close(self) -> None:
        """Forgets the values of edits."""
        self.lifter.release(self._own)

    def first_news(self) -> list[Operation]:
        """The operations that make values which the baseline does not have, of operands that it has, in whatever order and up to a factor."""
        news = {v for v in self.positions if self.known.status(v) is Status.NEW and not self.known.is_multiple(self.lifter.values[v])}
        return [o for o in self.operations if any(r in news and r in self._reach for r in o.results) and news.isdisjoint(o.operands)]

    def alike(self, a: int, b: int) -> bool:
        """Whether the operations at two positions may be the same one in two layers."""
        if not 0 <= a < len(self.operations) or not 0 <= b < len(self.operations):
            return False
        first, second = self.operations[a], self.operations[b]
        return (first.opcode, first.shapes) == (second.opcode, second.shapes)

    def beyond(self, value: int, step: int) -> int:
        """The value that is made ``step`` positions later by a like operation; the value itself if there is none, as for what all layers share."""
        position = self.positions.get(value, -1)
        if not self.alike(position, position + step) or self.operations[position].opcode in ("parameter", "constant"):
            return value
        return self.operations[position + step].results[self.operations[position].results.index(value)]

    def without(self, changes: Changes) -> int:
        """The position of the first new value behind some operations as they are: what an edit of them has to get beyond."""
        return min(self._horizon(r) for p in changes for r in self.operations[p].results)

    def _horizon(self, value: int) -> int:
        if not self._horizons:
            for position in range(len(self.operations) - 1, -1, -1):
                for result in self.operations[position].results:
                    users = self.users.get(result, ())
                    later = min([self._horizons[r] for u in users for r in self.operations[u].results], default=len(self.operations))
                    self._horizons[result] = position if self._is_news(result, 0) else later
        return self._horizons[value]

    def new(self, shape: Shape, axes: Axes) -> int:
        """A number for a value that an edit brings in."""
        return self.lifter.adopt(shape, axes)

    # -- what the baseline suggests ----------------------------------------------------------------------------------------------
    def candidates(self, operation: Operation) -> list[Operation]:
        """The baseline's operations on the same operands: those of the same opcode and with the most operands in common first."""
        scores: dict[int, tuple[int, Operation]] = {}
        for term in {v.term for o in operation.operands for v in self.lifter.values[o].views if v.term.kind != "one"}:
            for other in self._uses.get(term, ()):
                score, _ = scores.get(id(other), (0, other))
                scores[id(other)] = score + 1, other
        ranked = sorted(scores.values(), key=lambda s: (s[1].opcode != operation.opcode, -s[0]))
        return [other for _, other in ranked[:COUNTERPARTS]]

    def followers(self, value: int) -> list[Operation]:
        """The baseline's operations on a value that give one of the same shape."""
        views = self.lifter.values[value].views
        if len(views) != 1 or views[0].term.kind == "one":
            return []
        return [o for o in self._uses.get(views[0].term, ()) if o.opcode not in MOVEMENT][:COUNTERPARTS]

    def constants(self, shape: Shape) -> list[object]:
        """The data of the baseline's constants of this shape, each once."""
        found: dict[bytes, object] = {}
        for operation in self.pair.baseline.program.operations[: self.pair.own]:
            literal = operation.instruction.attributes.get("literal") if operation.opcode == "constant" else None
            if literal is not None and operation.shapes[0].dims == shape.dims and operation.shapes[0].dtype == shape.dtype:
                found.setdefault(literal.tobytes(), literal)
        return list(found.values())

    def before(self, position: int, shape: Shape) -> list[int]:
        """Values of this type made before a position, the last ones first."""
        found = []
        for operation in self.operations[max(position - NEAR, 0) : position][::-1]:
            found += [
                r for r, s in zip(operation.results, operation.shapes, strict=True) if s.dtype == shape.dtype and s.dims == shape.dims
            ]
        return found

    def is_answer(self, value: Value) -> bool:
        """Whether the value is what a failing claim expects: to put it somewhere proves nothing."""
        return all(v.term in self._answers for v in value.views)

    # -- attempts --------------------------------------------------------------------------------------------------------------
    def attempt(self, changes: Changes, given: Mapping[int, Value], patience: int = 0) -> Attempt:
        """The effect of replacing the operations at some positions, where the values ``given`` are available; it ends when more than ``patience``
        values came out that the baseline does not have.
        """
        with self._kept() as saved:
            stopped = self._walk(changes, given, saved, patience)
            if stopped is not None:
                return Attempt(stopped, 0)
            changed = [c for c in self.claims if c.actual in saved]
            return Attempt(len(self.operations), sum(map(self._holds, changed)))
        return Attempt(-1, 0)

    def confirms(self, changes: Changes, given: Mapping[int, Value]) -> bool:
        """Whether what an attempt found is true. Values that are given have the axes of those in whose place they are: nothing is contradicted."""
        return bool(given) or self.anew(changes)

    def settles(self, changes: Changes, given: Mapping[int, Value]) -> bool:
        """Whether all claims hold with the edit, those that are small instance by instance."""
        with self._kept() as saved:
            self._walk(changes, given, saved, UNLIMITED)
            return all(c.actual in saved and (self._holds(c) or _equal_by_instances(self.pair, c)) for c in self.claims)
        return False

    def anew(self, changes: Changes) -> bool:
        """Whether all claims hold with the edit when the axes of both programs are inferred again, as for any other pair."""
        assert self.pair.again is not None
        operations = [o for p, old in enumerate(self.operations) for o in changes.get(p, (old,))]
        actual = {c.actual for c in self.claims}
        try:
            program = replace(self.program, operations=operations, shapes=list(self.program.shapes), known=self._known_with(changes))
            pair = self.pair.again(program)
            self.left -= len(operations) + pair.store.asked
            return all(_equal(pair, c) or _equal_by_instances(pair, c) for c in pair.claims if c.actual in actual)
        except (LimitReached, InputError):
            self.left -= COSTLY
            return False

    def _known_with(self, changes: Changes) -> dict[int, npt.NDArray[Any]]:
        """The known integers with an edit."""
        with self._kept():
            dirty: set[int] = set()
            for position, old in enumerate(self.operations):
                for operation in changes.get(position, (old,)):
                    if position in changes or not dirty.isdisjoint(operation.operands):
                        dirty.update(operation.results)
                        self._evaluate(operation)
            return dict(self.program.known)
        return {}

    @contextmanager
    def _kept(self) -> Iterator[dict[int, Value]]:
        """Everything is put back behind an attempt, which has its own share of the budgets. It fails where it needs more."""
        lifter, store = self.lifter, self.pair.store
        saved: dict[int, Value] = {}
        known = dict(self.program.known)
        marks = len(lifter.unsupported), len(lifter.exponentials)
        spent, limit, asked = dict(store.spent), store.limit, store.asked
        store.spent = {name: most - max(most // SHARE, self._spent[name]) for name, most in BUDGETS.items()}
        store.limit = min(limit, len(store.terms) + TERMS + len(self.operations))
        try:
            yield saved
        except (
            LimitReached,
            LookupError,
            ValueError,
        ):  # transfer functions trust in the axes that inference gives, which an edit may contradict
            self.left -= COSTLY
        finally:
            self.left -= store.asked - asked
            store.spent, store.limit = spent, limit
            lifter.values.update(saved)
            self.program.known.clear()
            self.program.known.update(known)
            del lifter.unsupported[marks[0] :], lifter.exponentials[marks[1] :]

    def _walk(self, changes: Changes, given: Mapping[int, Value], saved: dict[int, Value], patience: int) -> int | None:
        """Lifts the changed operations and what depends on them, in order, noting the old values; the position where it ended early."""
        values = self.lifter.values
        saved.update({v: values[v] for v in given if v in values})
        values.update(given)
        pending = [*changes, *[p for v in given for p in self.users.get(v, ())]]
        heapify(pending)
        seen: set[int] = set()
        while pending:
            position = heappop(pending)
            if position in seen:
                continue
            seen.add(position)
            for operation in changes.get(position, (self.operations[position],)):
                for result in self._lift(operation, saved):
                    patience -= patience < UNLIMITED and self._is_news(result, patience)
                    if patience < 0:
                        return position
                    for user in self.users.get(result, ()):
                        heappush(pending, user)
        return None

    def _lift(self, operation: Operation, saved: dict[int, Value]) -> list[int]:
        """Lifts one operation; the results that are other values than before."""
        lifter = self.lifter
        before = {r: lifter.values.get(r) for r in operation.results}
        self._evaluate(operation)
        self.left -= 1
        if operation.opcode != "parameter":
            lifter.lift(operation)
        found = []
        for result, old in before.items():
            self.left -= lifter.values[result].layout.count
            if old is None or lifter.values[result] != old:
                found.append(result)
                if old is not None:
                    saved.setdefault(result, old)
        return found

    def _evaluate(self, operation: Operation) -> None:
        """Known integers that depend on an edit are evaluated again."""
        if self._indices.isdisjoint(operation.results) and operation.opcode != "constant":
            return
        for result in operation.results:
            self.program.known.pop(result, None)
            if self.program.evaluate is not None:
                self.program.evaluate(operation.instruction, operation.operands, result)

    def _is_news(self, value: int, patience: int) -> bool:
        """Whether the baseline has no such value, nor a multiple of it; at the end of patience a part of a sum that it has is none, either."""
        if value not in self._reach or value in self._indices:
            return False
        lifted = self.lifter.values[value]
        if self.known.is_multiple(lifted):
            return False
        if patience:
            return not all(map(self.known.has, lifted.views))
        status = self.known.judge(lifted)
        return status is Status.NEW or (status is Status.CONSTANT and self.known.status(value) is not Status.CONSTANT)

    def _holds(self, claim: Claim) -> bool:
        return _equal(self.pair, claim)


def _equal(pair: Pair, claim: Claim) -> bool:
    expected, actual = claimed(pair, claim)
    return expected.views == actual.views


def _equal_by_instances(pair: Pair, claim: Claim) -> bool:
    """Whether a small claim holds instance by instance."""
    expected, actual = claimed(pair, claim)
    for left, right, block in zip(expected.views, actual.views, actual.layout.blocks, strict=True):
        if left == right:
            continue
        if max(len(cone(v.term, SMALL)) for v in (left, right)) >= SMALL:
            return False
        slots = {s: block.sizes[s] for s in actual.layout.slots(0, block)}
        if not equal_by_instances(pair.store, left, right, slots, pair.distributed.known_terms, INSTANCES):
            return False
    return True


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
