"""Arithmetic modulo P against Python's integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.hlo.arithmetic import hashing, prime

P = prime.P
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RESIDUES = st.one_of(st.integers(0, P - 1), st.sampled_from([0, 1, 2, P - 1, P - 2, P // 2, P // 2 + 1, (1 << 32) - 1, 1 << 32]))
LISTS = st.lists(RESIDUES, min_size=1, max_size=9)


def words(values: list[int]) -> prime.Residues:
    return np.array(values, np.uint64)


@given(LISTS, RESIDUES)
def test_ring(values: list[int], other: int) -> None:
    a, b = words(values), words([other] * len(values))
    assert prime.add(a, b).tolist() == [(v + other) % P for v in values]
    assert prime.subtract(a, b).tolist() == [(v - other) % P for v in values]
    assert prime.multiply(a, b).tolist() == [v * other % P for v in values]
    assert prime.negate(a).tolist() == [-v % P for v in values]
    assert int(prime.total(a, 0)) == sum(values) % P


@given(LISTS)
def test_inverse(values: list[int]) -> None:
    assert prime.inverse(words(values)).tolist() == [pow(v, -1, P) if v else 0 for v in values]


@given(LISTS, st.integers(-200, 200), st.integers(0, 200))
def test_powers(values: list[int], places: int, exponent: int) -> None:
    assert prime.scaled(words(values), places).tolist() == [v * pow(2, places, P) % P for v in values]
    assert prime.power(words(values), exponent).tolist() == [pow(v, exponent, P) for v in values]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(0, 5), st.integers(1, 4), st.randoms(use_true_random=False))
def test_matmul(rows: int, inner: int, columns: int, random: object) -> None:
    draw = random.randrange  # type: ignore[attr-defined]
    a, b = ([[draw(P) for _ in range(n)] for _ in range(m)] for m, n in ((rows, inner), (inner, columns)))
    left, right = np.array(a, np.uint64).reshape(rows, inner), np.array(b, np.uint64).reshape(inner, columns)
    assert prime.matmul(left, right).tolist() == [
        [sum(a[i][k] * b[k][j] for k in range(inner)) % P for j in range(columns)] for i in range(rows)
    ]


def test_long_matmul_is_exact() -> None:
    x = np.full((1, 5000), P - 1, np.uint64)
    assert prime.matmul(x, x.T).tolist() == [[5000]]


@given(st.lists(st.integers(-(1 << 63), (1 << 64) - 1), min_size=1, max_size=5))
def test_integers(values: list[int]) -> None:
    for dtype in ("int64", "uint64"):
        fits = [v for v in values if np.iinfo(dtype).min <= v <= np.iinfo(dtype).max]
        assert prime.from_integers(np.array(fits, dtype)).tolist() == [v % P for v in fits]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_floats_are_the_dyadic_rationals_that_they_are(values: list[float]) -> None:
    images = [f.numerator * pow(f.denominator, -1, P) % P for f in map(Fraction, values)]
    assert prime.from_floats(np.array(values)).tolist() == images


def test_hashes_tell_words_places_names_and_seeds_apart() -> None:
    x = np.arange(1000, dtype=np.uint64)
    assert len(set(hashing.mix(x).tolist())) == 1000
    hashes = [hashing.combined(hashing.key(seed, name), [a, b]) for seed in (0, 1) for name in "fg" for a, b in ((x, x + x), (x + x, x))]
    assert len({h for part in hashes for h in part[1:].tolist()}) == 8 * 999
    assert int(hashing.folded(x[[1, 2, 3]], 0)) != int(hashing.folded(x[[2, 1, 3]], 0))
