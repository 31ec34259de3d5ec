"""The field of integers modulo P = 2^61 - 2^17 - 1, for tests of identity in the manner of Schwartz and Zippel.

A finite float is the dyadic rational that it is, mapped to the field by the ring homomorphism from the rationals whose denominators P
does not divide. Ring operations and division are those of the field. The rest is *arbitrary but fixed*, chosen by the seed:

- a transcendental function, a root, a rounding to integers, a bit pattern is an uninterpreted function: equal elements give equal results,
  and the results for different elements, functions or seeds are unrelated. Functions that are defined by others stay so
  (``rsqrt = 1 / sqrt``, ``logistic = 1 / (1 + exp(-x))``, ``tanh``, ``tan``, ``sinh``, ``cosh``, ``expm1``, ``log1p``, integer powers), as do values at
  0 and 1. No other law of theirs holds, neither ``exp(a + b) = exp(a) exp(b)`` nor ``sqrt(x)^2 = x``;
- the order is a total order on the elements in which multiples of 2^-10 below 2^22 lie as they do among the reals, all others lie around
  them at random, and the usual masks (powers of ten from 10^8, the largest finite floats) lie outside of these. So extremes are
  associative, commutative and idempotent, sorting sorts, and counters, positions and masks work as they should; but the order does not
  respect addition or multiplication (``a < b`` says nothing of ``a + c < b + c``);
- infinities and NaN are codes outside the field with the arithmetic of IEEE, where the sign of an element is that of the order.

What a verdict may lean on. *Equal in the field*: evidence that the graphs are equal, for ring expressions up to degree / P per element;
never a proof. *Different in the field*: if :attr:`Field.arbitrary` is empty, only ring operations and comparisons of known numbers were used, and
the graphs differ over the rationals on the same inputs (short of a divisor or a compared number that is a multiple of P, which only a graph
made for it has). Otherwise they differ for functions and an order that may not be the real ones: a suspicion that exact or floating-point
execution must confirm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import Undecidable
from scalify.hlo.arithmetic import hashing, integers, prime
from scalify.hlo.arithmetic.pairs import Paired
from scalify.hlo.arithmetic.real import BF16, Real, reduce_precision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.hlo.arithmetic.domain import Array
    from scalify.hlo.dtypes import DType

_CODES = 1 << 62
INF, NEGATIVE_INF, NAN = (np.uint64(_CODES + n) for n in range(3))
"""Codes outside [0, P) for what is no element."""

_FRACTION = 10
_SMALL = 1 << (22 + _FRACTION)
_TOP = np.int64(1 << 62)
_ONE = np.uint64(1)


def special(x: Array) -> Array:
    """Where there is no element of the field."""
    found: Array = x >= np.uint64(_CODES)
    return found


def regular(*operands: Array) -> bool:
    """Whether all are elements of the field."""
    return not any(x.size and x.max() >= np.uint64(_CODES) for x in operands)


def _elements(x: Array) -> Array:
    """Zero in place of what is no element."""
    return x if regular(x) else np.where(special(x), np.uint64(0), x)


def _fixed(x: Array) -> Array:
    """Elements in units of 2^-10, as centred integers; only those below ``_SMALL`` are read as numbers."""
    return prime.centred(prime.scaled(_elements(x), _FRACTION))


class Field(Paired):
    """See the module."""

    name = "field"
    ordered = False
    cost = 8

    def _float_storage(self) -> np.dtype[Any]:
        return np.dtype(np.uint64)

    def _float_encode(self, array: Array) -> Array:
        if array.dtype.kind != "f":
            return prime.from_integers(array)
        finite = np.isfinite(array)
        codes = np.where(np.isnan(array), NAN, np.where(array > 0, INF, NEGATIVE_INF))
        return np.where(finite, prime.from_floats(np.where(finite, array, 0.0)), codes)

    # -- arithmetic ------------------------------------------------------------------------------------------------------
    def _float(self, opcode: str, operands: Sequence[Array], dtype: DType) -> Array:
        function = _FUNCTIONS.get(opcode)
        if function is None:
            raise Undecidable(f"{opcode} is not in the field domain")
        return function(self, *operands)

    def uninterpreted(self, opcode: str, *operands: Array) -> Array:
        """An element for each tuple of elements."""
        self.arbitrary.add(opcode)
        return prime.reduced(hashing.combined(hashing.key(self.seed, opcode), operands))

    def _reduce(self, opcode: str, x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
        if opcode in ("maximum", "minimum"):
            return self._extreme(x, axes, greatest=opcode == "maximum")
        if opcode != "add" or dtype.is_complex or not regular(x):
            return super()._reduce(opcode, x, axes, dtype)
        return prime.total(x, axes)

    def _extreme(self, x: Array, axes: tuple[int, ...], *, greatest: bool) -> Array:
        """By the keys, which are computed once. NaN wins either way."""
        kept = [a for a in range(x.ndim) if a not in axes]
        flat = x.transpose(*kept, *axes).reshape(*(x.shape[a] for a in kept), -1)
        keys = self.key(flat)
        place = (keys if greatest else np.where(flat == NAN, _TOP + 1, -keys)).argmax(axis=-1)
        return np.take_along_axis(flat, place[..., None], axis=-1)[..., 0]

    def _float_matmul(self, a: Array, b: Array, dtype: DType) -> Array:
        if regular(a, b):
            return prime.matmul(a, b)
        result = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), np.uint64)
        for k in range(a.shape[-1]):
            result = self._float("add", (result, self._float("multiply", (a[..., :, k : k + 1], b[..., k : k + 1, :]), dtype)), dtype)
        return result

    def root_of_unity(self, order: int, dtype: str) -> Array:
        """For divisors of P + 1, the number of elements a + bi of norm 1: an element of that order among them."""
        if order < 1 or (prime.P + 1) % order:
            return super().root_of_unity(order, dtype)
        generator = _unit_of_order(order)
        parts, current = [], (1, 0)
        for _ in range(order):
            parts.append(current)
            current = _times(current, generator)
        return self.complex(*(np.array(part, np.uint64) for part in zip(*parts, strict=True)))

    # -- order -----------------------------------------------------------------------------------------------------------
    def key(self, x: Array) -> Array:
        """The place of each element in the order, an injection into int64."""
        return prime.in_pieces(self._key, x)

    def _key(self, x: Array) -> Array:
        number = _fixed(x)
        small = np.abs(number) < _SMALL
        half = np.int64(1 << 60)
        random = _scrambled(x, hashing.key(self.seed, "order")).astype(np.int64) - half
        spread = np.where(random < 0, random - _SMALL, random + _SMALL)
        number, small = _with_landmarks(x, number, small)
        ends = np.where(x == INF, _TOP, np.where(x == NEGATIVE_INF, -_TOP, _TOP + 1))
        if not (small | special(x)).all():
            self.arbitrary.add("order")
        return np.where(special(x), ends, np.where(small, number, spread))

    def _order_key(self, x: Array, dtype: DType) -> Array:
        return self.key(x)

    def _float_compare(self, direction: str, a: Array, b: Array) -> Array:
        valid = (a != NAN) & (b != NAN)
        if direction in ("EQ", "NE"):
            equal: Array = (a == b) & valid
            return equal if direction == "EQ" else ~equal
        before: Array = integers.COMPARISONS[direction](self.key(a), self.key(b)) & valid
        return before

    def sign(self, x: Array) -> Array:
        """-1, 0 or 1 in the order; 0 for NaN."""
        return np.where(x == NAN, 0, np.sign(self.key(x)))

    # -- other types -----------------------------------------------------------------------------------------------------
    def _to_integer(self, x: Array, target: DType) -> Array:
        """Small multiples of 2^-10 truncate; the integer part of another element is uninterpreted."""
        low, high = target.minimum or 0, target.maximum or 0
        holder = integers.storage(target.name)
        number = _fixed(x)
        small = np.abs(number) < _SMALL
        rest = np.clip(np.where(number < 0, -(-number >> _FRACTION), number >> _FRACTION), max(low, -_SMALL), min(high, _SMALL))
        ends = np.where(x == NAN, holder.type(0), np.where(x == INF, holder.type(high), holder.type(low)))
        if (small | special(x)).all():
            return np.where(special(x), ends, rest.astype(holder))
        other = integers.wrap(self.uninterpreted("to integer", x).view(np.int64), target.name)
        return np.where(special(x), ends, np.where(small, rest.astype(holder), other))

    def to_bits(self, x: Array, dtype: DType) -> Array:
        self.arbitrary.add("bit patterns")
        return hashing.combined(hashing.key(self.seed, "to bits", dtype.name), [x]).astype(f"uint{dtype.bits}")

    def from_bits(self, bits: Array, dtype: DType) -> Array:
        self.arbitrary.add("bit patterns")
        return prime.reduced(hashing.combined(hashing.key(self.seed, "from bits", dtype.name), [bits.astype(np.uint64)]))

    def _float_digest(self, x: Array) -> hashing.Words:
        return np.where(special(x), np.uint64(prime.P) + (x - np.uint64(_CODES)) + _ONE, x)


def _landmarks() -> tuple[Array, Array]:
    """Large numbers that stand for infinities in real graphs, as elements in increasing order, and their places in the order."""
    powers = np.array([10.0**k for k in range(8, 39)])
    top = np.array([np.finfo(np.float64).max, 2.0**128 - 2.0**104, 2.0**128 - 2.0**120])
    sizes = np.unique(np.concatenate([powers, powers.astype(np.float32), reduce_precision(powers, *BF16), top]))
    elements = prime.from_floats(np.concatenate([sizes, -sizes]))
    places = (1 << 61) + np.arange(1, sizes.size + 1)
    order = np.argsort(elements)
    return elements[order], np.concatenate([places, -places])[order]


_LANDMARKS = _landmarks()


def _with_landmarks(x: Array, number: Array, small: Array) -> tuple[Array, Array]:
    """Places of elements that are known numbers, and where they are."""
    elements, places = _LANDMARKS
    found = np.minimum(np.searchsorted(elements, x), elements.size - 1)
    there = elements[found] == x
    return np.where(there, places[found], number), small | there


# -- functions -------------------------------------------------------------------------------------------------------------
def _beside_infinity(domain: Field, opcode: str, operands: Sequence[Array], finite: Array) -> Array:
    """``finite`` where all operands are elements, what IEEE gives where one is not."""
    if regular(*operands):
        return finite
    odd = np.asarray(False)
    for x in operands:
        odd = odd | special(x)
    rough = [np.where(x == INF, np.inf, np.where(x == NEGATIVE_INF, -np.inf, np.where(x == NAN, np.nan, domain.sign(x)))) for x in operands]
    model = Real().apply(opcode, rough, "f64")
    return np.where(odd, domain.encode(model, "f64"), finite)


def _plain(opcode: str, function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of elements, extended to infinities."""

    def extended(domain: Field, *operands: Array) -> Array:
        return _beside_infinity(domain, opcode, operands, function(*map(_elements, operands)))

    return extended


def _divide(domain: Field, a: Array, b: Array) -> Array:
    quotient = prime.multiply(_elements(a), prime.inverse(_elements(b)))
    zero = b == 0
    if zero.any():
        signs = domain.sign(a)
        quotient = np.where(zero, np.where(signs > 0, INF, np.where(signs < 0, NEGATIVE_INF, NAN)), quotient)
        return np.where(zero & ~special(a), quotient, _beside_infinity(domain, "divide", (a, b), quotient))
    return _beside_infinity(domain, "divide", (a, b), quotient)


def _uninterpreted(opcode: str, fixed: dict[int, int] | None = None) -> Callable[..., Array]:
    """A function that the seed chooses, but for its values at some integers and at infinities."""

    def function(domain: Field, *operands: Array) -> Array:
        places = {int(domain.number(k, "f64")[0]): domain.number(v, "f64")[0] for k, v in (fixed or {}).items()}
        known = np.isin(operands[0], np.array([*places, int(INF), int(NEGATIVE_INF), int(NAN)], np.uint64))
        result = operands[0] if len(operands) == 1 and known.all() else domain.uninterpreted(opcode, *operands)
        for place, value in places.items():
            result = np.where(operands[0] == np.uint64(place), value, result)
        return _beside_infinity(domain, opcode, operands, result)

    return function


def _numbers(opcode: str, function: Callable[[Array], Array]) -> Callable[..., Array]:
    """A rounding to integers: of multiples of 2^-10 by ``function`` of that unit, else uninterpreted."""

    def rounded(domain: Field, x: Array) -> Array:
        number = _fixed(x)
        small = np.abs(number) < _SMALL
        result = prime.from_integers(function(np.where(small, number, 0)) >> _FRACTION)
        if not (small | special(x)).all():
            result = np.where(small, result, domain.uninterpreted(opcode, x))
        return np.where(special(x), x, result)

    return rounded


_UNIT = 1 << _FRACTION
_HALF = _UNIT // 2


def _away(n: Array) -> Array:
    return np.where(n < 0, -((-n + _HALF) >> _FRACTION << _FRACTION), n + _HALF)


def _even(n: Array) -> Array:
    """Half a unit up, but down where that was a tie and the result is odd."""
    up = n + _HALF
    tie = (n & (_UNIT - 1)) == _HALF
    return np.where(tie & ((up >> _FRACTION) % 2 == 1), up - _UNIT, up)


def _maximum(domain: Field, a: Array, b: Array) -> Array:
    return np.where(domain.key(a) >= domain.key(b), a, b)


def _minimum(domain: Field, a: Array, b: Array) -> Array:
    return np.where((a == NAN) | (b == NAN), NAN, np.where(domain.key(a) <= domain.key(b), a, b))


def _abs(domain: Field, x: Array) -> Array:
    return np.where(x == NAN, x, np.where(domain.sign(x) < 0, domain.apply("negate", [x], "f64"), x))


def _sign(domain: Field, x: Array) -> Array:
    return np.where(x == NAN, x, prime.from_integers(domain.sign(x)))


def _remainder(domain: Field, a: Array, b: Array) -> Array:
    """Of multiples of 2^-10, else uninterpreted."""
    x, y = (_fixed(v) for v in (a, b))
    small = (np.abs(x) < _SMALL) & (np.abs(y) < _SMALL)
    result = prime.scaled(prime.from_integers(np.fmod(np.where(small, x, 0), np.where(small & (y != 0), y, 1))), -_FRACTION)
    if not (small | special(a) | special(b)).all():
        result = np.where(small, result, domain.uninterpreted("remainder", a, b))
    result = np.where(b == 0, NAN, result)
    return np.where(special(b) & ~special(a) & (b != NAN), a, _beside_infinity(domain, "remainder", (a, b), result))


_MOST_EXPONENT = 64


def _power(domain: Field, a: Array, b: Array) -> Array:
    """By multiplication for small integers, by the root for halves, else uninterpreted."""
    a, b = np.broadcast_arrays(a, b)
    double = np.where(special(b), 0, prime.centred(prime.scaled(_elements(b), 1)))
    small = (np.abs(double) <= 2 * _MOST_EXPONENT) & ~special(b)
    result = a if small.all() else _beside_infinity(domain, "power", (a, b), domain.uninterpreted("power", a, b))
    for exponent in np.unique(double[small]).tolist():
        chosen = small & (double == exponent)
        result = np.where(chosen, _small_power(domain, a, int(exponent)), result)
    return result


def _small_power(domain: Field, a: Array, double: int) -> Array:
    base = a if double % 2 == 0 else domain.apply("sqrt", [a], "f64")
    count = abs(double) // 2 if double % 2 == 0 else abs(double)
    result = prime.power(_elements(base), count)
    if special(base).any():
        result = _beside_infinity(domain, "power", (base, domain.encode(np.full(a.shape, float(count)), "f64")), result)
    return result if double >= 0 else domain.apply("divide", [domain.number(1, "f64"), result], "f64")


def _defined(function: Callable[[Callable[..., Array], Array, Array], Array]) -> Callable[..., Array]:
    """A function defined by others: ``function(f, one, x)`` where ``f(opcode, ...)`` applies an opcode."""

    def call(domain: Field, x: Array) -> Array:
        return function(lambda opcode, *operands: domain.apply(opcode, operands, "f64"), domain.number(1, "f64"), x)

    return call


def _is_finite(_domain: Field, x: Array) -> Array:
    return ~special(x)


def _tanh(domain: Field, x: Array) -> Array:
    """``2 logistic(2x) - 1``, which has its values at infinities, too."""
    half = domain.apply("logistic", [domain.apply("add", [x, x], "f64")], "f64")
    return domain.apply("subtract", [domain.apply("add", [half, half], "f64"), domain.number(1, "f64")], "f64")


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "add": _plain("add", prime.add), "subtract": _plain("subtract", prime.subtract), "multiply": _plain("multiply", prime.multiply),
    "negate": _plain("negate", prime.negate), "divide": _divide, "power": _power, "remainder": _remainder,
    "maximum": _maximum, "minimum": _minimum, "abs": _abs, "sign": _sign, "is-finite": _is_finite,
    "real": lambda _, x: x, "imag": lambda _, x: np.zeros_like(x),
    "floor": _numbers("floor", lambda n: n), "ceil": _numbers("ceil", lambda n: n + (_UNIT - 1)),
    "round-nearest-afz": _numbers("round-nearest-afz", _away), "round-nearest-even": _numbers("round-nearest-even", _even),
    **{opcode: _uninterpreted(opcode, {0: 0}) for opcode in ("sine", "asin", "atan", "asinh", "erf")},
    "exponential": _uninterpreted("exponential", {0: 1}), "log": _uninterpreted("log", {1: 0}), "cosine": _uninterpreted("cosine", {0: 1}),
    "sqrt": _uninterpreted("sqrt", {0: 0, 1: 1}), "cbrt": _uninterpreted("cbrt", {0: 0, 1: 1, -1: -1}), "atan2": _uninterpreted("atan2"),
    "acos": _uninterpreted("acos", {1: 0}), "acosh": _uninterpreted("acosh", {1: 0}), "atanh": _uninterpreted("atanh", {0: 0}),
    "rsqrt": _defined(lambda f, one, x: f("divide", one, f("sqrt", x))),
    "logistic": _defined(lambda f, one, x: f("divide", one, f("add", one, f("exponential", f("negate", x))))),
    "exponential-minus-one": _defined(lambda f, one, x: f("subtract", f("exponential", x), one)),
    "log-plus-one": _defined(lambda f, one, x: f("log", f("add", x, one))),
    "tan": _defined(lambda f, one, x: f("divide", f("sine", x), f("cosine", x))),
    "sinh": _defined(lambda f, one, x: f("divide", f("subtract", f("exponential", x), f("exponential", f("negate", x))), f("add", one, one))),
    "cosh": _defined(lambda f, one, x: f("divide", f("add", f("exponential", x), f("exponential", f("negate", x))), f("add", one, one))),
    "tanh": _tanh,
}  # fmt: skip


def _scrambled(x: Array, salt: np.uint64) -> Array:
    """A bijection of words of 61 bits: odd multiples and shifts modulo 2^61."""
    mask = np.uint64((1 << prime.BITS) - 1)
    with np.errstate(over="ignore"):
        x = (x * (salt | _ONE)) & mask
        x = ((x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)) & mask
        return x ^ (x >> np.uint64(31))


def _times(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return (a[0] * b[0] - a[1] * b[1]) % prime.P, (a[0] * b[1] + a[1] * b[0]) % prime.P


def _unit_of_order(order: int) -> tuple[int, int]:
    """The first power of some z / conj z, which has norm 1, whose order is exactly this divisor of P + 1."""
    for k in range(1, 1000):
        norm = pow(1 + k * k, -1, prime.P)
        unit = _to_the(((1 - k * k) * norm % prime.P, 2 * k * norm % prime.P), (prime.P + 1) // order)
        if all(_to_the(unit, order // q) != (1, 0) for q in range(2, order + 1) if order % q == 0):
            return unit
    raise AssertionError("the numbers of norm 1 are a cyclic group")


def _to_the(a: tuple[int, int], exponent: int) -> tuple[int, int]:
    result = (1, 0)
    while exponent:
        if exponent & 1:
            result = _times(result, a)
        a, exponent = _times(a, a), exponent >> 1
    return result
