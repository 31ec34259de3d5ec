"""Layouts: how the dimensions of an HLO value are cut into blocks, and the blocks into slots.

After inference a dimension is a list of *alternatives*, one for each choice of segments; an alternative is an offset and digits ``(size,
stride)`` so that the index within the dimension is ``offset + sum of stride * digit``. A value's blocks are all combinations of its
dimensions' alternatives, row-major; slot numbers of a block count its digits from the first dimension to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product as combinations
from typing import NamedTuple

from scalify.lift.axes import Axis, factors, find, segments

MOST_BLOCKS = 4096


class Digit(NamedTuple):
    """One slot of an alternative: ``size`` values, each worth ``stride`` elements of the dimension."""

    axis: Axis
    size: int
    stride: int


class Alternative(NamedTuple):
    """One choice of segments of a dimension: element ``offset + sum of digit * stride``."""

    offset: int
    digits: tuple[Digit, ...]


class Block(NamedTuple):
    """One combination of alternatives; ``slots[d]`` are the slot numbers of dimension d."""

    alternatives: tuple[Alternative, ...]
    choice: tuple[int, ...]
    slots: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]


def alternatives(axis: Axis | None) -> tuple[Alternative, ...]:
    """All alternatives of a dimension, by increasing position of their segments; a dimension of size 1 has None for its axis."""
    if axis is None:
        return (Alternative(0, ()),)
    found = [Alternative(0, ())]
    stride = 1
    for factor in reversed(factors(axis)):
        found = [
            Alternative(outer.offset + inner.offset, outer.digits + inner.digits)
            for outer in _of_factor(factor, stride)
            for inner in found
        ]
        stride *= factor.size
    return tuple(found)


def _of_factor(factor: Axis, stride: int) -> list[Alternative]:
    if find(factor).kind != "sum":
        return [Alternative(0, (Digit(find(factor), factor.size, stride),) if factor.size > 1 else ())]
    found = []
    start = 0
    for segment in segments(factor):
        for inner in alternatives(segment if segment.size > 1 else None):
            digits = tuple([Digit(d.axis, d.size, d.stride * stride) for d in inner.digits])
            found.append(Alternative((start + inner.offset) * stride, digits))
        start += segment.size
    return found


class Layout:
    """The blocks of values whose dimensions have these axes."""

    def __init__(self, dims: tuple[int, ...], parts: tuple[tuple[Alternative, ...], ...]) -> None:
        self.dims = dims
        self.parts = parts

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        found = []
        for choice in combinations(*[range(len(p)) for p in self.parts]):
            chosen = tuple([p[c] for p, c in zip(self.parts, choice, strict=True)])
            slots, sizes, count = [], [], 0
            for alternative in chosen:
                slots.append(tuple(range(count, count + len(alternative.digits))))
                sizes += [d.size for d in alternative.digits]
                count += len(alternative.digits)
            found.append(Block(chosen, choice, tuple(slots), tuple(sizes)))
        return tuple(found)

    @cached_property
    def count(self) -> int:
        total = 1
        for part in self.parts:
            total *= len(part)
        return total

    def position(self, choice: Sequence[int]) -> int:
        """Which block a combination of alternatives is."""
        found = 0
        for c, part in zip(choice, self.parts, strict=True):
            found = found * len(part) + c
        return found

    @cached_property
    def atoms(self) -> tuple[tuple[int, ...], ...]:
        """For each block the identities of its atoms: layouts that agree here can share views through a reshape."""
        return tuple([tuple([id(d.axis) for a in b.alternatives for d in a.digits]) for b in self.blocks])
