"""What a machine may compute that rounds to the declared types: float64 midpoints with radii that bound every error.

A ball encloses the value over the reals and every result of rounding each operation, or only some (fused and wider operations), to its declared
type, with sums in any order. The error of a rounding is half a unit in the last place, that of a library function :data:`LIBRARY` such units. Small
dyadic numbers whose sums and products no type rounds stay exact, so that counters, masks and whole numbers can be compared.

A comparison whose balls overlap, or a conversion to an integer that they do not settle, is decided by the midpoints and noted as
``unclear`` in :attr:`Domain.arbitrary`: nothing then follows from the results. A radius of infinity says that nothing is known.

Source: Rump, "Verification methods", Acta Numerica 19 (2010), for midpoint-radius arithmetic; Higham, "Accuracy and Stability", 3.1, for sums.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from scalify.errors import Undecidable
from scalify.hlo.arithmetic import hashing, integers
from scalify.hlo.arithmetic.pairs import Pair, Paired
from scalify.hlo.arithmetic.real import BF16, FUNCTIONS, Real, reduce_precision
from scalify.hlo.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.arithmetic.domain import Array
    from scalify.hlo.dtypes import DType
    from scalify.hlo.module import Shape

LIBRARY = 128.0
"""Units in the last place that a function of a mathematical library may be wrong by: XLA's own tests of its CPU functions allow some dozens."""

_EPS = 2.0**-53
_GRID = 2.0**10
_SMALL = 2.0**15
_FORMATS = {"f64": (53, -1022, 1024), "f32": (24, -126, 128), "f16": (11, -14, 16), "bf16": (8, -126, 128)}
"""Digits, exponents of the least normal number and of overflow."""

_MONOTONE = frozenset(
    {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "erf", "exponential", "exponential-minus-one", "log", "log-plus-one"}
    | {"logistic", "rsqrt", "sinh", "sqrt", "tanh"}
)
_STEPS = frozenset({"ceil", "floor", "round-nearest-afz", "round-nearest-even", "sign"})
_EXACT = frozenset({"add", "subtract", "multiply"})


class Rounded(Paired):
    """See the module. Values are structured arrays of ``mid`` and ``rad``."""

    name: ClassVar[str] = "rounded"

    # -- representation --------------------------------------------------------------------------------------------------
    def _float_storage(self) -> np.dtype[Any]:
        return np.dtype([("mid", np.float64), ("rad", np.float64)])

    def _float_encode(self, array: Array) -> Array:
        """Numbers of 64-bit integers beyond 2^53 are rounded."""
        mid = array.astype(np.float64)
        return self.ball(mid, np.where(np.abs(mid) > 2.0**53, np.abs(mid) * _EPS, 0.0) if array.dtype.kind != "f" else np.zeros_like(mid))

    def ball(self, mid: Array, rad: Array) -> Array:
        """Balls from their parts; a radius that is not a number is infinite."""
        mid, rad = np.broadcast_arrays(mid, rad)
        result = np.empty(mid.shape, self._float_storage())
        result["mid"], result["rad"] = mid, np.where(np.isnan(rad), np.inf, rad)
        return result

    def _settle(self, array: Array, dtype: DType) -> Array:
        settled = super()._settle(array, dtype)
        return settled if dtype.is_complex else self._rounded(settled, dtype)

    def _format(self, dtype: DType) -> tuple[int, int, int]:
        if dtype.name not in _FORMATS:
            raise Undecidable(f"arithmetic in {dtype.name} is not supported")
        return _FORMATS[dtype.name]

    def _rounded(self, x: Array, dtype: DType, *, units: float = 1.0) -> Array:
        """With one more rounding to the type; an exact number that the type can hold stays exact."""
        digits, least, most = self._format(dtype)
        size = np.abs(x["mid"]) + x["rad"]
        exact = (x["rad"] == 0) & (~np.isfinite(x["mid"]) | self._holds(x["mid"], dtype)) & (units == 1.0)
        rad = x["rad"] + units * (size * 2.0**-digits * (1 + 8 * _EPS) + 2.0 ** max(least, -1022))
        rad = np.where(np.isfinite(x["mid"]) & (size >= 2.0 ** (most - 1) * (2 - 2.0**-digits)), np.inf, rad)
        return self.ball(x["mid"], np.where(exact, 0.0, rad))

    def _holds(self, mid: Array, dtype: DType) -> Array:
        """Whether the type has exactly this number."""
        self._format(dtype)
        if dtype.name == "bf16":
            held = reduce_precision(mid, *BF16)
        else:
            held = mid.astype({"f64": np.float64, "f32": np.float32, "f16": np.float16}[dtype.name])
        same: Array = held == mid
        return same

    # -- arithmetic ------------------------------------------------------------------------------------------------------
    def _float(self, opcode: str, operands: Sequence[Array], dtype: DType) -> Array:
        if opcode in ("real", "imag"):
            return operands[0] if opcode == "real" else np.zeros_like(operands[0])
        function = FUNCTIONS.get(opcode)
        if function is None:
            raise Undecidable(f"{opcode} is not in the {self.name} domain")
        mids = [x["mid"] for x in operands]
        mid = function(*mids)
        if opcode == "is-finite":
            self._unclear(~np.isfinite(operands[0]["rad"]))
            return np.asarray(mid)
        given = np.asarray(sum(x["rad"] for x in operands))
        rad = self._radius(opcode, operands, mid)
        # An infinity or NaN is certain where the operands are.
        rad = np.where(np.isfinite(mid), rad, np.where(given == 0, 0.0, np.inf))
        if opcode in ("maximum", "minimum", "abs", "negate", *_STEPS) or (
            opcode in _EXACT and (self._on_grid(operands, given, mid, dtype) or (opcode == "multiply" and _power_of_two(operands[1])))
        ):
            return self.ball(mid, rad)
        return self._rounded_everywhere(self.ball(mid, rad), dtype, units=LIBRARY if opcode not in (*_EXACT, "divide", "sqrt") else 1.0)

    def _rounded_everywhere(self, x: Array, dtype: DType, *, units: float) -> Array:
        """A computed number is not exact, even if it looks like one."""
        nudged = self.ball(x["mid"], np.where(np.isfinite(x["mid"]), np.maximum(x["rad"], np.abs(x["mid"]) * _EPS), x["rad"]))
        return self._rounded(nudged, dtype, units=units) if units == 1.0 else self._library(nudged, dtype, units)

    def round(self, x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
        """Also in the narrower format, where values beyond its range are unknown."""
        size = np.abs(x["mid"]) + x["rad"]
        most = 2.0 ** (2 ** (exponent_bits - 1)) * (1 - 2.0 ** (-mantissa_bits - 2))
        flush = np.where(size == 0, 0.0, 2.0 ** (2 - 2 ** (exponent_bits - 1)))
        rad = np.where(size < most, x["rad"] + size * 2.0 ** (-mantissa_bits - 1) + flush, np.inf)
        return self.ball(x["mid"], np.where(np.isfinite(x["mid"]), rad, np.where(x["rad"] == 0, 0.0, np.inf)))

    def _library(self, x: Array, dtype: DType, units: float) -> Array:
        rounded = self._rounded(x, dtype, units=units)
        return self.ball(x["mid"], np.where(np.isfinite(x["mid"]), rounded["rad"], x["rad"]))

    def _on_grid(self, operands: Sequence[Array], given: Array, mid: Array, dtype: DType) -> bool:
        """Whether all operands are exact small multiples of 2^-10, and the type holds all results: then nothing was rounded."""
        small = all(bool(((np.abs(x["mid"]) < _SMALL) & (x["mid"] * _GRID == np.rint(x["mid"] * _GRID))).all()) for x in operands)
        return small and not given.any() and bool(self._holds(mid, dtype).all())

    def _radius(self, opcode: str, operands: Sequence[Array], mid: Array) -> Array:
        """How far the function moves within the balls, without rounding."""
        rads = [x["rad"] for x in operands]
        if opcode in ("add", "subtract"):
            return np.asarray(rads[0] + rads[1])
        if opcode in ("maximum", "minimum"):
            return np.asarray(np.maximum(rads[0], rads[1]))
        if opcode in ("abs", "negate", "sine", "cosine"):
            return np.asarray(rads[0])
        if opcode == "multiply":
            a, b = (np.abs(x["mid"]) for x in operands)
            return np.asarray(np.where(rads[1] > 0, a * rads[1], 0) + np.where(rads[0] > 0, b * rads[0], 0) + rads[0] * rads[1])
        if opcode == "divide":
            a, b = operands
            away = np.abs(b["mid"]) - rads[1]
            spread = (rads[0] + np.abs(mid) * rads[1]) / away
            return np.where((rads[0] == 0) & (rads[1] == 0), 0.0, np.where(away > 0, spread, np.inf))
        return self._sampled(opcode, operands, mid)

    def _sampled(self, opcode: str, operands: Sequence[Array], mid: Array) -> Array:
        """By the values at the corners of the box of balls, for functions that are monotone in each operand there."""
        rads = [x["rad"] for x in operands]
        corners = self._corners(opcode, operands)
        spread = np.max([np.abs(c - mid) for c in corners], axis=0)
        valid = self._monotone(opcode, operands, mid)
        exact = np.asarray(sum(rads)) == 0
        if opcode in _STEPS:
            self._unclear((spread > 0) & ~exact)
        return np.where(exact, 0.0, np.where(valid & ~np.isnan(spread), spread, np.inf))

    def _corners(self, opcode: str, operands: Sequence[Array]) -> list[Array]:
        ends = [(x["mid"] - x["rad"], x["mid"] + x["rad"]) for x in operands]
        if opcode in ("log", "sqrt", "rsqrt"):
            ends = [(np.where((low < 0) & (operands[0]["mid"] >= 0), 0.0, low), high) for low, high in ends]
        boxes = [[e] for e in ends[0]] if len(ends) == 1 else [[a, b] for a in ends[0] for b in ends[1]]
        return [FUNCTIONS[opcode](*box) for box in boxes]

    def _monotone(self, opcode: str, operands: Sequence[Array], mid: Array) -> Array:
        low, high = operands[0]["mid"] - operands[0]["rad"], operands[0]["mid"] + operands[0]["rad"]
        result: Array = np.ones(mid.shape, np.bool_)
        if opcode == "cosh":
            result = (low >= 0) | (high <= 0)
        elif opcode == "tan":
            result = np.floor(low / np.pi - 0.5) == np.floor(high / np.pi - 0.5)
        elif opcode == "power":
            result = low > 0
        elif opcode == "atan2":
            x = operands[1]["mid"] - operands[1]["rad"]
            result = (x > 0) | (low > 0) | (high < 0)
        elif opcode == "remainder":
            quotients = [np.trunc(c) for c in self._corners("divide", operands)]
            result = np.all([q == quotients[0] for q in quotients], axis=0) & (np.abs(operands[1]["mid"]) > operands[1]["rad"])
        elif opcode not in _MONOTONE | _STEPS:
            raise Undecidable(f"{opcode} is not in the {self.name} domain")
        return result

    def _reduce(self, opcode: str, x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
        if opcode != "add" or dtype.is_complex:
            return super()._reduce(opcode, x, axes, dtype)
        count = math.prod(x.shape[a] for a in axes)
        return self._sum(x["mid"].sum(axis=axes), np.abs(x["mid"]).sum(axis=axes), x["rad"].sum(axis=axes), count, x, dtype)

    def _sum(self, mid: Array, size: Array, rad: Array, count: int, terms: Array, dtype: DType) -> Array:
        """A sum of ``count`` terms of total ``size`` in any order. Terms on the grid with a small sum are added exactly."""
        digits, least, most = self._format(dtype)
        grid = (np.abs(terms["mid"]) * _GRID % 1 == 0) & (terms["rad"] == 0)
        if bool(grid.all()) and bool((size < 2.0 ** (digits - 10)).all()):
            return self.ball(mid, np.zeros_like(mid))
        error = count * (2.0**-digits + 2 * _EPS) * (size + rad) * (1 + 2.0**-6) + count * 2.0 ** max(least, -1022)
        error = np.where(size + rad >= 2.0 ** (most - 1), np.inf, error)
        return self.ball(mid, np.where(np.isfinite(mid), rad + error, np.where(rad > 0, np.inf, 0.0)))

    def _complex(self, opcode: str, pairs: Sequence[Pair], part: DType) -> Pair:
        """The error of a part of a quotient is relative to the whole quotient, however it is computed."""
        real, imaginary = super()._complex(opcode, pairs, part)
        if opcode != "divide":
            return real, imaginary
        size = np.abs(real["mid"]) + np.abs(imaginary["mid"]) + real["rad"] + imaginary["rad"]
        error = 16 * size * 2.0 ** -self._format(part)[0]
        return self.ball(real["mid"], real["rad"] + error), self.ball(imaginary["mid"], imaginary["rad"] + error)

    def _float_matmul(self, a: Array, b: Array, dtype: DType) -> Array:
        sizes = np.abs(a["mid"]), np.abs(b["mid"])
        mid, size = np.matmul(a["mid"], b["mid"]), np.matmul(*sizes)
        rad = np.matmul(a["rad"], sizes[1] + b["rad"]) + np.matmul(sizes[0], b["rad"])
        terms = np.concatenate([a.reshape(-1), b.reshape(-1)])
        terms["mid"] = np.where(np.abs(terms["mid"]) * 2.0**5 % 1 == 0, terms["mid"], 0.3)
        return self._sum(mid, size, rad, a.shape[-1] + 1, terms, dtype)

    def root_of_unity(self, order: int, dtype: str) -> Array:
        roots = Real().root_of_unity(order, dtype)
        return self.complex(
            *(self.ball(part, np.full(order, LIBRARY * 2.0 ** -self._part_digits(dtype))) for part in (roots.real, roots.imag))
        )

    def _part_digits(self, dtype: str) -> int:
        return 53 if dtype == "c128" else 24

    # -- order and other types -------------------------------------------------------------------------------------------
    def _unclear(self, where: Array) -> None:
        if np.any(where):
            self.arbitrary.add("unclear")

    def _float_compare(self, direction: str, a: Array, b: Array) -> Array:
        given = a["rad"] + b["rad"]
        self._unclear((given > 0) & ~(np.abs(a["mid"] - b["mid"]) > given))
        result: Array = integers.COMPARISONS[direction](a["mid"], b["mid"])
        return result

    def _order_key(self, x: Array, dtype: DType) -> Array:
        """Noted as unclear where neighbours in the order overlap."""
        order = np.argsort(x["mid"], axis=None)
        mid, rad = x["mid"].reshape(-1)[order], x["rad"].reshape(-1)[order]
        given = rad[1:] + rad[:-1]
        self._unclear((given > 0) & ~(mid[1:] - mid[:-1] > given))
        return Real().order_key(x["mid"], "f64")

    def _to_integer(self, x: Array, target: DType) -> Array:
        low, high = (Real().convert(x["mid"] + sign * x["rad"], "f64", target.name) for sign in (-1, 1))
        self._unclear(low != high)
        return Real().convert(x["mid"], "f64", target.name)

    def to_bits(self, x: Array, dtype: DType) -> Array:
        self._unclear(x["rad"] > 0)
        return Real().to_bits(x["mid"], dtype)

    def from_bits(self, bits: Array, dtype: DType) -> Array:
        return self._float_encode(Real().from_bits(bits, dtype).astype(np.float64))

    def opaque(self, name: str, operands: Sequence[tuple[Array, str]], shape: tuple[int, ...], dtype: str) -> Array:
        """Of operands whose radii are not 0 only when nothing else is known of it: the function is not continuous."""
        self._unclear(np.array([bool((x["rad"] > 0).any()) for x, d in operands if x.dtype == self._float_storage()]))
        return super().opaque(name, operands, shape, dtype)

    def _float_digest(self, x: Array) -> hashing.Words:
        return Real().digest(x["mid"], "f64")


def _power_of_two(x: Array) -> bool:
    """Whether all are one exact power of two, which only moves the exponent."""
    first = x["mid"].reshape(-1)[:1]
    return bool(x.size and not x["rad"].any() and (x["mid"] == first).all() and first[0] > 0 and np.frexp(first)[0][0] == 0.5)


def outside(shape: Shape, ball: Array, other: Array, who: str) -> str:
    """Where results of a type are not those that the balls allow, empty if nowhere; integers are equal."""
    kind = DTYPES[shape.dtype]
    if kind.is_integer or kind.kind == "pred":
        return _first(ball == other, ball, other, np.zeros(1), who)
    if kind.is_complex:
        return _outside(ball["re"], other.real, who) or _outside(ball["im"], other.imag, who)
    return _outside(ball, other, who)


def _outside(ball: Array, other: Array, who: str) -> str:
    mid, rad, other = ball["mid"], ball["rad"], other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = (other == mid) | (np.isnan(other) & np.isnan(mid)) | (np.abs(other - mid) <= rad) | np.isposinf(rad)
    return _first(near, mid, other, rad, who)


def _first(good: Array, value: Array, other: Array, rad: Array, who: str) -> str:
    if good.all():
        return ""
    place = tuple(int(n) for n in np.argwhere(~good)[0])
    return f"at {place} {who} has {other[place]}, expected {value[place]}, radius {np.broadcast_to(rad, value.shape)[place]}"
