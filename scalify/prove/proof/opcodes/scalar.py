"""The definition of elementwise opcodes: over the reals for floats, in two's complement of the declared width for integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from scalify.hlo.dtypes import DTYPES
from scalify.prove.proof.opcodes.elements import Polynomial

if TYPE_CHECKING:
    from scalify.prove.proof.opcodes.elements import Element
    from scalify.prove.proof.opcodes.specification import Arrays

Scalar = Callable[..., "Element"]


# -- real numbers ------------------------------------------------------------------------------------------------------------------
def _named(name: str) -> Scalar:
    """A function of which only its name is known, or what its name's axioms say."""
    return lambda a, *xs: a.elements.apply(name, xs)


def _subtract(a: Arrays, x: Element, y: Element) -> Element:
    return a.elements.add([x, a.elements.multiply([-1, y])])


def _power(a: Arrays, x: Element, y: Element) -> Element:
    """Repeated multiplication for integer exponents, roots for halves, else a function of both."""
    if isinstance(y, Polynomial):
        return a.elements.apply("power", [x, y])
    y = Fraction(y)
    if y.denominator == 1 and abs(y) <= 16:
        return a.elements.power(x, int(y))
    if abs(y) == Fraction(1, 2):
        root = a.elements.apply("sqrt", [x])
        return root if y > 0 else a.elements.inverse(root)
    return a.elements.apply("power", [x, y])


def _compare(a: Arrays, x: Element, y: Element) -> Element:
    """0/1 by direction: at least zero, and equal to zero, of a difference."""
    e = a.elements
    forward, backward = _subtract(a, x, y), _subtract(a, y, x)
    direction = a.attributes["direction"]
    ordered = forward if direction in ("GE", "LT") else backward
    found = e.holds("eq0", forward) if direction in ("EQ", "NE") else e.holds("ge0", ordered)
    return found if direction in ("EQ", "GE", "LE") else _subtract(a, 1, found)


def _floor(a: Arrays, x: Element) -> Element:
    return a.elements.apply("floor", [x]) if isinstance(x, Polynomial) else math.floor(x)


def _ceil(a: Arrays, x: Element) -> Element:
    return a.elements.multiply([-1, _floor(a, a.elements.multiply([-1, x]))])


def _even(a: Arrays, x: Element) -> Element:
    return a.elements.apply("round-nearest-even", [x]) if isinstance(x, Polynomial) else round(x)


def _away(a: Arrays, x: Element) -> Element:
    if isinstance(x, Polynomial):
        return a.elements.apply("round-nearest-afz", [x])
    return math.floor(x + Fraction(1, 2)) if x >= 0 else math.ceil(x - Fraction(1, 2))


def _truncated(x: int | Fraction, low: int, high: int) -> int:
    """Towards zero, the nearest end where that is out of range."""
    return min(max(math.trunc(x), low), high)


def _convert(a: Arrays, x: Element) -> Element:
    before, after = DTYPES[a.operation.operands[0].dtype], DTYPES[a.operation.dtype]
    if after.name == "pred":
        return _subtract(a, 1, a.elements.holds("eq0", x))
    if not after.is_integer:
        return x
    assert not isinstance(x, Polynomial)
    assert after.minimum is not None
    assert after.maximum is not None
    return _truncated(x, after.minimum, after.maximum) if before.is_float else int(x)


def _logistic(a: Arrays, x: Element) -> Element:
    e = a.elements
    return e.inverse(e.add([1, e.apply("exp", [e.multiply([-1, x])])]))


FLOAT: dict[str, Scalar] = {
    "add": lambda a, x, y: a.elements.add([x, y]),
    "subtract": _subtract,
    "negate": lambda a, x: a.elements.multiply([-1, x]),
    "multiply": lambda a, x, y: a.elements.multiply([x, y]),
    "divide": lambda a, x, y: a.elements.multiply([x, a.elements.inverse(y)]),
    "remainder": _named("remainder"),
    "power": _power,
    "sqrt": _named("sqrt"),
    "rsqrt": lambda a, x: a.elements.inverse(a.elements.apply("sqrt", [x])),
    "exponential": _named("exp"),
    "exponential-minus-one": lambda a, x: a.elements.add([a.elements.apply("exp", [x]), -1]),
    "log": _named("log"),
    "log-plus-one": lambda a, x: a.elements.apply("log", [a.elements.add([x, 1])]),
    "abs": _named("abs"),
    "sign": _named("sign"),
    "maximum": lambda a, x, y: a.elements.greatest([x, y]),
    "minimum": lambda a, x, y: a.elements.least([x, y]),
    "clamp": lambda a, low, x, high: a.elements.least([a.elements.greatest([low, x]), high]),
    "floor": _floor,
    "ceil": _ceil,
    "round-nearest-even": _even,
    "round-nearest-afz": _away,
    "is-finite": lambda a, x: 1,
    "logistic": _logistic,
    **{name: _named(name) for name in ("tanh", "tan", "sine", "cosine", "erf", "cbrt", "atan2")},
    "real": lambda a, x: a.elements.apply("real None", [x, 0]),
    "imag": lambda a, x: a.elements.apply("imag None", [x, 0]),
    "complex": lambda a, x, y: a.elements.apply("complex None", [x, y]),
    "compare": _compare,
    "select": lambda a, p, x, y: a.elements.select(p, x, y),
    "convert": _convert,
}


# -- integers ----------------------------------------------------------------------------------------------------------------------
def _limits(a: Arrays) -> tuple[int, int]:
    known = DTYPES[a.operation.operands[0].dtype]
    assert known.minimum is not None
    assert known.maximum is not None
    return known.minimum, known.maximum


def _bits(a: Arrays) -> int:
    low, high = _limits(a)
    return (high - low).bit_length()


def _wrap(a: Arrays, x: int) -> int:
    """The number of the type with the same bits."""
    low, high = _limits(a)
    return (x - low) % (high - low + 1) + low


def _unsigned(a: Arrays, x: int) -> int:
    return x % (1 << _bits(a))


def _modular(function: Callable[..., int]) -> Scalar:
    return lambda a, *xs: _wrap(a, function(*xs))


def _bitwise(function: Callable[..., int]) -> Scalar:
    return lambda a, *xs: _wrap(a, function(*[_unsigned(a, x) for x in xs]))


def _divide(a: Arrays, x: int, y: int) -> int:
    """Towards zero; by 0 all bits are set."""
    if y == 0:
        return _wrap(a, -1)
    magnitude = abs(x) // abs(y)
    return _wrap(a, magnitude if (x < 0) == (y < 0) else -magnitude)


def _remainder(a: Arrays, x: int, y: int) -> int:
    """With the sign of the dividend; by 0 the dividend."""
    return x if y == 0 else _wrap(a, x - y * (abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)))


def _integer_power(a: Arrays, x: int, y: int) -> int:
    """Repeated multiplication; a negative exponent is 1/x, truncated."""
    if y >= 0:
        return _wrap(a, x**y)
    return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)


def _shift_left(a: Arrays, x: int, k: int) -> int:
    return _wrap(a, x << k) if 0 <= _unsigned(a, k) < _bits(a) else 0


def _shift_right(a: Arrays, x: int, k: int) -> int:
    return _wrap(a, _unsigned(a, x) >> k) if _unsigned(a, k) < _bits(a) else 0


def _shift_arithmetic(a: Arrays, x: int, k: int) -> int:
    top = _unsigned(a, x) >> (_bits(a) - 1)
    signed = _unsigned(a, x) - (top << _bits(a))
    return _wrap(a, signed >> (_unsigned(a, k) if _unsigned(a, k) < _bits(a) else _bits(a) - 1))


def _leading(a: Arrays, x: int) -> int:
    return _bits(a) - _unsigned(a, x).bit_length()


INTEGER: dict[str, Scalar] = {
    "add": _modular(lambda x, y: x + y),
    "subtract": _modular(lambda x, y: x - y),
    "multiply": _modular(lambda x, y: x * y),
    "negate": _modular(lambda x: -x),
    "abs": _modular(abs),
    "sign": lambda a, x: (x > 0) - (x < 0),
    "divide": _divide,
    "remainder": _remainder,
    "power": _integer_power,
    "maximum": lambda a, x, y: max(x, y),
    "minimum": lambda a, x, y: min(x, y),
    "and": _bitwise(lambda x, y: x & y),
    "or": _bitwise(lambda x, y: x | y),
    "xor": _bitwise(lambda x, y: x ^ y),
    "not": _bitwise(lambda x: ~x),
    "shift-left": _shift_left,
    "shift-right-logical": _shift_right,
    "shift-right-arithmetic": _shift_arithmetic,
    "popcnt": lambda a, x: _unsigned(a, x).bit_count(),
    "count-leading-zeros": _leading,
}
