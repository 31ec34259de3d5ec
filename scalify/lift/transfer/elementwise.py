"""Elementwise opcodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from scalify.hlo.dtypes import DTYPES
from scalify.lift import elementary, functions
from scalify.lift.compare import compare
from scalify.lift.linear import combine, form, negate, scale
from scalify.lift.product import complement, divide, multiply, times
from scalify.lift.terms import View, bounds, is_boolean, is_integer, remember
from scalify.lift.transfer.base import TRANSFERS, exact, lifts

if TYPE_CHECKING:
    from scalify.lift.layout import Value
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation

Rule = Callable[["Lifter", "Operation", Sequence[View]], View]

#: opcodes whose operands enter modulo 2^bits: addition, multiplication and what only passes values on
_MODULAR = frozenset({"add", "subtract", "multiply", "negate", "select"})
#: opcodes whose rules look at the operands alone when these are floats
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "rsqrt"})
#: opcodes whose laws need an order, or values of one sheet: uninterpreted on complex numbers
_OF_REALS = frozenset({"exponential", "exponential-minus-one", "log", "log-plus-one", "sqrt", "rsqrt", "power", "abs", "sign"})


def _elementwise(rule: Rule, opcode: str) -> Callable[[Lifter, Operation], list[Value]]:
    modular = opcode in _MODULAR

    def transfer(lifter: Lifter, operation: Operation) -> list[Value]:
        layout = lifter.result_layout(operation)
        operands = [lifter.aligned(o, layout) for o in operation.operands]
        if opcode in _OF_REALS and DTYPES[lifter.dtype(operation.operands[0])].is_complex:
            return [lifter.value(layout, [functions.function(lifter.store, "complex", v, opcode) for v in zip(*operands, strict=True)])]
        if not modular:
            dtypes = [lifter.dtype(o) for o in operation.operands]
            if any(DTYPES[d].is_integer for d in dtypes):
                operands = [[exact(lifter, v, d) for v in views] for views, d in zip(operands, dtypes, strict=True)]
        if opcode in _ARITHMETIC and DTYPES[lifter.dtype(operation.results[0])].is_float:
            return [lifter.value(layout, [_remembered(rule, opcode, lifter, operation, views) for views in zip(*operands, strict=True)])]
        return [lifter.value(layout, [rule(lifter, operation, views) for views in zip(*operands, strict=True)])]

    return transfer


def _remembered(rule: Rule, opcode: str, lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return remember(lifter.store, opcode, views, lambda v, _: rule(lifter, operation, v))


def maps(*opcodes: str) -> Callable[[Rule], Rule]:
    """Declares the rule of elementwise opcodes: operand views of one block to the result's view."""

    def register(rule: Rule) -> Rule:
        for opcode in opcodes:
            TRANSFERS[opcode] = _elementwise(rule, opcode)
        return rule

    return register


# -- arithmetic ----------------------------------------------------------------------------------------------------------
@maps("add")
def _add(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    if lifter.dtype(operation.results[0]) == "pred":
        return functions.either(lifter.store, *views)
    return combine(lifter.store, ((1, views[0]), (1, views[1])))


@maps("subtract")
def _subtract(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return combine(lifter.store, ((1, views[0]), (-1, views[1])))


@maps("negate")
def _negate(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return negate(lifter.store, views[0])


@maps("multiply")
def _multiply(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return multiply(lifter.store, ((views[0], 1), (views[1], 1)))


@maps("divide")
def _divide(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    a, b = views
    store = lifter.store
    if not DTYPES[lifter.dtype(operation.results[0])].is_integer:
        return divide(store, a, b) if b.coef else functions.function(store, "divide-by-zero", [a])
    if b.term is store.one and type(b.coef) is int and b.coef > 0:
        found = functions.integer_quotient(store, a, b.coef)
        if found is not None:
            return found
    return functions.function(store, "divide", views, lifter.limits(operation.results[0]))


@maps("remainder")
def _remainder(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    a, b = views
    store = lifter.store
    if DTYPES[lifter.dtype(operation.results[0])].is_integer and b.term is store.one and type(b.coef) is int and b.coef > 0:
        found = functions.remainder(store, a, b.coef)
        if found is not None:
            return found
    return functions.function(store, "remainder", views, lifter.integer_limits(operation.results[0]))


@maps("power")
def _power(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    base, exponent = views
    store = lifter.store
    if exponent.term is store.one or exponent.coef == 0:
        value = exponent.coef
        whole = DTYPES[lifter.dtype(operation.results[0])].is_integer  # then 1 / x is no power of x
        if type(value) is int and abs(value) <= 16 and (value >= 0 or (base.coef and not whole)):
            return multiply(store, ((base, value),)) if value else store.constant(1)
        if value in (Fraction(1, 2), Fraction(-1, 2)) and base.coef:
            return multiply(store, ((elementary.root(store, base), 1 if value > 0 else -1),))
    limits = lifter.integer_limits(operation.results[0])
    falling = exponent.coef < 0 and not exponent.term.odd and not exponent.term.taint
    if limits is None and falling and base.coef > 0 and base.term.positive:  # a ** -x is 1 / a ** x
        return multiply(store, ((functions.function(store, "power", [base, negate(store, exponent)]), -1),))
    return functions.function(store, "power", views, limits)


@maps("sqrt")
def _sqrt(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return elementary.root(lifter.store, views[0])


@maps("rsqrt")
def _rsqrt(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    root = elementary.root(lifter.store, views[0])
    return multiply(lifter.store, ((root, -1),)) if root.coef else functions.function(lifter.store, "divide-by-zero", [])


@maps("exponential")
def _exponential(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    lifter.note_exponential(operation, views[0])
    return elementary.exponential(lifter.store, views[0])


@maps("exponential-minus-one")
def _expm1(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return combine(lifter.store, ((1, elementary.exponential(lifter.store, views[0])),), -1)


@maps("log")
def _log(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return elementary.logarithm(lifter.store, views[0])


@maps("log-plus-one")
def _log1p(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return elementary.logarithm(lifter.store, combine(lifter.store, ((1, views[0]),), 1))


@maps("abs")
def _abs(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return functions.magnitude(lifter.store, views[0])


@maps("sign")
def _sign(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return functions.sign(lifter.store, views[0])


@maps("maximum")
def _maximum(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return functions.maximum(lifter.store, views[0], views[1])


@maps("minimum")
def _minimum(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return functions.minimum(lifter.store, views[0], views[1])


@maps("clamp")
def _clamp(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    low, x, high = views
    store = lifter.store
    if low.term is store.one and high.term is store.one:
        return functions.clamp(store, x, low.coef, high.coef)
    return functions.minimum(store, functions.maximum(store, low, x), high)


@maps("floor")
def _floor(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return floor(lifter, views[0])


@maps("ceil")
def _ceil(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return negate(lifter.store, floor(lifter, negate(lifter.store, views[0])))


def floor(lifter: Lifter, view: View) -> View:
    """Largest integer not above the view; exact quotients of ranged integers are integer divisions."""
    store = lifter.store
    if is_integer(view) or view.coef == 0:
        return view
    found = integer_over(lifter, view)
    if found is not None:
        top, divisor = found
        limits = bounds(top)
        if limits is not None:
            shift = max(0, -int(limits[0] // divisor))
            moved = functions.integer_quotient(store, combine(store, ((1, top),), shift * divisor), divisor)
            if moved is not None:
                return combine(store, ((1, moved),), -shift)
    return functions.function(store, "floor", [view])


def integer_over(lifter: Lifter, view: View) -> tuple[View, int] | None:
    """``(top, divisor)`` with ``view = top / divisor`` and an integer-valued top."""
    entries, constant = form(view)
    if not all(term.integer for term, _ in entries):
        return None
    divisor = 1
    for c in (*entries.values(), constant):
        divisor = lcm(divisor, c.denominator)
    return scale(lifter.store, view, divisor), divisor


@maps("round-nearest-even", "round-nearest-afz")
def _round(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    if is_integer(views[0]) or views[0].coef == 0:
        return views[0]
    return functions.function(lifter.store, operation.opcode, views)


@maps("is-finite")
def _is_finite(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    if views[0].term.taint:
        return _boolean_function(lifter, "is-finite", views)
    lifter.store.used.add("is-finite")
    return lifter.store.constant(1)


def _boolean_function(lifter: Lifter, name: str, views: Sequence[View]) -> View:
    return functions.function(lifter.store, "bits", views, (name, (0, 1)))


@maps("logistic", "tanh", "tan", "sine", "cosine", "erf", "cbrt", "atan2")
def _uninterpreted(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return functions.function(lifter.store, operation.opcode, views)


@maps("real", "imag", "complex")
def _complex(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return functions.function(lifter.store, operation.opcode, views)


# -- logic ---------------------------------------------------------------------------------------------------------------
@maps("and", "or", "xor", "not")
def _logic(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    store = lifter.store
    dtype = lifter.dtype(operation.results[0])
    if operation.opcode == "not":
        return complement(store, views[0]) if dtype == "pred" else combine(store, ((-1, views[0]),), -1)
    if all(is_boolean(v) or (v.coef in (0, 1) and v.term is store.one) for v in views):
        both = times(store, views[0], views[1])
        if operation.opcode == "and":
            return both
        if operation.opcode == "or":
            return functions.either(store, views[0], views[1])
        return combine(store, ((1, views[0]), (1, views[1]), (-2, both)))
    if operation.opcode == "and":
        found = _masked(lifter, views)
        if found is not None:
            return found
    ordered = sorted(views, key=lambda v: (v.term.id, v.coef, v.at))
    return functions.function(store, "bits", ordered, (operation.opcode, lifter.limits(operation.results[0])))


def _masked(lifter: Lifter, views: Sequence[View]) -> View | None:
    """``x and (2^k - 1)`` of a non-negative x is a remainder."""
    for x, mask in (views, views[::-1]):
        value = mask.coef
        if mask.term is lifter.store.one and type(value) is int and value > 0 and value & (value + 1) == 0:
            return functions.remainder(lifter.store, x, value + 1)
    return None


@maps("shift-left", "shift-right-logical", "shift-right-arithmetic")
def _shift(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    x, by = views
    store = lifter.store
    bits = DTYPES[lifter.dtype(operation.results[0])].bits
    if by.term is store.one and type(by.coef) is int and 0 <= by.coef < bits:
        if operation.opcode == "shift-left":
            return scale(store, x, 1 << by.coef) if x.coef else x
        limits = bounds(x)
        signed = operation.opcode == "shift-right-arithmetic"  # which takes the top bit of an unsigned integer for a sign
        if limits is not None and not (signed and limits[1] >= 1 << (bits - 1)):
            found = functions.integer_quotient(store, x, 1 << by.coef)
            if found is not None:
                return found
    return functions.function(store, "bits", views, (operation.opcode, lifter.limits(operation.results[0])))


@maps("popcnt", "count-leading-zeros")
def _bit_counts(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    bits = DTYPES[lifter.dtype(operation.results[0])].bits
    return functions.function(lifter.store, "bits", views, (f"{operation.opcode}{bits}", (0, bits)))


# -- comparison, selection, conversion -----------------------------------------------------------------------------------
@maps("compare")
def _compare(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    a, b = views
    if a.term.taint or b.term.taint:
        return _compare_tainted(lifter, operation, a, b)
    return compare(lifter.store, operation.instruction.attributes["direction"], a, b)


def _compare_tainted(lifter: Lifter, operation: Operation, a: View, b: View) -> View:
    """A comparison that may meet infinities or NaN: uninterpreted, but for a finite value against an infinity."""
    direction = operation.instruction.attributes["direction"]
    for x, y, flip in ((a, b, False), (b, a, True)):
        if y.term.kind == "infinity" and not x.term.taint:
            below = (y.coef > 0) != flip
            truth = {"EQ": False, "NE": True, "LT": below, "LE": below, "GT": not below, "GE": not below}[direction]
            return lifter.store.constant(int(truth))
    return _boolean_function(lifter, f"compare-{direction}", [a, b])


@maps("select")
def _select(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    return functions.select(lifter.store, views[0], views[1], views[2])


@maps("convert")
def _convert(lifter: Lifter, operation: Operation, views: Sequence[View]) -> View:
    before, after = DTYPES[lifter.dtype(operation.operands[0])], DTYPES[lifter.dtype(operation.results[0])]
    view = views[0]
    if after.is_complex != before.is_complex:
        return functions.function(lifter.store, "convert", views, after.name)
    if after.name == "pred":
        return compare(lifter.store, "NE", view, lifter.store.constant(0)) if before.name != "pred" else view
    if not after.is_integer or not before.is_float:
        return view
    limits = lifter.limits(operation.results[0])
    found = bounds(view)
    if is_integer(view) and found is not None and found[0] >= limits[0] and found[1] <= limits[1]:
        return view
    return functions.function(lifter.store, "trunc", views, limits)


@lifts("reduce-precision")
def _reduce_precision(lifter: Lifter, operation: Operation) -> list[Value]:
    return [lifter.values[operation.operands[0]]]
