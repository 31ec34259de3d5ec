"""What the functions mean that ``fn`` nodes name, on known numbers and on symbols."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from scalify.prove.proof.opcodes.elements import Polynomial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.prove.proof.opcodes.elements import Element, Elements


class UnknownError(Exception):
    """A value of which nothing is known: an opaque operation, an infinity."""


def function(e: Elements, name: str, attribute: Any, xs: Sequence[Element]) -> Element:
    """A function by its name. :raises UnknownError: one that these instances do not use."""
    if name in _ON_ANY:
        return _ON_ANY[name](e, attribute, *xs)
    numbers = [x for x in xs if not isinstance(x, Polynomial)]
    if len(numbers) == len(xs) and name in _ON_NUMBERS:
        return _ON_NUMBERS[name](attribute, *numbers)
    if name in _REAL or name in ("power", "remainder", "atan2", "round-nearest-even", "round-nearest-afz"):
        return e.apply(name, xs)
    if name in ("trunc", "real", "imag", "complex", "convert", "bits"):
        return e.apply(f"{name} {attribute}", [*xs, *[0] * (len(xs) == 1)])
    raise UnknownError(f"function {name}")


_REAL = frozenset({"exp", "log", "sqrt", "logistic", "tanh", "tan", "sine", "cosine", "erf", "cbrt", "floor", "abs", "sign"})


def _clamp(e: Elements, ends: tuple[Any, Any], x: Element) -> Element:
    low, high = ends
    x = x if low is None else e.greatest([x, low])
    return x if high is None else e.least([x, high])


_ON_ANY: dict[str, Callable[..., Element]] = {
    "max": lambda e, _, *xs: e.greatest(xs),
    "clamp": _clamp,
    "select": lambda e, _, p, x, y: e.select(p, x, y),
    "divide-by-zero": lambda e, *_: e.undefined,
}


def wrapped(value: int, low: int, high: int) -> int:
    """The number in a range that differs by a multiple of its length."""
    return (value - low) % (high - low + 1) + low


def _divide(limits: tuple[int, int], a: int, b: int) -> int:
    a, b = wrapped(a, *limits), wrapped(b, *limits)
    if b == 0:
        return -1 if limits[0] < 0 else limits[1]
    return wrapped(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), *limits)


def _remainder(limits: tuple[int, int], a: int, b: int) -> int:
    a, b = wrapped(a, *limits), wrapped(b, *limits)
    return a if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)


def _power(limits: tuple[int, int], a: int, b: int) -> int:
    a, b = wrapped(a, *limits), wrapped(b, *limits)
    if b < 0:
        return 0 if abs(a) != 1 else a ** (-b % 2)
    return wrapped(a**b, *limits)


def _bits(attribute: tuple[str, tuple[int, int]], *xs: int) -> int:
    name, (low, high) = attribute
    count = high - low + 1
    if name.startswith("popcnt"):
        return (xs[0] % (1 << int(name[6:]))).bit_count()
    if name.startswith("count-leading-zeros"):
        bits = int(name[19:])
        return bits - (xs[0] % (1 << bits)).bit_length()
    return wrapped(_BITWISE[name](count, *[x % count for x in xs]), low, high)


def _arithmetic_shift(count: int, x: int, k: int) -> int:
    return (x - count if x >= count // 2 else x) >> min(k, count.bit_length() - 2)


_BITWISE: dict[str, Callable[..., int]] = {
    "and": lambda _, a, b: a & b,
    "or": lambda _, a, b: a | b,
    "xor": lambda _, a, b: a ^ b,
    "shift-left": lambda count, x, k: x << k if k < count.bit_length() - 1 else 0,
    "shift-right-logical": lambda count, x, k: x >> k if k < count.bit_length() - 1 else 0,
    "shift-right-arithmetic": _arithmetic_shift,
}


def _away(x: Fraction) -> int:
    return (1 if x >= 0 else -1) * math.floor(abs(x) + Fraction(1, 2))


_ON_NUMBERS: dict[str, Callable[..., int | Fraction]] = {
    "rem": lambda k, x: x % k,
    "quotient": lambda k, x: x // k,
    "wrap": lambda ends, x: wrapped(x, *ends),
    "trunc": lambda ends, x: min(max(math.trunc(x), ends[0]), ends[1]),
    "sign": lambda _, x: (x > 0) - (x < 0),
    "abs": lambda _, x: abs(x),
    "floor": lambda _, x: math.floor(x),
    "round-nearest-even": lambda _, x: round(x),
    "round-nearest-afz": lambda _, x: _away(Fraction(x)),
    "divide": _divide,
    "remainder": _remainder,
    "power": _power,
    "bits": _bits,
}
