"""What a suspect does wrong, in words that a framework engineer understands at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.localise.known import COLLECTIVES, REDUCTIONS, Known, Status
from scalify.localise.suspects import origin_of_order, origin_of_partial, origin_of_scale
from scalify.report.model import Kind

if TYPE_CHECKING:
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation
    from scalify.lift.terms import Number, View
    from scalify.localise.repair import Repair

_LAYOUT = frozenset({"reshape", "transpose", "bitcast", "broadcast", "reverse"})
_SLICES = frozenset({"slice", "dynamic-slice", "dynamic-update-slice", "gather", "scatter", "pad", "concatenate"})


def diagnose(known: Known, operation: Operation, repair: Repair | None = None) -> tuple[Kind, str]:
    """The kind of mistake and a sentence about it; ``repair`` is what would make the graph verify here, if that is known."""
    if repair is not None:
        found = _by_repair(known, operation, repair)
        if found is not None:
            return found
    lifter = known.distributed
    for test in (_missing_reduction, _wrong_order):
        found = test(known, operation)
        if found is not None:
            return found
    view = _first_unrelated(lifter, known, operation)
    return _wrong_scale(known, operation, view) or _by_opcode(operation)


def _by_repair(known: Known, operation: Operation, repair: Repair) -> tuple[Kind, str] | None:
    if repair.change == "sum":
        return _missing_reduction(known, operation, repair.value)
    if repair.change == "group":
        reducer = operation.computations[0] if operation.computations else None
        if reducer is not None and reducer.instructions[reducer.root].opcode != "add":
            return (
                Kind.WRONG_OPERATION,
                f"`{operation.opcode}` reduces with `{reducer.instructions[reducer.root].opcode}` where a sum is needed",
            )
        return Kind.WRONG_GROUPS, f"`{operation.opcode}` {_shown(operation)}has to sum over {' and '.join(repair.axes)}"
    if repair.change == "order":
        origin = origin_of_order(known, repair.value)
        made = f"`{origin.opcode}` gives" if origin is not None else "an operand has"
        return Kind.WRONG_LAYOUT, f"{made} the baseline's elements in an order that `{operation.opcode}` does not expect"
    if repair.change == "skip":
        return _superfluous(operation)
    if repair.change == "operand":
        if known.status(repair.value) is Status.CONSTANT:
            return Kind.WRONG_CONSTANT, f"a constant operand of `{operation.opcode}` is not the baseline's"
        made = f": there it is the result of `{repair.counterpart.opcode}`" if repair.counterpart is not None else ""
        return Kind.WRONG_OPERAND, f"`{operation.opcode}` has another operand than the baseline's{made}"
    if repair.counterpart is not None:
        return _against(known, operation, repair.counterpart)
    return None


def _superfluous(operation: Operation) -> tuple[Kind, str]:
    opcode = operation.opcode
    if opcode in REDUCTIONS:
        return Kind.EXTRA_REDUCTION, f"`{opcode}` reduces a value that is already whole on every device"
    if opcode in COLLECTIVES:
        return Kind.WRONG_GROUPS, f"`{opcode}` moves a value that is already where it belongs"
    if opcode in _LAYOUT:
        return Kind.WRONG_LAYOUT, f"`{opcode}` reorders elements that are already in the baseline's order"
    if opcode in _SLICES:
        return Kind.WRONG_SLICE, f"`{opcode}` moves elements that are already where they belong"
    return Kind.WRONG_OPERATION, f"the baseline has no such `{opcode}`: it uses an operand as it is"


def _against(known: Known, operation: Operation, other: Operation) -> tuple[Kind, str] | None:
    """The operation compared with the baseline's."""
    opcode = operation.opcode
    if opcode in COLLECTIVES:
        return None
    if other.opcode != opcode:
        if opcode in _LAYOUT or opcode in _SLICES:
            return None
        return Kind.WRONG_OPERATION, f"`{opcode}` where the baseline has `{other.opcode}`"
    mine, theirs = [_terms(known.distributed, o) for o in operation.operands], [_terms(known.lifter, o) for o in other.operands]
    if sorted(mine) != sorted(theirs):
        different = [o for o, m in zip(operation.operands, mine, strict=True) if m not in theirs]
        if any(known.status(o) is Status.CONSTANT for o in different):
            return Kind.WRONG_CONSTANT, f"a constant operand of `{opcode}` is not the baseline's"
        return (Kind.WRONG_OPERAND, f"`{opcode}` has another operand than the baseline's") if different else None
    if opcode == "compare" and operation.instruction.attributes.get("direction") != other.instruction.attributes.get("direction"):
        return (
            Kind.WRONG_OPERATION,
            f"`compare` is {operation.instruction.attributes.get('direction')}, the baseline's {other.instruction.attributes.get('direction')}",
        )
    if mine != theirs:
        return Kind.WRONG_OPERAND, f"the operands of `{opcode}` are exchanged"
    return None


def _terms(lifter: Lifter, value: int) -> tuple[tuple[float, int], ...]:
    return tuple([(float(v.coef), v.term.id) for v in lifter.values[value].views])


def _first_unrelated(lifter: Lifter, known: Known, operation: Operation) -> View:
    views = [v for r in operation.results for v in lifter.values[r].views]
    return next((v for v in views if not known.has(v)), views[0])


def blamed(known: Known, operation: Operation, repair: Repair | None = None) -> Operation:
    """The operation to name for a suspect: what makes a partial value that is taken for a whole one, or brings in a wrong factor."""
    if repair is not None and repair.change == "scale":
        return origin_of_scale(known, operation)
    if repair is not None and repair.change == "order":
        return origin_of_order(known, repair.value) or operation
    if repair is not None and repair.change != "sum":
        return operation
    value = repair.value if repair is not None else _partial(known, operation)
    return (origin_of_partial(known, value) if value is not None else None) or operation


def _partial(known: Known, operation: Operation) -> int | None:
    """The partial value that the operation takes for a whole one, or gives to the output."""
    if operation.opcode in COLLECTIVES or any(known.status(r) is Status.REORDERED for r in operation.results):
        return None
    for value in (*operation.operands, *operation.results):
        if known.status(value) is Status.PARTIAL and known.partial_axes(known.distributed.values[value]):
            return value
    return None


def _missing_reduction(known: Known, operation: Operation, value: int | None = None) -> tuple[Kind, str] | None:
    """The operation takes a partial sum for a whole value, or gives one to the output."""
    value = _partial(known, operation) if value is None else value
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
