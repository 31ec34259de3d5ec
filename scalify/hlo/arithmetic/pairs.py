"""Complex numbers of the exact domains: structured arrays of two parts, computed with through the domain's own floats."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from scalify.errors import HloError, Undecidable
from scalify.hlo.arithmetic import hashing
from scalify.hlo.arithmetic.domain import Array, Domain
from scalify.hlo.dtypes import COMPLEX_PART, DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.dtypes import DType

Pair: TypeAlias = tuple[Array, Array]


class Paired(Domain):
    """A domain of which only the floats are left to define; the type of all floats is held alike."""

    @abstractmethod
    def _float_storage(self) -> np.dtype[Any]: ...

    @abstractmethod
    def _float_encode(self, array: Array) -> Array: ...

    @abstractmethod
    def _float(self, opcode: str, operands: Sequence[Array], dtype: DType) -> Array: ...

    @abstractmethod
    def _float_matmul(self, a: Array, b: Array, dtype: DType) -> Array: ...

    @abstractmethod
    def _float_digest(self, x: Array) -> hashing.Words: ...

    def _storage(self, dtype: DType) -> np.dtype[Any]:
        part = self._float_storage()
        return np.dtype([("re", part), ("im", part)]) if dtype.is_complex else part

    def _settle(self, array: Array, dtype: DType) -> Array:
        held = self._storage(dtype)
        if array.dtype == held:
            return array
        raise HloError(f"values of another type stand for {dtype.name}")

    def _encode(self, array: Array, dtype: DType) -> Array:
        if array.dtype == self._storage(dtype):
            return array
        if dtype.is_complex:
            return self.complex(self._float_encode(array.real), self._float_encode(array.imag))
        return self._float_encode(array)

    def _from_integers(self, x: Array, target: DType) -> Array:
        real = self._float_encode(x)
        return self.complex(real, np.zeros_like(real)) if target.is_complex else real

    def complex(self, real: Array, imaginary: Array) -> Array:
        real, imaginary = np.broadcast_arrays(real, imaginary)
        result = np.empty(real.shape, self._storage(DTYPES["c128"]))
        result["re"], result["im"] = real, imaginary
        return result

    def _apply(self, opcode: str, operands: Sequence[Array], dtype: DType) -> Array:
        if not dtype.is_complex:
            return self._float(opcode, operands, dtype)
        if opcode in ("real", "imag"):
            return operands[0]["re" if opcode == "real" else "im"]
        pairs, part = [(x["re"], x["im"]) for x in operands], DTYPES[COMPLEX_PART[dtype.name]]
        if opcode == "abs":
            return self._float("sqrt", [self._norm(*pairs[0], part)], part)
        return self.complex(*self._complex(opcode, pairs, part))

    def _complex(self, opcode: str, pairs: Sequence[Pair], part: DType) -> Pair:
        (a, b), (c, d) = pairs[0], pairs[-1]

        def f(function: str, *operands: Array) -> Array:
            return self._float(function, operands, part)

        if opcode in ("add", "subtract"):
            return f(opcode, a, c), f(opcode, b, d)
        if opcode == "negate":
            return f("negate", a), f("negate", b)
        if opcode == "multiply":
            return self._product(a, b, c, d, part)
        if opcode == "divide":
            real, imaginary = self._product(a, b, c, f("negate", d), part)
            norm = self._norm(c, d, part)
            return f("divide", real, norm), f("divide", imaginary, norm)
        if opcode == "exponential":
            size = f("exponential", a)
            return f("multiply", size, f("cosine", b)), f("multiply", size, f("sine", b))
        raise Undecidable(f"{opcode} of complex numbers is not in the {self.name} domain")

    def _product(self, a: Array, b: Array, c: Array, d: Array, part: DType) -> Pair:
        ac, bd, ad, bc = (self._float("multiply", pair, part) for pair in ((a, c), (b, d), (a, d), (b, c)))
        return self._float("subtract", (ac, bd), part), self._float("add", (ad, bc), part)

    def _norm(self, a: Array, b: Array, part: DType) -> Array:
        return self._float("add", (self._float("multiply", (a, a), part), self._float("multiply", (b, b), part)), part)

    def _matmul(self, a: Array, b: Array, dtype: DType) -> Array:
        if not dtype.is_complex:
            return self._float_matmul(a, b, dtype)
        part = DTYPES[COMPLEX_PART[dtype.name]]
        rr, ii, ri, ir = (self._float_matmul(a[x], b[y], part) for x, y in (("re", "re"), ("im", "im"), ("re", "im"), ("im", "re")))
        return self.complex(self._float("subtract", (rr, ii), part), self._float("add", (ri, ir), part))

    def _digest(self, x: Array, dtype: DType) -> hashing.Words:
        if dtype.is_complex:
            return hashing.combined(np.uint64(0), [self._float_digest(x["re"]), self._float_digest(x["im"])])
        return self._float_digest(x)

    def _compare(self, direction: str, a: Array, b: Array, dtype: DType) -> Array:
        if not dtype.is_complex:
            return self._float_compare(direction, a, b)
        if direction not in ("EQ", "NE"):
            raise HloError("complex numbers have no order")
        equal = self._float_compare("EQ", a["re"], b["re"]) & self._float_compare("EQ", a["im"], b["im"])
        return equal if direction == "EQ" else ~equal

    @abstractmethod
    def _float_compare(self, direction: str, a: Array, b: Array) -> Array: ...
