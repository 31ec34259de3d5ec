"""Reductions: of one operand, or of values together with their indices (argmax and argmin)."""

from __future__ import annotations

from itertools import product as combinations
from typing import TYPE_CHECKING

from scalify.lift.argmax import first_greatest
from scalify.lift.linear import negate
from scalify.lift.transfer.base import Unsupported, exact_value, lifts
from scalify.lift.transfer.contraction import reduce_last, reduce_one, with_initial
from scalify.lift.transfer.movement import position

if TYPE_CHECKING:
    from scalify.hlo.module import Computation, Instruction
    from scalify.lift.layout import Layout, Value
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation
    from scalify.lift.terms import View

MOST_INSTRUCTIONS = 64  #: of a reducer that is looked at

_ORDERS = {"EQ": (0,), "NE": (-1, 1), "LT": (-1,), "GT": (1,), "LE": (-1, 0), "GE": (0, 1)}


@lifts("reduce")
def _reduce(lifter: Lifter, operation: Operation) -> list[Value]:
    return reduce_one(lifter, operation) if len(operation.results) == 1 else with_index(lifter, operation)


def with_index(lifter: Lifter, operation: Operation) -> list[Value]:
    """The greatest (least) value along a dimension and the first index where it is. :raises Unsupported: it is another reduction."""
    name = extreme_with_index(operation.computations[0])
    dims = operation.instruction.attributes["dimensions"]
    if name is None or len(operation.results) != 2 or len(dims) != 1:
        raise Unsupported("a reduction of several operands")
    dtype = lifter.dtype(operation.results[0])
    spread, index = (_spread(lifter, operation, k, dims[0]) for k in range(2))
    _check_index(lifter, operation, index)
    value = exact_value(lifter, spread, dtype)
    if any(v.term.taint for v in value.views):
        raise Unsupported("argmax of data that may hold infinities")
    target = lifter.result_layout(operation)
    if lifter.layout_of(operation.results[1]) is not target:
        raise Unsupported("a value and an index whose dimensions are cut in different ways")
    extremes = reduce_last(lifter.store, value, target, name)
    initial = lifter.scalar(operation.operands[2], target)
    best = [with_initial(lifter, name, dtype, v, i) for v, i in zip(extremes, initial, strict=True)]
    if best != extremes:
        raise Unsupported("argmax from an initial value that may be the greatest")
    return [lifter.value(target, best), lifter.value(target, _first(lifter, value, target, name))]


def _spread(lifter: Lifter, operation: Operation, number: int, dim: int) -> Value:
    """An operand with the reduced dimension behind the others."""
    axes = lifter.axes_of(operation.operands[0])
    extended = lifter.extended(operation.results[0], [axes[dim]])
    where = [1 + d - (d > dim) if d != dim else len(axes) for d in range(len(axes))]
    return lifter.spread(lifter.values[operation.operands[number]], extended, [0, *where])


def _first(lifter: Lifter, value: Value, target: Layout, name: str) -> list[View]:
    layout, dim = value.layout, len(value.layout.dims) - 1
    if layout.count != target.count:
        raise Unsupported("argmax along a dimension in pieces")
    found = []
    for view, block in zip(value.views, layout.blocks, strict=True):
        _, digits = layout.alternative((dim,), block)
        searched = view if name == "maximum" else negate(lifter.store, view)
        found.append(first_greatest(lifter.store, searched, digits))
    return found


def _check_index(lifter: Lifter, operation: Operation, index: Value) -> None:
    """The second operand counts along the dimension, and starts from 0: where all values are the initial one, the first of them is meant."""
    layout, dim = index.layout, len(index.layout.dims) - 1
    expected = tuple([position(lifter, layout, block, dim) for block in layout.blocks])
    start = lifter.values[operation.operands[3]].views
    if index.views != expected or any(v != lifter.store.constant(0) for v in start):
        raise Unsupported("a reduction whose second operand is no index along the dimension")


def extreme_with_index(computation: Computation) -> str | None:
    """``maximum`` or ``minimum`` if the reducer takes the greater (less) of two values with its index, of equal ones that of the lesser index.

    A reducer of ``(value, index, value, index)`` that only compares and chooses depends on nothing but how the two values and the two indices
    are ordered. So the nine cases decide.
    """
    if len(computation.instructions) > MOST_INSTRUCTIONS:
        return None
    cases = list(combinations(((0, 1), (0, 0), (1, 0)), repeat=2))
    found = [_evaluate(computation, (("value", v[0]), ("index", i[0]), ("value", v[1]), ("index", i[1]))) for v, i in cases]
    for name, sign in (("maximum", -1), ("minimum", 1)):
        wanted = [min((sign * v[k], i[k]) for k in (0, 1)) for v, i in cases]
        if found == [(("value", sign * v), ("index", i)) for v, i in wanted]:
            return name
    return None


Known = tuple[str, int]  # of what kind (value, index, truth), and which of the two


def _evaluate(computation: Computation, arguments: tuple[Known, ...]) -> tuple[Known, ...] | None:
    """The reducer's results; None when it does anything but compare and choose among things of one kind."""
    known: list[Known | None] = []
    for instruction in computation.instructions:
        if instruction.opcode == "parameter":
            known.append(arguments[instruction.attributes["index"]] if instruction.attributes["index"] < len(arguments) else None)
            continue
        operands = [known[o] for o in instruction.operands]
        given = [o for o in operands if o is not None]
        known.append(_step(instruction, given) if len(given) == len(operands) else None)
    root = computation.instructions[computation.root]
    results = [known[o] for o in root.operands] if root.opcode == "tuple" else []
    return tuple([r for r in results if r is not None])


def _step(instruction: Instruction, operands: list[Known]) -> Known | None:
    kinds = [kind for kind, _ in operands]
    values = [value for _, value in operands]
    opcode = instruction.opcode
    if opcode == "select" and kinds[0] == "truth" and kinds[1] == kinds[2]:
        return operands[1] if values[0] else operands[2]
    if len(set(kinds)) != 1:
        return None
    if opcode == "compare" and instruction.attribute("type") != "TOTALORDER":
        a, b = values
        return "truth", int((a > b) - (a < b) in _ORDERS[instruction.attributes["direction"]])
    if opcode in ("maximum", "minimum"):
        return kinds[0], max(values) if opcode == "maximum" else min(values)
    if opcode in ("or", "and") and kinds[0] == "truth":
        return "truth", max(values) if opcode == "or" else min(values)
    return ("truth", 1 - values[0]) if opcode == "not" and kinds[0] == "truth" else None
