"""What a domain of numbers provides, so that the semantics of each opcode is written once.

Integers and predicates are the same everywhere: NumPy arrays, exact in their declared width (:mod:`scalify.hlo.arithmetic.integers`). A
domain says how *floats* are held and computed with; complex numbers are its own matter, too. Arrays of every type are NumPy arrays
that may be sliced, gathered, stacked and selected from like any other, so that data movement needs no domain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from scalify.errors import HloError, Undecidable
from scalify.hlo.arithmetic import hashing, integers
from scalify.hlo.dtypes import COMPLEX_PART, DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.dtypes import DType

Array: TypeAlias = npt.NDArray[Any]

ASSOCIATIVE = frozenset(integers.UFUNCS)
"""Opcodes of two operands that a reduction may apply in any order."""


def known(dtype: str) -> DType:
    """:raises HloError: no array type of this name."""
    found = DTYPES.get(dtype)
    if found is None:
        raise HloError(f"values of type {dtype} cannot be computed with")
    return found


def whole(dtype: str) -> bool:
    """Whether values are integers or predicates."""
    return known(dtype).is_integer or dtype == "pred"


class Domain(ABC):
    """One way to compute with floats.

    ``reals`` says that conversions between floats round nothing, ``ordered`` that the order is that of the reals. ``cost`` is the weight of one element operation against the budget,
    ``product_cost`` that of a product in a contraction, where it is another.
    ``arbitrary`` collects what the results depend on beyond arithmetic: the functions and orders that the domain chose by itself.
    """

    name: ClassVar[str]
    reals: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    cost: ClassVar[int] = 1
    product_cost: ClassVar[int | None] = None

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.arbitrary: set[str] = set()

    # -- representation --------------------------------------------------------------------------------------------------
    def storage(self, dtype: str) -> np.dtype[Any]:
        """The NumPy type that holds values of an HLO type. :raises HloError: no array type of this name."""
        return integers.storage(dtype) if whole(dtype) else self._storage(known(dtype))

    def settle(self, array: Array, dtype: str) -> Array:
        """A computed array as a value of a type: integers wrap at their width, floats round if this domain rounds."""
        return integers.wrap(array, dtype) if whole(dtype) else self._settle(array, known(dtype))

    def encode(self, array: Array, dtype: str) -> Array:
        """Host numbers (NumPy integers, floats, complex numbers) as values of a type, without loss where the domain is exact.

        Arrays of the type that holds values already (objects, elements of the field) are taken as they are.
        """
        return integers.wrap(array, dtype) if whole(dtype) else self._encode(array, known(dtype))

    def number(self, value: float, dtype: str) -> Array:
        """One number, ``[1]``."""
        return self.encode(np.array([value]), dtype)

    @abstractmethod
    def _storage(self, dtype: DType) -> np.dtype[Any]: ...

    @abstractmethod
    def _settle(self, array: Array, dtype: DType) -> Array: ...

    @abstractmethod
    def _encode(self, array: Array, dtype: DType) -> Array: ...

    # -- arithmetic ------------------------------------------------------------------------------------------------------
    def apply(self, opcode: str, operands: Sequence[Array], dtype: str) -> Array:
        """An elementwise opcode on operands of one type that broadcast against each other.

        :raises HloError: the opcode is not defined on the type.
        :raises Undecidable: the domain cannot compute it.
        """
        if not whole(dtype):
            return self._apply(opcode, operands, known(dtype))
        function = integers.FUNCTIONS.get(opcode)
        if function is None:
            raise HloError(f"{opcode} of {dtype} is not defined")
        return function(*operands)

    @abstractmethod
    def _apply(self, opcode: str, operands: Sequence[Array], dtype: DType) -> Array: ...

    def reduce(self, opcode: str, x: Array, axes: tuple[int, ...], dtype: str) -> Array:
        """An associative opcode over axes of at least one element each."""
        if whole(dtype):
            reduced: Array = integers.UFUNCS[opcode].reduce(x, axis=axes, dtype=x.dtype)
            return reduced
        return self._reduce(opcode, x, axes, known(dtype))

    def _reduce(self, opcode: str, x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
        """In halves."""
        kept = [a for a in range(x.ndim) if a not in axes]
        flat = x.transpose(*kept, *axes).reshape(*(x.shape[a] for a in kept), -1)
        while flat.shape[-1] > 1:
            even = flat.shape[-1] // 2
            halves = self._apply(opcode, (flat[..., :even], flat[..., even : 2 * even]), dtype)
            flat = np.concatenate([halves, flat[..., 2 * even :]], axis=-1)
        return flat[..., 0]

    def accumulate(self, opcode: str, target: Array, index: tuple[Array, Array], updates: Array, dtype: str) -> None:
        """``target[index] = opcode(target[index], update)`` for each update, in place; an index may occur many times."""
        if whole(dtype):
            integers.UFUNCS[opcode].at(target, index, updates)
        else:
            self._accumulate(opcode, target, index, updates, known(dtype))

    def _accumulate(self, opcode: str, target: Array, index: tuple[Array, Array], updates: Array, dtype: DType) -> None:
        """In rounds, each with every index at most once."""
        for chosen in _rounds(index[0].astype(np.int64) * target.shape[1] + index[1]):
            place = (index[0][chosen], index[1][chosen])
            target[place] = self._apply(opcode, (target[place], updates[chosen]), dtype)

    def matmul(self, a: Array, b: Array, dtype: str) -> Array:
        """Products of stacks of matrices whose elements are of one type."""
        return np.matmul(a, b) if whole(dtype) else self._matmul(a, b, known(dtype))

    @abstractmethod
    def _matmul(self, a: Array, b: Array, dtype: DType) -> Array: ...

    def root_of_unity(self, order: int, dtype: str) -> Array:
        """``exp(2 pi i k / order)`` for k from 0 to order - 1 in a complex type. :raises Undecidable: not in this domain."""
        raise Undecidable(f"roots of unity of order {order} are not among the numbers of the {self.name} domain")

    # -- order -----------------------------------------------------------------------------------------------------------
    def compare(self, direction: str, a: Array, b: Array, dtype: str, *, total: bool = False) -> Array:
        """``total`` chooses the total order of floats instead of IEEE's comparison."""
        if whole(dtype):
            return integers.COMPARISONS[direction](a, b)
        if total:
            keys = self.order_key(np.stack(np.broadcast_arrays(a, b)), dtype)
            return integers.COMPARISONS[direction](keys[0], keys[1])
        return self._compare(direction, a, b, known(dtype))

    @abstractmethod
    def _compare(self, direction: str, a: Array, b: Array, dtype: DType) -> Array: ...

    def order_key(self, x: Array, dtype: str) -> Array:
        """Integers in the total order of the elements (-NaN < -inf < ... < -0 < +0 < ... < inf < NaN)."""
        return x if whole(dtype) else self._order_key(x, known(dtype))

    @abstractmethod
    def _order_key(self, x: Array, dtype: DType) -> Array: ...

    # -- other types -----------------------------------------------------------------------------------------------------
    def convert(self, x: Array, source: str, target: str) -> Array:
        """``x`` in another type: float to integer truncates and saturates (NaN is 0), integer to integer wraps."""
        if target == "pred":
            return self.compare("NE", x, np.zeros(1, x.dtype), source)
        if whole(source):
            return integers.wrap(x, target) if whole(target) else self._from_integers(x, known(target))
        if known(source).is_complex and not known(target).is_complex:
            x, source = self.apply("real", [x], source), COMPLEX_PART[source]
        if whole(target):
            return self._to_integer(x, known(target))
        return x if known(source).is_complex or not known(target).is_complex else self.complex(x, np.zeros_like(x))

    @abstractmethod
    def _from_integers(self, x: Array, target: DType) -> Array: ...

    @abstractmethod
    def _to_integer(self, x: Array, target: DType) -> Array: ...

    @abstractmethod
    def complex(self, real: Array, imaginary: Array) -> Array:
        """Complex numbers from their parts."""

    @abstractmethod
    def to_bits(self, x: Array, dtype: DType) -> Array:
        """The pattern of floats in their declared type, as unsigned integers of that width. :raises Undecidable: it has none here."""

    @abstractmethod
    def from_bits(self, bits: Array, dtype: DType) -> Array:
        """Floats (or complex numbers) from unsigned integers of that width."""

    def round(self, x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
        """``reduce-precision``: the identity where floats are read as reals."""
        return x

    # -- unknown values and functions ------------------------------------------------------------------------------------
    def unknown(self, words: hashing.Words, dtype: str) -> Array:
        """Values of a type chosen by hashes: integers of full range, floats the same odd multiples of 2^-17 in (-1, 1) in every domain."""
        self.arbitrary.add("unknown values")
        if dtype == "pred":
            return (words & np.uint64(1)).astype(np.bool_)
        if whole(dtype):
            return integers.wrap(words.view(np.int64), dtype)
        first, second = _dyadic(words >> np.uint64(40)), _dyadic(words & np.uint64(0xFFFFFF))
        return self.encode(first + 1j * second if known(dtype).is_complex else first, dtype)

    def opaque(self, name: str, operands: Sequence[tuple[Array, str]], shape: tuple[int, ...], dtype: str) -> Array:
        """A seeded function of arrays of several types; ``name`` tells functions apart.

        Operands are ``[batch, size]``, the result is ``[batch, *shape]``. Equal rows give equal rows.
        """
        self.arbitrary.add(name.split("\0", maxsplit=1)[0])
        batch = operands[0][0].shape[0] if operands else 1
        salt = hashing.key(self.seed, name, dtype, shape)
        rows = hashing.combined(salt, [hashing.folded(self.digest(x, d), 1) for x, d in operands if x.shape[1]])
        places = hashing.positions(shape)
        words = hashing.combined(salt, [np.broadcast_to(rows, (batch,)).reshape(-1, *(1,) * len(shape)), places[None]])
        return self.unknown(words, dtype)

    def digest(self, x: Array, dtype: str) -> hashing.Words:
        """A word for each element, equal for equal elements."""
        return x.astype(np.int64).view(np.uint64) if whole(dtype) else self._digest(x, known(dtype))

    @abstractmethod
    def _digest(self, x: Array, dtype: DType) -> hashing.Words: ...


def _dyadic(words: hashing.Words) -> npt.NDArray[np.float64]:
    """Words below 2^24 as odd multiples of 2^-17 in (-1, 1): never 0, few enough bits for single precision."""
    return ((words >> np.uint64(7)).astype(np.int64) - (1 << 16)).astype(np.float64) / (1 << 16) + 2.0**-17


def _rounds(places: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Positions grouped so that no place occurs twice in a group; the n-th occurrence of a place is in group n."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if order.size else order
    nth = np.arange(order.size) - np.repeat(starts, np.diff(np.append(starts, order.size)))
    by_round = np.argsort(nth, kind="stable")
    return np.split(order[by_round], np.cumsum(np.bincount(nth))[:-1]) if order.size else []
