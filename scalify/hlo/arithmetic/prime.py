"""Arrays of integers modulo the Mersenne prime 2^61 - 1, in uint64, always in [0, P).

Reduction is a shift and an add because 2^61 = 1; a multiplication by a power of two is a rotation. Matrix products run in
floating point on limbs of 21 bits: sums of 2^11 products of two limbs stay below 2^53 and are exact.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Residues: TypeAlias = npt.NDArray[np.uint64]

BITS = 61
P = (1 << BITS) - 1
_P = np.uint64(P)
_LIMB = 21
_BLOCK = 1 << 11


def u(value: int) -> np.uint64:
    """A word; NumPy would turn uint64 and int into floats."""
    return np.uint64(value)


def reduced(x: Residues) -> Residues:
    """Any 64-bit words, modulo P."""
    x = (x & _P) + (x >> u(BITS))
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
    """Schoolbook on halves of 32 and 29 bits."""
    mask = u(0xFFFFFFFF)
    a0, a1, b0, b1 = a & mask, a >> u(32), b & mask, b >> u(32)
    low, middle, high = a0 * b0, a0 * b1 + a1 * b0, a1 * b1
    # middle * 2^32 = (middle >> 29) * 2^61 + (middle mod 2^29) * 2^32, high * 2^64 = high * 8
    total = (low & _P) + (low >> u(BITS)) + (middle >> u(29)) + ((middle & u((1 << 29) - 1)) << u(32)) + (high << u(3))
    return reduced(total)


def rotate(x: Residues, places: Any) -> Residues:
    """``x`` times ``2 ** places``, which may be an array and negative."""
    left = np.mod(places, BITS).astype(np.uint64)
    return reduced(((x << left) & _P) | (x >> (u(BITS) - left)))


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
    return add(reduced(low), rotate(reduced(high), 32))


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
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            product = np.matmul(x, y).astype(np.uint64)
            result = add(result, rotate(product, _LIMB * (i + j)))
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
    return rotate(from_integers(np.ldexp(mantissa, 53).astype(np.int64)), exponent.astype(np.int64) - 53)


def centred(x: Residues) -> npt.NDArray[np.int64]:
    """The representatives in [-P/2, P/2]."""
    return np.where(x > u(P // 2), x.astype(np.int64) - np.int64(P), x.astype(np.int64))
