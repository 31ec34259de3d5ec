"""Device arithmetic: replica groups and per-device tables as digits of the mesh position."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Digits = tuple[tuple[int, int], ...]  # (size, step), major to minor


def fit(table: Sequence[int]) -> Digits | None:
    """Mixed-radix digits of ``0 .. len(table) - 1`` in which the table is affine: ``table[j] = table[0] + sum of digit * step``.

    Digits are as large as possible; digits of step 0 are kept, so that the sizes multiply to the length. None when there are none.
    """
    count = len(table)
    stride = 1
    found: list[tuple[int, int]] = []
    while stride < count:
        step = table[stride] - table[0]
        size = 1
        while stride * (size + 1) <= count and table[stride * size] - table[0] == step * size:
            size += 1
        while size > 1 and count % (stride * size):
            size -= 1
        if size == 1:
            return None
        found.append((size, step))
        stride *= size
    expected = [table[0]]
    for size, step in found:
        expected = [e + k * step for k in range(size) for e in expected]
    return tuple(reversed(found)) if expected == list(table) else None


def group_digits(groups: Sequence[Sequence[int]], positions: dict[int, int], devices: int) -> Digits | None:
    """Digits ``(size, stride of the mesh position)`` of the index within a group, the same for every group; () for groups of one device.

    None when the groups do not cover all devices once, or are not translates of one another along such digits.
    """
    where = [[positions.get(d, -1) for d in group] for group in groups]
    if sorted(p for group in where for p in group) != list(range(devices)):
        return None
    first = where[0]
    offsets = [p - first[0] for p in first]
    if any([p - group[0] for p in group] != offsets for group in where):
        return None
    if len(first) == 1:
        return ()
    digits = fit(first)
    return digits if digits is not None and all(step > 0 for _, step in digits) else None


def cuts(digits: Digits, total: int) -> list[tuple[int, int]] | None:
    """A product of ``total`` that has every digit as a factor: (size, stride) from major to minor; None when the digits overlap."""
    found: list[tuple[int, int]] = []
    stride = 1
    for size, step in sorted(digits, key=lambda d: d[1]):
        if step <= 0 or step % stride:
            return None
        if step > stride:
            found.append((step // stride, stride))
        found.append((size, step))
        stride = step * size
    if total % stride:
        return None
    if total > stride:
        found.append((total // stride, stride))
    return found[::-1]
