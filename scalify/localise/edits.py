"""Edits of the distributed program: small changes that a programmer might have to make, each a candidate for a repair.

A rule gives the edits of one operation of certain opcodes, the likely ones first. Its declaration names the kind of mistake that such an edit repairs. Edits
that contradict the shapes are dropped here, so that rules may try all permutations, offsets or operands without looking at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.module import Computation, Instruction, ReplicaGroups, Shape
from scalify.hlo.opcodes import OPCODES
from scalify.hlo.shape_rules.base import agree
from scalify.hlo.shapes import infer
from scalify.lift.collate import PER_DEVICE
from scalify.lift.program import Operation
from scalify.localise.suspects import origin_of_partial
from scalify.report.model import Kind

if TYPE_CHECKING:
    from scalify.lift.layout import Value
    from scalify.localise.bench import Bench

MOST_EDITS = 24  #: of one rule at one operation


@dataclass(frozen=True)
class Edit:
    """``changes`` replaces the operations at some positions of the program. ``operation`` is the one to name, ``problem`` what is wrong with it and ``remedy`` what makes the
    graph verify. ``given`` are values that are there without an operation; ``counterpart`` is the baseline's operation that the edit follows; ``places`` counts the
    places that are edited.
    """

    kind: Kind
    operation: Operation
    problem: str
    remedy: str
    changes: Mapping[int, tuple[Operation, ...]]
    given: Mapping[int, Value] = field(default_factory=dict)
    counterpart: Operation | None = None
    places: int = 1

    def with_others(self, others: Sequence[Edit]) -> Edit:
        """The same edit at several places."""
        changes, given = dict(self.changes), dict(self.given)
        for other in others:
            changes.update(other.changes)
            given.update(other.given)
        return replace(self, remedy=f"{self.remedy}, and so at {len(others)} more", changes=changes, given=given, places=1 + len(others))


@dataclass(frozen=True)
class Site:
    """An operation of the distributed program that is to be edited."""

    bench: Bench
    position: int
    kind: Kind = Kind.UNRELATED

    @property
    def operation(self) -> Operation:
        return self.bench.operations[self.position]

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.operation.instruction.attributes

    @property
    def name(self) -> str:
        return f"`{self.operation.instruction.name}`"

    def shape(self, value: int) -> Shape:
        return self.bench.program.shapes[value]

    def dims(self, value: int) -> tuple[int, ...]:
        return self.shape(value).dims

    def maker(self, value: int) -> Operation:
        """The operation that makes a value."""
        return self.bench.operations[self.bench.positions[value]]

    def called(self, value: int) -> str:
        """A value's name for the reader."""
        return f"`{self.maker(value).instruction.name}`"

    # -- making edits ----------------------------------------------------------------------------------------------------------
    def edit(
        self,
        problem: str,
        remedy: str,
        *,
        operands: Sequence[int] | None = None,
        opcode: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Iterator[Edit]:
        """The operation with other operands, another opcode or other attributes (None takes one away)."""
        old = self.operation
        made = changed(old, operands, opcode, attributes or {})
        as_before = made.operands == old.operands and made.opcode == old.opcode and not self._differs(attributes or {})
        if not as_before and self.fits(made):
            yield Edit(self.kind, old, problem, remedy, {self.position: (made,)})

    def _differs(self, attributes: Mapping[str, Any]) -> bool:
        return any(isinstance(v, np.ndarray) or v != self.attributes.get(k) for k, v in attributes.items())

    def having(self, problem: str, remedy: str, **attributes: Any) -> Iterator[Edit]:
        """The operation with other attributes."""
        yield from self.edit(problem, remedy, attributes=attributes)

    def reducing(self, opcode: str, problem: str, remedy: str) -> Iterator[Edit]:
        """The operation with another reducer."""
        old = self.operation
        computation = combiner(opcode, self.shape(old.results[0]).dtype)
        yield Edit(self.kind, old, problem, remedy, {self.position: (replace(old, computations=(computation,)),)})

    def fits(self, operation: Operation) -> bool:
        """Whether the shapes allow the operation."""
        known = OPCODES.get(operation.opcode)
        if known is None:
            return False
        declared = operation.shapes[0] if len(operation.results) == 1 else operation.instruction.shape
        try:
            inferred = infer(operation.instruction, [self.shape(o) for o in operation.operands], self.bench.program.module, known)
        except (HloError, LookupError, ValueError, TypeError):
            return False
        return inferred is None or agree(declared, inferred)

    def dropped(self, problem: str, remedy: str, operand: int) -> Iterator[Edit]:
        """The operand, which is of the same shape, in the place of the result."""
        old = self.operation
        if self.same(operand, old.results[0]):
            yield Edit(self.kind, old, problem, remedy, {self.position: (passing(old, operand),)})

    def same(self, a: int, b: int) -> bool:
        """Whether two values have the same type."""
        return self.shape(a).dtype == self.shape(b).dtype and self.dims(a) == self.dims(b)

    def using(self, problem: str, remedy: str, old: int, new: int, **more: Any) -> Iterator[Edit]:
        """Another value in the place of an operand: here; here and in all later uses; in all uses."""
        later = [p for p in self.bench.users.get(old, ()) if p >= self.position]
        every = self.bench.users.get(old, [])
        for users in dict.fromkeys([(self.position,), tuple(later), tuple(every)]):
            changes = {p: (rewired(self.bench.operations[p], old, new),) for p in users}
            if all(self.bench.positions.get(new, -1) < p for p in users):
                yield Edit(
                    more.get("kind") or self.kind, self.operation, problem, remedy, changes, more.get("given", {}), more.get("counterpart")
                )

    def inserted(
        self, problem: str, remedy: str, value: int, opcode: str, attributes: Mapping[str, Any], computations: Sequence[Computation] = ()
    ) -> Iterator[Edit]:
        """An operation that keeps the shape between an operand and its uses, or behind the result. It is the operand's maker that is named."""
        shape = self.shape(value)
        own = value in self.operation.results
        result = value if own else self.bench.new(shape, self.bench.lifter.axes_of(value))
        made = Operation(opcode, Instruction(opcode, opcode, shape, (), attributes), (value,), (result,), (shape,), tuple(computations))
        if own:
            yield Edit(self.kind, self.operation, problem, remedy, {self.position: (self.operation, made)})
            return
        for edit in self.using(problem, remedy, value, result):
            first = min(edit.changes)
            yield replace(edit, operation=self.origin(value), changes={**edit.changes, first: (made, *edit.changes[first])})

    def origin(self, value: int) -> Operation:
        """The operation that makes what an operand is, those that only move, convert or scale it looked through; this one if it is given."""
        return origin_of_partial(self.bench.known, value) or self.operation

    def scalar(self, like: int, data: Any) -> tuple[int, Operation]:
        """A known scalar, ``[devices or 1]``, of the type of another one: its number and the operation that makes it."""
        shape = self.shape(like)
        number = self.bench.new(shape, ())
        instruction = Instruction("constant", "constant", shape, (), {PER_DEVICE: np.asarray(data)})
        return number, Operation("constant", instruction, (), (number,), (shape,))


def changed(old: Operation, operands: Sequence[int] | None, opcode: str | None, attributes: Mapping[str, Any]) -> Operation:
    """The operation with some things replaced."""
    merged = {k: v for k, v in {**old.instruction.attributes, **attributes}.items() if v is not None}
    instruction = replace(old.instruction, opcode=opcode or old.opcode, attributes=merged)
    return replace(
        old, opcode=opcode or old.opcode, instruction=instruction, operands=old.operands if operands is None else tuple(operands)
    )


def passing(old: Operation, operand: int) -> Operation:
    """An operation that hands an operand on in the place of the old one."""
    instruction = replace(old.instruction, opcode="copy", attributes={}, calls=())
    return replace(old, opcode="copy", instruction=instruction, operands=(operand,), computations=())


def rewired(old: Operation, value: int, other: int) -> Operation:
    """The operation with another value in the place of one of its operands."""
    return replace(old, operands=tuple([other if o == value else o for o in old.operands]))


def combiner(opcode: str, dtype: str) -> Computation:
    """The scalar computation ``opcode(a, b)``."""
    shape = Shape(dtype)
    parameters = [Instruction(name, "parameter", shape, (), {"index": n}) for n, name in enumerate("ab")]
    return Computation(opcode, (*parameters, Instruction("root", opcode, shape, (0, 1))), 2)


def grouped(groups: Sequence[Sequence[int]]) -> ReplicaGroups:
    """Replica groups of device ids."""
    return ReplicaGroups(tuple([tuple([int(d) for d in g]) for g in groups]))


# -- the table of rules --------------------------------------------------------------------------------------------------------
Rule = Callable[[Site], Iterator[Edit]]
FIRST, OWN, ANY, LAST = "first", "own", "any", "last"  #: rules for all opcodes, before and behind those of an operation's own
RULES: dict[tuple[str, bool], list[tuple[Kind, Rule]]] = {}


def edits(kind: Kind, *opcodes: str, borrowing: bool = False) -> Callable[[Rule], Rule]:
    """Declares the edits of one or several opcodes (of all: none named, ``FIRST`` or ``LAST``), which repair mistakes of this kind. Those that are ``borrowing`` put values of the
    baseline in.
    """

    def register(rule: Rule) -> Rule:
        for opcode in opcodes or (ANY,):
            RULES.setdefault((opcode, borrowing), []).append((kind, rule))
        return rule

    return register


def proposals(bench: Bench, position: int, *groups: str, borrowing: bool = False) -> Iterator[Edit]:
    """All edits of the operation at a position, in the order of their declaration; ``groups`` says which: ``FIRST``, ``OWN``, ``ANY``, ``LAST``."""
    for group in groups:
        opcode = bench.operations[position].opcode if group == OWN else group
        for kind, rule in RULES.get((opcode, borrowing), ()):
            yield from islice(_sound(rule(Site(bench, position, kind))), MOST_EDITS)


def _sound(edits_: Iterator[Edit]) -> Iterator[Edit]:
    """The edits of a rule; none any more once it meets operands or attributes that the opcode does not have by its definition."""
    while True:
        try:
            yield next(edits_)
        except (StopIteration, LookupError, TypeError, ValueError):
            return


def moved(bench: Bench, edit: Edit, step: int) -> Edit | None:
    """The same edit in another layer, whose operations are ``step`` positions further; None if there is no such layer or values are given."""
    names: dict[int, int] = {}
    changes = {}
    for position, operations in sorted(edit.changes.items()):
        if edit.given or not bench.alike(position, position + step):
            return None
        changes[position + step] = tuple([_moved(bench, o, position, step, names) for o in operations])
    return replace(edit, changes=changes)


def _moved(bench: Bench, operation: Operation, position: int, step: int, names: dict[int, int]) -> Operation:
    here, there = bench.operations[position], bench.operations[position + step]
    as_before = dict(zip(here.operands, there.operands, strict=True)) if operation.results == here.results else {}
    operands = [names.get(v, as_before.get(v, bench.beyond(v, step))) for v in operation.operands]
    if operation.results == here.results:
        return replace(operation, operands=tuple(operands), results=there.results)
    axes = bench.lifter.axes_of(operands[0] if operands else operation.results[0])
    for result, shape in zip(operation.results, operation.shapes, strict=True):
        names[result] = bench.new(shape, axes)
    return replace(operation, operands=tuple(operands), results=tuple([names[r] for r in operation.results]))
