"""Which values of the distributed graph are related to the baseline: the same coefficient and term, block by block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from scalify.lift.layout import Value
from scalify.lift.lifter import Lifter
from scalify.lift.program import Operation
from scalify.lift.terms import Number, Term, View

Key = tuple[Number, Term]


@dataclass
class Known:
    """What the baseline computes: ``operations[coef, term]`` are the operations with that value in some block, first first."""

    operations: dict[Key, list[Operation]] = field(default_factory=dict)
    terms: dict[Term, list[Number]] = field(default_factory=dict)

    @classmethod
    def of(cls, lifter: Lifter, count: int) -> Known:
        """What the first ``count`` operations of a lifted program compute."""
        known = cls()
        for operation in lifter.program.operations[:count]:
            for result in operation.results:
                known.add(operation, lifter.values[result])
        return known

    def add(self, operation: Operation, value: Value) -> None:
        for coef, term, _ in value.views:
            found = self.operations.setdefault((coef, term), [])
            if len(found) < 64 and (not found or found[-1] is not operation):
                found.append(operation)
            coefs = self.terms.setdefault(term, [])
            if coef not in coefs:
                coefs.append(coef)

    def has(self, view: View) -> bool:
        """Whether the baseline has the value; constants and indices are nobody's mistake by themselves."""
        coef, term, _ = view
        return (coef, term) in self.operations or term.kind in ("one", "iota")

    def relates(self, value: Value) -> bool:
        return all(self.has(v) for v in value.views)

    def counterpart(self, views: Iterable[View], opcode: str) -> Operation | None:
        """A baseline operation with one of these values, of the same opcode if there is one."""
        first: Operation | None = None
        for coef, term, _ in views:
            for operation in self.operations.get((coef, term), ()):
                if operation.opcode == opcode:
                    return operation
                first = first or operation
        return first
