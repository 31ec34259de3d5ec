"""Intervals: bounds between which the value over the reals lies, with every rounding accounted for.

A float is held as one complex number, its lower bound the real part and its upper bound the imaginary part, so that data movement treats
both alike. Sums, products and quotients are rounded outwards, and not at all where float64 has them exactly; functions are widened by
:data:`ULPS` units in the last place, more than NumPy's libraries err. So two results whose intervals have no number in common differ over the
reals: that refutes, whatever was rounded on the way. Where the value may be no number at all, or nothing is known of it (a quotient by
what may be 0, infinity minus infinity), both bounds are NaN, and so are those of what is made of it. What depends on the order of two values whose
intervals overlap is undecidable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from scalify.errors import HloError, Undecidable
from scalify.hlo.arithmetic import integers
from scalify.hlo.arithmetic.domain import Array, Domain
from scalify.hlo.arithmetic.real import FUNCTIONS, Real

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.hlo.arithmetic import hashing
    from scalify.hlo.dtypes import DType

ULPS = 8
"""NumPy's functions are accurate to 4 units in the last place (its own test suite holds them to that), most of them to 1."""
UNIT = 2.0**-53
DIGITS = 53
SMALLEST = 2.0**-1060
"""More than any operation may lose to underflow."""
LARGEST = float(np.finfo(np.float64).max)
_TINY = 1e-290
"""Below this a rounding error may be lost to underflow."""
_HUGE = 1e290

#: monotone functions and what bounds their values; the argument must not be below the first number
_RISING: dict[str, tuple[float, float, float]] = {
    "exponential": (-np.inf, 0.0, np.inf),
    "exponential-minus-one": (-np.inf, -1.0, np.inf),
    "log": (0.0, -np.inf, np.inf),
    "log-plus-one": (-1.0, -np.inf, np.inf),
    "logistic": (-np.inf, 0.0, 1.0),
    "tanh": (-np.inf, -1.0, 1.0),
    "erf": (-np.inf, -1.0, 1.0),
    "sqrt": (0.0, 0.0, np.inf),
    "cbrt": (-np.inf, -np.inf, np.inf),
    "atan": (-np.inf, -np.pi, np.pi),
    "asinh": (-np.inf, -np.inf, np.inf),
    "sinh": (-np.inf, -np.inf, np.inf),
}
#: monotone functions whose values are exact
_STEPS = frozenset({"floor", "ceil", "round-nearest-afz", "round-nearest-even", "sign"})


def interval(low: Array, high: Array) -> Array:
    """Intervals from their bounds; nothing is known of a value if a bound is NaN."""
    unknown = np.isnan(low) | np.isnan(high)
    found = np.empty(unknown.shape, np.complex128)
    found.real, found.imag = np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)
    return found


def known(x: Array, where: Array) -> Array:
    """The intervals where a condition holds, elsewhere nothing."""
    return np.where(where, x, complex(np.nan, np.nan))


def bounds(x: Array) -> tuple[Array, Array]:
    """Lower and upper bounds."""
    return x.real, x.imag


def exact(x: Array) -> bool:
    """Whether each interval is one number."""
    return bool((x.real == x.imag).all())


def down(x: Array) -> Array:
    """The next float below."""
    return np.nextafter(x, -np.inf)


def up(x: Array) -> Array:
    """The next float above."""
    return np.nextafter(x, np.inf)


def _widened(low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds moved outwards by :data:`ULPS` units; a number too large for float64 is above its largest."""
    lower = low - (np.abs(low) * (2 * ULPS * UNIT) + SMALLEST)
    upper = high + (np.abs(high) * (2 * ULPS * UNIT) + SMALLEST)
    return np.where(low == np.inf, LARGEST, lower), np.where(high == -np.inf, -LARGEST, upper)


def _directed(value: Array, error: Array, lost: Array) -> tuple[Array, Array]:
    """Bounds of ``value + error`` for the exact error of a rounded value; of a rounding to either side where the error is ``lost``."""
    return np.where((error < 0) | lost, down(value), value), np.where((error > 0) | lost, up(value), value)


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Bounds of ``a + b`` (Knuth's TwoSum gives the error, denormal numbers included)."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    return _directed(total, error, ~np.isfinite(error) & np.isfinite(a) & np.isfinite(b))


def _split(x: Array) -> tuple[Array, Array]:
    scaled = x * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """Bounds of ``a * b`` (Dekker's product gives the error, where nothing underflows or overflows on the way)."""
    product = a * b
    (a1, a2), (b1, b2) = _split(a), _split(b)
    error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    size = np.abs(product)
    lost = (a != 0) & (b != 0) & ((size < _TINY) | (size > _HUGE) | ~np.isfinite(error)) & np.isfinite(a) & np.isfinite(b)
    return _directed(product, np.where((a == 0) | (b == 0), 0.0, error), lost)


def _extremes(corners: Sequence[tuple[Array, Array]]) -> Array:
    low = np.minimum.reduce(np.broadcast_arrays(*[c[0] for c in corners]))
    high = np.maximum.reduce(np.broadcast_arrays(*[c[1] for c in corners]))
    return interval(low, high)


def add(a: Array, b: Array) -> Array:
    """``a + b``."""
    return interval(_sum(a.real, b.real)[0], _sum(a.imag, b.imag)[1])


def negate(x: Array) -> Array:
    """``-x``."""
    return interval(-x.imag, -x.real)


def multiply(a: Array, b: Array) -> Array:
    """``a * b``. Of a value with itself (by identity) the square, which is not negative."""
    if exact(a) and exact(b):
        return interval(*_product(a.real, b.real))
    found = _extremes([_product(x, y) for x in bounds(a) for y in bounds(b)])
    return interval(np.maximum(found.real, 0.0), found.imag) if a is b else found


def divide(a: Array, b: Array) -> Array:
    """``a / b``, where the divisor is not 0."""
    return known(_extremes([_quotient(x, y) for x in bounds(a) for y in bounds(b)]), (b.real > 0) | (b.imag < 0))


def _quotient(a: Array, b: Array) -> tuple[Array, Array]:
    quotient = a / b
    low, high = _product(quotient, b)
    whole = (low == a) & (high == a)
    return np.where(whole, quotient, down(quotient)), np.where(whole, quotient, up(quotient))


def _power(x: Array, y: Array) -> Array:
    """``x ** y`` for positive x: monotone in each of both, so that the corners bound it; whole exponents of any x by multiplication."""
    if exact(y) and (y.real == np.rint(y.real)).all() and (np.abs(y.real) <= 16).all() and np.unique(y.real).size == 1:
        count = int(y.real.flat[0])
        result = interval(np.ones(x.shape), np.ones(x.shape))
        for _ in range(abs(count)):
            result = multiply(result, x)
        if count > 0 and count % 2 == 0:
            result = interval(np.maximum(result.real, 0.0), result.imag)
        return divide(interval(np.ones(x.shape), np.ones(x.shape)), result) if count < 0 else result
    found = _extremes([_widened(p, p) for a in bounds(x) for b in bounds(y) for p in [np.power(a, b)]])
    return known(interval(np.maximum(found.real, 0.0), found.imag), x.real > 0)


def _remainder(a: Array, b: Array) -> Array:
    rest = np.fmod(a.real, b.real)
    return known(interval(rest, rest), (a.real == a.imag) & (b.real == b.imag) & (b.real != 0))


def _rsqrt(x: Array) -> Array:
    low, high = _widened(1 / np.sqrt(x.imag), 1 / np.sqrt(x.real))
    return known(interval(np.maximum(low, 0.0), high), x.real > 0)


def _abs(x: Array) -> Array:
    low = np.where((x.real <= 0) & (x.imag >= 0), 0.0, np.minimum(np.abs(x.real), np.abs(x.imag)))
    return interval(low, np.maximum(np.abs(x.real), np.abs(x.imag)))


def _wave(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Sine and cosine, which change by no more than their argument."""

    def found(x: Array) -> Array:
        middle = x.real / 2 + x.imag / 2
        radius = up(up(x.imag - x.real) / 2 + np.abs(middle) * (4 * UNIT))
        value = function(middle)
        low, high = _widened(value - radius, value + radius)
        return interval(np.maximum(low, -1.0), np.minimum(high, 1.0))

    return found


def _extremum(ufunc: np.ufunc) -> Callable[[Array, Array], Array]:
    return lambda a, b: interval(ufunc(a.real, b.real), ufunc(a.imag, b.imag))


def _rising(opcode: str, x: Array) -> Array:
    lowest, least, greatest = _RISING[opcode]
    low, high = _around(opcode, x.real)[0], _around(opcode, x.imag)[1]
    return known(interval(np.maximum(low, least), np.minimum(high, greatest)), x.real >= lowest)


def _around(opcode: str, x: Array) -> tuple[Array, Array]:
    """Bounds of a function; its values at 0 and at infinity, and the logarithm of 1, are exact."""
    value = FUNCTIONS[opcode](x)
    low, high = _widened(value, value)
    known = (x == 0) | np.isinf(x) & (opcode != "atan") | (x == 1) & (opcode == "log")
    return np.where(known, value, low), np.where(known, value, high)


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "abs": _abs,
    "add": add,
    "cosine": _wave(np.cos),
    "divide": divide,
    "maximum": _extremum(np.maximum),
    "minimum": _extremum(np.minimum),
    "multiply": multiply,
    "negate": negate,
    "power": _power,
    "real": lambda x: x,
    "remainder": _remainder,
    "rsqrt": _rsqrt,
    "sine": _wave(np.sin),
    "subtract": lambda a, b: add(a, negate(b)),
}


def quantum(x: Array) -> float:
    """The largest power of two of which all elements are multiples; infinity if they are all 0, 0 if one is infinite."""
    if not np.isfinite(x).all():
        return 0.0
    parts = x[x != 0]
    if not parts.size:
        return np.inf
    mantissa, exponent = np.frexp(parts)
    digits = np.ldexp(mantissa, DIGITS).astype(np.int64)
    lowest = (digits & -digits).astype(np.float64)
    return float(np.min(np.ldexp(lowest, exponent - DIGITS)))


def _magnitude(x: Array) -> float:
    return float(np.max(np.abs(x), initial=0.0))


class Interval(Domain):
    """See the module. Complex numbers and uninterpreted functions are undecidable here."""

    name = "interval"
    cost = 30
    product_cost = 4

    def _storage(self, dtype: DType) -> np.dtype[Any]:
        if dtype.is_complex:
            self._refuse("complex numbers")
        return np.dtype(np.complex128)

    @staticmethod
    def _refuse(what: str) -> NoReturn:
        raise Undecidable(f"{what} cannot be computed with in intervals")

    def _settle(self, array: Array, dtype: DType) -> Array:
        return array if array.dtype.kind == "c" else self._encode(array, dtype)

    def _encode(self, array: Array, dtype: DType) -> Array:
        self._storage(dtype)
        if array.dtype.kind == "c":
            return array
        if array.dtype.kind in "iu":
            return self._from_integers(array, dtype)
        wide = array.astype(np.float64)
        return interval(wide, wide)

    # -- arithmetic ------------------------------------------------------------------------------------------------------
    def _apply(self, opcode: str, operands: Sequence[Array], dtype: DType) -> Array:
        if dtype.is_complex:
            self._refuse("complex numbers")
        if opcode in _RISING:
            return _rising(opcode, operands[0])
        if opcode in _STEPS:
            return interval(FUNCTIONS[opcode](operands[0].real), FUNCTIONS[opcode](operands[0].imag))
        if opcode == "is-finite":
            return self._finite(operands[0])
        function = _FUNCTIONS.get(opcode)
        if function is None:
            if opcode not in FUNCTIONS:
                raise HloError(f"{opcode} of {dtype.name} is not defined")
            self._refuse(opcode)
        found: Array = function(*operands)
        return found

    @staticmethod
    def _finite(x: Array) -> Array:
        low: Array = np.isfinite(x.real)
        high: Array = np.isfinite(x.imag)
        if (low != high).any() or np.isnan(x.real).any():
            raise Undecidable("a number may be infinite, or none at all")
        return low

    def _reduce(self, opcode: str, x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
        if opcode in ("maximum", "minimum"):
            ufunc = integers.UFUNCS[opcode]
            return interval(ufunc.reduce(x.real, axis=axes), ufunc.reduce(x.imag, axis=axes))
        if opcode != "add":
            return super()._reduce(opcode, x, axes, dtype)
        count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
        low, high = x.real.sum(axis=axes), x.imag.sum(axis=axes)
        unit = min(quantum(x.real), quantum(x.imag))
        if unit and max(_magnitude(x.real), _magnitude(x.imag)) * count < unit * 2.0**DIGITS:
            return interval(low, high)  # every partial sum is a multiple of the unit that float64 has exactly
        return interval(down(low - _lost(x.real, axes, count)), up(high + _lost(x.imag, axes, count)))

    def _matmul(self, a: Array, b: Array, dtype: DType) -> Array:
        """Midpoints multiply; the radii and a bound of the rounding of all sums, in whatever order, are the new radius (Rump 1999)."""
        if exact(a) and exact(b) and self._short(a.real, b.real):
            product = np.matmul(np.ascontiguousarray(a.real), np.ascontiguousarray(b.real))
            return interval(product, product)
        x, dx = _middle(a)
        y, dy = _middle(b)
        count = a.shape[-1]
        size = np.matmul(np.abs(x), np.abs(y))
        radius = np.matmul(dx, np.abs(y) + dy) + np.matmul(np.abs(x), dy)
        radius = (radius + (count + 2) * UNIT * size) * (1 + (4 * count + 16) * UNIT) + (count + 1) * SMALLEST
        product = np.matmul(x, y)
        return interval(down(product - radius), up(product + radius))

    @staticmethod
    def _short(x: Array, y: Array) -> bool:
        """Whether products and their sums have so few digits that float64 has them exactly, in whatever order they are added."""
        unit = quantum(x) * quantum(y)
        if np.isnan(unit):  # one side is 0
            return True
        return unit > _TINY and _magnitude(x) * _magnitude(y) * max(x.shape[-1], 1) < unit * 2.0**DIGITS

    # -- order -----------------------------------------------------------------------------------------------------------
    def compare(self, direction: str, a: Array, b: Array, dtype: str, *, total: bool = False) -> Array:
        """The total order is that of the numbers: there is no NaN here, and 0 has no sign."""
        del total
        return super().compare(direction, a, b, dtype)

    def _compare(self, direction: str, a: Array, b: Array, dtype: DType) -> Array:
        same = (a.real == b.real) & (a.imag == b.imag) & ((a.real == a.imag) | (a is b))
        less, more = a.imag < b.real, a.real > b.imag
        if not (same | less | more).all():
            raise Undecidable("the order of two numbers is not known")
        found: Array = {"EQ": same, "NE": ~same, "LT": less, "LE": less | same, "GT": more, "GE": more | same}[direction]
        return found

    def _order_key(self, x: Array, dtype: DType) -> Array:
        """Ranks within the lines of the last axis."""
        order = np.argsort(x.real, axis=-1, kind="stable")
        ordered = np.take_along_axis(x, order, axis=-1)
        before, after = ordered[..., :-1], ordered[..., 1:]
        same = (before == after) & (before.real == before.imag)
        if not (same | (before.imag < after.real)).all():
            raise Undecidable("the order of numbers is not known: their intervals overlap")
        ranks = np.concatenate([np.zeros((*x.shape[:-1], 1), np.int64), np.cumsum(~same, axis=-1)], axis=-1)[..., : x.shape[-1]]
        found = np.empty(x.shape, np.int64)
        np.put_along_axis(found, order, ranks, axis=-1)
        return found

    # -- other types -----------------------------------------------------------------------------------------------------
    def _from_integers(self, x: Array, target: DType) -> Array:
        self._storage(target)
        wide = x.astype(np.float64)
        if x.dtype.itemsize < 8 or _magnitude(wide) <= 2.0**DIGITS:
            return interval(wide, wide)
        return interval(down(wide), up(wide))

    def _to_integer(self, x: Array, target: DType) -> Array:
        real = Real()
        low, high = [real._to_integer(part, target) for part in bounds(x)]  # noqa: SLF001 - the other domain's own rounding
        if (low != high).any() or np.isnan(x.real).any():
            raise Undecidable("the whole part of a number is not known")
        return low

    def complex(self, real: Array, imaginary: Array) -> Array:
        self._refuse("complex numbers")

    def to_bits(self, x: Array, dtype: DType) -> Array:
        self._refuse("bit patterns of floats")

    def from_bits(self, bits: Array, dtype: DType) -> Array:
        return self._encode(Real().from_bits(bits, dtype), dtype)

    def opaque(self, name: str, operands: Sequence[tuple[Array, str]], shape: tuple[int, ...], dtype: str) -> Array:
        self._refuse(f"the unknown function {name.split(chr(0), maxsplit=1)[0]}")

    def _digest(self, x: Array, dtype: DType) -> hashing.Words:
        self._refuse("hashes of floats")


def _lost(x: Array, axes: tuple[int, ...], count: int) -> Array:
    """A bound of what rounding takes from a sum over axes, in whatever order it is done (Higham 2002, section 4.2)."""
    size = np.abs(x).sum(axis=axes)
    lost = size * (count * UNIT * (1 + 4 * count * UNIT)) + SMALLEST
    return np.where(np.isfinite(size), lost, 0.0)


def _middle(x: Array) -> tuple[Array, Array]:
    """Midpoints and radii that cover the intervals, contiguous: else NumPy multiplies matrices without BLAS."""
    if exact(x):
        return np.ascontiguousarray(x.real), np.zeros(x.shape)
    middle = x.real / 2 + x.imag / 2
    return middle, up(np.maximum(middle - x.real, x.imag - middle))
