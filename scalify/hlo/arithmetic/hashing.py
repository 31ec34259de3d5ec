"""Seeded hashes of arrays of 64-bit words: the material of unknown values and of uninterpreted functions.

Not cryptographic. Equal words give equal hashes; hashes of different words, names or seeds agree as often as random words do.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable

Words: TypeAlias = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)


def key(seed: int, *parts: object) -> np.uint64:
    """A word for a seed and a name of any length."""
    text = "\0".join([str(seed), *map(repr, parts)])
    return np.uint64(int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"))


def mix(words: Words) -> Words:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def combined(salt: np.uint64, words: Iterable[Words]) -> Words:
    """One hash of several arrays, element by element; their order matters."""
    result: Any = np.asarray(salt, np.uint64)
    for word in words:
        with np.errstate(over="ignore"):
            result = mix((result + _STEP) ^ mix(word + _STEP))
    return np.asarray(result)


def positions(shape: tuple[int, ...]) -> Words:
    """A word for each place of an array."""
    count = int(np.prod(shape, dtype=np.int64))
    return np.arange(count, dtype=np.uint64).reshape(shape)


def folded(words: Words, axis: int) -> Words:
    """One hash of all words along an axis; their order matters."""
    place = positions((words.shape[axis],)).reshape([-1 if a == axis % words.ndim else 1 for a in range(words.ndim)])
    with np.errstate(over="ignore"):
        total: Words = mix(mix(words + _STEP) ^ mix(place * _STEP + np.uint64(1))).sum(axis=axis, dtype=np.uint64)
    return mix(total)
