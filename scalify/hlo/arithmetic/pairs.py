"""Complex numbers of the exact domains: structured arrays of two parts, computed with through the domain's own floats."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from scalify.errors import HloError, Undecidable
from scalify.hlo.arithmetic import hashing
from scalify.hlo.arithmetic.domain import Array, Domain
from scalify.hlo.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.dtypes import DType

Pair: TypeAlias = tuple[Array, Array]
_FLOAT = DTYPES["f64"]


class Paired(Domain):
    """A domain of which only the floats are left to define; the type of all floats is held alike."""

    @abstractmethod
    def _float_storage(self) -> np.dtype[Any]: ...

    @abstractmethod
    def _float_encode(self, array: Array) -> Array: ...

    @abstractmethod
    def _float(self, opcode: str, operands: Sequence[Array]) -> Array: ...

    @abstractmethod
    def _float_matmul(self, a: Array, b: Array) -> Array: ...

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
            return self._float(opcode, operands)
        if opcode in ("real", "imag"):
            return operands[0]["re" if opcode == "real" else "im"]
        pairs = [(x["re"], x["im"]) for x in operands]
        if opcode == "abs":
            return self._float("sqrt", [self._norm(*pairs[0])])
        return self.complex(*self._complex(opcode, pairs))

    def _complex(self, opcode: str, pairs: Sequence[Pair]) -> Pair:
        (a, b), (c, d) = pairs[0], pairs[-1]
        f = self._float
        if opcode in ("add", "subtract"):
            return f(opcode, (a, c)), f(opcode, (b, d))
        if opcode == "negate":
            return f("negate", (a,)), f("negate", (b,))
        if opcode == "multiply":
            return self._product(a, b, c, d)
        if opcode == "divide":
            real, imaginary = self._product(a, b, c, f("negate", (d,)))
            norm = self._norm(c, d)
            return f("divide", (real, norm)), f("divide", (imaginary, norm))
        if opcode == "exponential":
            size = f("exponential", (a,))
            return f("multiply", (size, f("cosine", (b,)))), f("multiply", (size, f("sine", (b,))))
        raise Undecidable(f"{opcode} of complex numbers is not in the {self.name} domain")

    def _product(self, a: Array, b: Array, c: Array, d: Array) -> Pair:
        f = self._float
        real = f("subtract", (f("multiply", (a, c)), f("multiply", (b, d))))
        return real, f("add", (f("multiply", (a, d)), f("multiply", (b, c))))

    def _norm(self, a: Array, b: Array) -> Array:
        return self._float("add", (self._float("multiply", (a, a)), self._float("multiply", (b, b))))

    def _matmul(self, a: Array, b: Array, dtype: DType) -> Array:
        if not dtype.is_complex:
            return self._float_matmul(a, b)
        f, product = self._float, self._float_matmul
        real = f("subtract", (product(a["re"], b["re"]), product(a["im"], b["im"])))
        return self.complex(real, f("add", (product(a["re"], b["im"]), product(a["im"], b["re"]))))

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
