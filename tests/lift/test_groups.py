"""Replica groups and device tables as digits of the mesh position, against enumeration."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.lift.groups import Digits, cuts, fit, group_digits


def expanded(digits: Digits, first: int = 0) -> list[int]:
    """``first + sum of digit * step``, the last digit fastest."""
    return [first + sum(k * step for k, (_, step) in zip(ks, digits, strict=True)) for ks in product(*[range(n) for n, _ in digits])]


def splits(total: int) -> list[tuple[int, ...]]:
    """All ordered factorisations into factors above 1."""
    found: list[tuple[int, ...]] = [(total,) if total > 1 else ()]
    for n in range(2, total):
        if total % n == 0:
            found += [(n, *rest) for rest in splits(total // n)]
    return found


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.integers(-3, 12), min_size=1, max_size=12))
def test_fit_means_what_it_says(table: list[int]) -> None:
    digits = fit(table)
    if digits is not None:
        assert expanded(digits, table[0]) == table


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from([n for total in (2, 4, 6, 8, 12) for n in splits(total)]), st.data())
def test_fit_finds_all_digits(sizes: tuple[int, ...], data: st.DataObject) -> None:
    digits = tuple((n, data.draw(st.integers(0, 9))) for n in sizes)
    assert fit(expanded(digits, 3)) is not None


def mesh_groups(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[list[int]]:
    """Groups over some axes of a mesh, the last of them fastest."""
    rest = [d for d in range(len(shape)) if d not in axes]
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    groups = []
    for fixed in product(*[range(shape[d]) for d in rest]):
        base = sum(k * strides[d] for k, d in zip(fixed, rest, strict=True))
        groups.append(
            [base + sum(k * strides[d] for k, d in zip(ks, axes, strict=True)) for ks in product(*[range(shape[d]) for d in axes])]
        )
    return groups


@pytest.mark.parametrize("shape", [(2,), (4,), (2, 2), (2, 3), (3, 2), (2, 2, 2), (2, 3, 2)])
def test_groups_over_mesh_axes(shape: tuple[int, ...]) -> None:
    total = len(mesh_groups(shape, ())) if shape else 1
    positions = {d: d for d in range(total)}
    for count in range(1, len(shape) + 1):
        for axes in permutations(range(len(shape)), count):
            groups = mesh_groups(shape, axes)
            digits = group_digits(groups, positions, total)
            assert digits is not None
            assert all(expanded(digits, g[0]) == g for g in groups)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.permutations(range(8)), st.permutations(range(8)), st.sampled_from([1, 2, 4, 8]))
def test_any_groups(order: list[int], ids: list[int], width: int) -> None:
    """Digits that are found describe every group, member by member; devices may sit anywhere in the mesh."""
    groups = [order[k : k + width] for k in range(0, 8, width)]
    positions = {d: p for p, d in enumerate(ids)}
    digits = group_digits(groups, positions, 8)
    if digits is not None:
        for group in groups:
            where = [positions[d] for d in group]
            assert where == (expanded(digits, where[0]) if digits else where)


@pytest.mark.parametrize("groups", [[[0, 1]], [[0, 1], [1, 2]], [[0, 1], [2]], [[0, 1], [2, 4]], [[0, 1], [3, 2]]])
def test_groups_that_are_none(groups: list[list[int]]) -> None:
    assert group_digits(groups, {d: d for d in range(4)}, 4) is None


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.sampled_from([8, 12, 16, 24]),
    st.lists(st.tuples(st.sampled_from([2, 3, 4]), st.sampled_from([1, 2, 3, 4, 6, 8])), min_size=1, max_size=3),
)
def test_cuts_hold_every_digit(total: int, digits: list[tuple[int, int]]) -> None:
    found = cuts(tuple(digits), total)
    if found is None:
        return
    stride, have = total, []
    for size, step in found:
        assert stride == size * step
        have.append((size, step))
        stride = step
    assert stride == 1
    assert all(d in have for d in digits)
