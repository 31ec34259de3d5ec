"""How the values of the distributed graph stand to those of the baseline."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from scalify.lift.einsum import total
from scalify.lift.terms import FRESH, Number, Term, View

if TYPE_CHECKING:
    from scalify.lift.layout import Layout, Value
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation

Key = tuple[Number, Term]

REDUCTIONS = frozenset({"all-reduce", "reduce-scatter", "all-reduce-start"})
COLLECTIVES = REDUCTIONS | {
    "all-gather",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "all-gather-start",
    "collective-permute-start",
}


class Status(Enum):
    """``RELATED``: the baseline has the value. ``PARTIAL``: it has the sum over some mesh axes. ``REORDERED``: it has the elements, in no
    such order of dimensions. ``CONSTANT``: the same number everywhere. ``NEW``: none of these. Known values that are constant though an operand is
    not are in :attr:`Known.vanished`.
    """

    RELATED = "related"
    PARTIAL = "partial"
    REORDERED = "reordered"
    CONSTANT = "constant"
    NEW = "new"


@dataclass
class Known:
    """What the baseline computes: operations by (coefficient, term), coefficients by term, orders of labels by (coefficient, term). ``producers`` gives
    the operation that makes each distributed value.
    """

    lifter: Lifter
    distributed: Lifter
    mesh: tuple[tuple[str, int], ...]
    operations: dict[Key, list[Operation]] = field(default_factory=dict)
    coefficients: dict[Term, list[Number]] = field(default_factory=dict)
    orders: dict[Key, set[Order]] = field(default_factory=dict)
    vanished: set[int] = field(default_factory=set)
    producers: dict[int, Operation] = field(default_factory=dict)
    _status: dict[int, Status] = field(default_factory=dict)

    @classmethod
    def of(cls, baseline: Lifter, distributed: Lifter, mesh: tuple[tuple[str, int], ...]) -> Known:
        """Everything that the baseline's program and the relation compute."""
        known = cls(baseline, distributed, mesh)
        known.producers.update({r: o for o in distributed.program.operations for r in o.results})
        for operation in baseline.program.operations:
            for result in operation.results:
                known._add(operation, baseline.values[result])
        for operation in distributed.program.operations:
            if any(not known._constant(o) or o in known.vanished for o in operation.operands) and all(
                map(known._constant, operation.results)
            ):
                known.vanished.update(operation.results)
        return known

    def _constant(self, value: int) -> bool:
        return all(v.term.kind == "one" for v in self.distributed.values[value].views)

    def _add(self, operation: Operation, value: Value) -> None:
        for number, view in enumerate(value.views):
            key = (view.coef, view.term)
            found = self.operations.setdefault(key, [])
            if len(found) < 64 and (not found or found[-1] is not operation):
                found.append(operation)
            coefs = self.coefficients.setdefault(view.term, [])
            if view.coef not in coefs:
                coefs.append(view.coef)
            self.orders.setdefault(key, set()).add(_order(value.layout, number, view))

    def has(self, view: View) -> bool:
        """Whether the baseline has the value, in whatever order of dimensions; an index is nobody's mistake by itself."""
        return (view.coef, view.term) in self.operations or view.term.kind == "iota"

    def status(self, value: int) -> Status:
        """How a distributed value stands."""
        found = self._status.get(value)
        if found is None:
            index = value in self.distributed.program.known  # arithmetic of device ids: judged by what uses it
            found = self._status[value] = Status.RELATED if index else self.judge(self.distributed.values[value])
        return found

    def judge(self, value: Value) -> Status:
        """How a value that is not evaluated stands."""
        if all(v.term.kind == "one" for v in value.views):
            return Status.CONSTANT
        if all(v.term.integer for v in value.views) and all(self.has(v) for v in value.views):
            return Status.RELATED
        if all(self.has(v) for v in value.views):
            ordered = all(self._in_order(value.layout, n, v) for n, v in enumerate(value.views))
            return Status.RELATED if ordered else Status.REORDERED
        if value.layout.plain and self.partial_axes(value) is not None:
            return Status.PARTIAL if self._partial_in_order(value) else Status.REORDERED
        return Status.NEW

    def _partial_in_order(self, value: Value) -> bool:
        """Whether the sum of a partial value has its labels in an order that the baseline has."""
        slots = self.partial_slots(value)
        if slots is None:
            return False
        summed = total(self.lifter.store, value.views[0], slots[1])
        mine = _order(value.layout, 0, summed)
        orders = [o for c in self.coefficients[summed.term] for o in self.orders.get((c, summed.term), ())]
        return any(_fits(mine, order) for order in orders)

    def _in_order(self, layout: Layout, number: int, view: View) -> bool:
        """Whether some baseline value has the labels in an order that contains the distributed value's."""
        mine = _order(layout, number, view)
        return view.term.kind == "iota" or any(_fits(mine, order) for order in self.orders[view.coef, view.term])

    def partial_axes(self, value: Value) -> tuple[str, ...] | None:
        """The mesh axes over which the sum of the value is the baseline's, up to a factor; None when there are none."""
        found = self.partial_slots(value)
        return found[0] if found else None

    def partial_slots(self, value: Value) -> tuple[tuple[str, ...], dict[int, int]] | None:
        """The axes of :meth:`partial_axes` with their slots and sizes."""
        view = value.views[0]
        for names, slots in self.axis_sets(value.layout, view):
            summed = total(self.lifter.store, view, slots)
            if summed.term in self.coefficients and summed.term.kind != "one":
                return names, slots
        return None

    def is_scaled(self, operation: Operation) -> bool:
        """Whether the results are the baseline's up to factors that it does not have."""
        values = [self.distributed.values[r] for r in operation.results]
        return all(map(self.is_multiple, values)) and not all(self.has(v) for value in values for v in value.views)

    def is_multiple(self, value: Value) -> bool:
        """Whether the baseline has the value times some factor."""
        return all(v.term in self.coefficients and v.term.kind != "one" for v in value.views)

    def axis_sets(self, layout: Layout, view: View) -> list[tuple[tuple[str, ...], dict[int, int]]]:
        """Sets of mesh axes that the view varies over, with its slots."""
        block = layout.blocks[0]
        axes = []
        stride = 1
        for name, size in reversed(self.mesh):
            slots, below = {}, 1
            for f in reversed(layout.range(0)):
                if stride <= below < stride * size:
                    slots.update({s: block.sizes[s] for s in block.slots[f] if s in view.at})
                below *= layout.factors[f].size
            if slots:
                axes.append((name, slots))
            stride *= size
        found = []
        for count in range(1, len(axes) + 1):
            for chosen in combinations(axes[::-1], count):
                merged: dict[int, int] = {}
                for _, slots in chosen:
                    merged |= slots
                found.append((tuple([name for name, _ in chosen]), merged))
        return found


Order = tuple[tuple[int, int], ...]


def _order(layout: Layout, number: int, view: View) -> Order:
    """The term's labels in the order of the value's local dimensions, each with its dimension."""
    block = layout.blocks[number]
    labels = {slot: label for label, slot in enumerate(view.at) if slot < FRESH}
    return tuple([(labels[s], d) for d in range(1, len(layout.dims)) for s in layout.slots(d, block) if s in labels])


def _fits(mine: Order, other: Order) -> bool:
    """Whether the labels occur in the other in this order, those of different dimensions in different dimensions there, too.

    Dimensions that are merged on our side are no other order; a boundary at another place is one.
    """
    where = {label: (position, dim) for position, (label, dim) in enumerate(other)}
    found = [(where[label], dim) for label, dim in mine if label in where]
    if len(found) != len(mine):
        return False
    return all(a[0] < b[0] and (d == e or a[1] != b[1]) for (a, d), (b, e) in pairwise(found))
