"""Small exact arrays for the instances of rules that patterns cannot spell."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Pairs = list[tuple[Fraction | float, Fraction | float]]
Array = dict[int | tuple[int, ...], Fraction]


def assign(seed: int, sizes: Sequence[int]) -> Array:
    """Random small rationals, one for each index; an array of one dimension is indexed by integers."""
    source = random.Random(seed)  # noqa: S311 - test data
    return {
        (i[0] if len(sizes) == 1 else i): Fraction(source.randint(-12, 12), source.randint(1, 4))
        for i in itertools.product(*map(range, sizes))
    }


def total(sizes: Sequence[int], body: Callable[..., Fraction | int]) -> Fraction | int:
    """The sum of a function over all indices below the sizes."""
    return sum(body(*i) for i in itertools.product(*map(range, sizes)))


def greatest(sizes: Sequence[int], body: Callable[..., Fraction | int]) -> Fraction | int:
    """Its greatest value."""
    return max(body(*i) for i in itertools.product(*map(range, sizes)))
