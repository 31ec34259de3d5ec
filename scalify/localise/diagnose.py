"""What a suspect does wrong, in words that a framework engineer understands at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.localise.known import COLLECTIVES, REDUCTIONS, Known, Status
from scalify.localise.suspects import origin_of_partial
from scalify.report.model import Kind

if TYPE_CHECKING:
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation
    from scalify.lift.terms import Number, View

_LAYOUT = frozenset({"reshape", "transpose", "bitcast", "broadcast", "reverse"})
_SLICES = frozenset({"slice", "dynamic-slice", "dynamic-update-slice", "gather", "scatter", "pad", "concatenate"})


def diagnose(known: Known, operation: Operation) -> tuple[Kind, str]:
    """The kind of mistake at a suspect that no repair is known for, and a sentence about it."""
    lifter = known.distributed
    for test in (_missing_reduction, _wrong_order):
        found = test(known, operation)
        if found is not None:
            return found
    view = _first_unrelated(lifter, known, operation)
    return _wrong_scale(known, operation, view) or _by_opcode(operation)


def _first_unrelated(lifter: Lifter, known: Known, operation: Operation) -> View:
    views = [v for r in operation.results for v in lifter.values[r].views]
    return next((v for v in views if not known.has(v)), views[0])


def blamed(known: Known, operation: Operation) -> Operation:
    """The operation to name for a suspect: what makes a partial value that is taken for a whole one."""
    value = _partial(known, operation)
    return (origin_of_partial(known, value) if value is not None else None) or operation


def _partial(known: Known, operation: Operation) -> int | None:
    """The partial value that the operation takes for a whole one, or gives to the output."""
    if operation.opcode in COLLECTIVES or any(known.status(r) is Status.REORDERED for r in operation.results):
        return None
    for value in (*operation.operands, *operation.results):
        if known.status(value) is Status.PARTIAL and known.partial_axes(known.distributed.values[value]):
            return value
    return None


def _missing_reduction(known: Known, operation: Operation) -> tuple[Kind, str] | None:
    """The operation takes a partial sum for a whole value, or gives one to the output."""
    value = _partial(known, operation)
    if value is None:
        return None
    axes = known.partial_axes(known.distributed.values[value]) or ()
    origin = origin_of_partial(known, value)
    if origin is not None and origin.opcode in REDUCTIONS:
        return Kind.WRONG_GROUPS, f"`{origin.opcode}` {_shown(origin)}leaves a sum over {' and '.join(axes)} to be done"
    user = f", and `{operation.opcode}` uses it" if value in operation.operands else ", and it is used"
    made = (
        f"`{origin.opcode}` gives a part of the sum over {' and '.join(axes)}"
        if origin is not None
        else f"a part of the sum over {' and '.join(axes)}"
    )
    return Kind.MISSING_REDUCTION, f"{made}{user} as if it were whole: a reduction is missing"


def _wrong_order(known: Known, operation: Operation) -> tuple[Kind, str] | None:
    if any(known.status(r) is Status.REORDERED for r in operation.results):
        text = f"`{operation.opcode}` gives the baseline's elements in an order of dimensions that the baseline does not have"
        return Kind.WRONG_LAYOUT, text
    return None


def _wrong_scale(known: Known, operation: Operation, view: View) -> tuple[Kind, str] | None:
    coefs = known.coefficients.get(view.term)
    if not coefs or not view.coef or view.term.kind == "one":
        return None
    if view.coef in coefs:
        return None
    ratio = _ratio(view.coef, coefs[0])
    if operation.opcode in REDUCTIONS:
        text = f"`{operation.opcode}` sums a value that is already whole on every device: the result is {ratio} times the baseline's"
        return Kind.EXTRA_REDUCTION, text
    if ratio == "-1":
        return Kind.WRONG_OPERAND, f"`{operation.opcode}` gives the negative of the baseline's value (operands exchanged, or a sign lost)"
    return Kind.WRONG_SCALE, f"the value is {ratio} times the baseline's"


def _ratio(a: Number, b: Number) -> str:
    value = a / b if b else a
    return str(value) if float(value).is_integer() else f"{float(value):.6g}"


def _by_opcode(operation: Operation) -> tuple[Kind, str]:
    opcode = operation.opcode
    if opcode in COLLECTIVES:
        groups = operation.instruction.attributes.get("replica_groups")
        detail = f" ({_groups(groups.groups)})" if groups is not None and groups.groups else ""
        return (
            Kind.WRONG_GROUPS,
            f"`{opcode}`{detail} gives a value that the baseline does not have, although its operand is related to the baseline",
        )
    if opcode in _LAYOUT:
        return Kind.WRONG_LAYOUT, f"`{opcode}` puts the elements into an order that the baseline does not have"
    if opcode in _SLICES:
        return Kind.WRONG_SLICE, f"`{opcode}` reads or writes another part of the value than the baseline"
    if opcode == "constant":
        return Kind.WRONG_CONSTANT, "the baseline has no such constant"
    if opcode in ("dot", "convolution", "reduce"):
        return (
            Kind.WRONG_AXIS,
            f"`{opcode}` contracts its operands in a way that the baseline does not: another dimension, order or operand",
        )
    return (
        Kind.UNRELATED,
        f"`{opcode}` is the first value that the baseline does not have, although its operands are related to the baseline",
    )


def _shown(operation: Operation) -> str:
    groups = operation.instruction.attributes.get("replica_groups")
    return f"over {_groups(groups.groups)} " if groups is not None and groups.groups else ""


def _groups(groups: tuple[tuple[int, ...], ...]) -> str:
    text = "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in groups) + "}"
    return text if len(text) <= 60 else text[:57] + "..."
