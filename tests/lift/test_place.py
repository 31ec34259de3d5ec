"""Where elements are found: every place against enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.lift.layout import Alternative
from scalify.lift.place import Place, locate, locate_table
from scalify.lift.terms import Store
from tests.lift.expressions import random_of
from tests.support.evaluate import Evaluator

SOURCES: tuple[tuple[Alternative, ...], ...] = (
    (Alternative(0, ((12, 1),)),),
    (Alternative(0, ((3, 4), (4, 1))),),
    (Alternative(0, ((3, 4), (2, 2), (2, 1))),),
    (Alternative(0, ((5, 1),)), Alternative(5, ((7, 1),))),
    (Alternative(0, ((2, 3), (3, 1))), Alternative(6, ()), Alternative(7, ((5, 1),))),
    (Alternative(0, ((3, 4),)), Alternative(1, ((3, 4), (3, 1)))),
)
"""Ways to cut a dimension of 12 into blocks."""


def element(store: Store, alternative: Alternative, place: Place, slots: dict[int, int]) -> int:
    """The source element that a place names at some slot values."""
    found = alternative.offset
    for index, (size, stride) in zip(place.indices, alternative.digits, strict=True):
        if isinstance(index, tuple):
            digit = int(store.tables[index[0]][tuple(slots[s] for s in index[1:])])
        else:
            digit = -1 - index if index < 0 else slots[index]
        assert 0 <= digit < size
        found += digit * stride
    return found


def check(store: Store, source: tuple[Alternative, ...], places: list[Place], wanted: np.ndarray[Any, Any]) -> None:
    """Each element inside is in exactly one place, elements outside are in none."""
    names = list(range(wanted.ndim))
    evaluator = Evaluator(store)
    masks = [np.ones(wanted.shape) if p.condition is None else evaluator.view(p.condition, names, wanted.shape) for p in places]
    for at in product(*[range(n) for n in wanted.shape]):
        value = int(wanted[at])
        holding = [p for p, mask in zip(places, masks, strict=True) if mask[at]]
        assert len(holding) == (1 if 0 <= value < 12 else 0)
        for place in holding:
            assert element(store, source[place.choice], place, dict(enumerate(at))) == value


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 32), st.sampled_from(SOURCES))
def test_affine_indices(seed: int, source: tuple[Alternative, ...]) -> None:
    rnd, store = random_of(seed), Store()
    base = rnd.randrange(-3, 12)
    digits = [(slot, rnd.choice([1, 2, 3, 4, 12]), rnd.choice([-1, 1, 2, 3, 4, 6])) for slot in range(rnd.choice([0, 1, 2, 3]))]
    wanted = np.full([n for _, n, _ in digits], base)
    for slot, n, c in digits:
        wanted = wanted + c * np.arange(n).reshape([-1 if d == slot else 1 for d in range(len(digits))])
    check(store, source, locate(store, source, base, digits), wanted)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 32), st.sampled_from(SOURCES))
def test_tables(seed: int, source: tuple[Alternative, ...]) -> None:
    rnd, store = random_of(seed), Store()
    wanted = np.array([[rnd.randrange(-2, 14) for _ in range(3)] for _ in range(4)])
    check(store, source, locate_table(store, source, wanted, [0, 1]), wanted)
