"""Arrays of integers modulo the prime P = 2^61 - 2^17 - 1, in uint64, always in [0, P).

2^61 is 2^17 + 1 here, so that reduction takes shifts and additions. (Modulo the Mersenne prime 2^61 - 1 powers of two repeat after 61: a
small float would be the image of a whole number.) P + 1 = 2^17 (2^44 - 1), which gives roots of unity of many orders. Matrix products
run in floating point on limbs of 21 bits: sums of 2^11 products of two limbs stay below 2^53 and are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable

Residues: TypeAlias = npt.NDArray[np.uint64]

BITS = 61
FOLD = (1 << 17) + 1
"""2^61 modulo P."""
P = (1 << BITS) - FOLD
_P = np.uint64(P)
_MASK = np.uint64((1 << BITS) - 1)
_EXPONENTS = 1200
_PIECE = 1 << 14
_POWERS = np.array([pow(2, e, P) for e in range(-_EXPONENTS, _EXPONENTS)], np.uint64)
_LIMB = 21
_BLOCK = 1 << 11


def u(value: int) -> np.uint64:
    """A word; NumPy would turn uint64 and int into floats."""
    return np.uint64(value)


def reduced(x: Residues) -> Residues:
    """Any 64-bit words, modulo P."""
    x = (x & _MASK) + (x >> u(BITS)) * u(FOLD)
    return np.where(x >= _P, x - _P, x)


def add(a: Residues, b: Residues) -> Residues:
    """``a + b``."""
    total = a + b
    return np.where(total >= _P, total - _P, total)


def negate(a: Residues) -> Residues:
    """``-a``."""
    return np.where(a == 0, a, _P - a)


def subtract(a: Residues, b: Residues) -> Residues:
    """``a - b``."""
    return add(a, negate(b))


def multiply(a: Residues, b: Residues) -> Residues:
    """``a * b``."""
    return in_pieces(_multiply, a, b)


def in_pieces(function: Callable[..., npt.NDArray[Any]], *operands: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A function of elements that takes many passes, on pieces that stay in the processor's cache."""
    if max(x.size for x in operands) <= _PIECE:
        return function(*operands)
    spread = np.broadcast_arrays(*operands)
    flat = [x.reshape(-1) for x in spread]
    pieces = [function(*(x[start : start + _PIECE] for x in flat)) for start in range(0, flat[0].size, _PIECE)]
    return np.concatenate(pieces).reshape(spread[0].shape)


def _multiply(a: Residues, b: Residues) -> Residues:
    """Schoolbook on halves of 32 and 29 bits; the part above 2^61 is folded twice."""
    mask = u(0xFFFFFFFF)
    a0, a1, b0, b1 = a & mask, a >> u(32), b & mask, b >> u(32)
    low, middle = a0 * b0, a0 * b1 + a1 * b0
    rest = (low & _MASK) + ((middle & u((1 << 29) - 1)) << u(32))
    above = ((a1 * b1) << u(3)) + (middle >> u(29)) + (low >> u(BITS))
    folded = ((above & u((1 << 44) - 1)) << u(17)) + (above >> u(44)) * u(FOLD)
    return reduced(rest + above + folded)


def scaled(x: Residues, exponents: Any) -> Residues:
    """``x`` times two to exponents of a size below 1200, an integer or an array of them."""
    return multiply(x, _POWERS[np.asarray(exponents) + _EXPONENTS])


def power(a: Residues, exponent: int) -> Residues:
    """For an exponent that is not negative."""
    result, square = np.ones_like(a), a
    while exponent:
        if exponent & 1:
            result = multiply(result, square)
        exponent >>= 1
        square = multiply(square, square) if exponent else square
    return result


def inverse(a: Residues) -> Residues:
    """Inverses of elements that are not 0 (the inverse of 0 is 0 here): Montgomery's trick, one division for the whole array."""
    flat = np.where(a == 0, u(1), a).reshape(-1)
    levels = [flat]
    while levels[-1].size > 1:
        level = levels[-1]
        if level.size % 2:
            level = levels[-1] = np.append(level, u(1))
        levels.append(multiply(level[0::2], level[1::2]))
    found = np.array([pow(int(x), -1, P) for x in levels.pop()], np.uint64)
    for level in reversed(levels):
        wider, found = np.empty_like(level), found[: level.size // 2]
        wider[0::2], wider[1::2] = multiply(found, level[1::2]), multiply(found, level[0::2])
        found = wider
    return np.where(a == 0, a, found[: a.size].reshape(a.shape))


def total(a: Residues, axis: int | tuple[int, ...]) -> Residues:
    """Sums of fewer than 2^32 elements along axes."""
    mask = u(0xFFFFFFFF)
    low = (a & mask).sum(axis=axis, dtype=np.uint64)
    high = (a >> u(32)).sum(axis=axis, dtype=np.uint64)
    return add(reduced(low), scaled(reduced(high), 32))


def matmul(a: Residues, b: Residues) -> Residues:
    """The product of stacks of matrices."""
    length = a.shape[-1]
    result = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), np.uint64)
    for start in range(0, length, _BLOCK):
        part = slice(start, start + _BLOCK)
        result = add(result, _block(a[..., part], b[..., part, :]))
    return result


def _block(a: Residues, b: Residues) -> Any:
    left, right = _limbs(a), _limbs(b)
    result: Any = np.zeros(1, np.uint64)
    for weight in range(5):
        # At most three products below 2^53.
        products = [np.matmul(left[i], right[weight - i]).astype(np.uint64) for i in range(3) if 0 <= weight - i < 3]
        result = add(result, scaled(np.add.reduce(products), _LIMB * weight))
    return result


def _limbs(a: Residues) -> list[npt.NDArray[np.float64]]:
    return [((a >> u(_LIMB * k)) & u((1 << _LIMB) - 1)).astype(np.float64) for k in range(3)]


def from_integers(x: npt.NDArray[Any]) -> Residues:
    """Integers of any NumPy type, modulo P."""
    if x.dtype.kind != "i":
        return reduced(x.astype(np.uint64))
    wide = x.astype(np.int64)
    magnitude = reduced(np.where(wide < 0, np.negative(wide), wide).view(np.uint64))
    return np.where(wide < 0, negate(magnitude), magnitude)


def from_floats(x: npt.NDArray[Any]) -> Residues:
    """Finite floats as the dyadic rationals that they are."""
    mantissa, exponent = np.frexp(x.astype(np.float64))
    return scaled(from_integers(np.ldexp(mantissa, 53).astype(np.int64)), exponent.astype(np.int64) - 53)


def centred(x: Residues) -> npt.NDArray[np.int64]:
    """The representatives in [-P/2, P/2]."""
    return np.where(x > u(P // 2), x.astype(np.int64) - np.int64(P), x.astype(np.int64))
