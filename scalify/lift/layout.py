"""Layouts and values: how the dimensions of an HLO value are cut into blocks, and the blocks into slots.

Every value has the device dimension in front (of size 1 in a single-device graph), then its HLO dimensions. After inference a dimension is a
list of factors, each an atom or a sum of segments. A factor's *alternatives* are its segments: an offset and digits ``(size, stride)``, so
that the index within the factor is ``offset + sum of stride * digit``. The blocks of a value are all combinations of its factors'
alternatives, row-major; slot numbers of a block count its digits from the first factor to the last. So a reshape that only regroups factors
changes nothing, and a transpose permutes factors.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from itertools import product as combinations
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from scalify.lift.axes import Axis, factors, find, segments
from scalify.lift.terms import LimitReached, View

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_BLOCKS = 4096

Axes = tuple[Axis | None, ...]


class Alternative(NamedTuple):
    """Element ``offset + sum of stride * digit``; ``digits`` are (size, stride), major to minor."""

    offset: int
    digits: tuple[tuple[int, int], ...]


Alternatives = tuple[Alternative, ...]


class Block(NamedTuple):
    """One combination of alternatives. ``choice[f]`` is the alternative of factor f, ``slots[f]`` its slot numbers."""

    choice: tuple[int, ...]
    slots: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]


class Value(NamedTuple):
    """A lifted HLO value: one view for each block of its layout."""

    layout: Layout
    views: tuple[View, ...]


def alternatives(factor: Axis) -> tuple[Alternative, ...]:
    """The alternatives of one factor, by increasing position of their segments."""
    factor = find(factor)
    if factor.kind == "atom":
        return (Alternative(0, ((factor.size, 1),)),)
    if factor.kind == "product":
        return joined([alternatives(f) for f in factors(factor)], [f.size for f in factors(factor)])
    found: list[Alternative] = []
    start = 0
    for segment in segments(factor):
        inner = alternatives(segment) if segment.size > 1 else (Alternative(0, ()),)
        found += [Alternative(start + a.offset, a.digits) for a in inner]
        start += segment.size
    return tuple(found)


def joined(parts: Sequence[tuple[Alternative, ...]], sizes: Sequence[int]) -> tuple[Alternative, ...]:
    """The alternatives of a product of factors (major to minor), row-major over theirs."""
    found = [Alternative(0, ())]
    stride = 1
    for part, size in zip(reversed(parts), reversed(sizes), strict=True):
        found = [
            Alternative(outer.offset * stride + inner.offset, tuple([(n, s * stride) for n, s in outer.digits]) + inner.digits)
            for outer in part
            for inner in found
        ]
        stride *= size
    return tuple(found)


class Dimension(NamedTuple):
    """The factors of one dimension, their identities and their alternatives."""

    factors: tuple[Axis, ...]
    ids: tuple[int, ...]
    parts: tuple[Alternatives, ...]


NO_FACTORS = Dimension((), (), ())


def dimension(axis: Axis | None, known: dict[Axis, Dimension]) -> Dimension:
    """The dimension of an axis; ``known`` remembers those asked for before."""
    if axis is None:
        return NO_FACTORS
    root = find(axis)
    found = known.get(root)
    if found is None:
        own = tuple(factors(root))
        found = known[root] = Dimension(own, tuple([id(f) for f in own]), tuple([alternatives(f) for f in own]))
    return found


class Grid:
    """The blocks of a layout: what is left of it when one forgets which axes its factors are. The layers of a model share theirs.

    ``dims[d]`` are the alternatives of each factor of dimension d, ``parts`` those of all factors; dimension d has the factors from
    ``starts[d]`` to ``starts[d + 1]``.
    """

    def __init__(self, dims: tuple[tuple[Alternatives, ...], ...]) -> None:
        self.parts = tuple([p for dim in dims for p in dim])
        self.starts = (0, *accumulate([len(dim) for dim in dims]))
        self.count = prod([len(p) for p in self.parts])

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        if self.count > MOST_BLOCKS:
            raise LimitReached("blocks", MOST_BLOCKS)
        found = []
        for choice in combinations(*[range(len(p)) for p in self.parts]):
            slots: list[tuple[int, ...]] = []
            sizes: list[int] = []
            for part, c in zip(self.parts, choice, strict=True):
                digits = part[c].digits
                slots.append(tuple(range(len(sizes), len(sizes) + len(digits))))
                sizes += [n for n, _ in digits]
            found.append(Block(choice, tuple(slots), tuple(sizes)))
        return tuple(found)


class Layout:
    """The factors of each dimension; dimension 0 is the device dimension. ``plain``: one block only."""

    def __init__(self, axes: Axes, grids: dict[object, Grid] | None = None, known: dict[Axis, Dimension] | None = None) -> None:
        dims = [dimension(a, {} if known is None else known) for a in axes]
        self.dims = tuple([d.factors for d in dims])
        self.key = tuple([d.ids for d in dims])
        self.sizes = tuple([a.size if a is not None else 1 for a in axes])
        self.factors = tuple([f for dim in self.dims for f in dim])
        self.flat_key = tuple([f for dim in self.key for f in dim])
        looks = tuple([d.parts for d in dims])
        grid = grids.get(looks) if grids is not None else None
        if grid is None:
            grid = Grid(looks)
            if grids is not None:
                grids[looks] = grid
        self.grid = grid
        self.parts, self.starts, self.count = grid.parts, grid.starts, grid.count
        self.plain = grid.count == 1

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks. :raises LimitReached: they are too many."""
        return self.grid.blocks

    def position(self, choice: Sequence[int]) -> int:
        """Which block a combination of alternatives is."""
        found = 0
        for c, part in zip(choice, self.parts, strict=True):
            found = found * len(part) + c
        return found

    def range(self, dim: int) -> range:
        """The factors of a dimension."""
        return range(self.starts[dim], self.starts[dim + 1])

    def alternative(self, dims: Sequence[int], block: Block) -> tuple[int, list[tuple[int, int, int]]]:
        """Row-major index over several dimensions within a block: (offset, [(slot, size, stride)])."""
        offset = 0
        digits: list[tuple[int, int, int]] = []
        stride = 1
        for dim in reversed(dims):
            for f in reversed(self.range(dim)):
                part = self.parts[f][block.choice[f]]
                offset += part.offset * stride
                digits[:0] = [(slot, n, s * stride) for slot, (n, s) in zip(block.slots[f], part.digits, strict=True)]
                stride *= self.factors[f].size
        return offset, digits

    def slots(self, dim: int, block: Block) -> tuple[int, ...]:
        """The slots of a dimension within a block."""
        return tuple([s for f in self.range(dim) for s in block.slots[f]])
