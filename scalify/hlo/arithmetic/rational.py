"""Exact rationals: Python integers and fractions in object arrays, with infinities and NaN as IEEE has them.

Addition, subtraction, multiplication, division, comparison, extremes and rounding to integers are those of the reals, exactly; a root is
found where it is rational. Everything else is undecidable here, except at the few places where it is rational (exp 0 = 1). So
every value that an evaluation gives is the value over the reals (of the given inputs): two that differ refute.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from scalify.errors import OverBudget, Undecidable
from scalify.hlo.arithmetic import hashing, integers, prime
from scalify.hlo.arithmetic.pairs import Paired
from scalify.hlo.arithmetic.real import Real

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.hlo.arithmetic.domain import Array
    from scalify.hlo.dtypes import DType

Number: TypeAlias = Any
"""An int, a Fraction whose denominator is not 1, or one of the floats inf, -inf and nan."""

MOST_BITS = 1 << 14
"""Of a numerator or denominator."""

_NAN, _INF = math.nan, math.inf


def _missing(x: Number) -> bool:
    """Whether it is NaN."""
    return type(x) is float and math.isnan(x)


def normal(x: Number) -> Number:
    """A fraction that is an integer as one. :raises OverBudget: too many digits."""
    if type(x) is Fraction and x.denominator == 1:
        x = x.numerator
    if type(x) is not float and max(x.numerator.bit_length(), x.denominator.bit_length()) > MOST_BITS:
        raise OverBudget(f"an exact number has more than {MOST_BITS} binary digits")
    return x


def _ring(function: Callable[[Any, Any], Any]) -> Callable[[Number, Number], Number]:
    def operation(a: Number, b: Number) -> Number:
        if type(a) is float or type(b) is float:
            return _rough(function(_ieee(a), _ieee(b)))
        return normal(function(a, b))

    return operation


def _ieee(x: Number) -> float:
    """A finite number by one that behaves like it beside infinities."""
    return x if type(x) is float else float((x > 0) - (x < 0))


def _rough(x: float) -> Number:
    return x if not math.isfinite(x) else int(x)


def _divide(a: Number, b: Number) -> Number:
    if type(a) is float or type(b) is float:
        if type(b) is float and type(a) is not float:
            return _NAN if math.isnan(b) else 0
        return a if type(b) is not float and b == 0 else _rough(_ieee(a) / _ieee(b))
    if b == 0:
        return math.copysign(_INF, a) if a else _NAN
    return normal(Fraction(a, b))


def _remainder(a: Number, b: Number) -> Number:
    if type(a) is float or b == 0 or _missing(b):
        return _NAN
    return a if type(b) is float else normal(a - b * math.trunc(Fraction(a, b)))


def _power(a: Number, b: Number) -> Number:
    if type(a) is float or type(b) is float:
        if b == 0 or a == 1:
            return 1
        raise Undecidable("powers of infinities are not in the rational domain")
    if type(b) is not int:
        raise Undecidable("a power with an exponent that is no integer is not in the rational domain")
    size = max(a.numerator.bit_length(), a.denominator.bit_length(), 1)
    if abs(b) * size > 2 * MOST_BITS and a not in (0, 1, -1):
        raise OverBudget(f"an exact number has more than {MOST_BITS} binary digits")
    return _INF if a == 0 and b < 0 else normal(Fraction(a) ** b)


def _greatest(a: Number, b: Number) -> Number:
    return a if _missing(a) or (not _missing(b) and a >= b) else b


def _least(a: Number, b: Number) -> Number:
    return a if _missing(a) or (not _missing(b) and a <= b) else b


def _root(x: Number, degree: int = 2) -> Number:
    if type(x) is float or x < 0:
        return x if x == _INF else _NAN
    up, down = (_integer_root(n, degree) for n in (x.numerator, x.denominator))
    if up**degree != x.numerator or down**degree != x.denominator:
        raise Undecidable(f"the root of a number that is no {'square' if degree == 2 else 'cube'} is not in the rational domain")
    return normal(Fraction(up, down))


def _integer_root(n: int, degree: int) -> int:
    if degree == 2:
        return math.isqrt(n)
    low, high = 0, 1 << (n.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= n else (low, middle - 1)
    return low


def _cube_root(x: Number) -> Number:
    if type(x) is float:
        return x
    return _root(x, 3) if x >= 0 else -_root(-x, 3)


def _round_away(x: Number) -> Number:
    size = math.floor(abs(x) + Fraction(1, 2))
    return size if x >= 0 else -size


def _finite(function: Callable[[Number], Number]) -> Callable[[Number], Number]:
    """Infinities and NaN stay as they are."""
    return lambda x: x if type(x) is float else function(x)


def _only(opcode: str, values: dict[float, Number]) -> Callable[[Number], Number]:
    """A function that is rational at a few places."""

    def function(x: Number) -> Number:
        if _missing(x):
            return x
        if x not in values:
            raise Undecidable(f"{opcode} is not in the rational domain")
        return values[x]

    return function


_PLACES: dict[str, dict[float, Number]] = {
    "exponential": {0: 1, -_INF: 0, _INF: _INF}, "exponential-minus-one": {0: 0, -_INF: -1, _INF: _INF},
    "log": {1: 0, 0: -_INF, _INF: _INF}, "log-plus-one": {0: 0, -1: -_INF, _INF: _INF},
    "logistic": {0: Fraction(1, 2), -_INF: 0, _INF: 1}, "tanh": {0: 0, -_INF: -1, _INF: 1}, "erf": {0: 0, -_INF: -1, _INF: 1},
    "sine": {0: 0}, "cosine": {0: 1}, "tan": {0: 0}, "sinh": {0: 0, -_INF: -_INF, _INF: _INF}, "cosh": {0: 1, -_INF: _INF, _INF: _INF},
    "asin": {0: 0}, "acos": {1: 0}, "atan": {0: 0}, "asinh": {0: 0, -_INF: -_INF, _INF: _INF}, "acosh": {1: 0, _INF: _INF},
    "atanh": {0: 0, 1: _INF, -1: -_INF},
}  # fmt: skip
"""Where the transcendental functions are rational."""

_UNARY: dict[str, Callable[[Number], Number]] = {
    "abs": abs, "negate": operator.neg, "real": lambda x: x, "imag": lambda x: 0, "is-finite": lambda x: type(x) is not float,
    "sign": lambda x: x if _missing(x) else (x > 0) - (x < 0),
    "ceil": _finite(math.ceil), "floor": _finite(math.floor), "round-nearest-even": _finite(round), "round-nearest-afz": _finite(_round_away),
    "sqrt": _root, "rsqrt": lambda x: _divide(1, _root(x)), "cbrt": _cube_root,
    **{opcode: _only(opcode, values) for opcode, values in _PLACES.items()},
}  # fmt: skip
_BINARY: dict[str, Callable[[Number, Number], Number]] = {
    "add": _ring(operator.add), "subtract": _ring(operator.sub), "multiply": _ring(operator.mul), "divide": _divide, "remainder": _remainder,
    "power": _power, "maximum": _greatest, "minimum": _least,
}  # fmt: skip
_UFUNCS = {name: np.frompyfunc(f, n, 1) for n, table in ((1, _UNARY), (2, _BINARY)) for name, f in table.items()}


class Rational(Paired):
    """See the module. Opaque functions and unknown values are seeded rationals, as everywhere; ``arbitrary`` tells that they were used."""

    name = "rational"
    cost = 32

    def _float_storage(self) -> np.dtype[Any]:
        return np.dtype(object)

    def _float_encode(self, array: Array) -> Array:
        flat = [_exact(v) for v in array.reshape(-1).tolist()]
        result = np.empty(len(flat), dtype=object)
        result[:] = flat
        return result.reshape(array.shape)

    def _float(self, opcode: str, operands: Sequence[Array], dtype: DType) -> Array:
        function = _UFUNCS.get(opcode)
        if function is None:
            raise Undecidable(f"{opcode} is not in the rational domain")
        found = np.asarray(function(*operands), dtype=object)
        return found.astype(np.bool_) if opcode == "is-finite" else found

    def _float_matmul(self, a: Array, b: Array, dtype: DType) -> Array:
        """In integers over the common denominators; element by element where there are infinities or the denominators are too large."""
        left, right = _scaled(a), _scaled(b)
        if left is None or right is None:
            return self._slow_matmul(a, b, dtype)
        product = _integer_matmul(left[0], right[0])
        scale = left[1] * right[1]
        return np.asarray(np.frompyfunc(lambda x: normal(x if scale == 1 else Fraction(x, scale)), 1, 1)(product), dtype=object)

    def _slow_matmul(self, a: Array, b: Array, dtype: DType) -> Array:
        result = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), object)
        for k in range(a.shape[-1]):
            result = self._float("add", (result, self._float("multiply", (a[..., :, k : k + 1], b[..., k : k + 1, :]), dtype)), dtype)
        return result

    def root_of_unity(self, order: int, dtype: str) -> Array:
        if order not in (1, 2, 4):
            return super().root_of_unity(order, dtype)
        return self.encode(np.array([1, 1j, -1, -1j])[:: 4 // order], dtype)

    def _float_compare(self, direction: str, a: Array, b: Array) -> Array:
        return np.asarray(integers.COMPARISONS[direction](a, b), dtype=np.bool_)

    def _order_key(self, x: Array, dtype: DType) -> Array:
        """Ranks among the elements of ``x``; NaN comes last."""
        flat = x.reshape(-1).tolist()
        rank = {v: n for n, v in enumerate(sorted({v for v in flat if not _missing(v)}))}
        return np.array([rank.get(v, len(rank)) for v in flat], np.int64).reshape(x.shape)

    def _to_integer(self, x: Array, target: DType) -> Array:
        low, high = target.minimum or 0, target.maximum or 0

        def saturated(v: Number) -> Any:
            if type(v) is float:
                return 0 if math.isnan(v) else high if v > 0 else low
            return min(max(math.trunc(v), low), high)

        return np.array([saturated(v) for v in x.reshape(-1).tolist()], integers.storage(target.name)).reshape(x.shape)

    def to_bits(self, x: Array, dtype: DType) -> Array:
        values = np.array([_nearest(v) for v in x.reshape(-1).tolist()], np.float64)
        bits = Real().to_bits(values.reshape(x.shape), dtype)
        if (self._float_encode(Real().from_bits(bits, dtype)) != x).any():
            raise Undecidable(f"the bits of a number that {dtype.name} cannot hold")
        return bits

    def from_bits(self, bits: Array, dtype: DType) -> Array:
        return self._float_encode(Real().from_bits(bits, dtype).astype(np.float64))

    def _float_digest(self, x: Array) -> hashing.Words:
        """The image in the prime field, so that opaque functions of both domains agree."""
        return np.array([_residue(v) for v in x.reshape(-1).tolist()], np.uint64).reshape(x.shape)


def _exact(value: Any) -> Number:
    if isinstance(value, float):
        return normal(Fraction(value)) if math.isfinite(value) else value
    return normal(value if isinstance(value, Fraction) else int(value))


def _nearest(x: Number) -> float:
    """NaN for a number beyond all floats."""
    try:
        return float(x)
    except OverflowError:
        return _NAN


def _residue(x: Number) -> int:
    if type(x) is float:
        return prime.P + (1 if x > 0 else 2 if x < 0 else 3)
    return int(x.numerator * pow(x.denominator, -1, prime.P) % prime.P if x.denominator % prime.P else 0)


def _scaled(x: Array) -> tuple[Array, int] | None:
    """Integers whose common denominator is the second result."""
    scale = 1
    for v in x.reshape(-1).tolist():
        if type(v) is float or scale.bit_length() > MOST_BITS:
            return None
        scale = scale if scale % v.denominator == 0 else math.lcm(scale, v.denominator)
    return (x if scale == 1 else np.asarray(np.frompyfunc(lambda v: int(v * scale), 1, 1)(x), dtype=object)), scale


def _integer_matmul(a: Array, b: Array) -> Array:
    """In floating point where every partial sum is below 2^53."""
    largest = [max((abs(v) for v in x.reshape(-1).tolist()), default=0) for x in (a, b)]
    if largest[0] * largest[1] * a.shape[-1] < 1 << 53:
        product: Array = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(object)
        return product
    return np.asarray(np.matmul(a, b), dtype=object)
