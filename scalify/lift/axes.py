"""Factor inference by unification: every dimension becomes a tree of products and sums of atomic axes.

A dimension of size n starts as an unknown :class:`Axis`. Reshapes, groups and relations demand *products* (``4096 = 32 * 128``), concatenates,
pads and uneven slices demand *sums* (``16 = 15 + 1``); dimensions that meet in an operation are unified. Two products unify to their common
refinement, two sums to theirs, a product with a sum where the boundaries are multiples of the inner factors. What admits no
common refinement is left as it is: the operation that needed it then works on whole dimensions through index tables. So
inference only decides how fine the axes are, never what is true.

Cuts are found once, before lifting, for both graphs and the relation together; atoms never split afterwards.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_SEGMENTS = 64  #: of one dimension; a demand for more is refused


class Axis:
    """A node of the union-find: an atom, a product (major to minor) or a sum (in order) of smaller axes."""

    __slots__ = ("kind", "parent", "parts", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.parent: Axis | None = None
        self.kind = "atom"
        self.parts: tuple[Axis, ...] = ()

    def __repr__(self) -> str:
        return f"<axis {self.size}>"


def find(axis: Axis) -> Axis:
    """The representative of an axis."""
    root = axis
    while root.parent is not None:
        root = root.parent
    while axis.parent is not None:
        axis.parent, axis = root, axis.parent
    return root


def make_product(axis: Axis, parts: Sequence[Axis]) -> bool:
    """Demand that ``axis`` is the product of ``parts`` (sizes above 1, major to minor)."""
    return unify_products([axis], list(parts))


def make_sum(axis: Axis, parts: Sequence[Axis]) -> bool:
    """Demand that ``axis`` is the sum of ``parts`` in order; parts of size 1 are segments without an axis."""
    axis = find(axis)
    if len(parts) == 1:
        return unify(axis, parts[0])
    if axis.kind == "atom":
        flat = _flat_sum(parts)
        if len(flat) > MOST_SEGMENTS:
            return False
        axis.kind, axis.parts = "sum", tuple(flat)
        return True
    other = Axis(axis.size)
    other.kind, other.parts = "sum", tuple(_flat_sum(parts))
    return unify(axis, other)


def _flat_sum(parts: Sequence[Axis]) -> list[Axis]:
    flat: list[Axis] = []
    for part in map(find, parts):
        flat += _flat_sum(part.parts) if part.kind == "sum" else [part]
    return flat


def _flat_product(parts: Sequence[Axis]) -> list[Axis]:
    flat: list[Axis] = []
    for part in map(find, parts):
        flat += _flat_product(part.parts) if part.kind == "product" else [part]
    return flat


def unify(a: Axis, b: Axis) -> bool:
    """Make two axes of one size the same; False (and whatever refinement was reached) where they cannot be."""
    a, b = find(a), find(b)
    if a is b:
        return True
    if a.size != b.size:
        return False
    if a.kind == "atom":
        a.parent = b
        return True
    if b.kind == "atom":
        b.parent = a
        return True
    if a.kind == b.kind == "product":
        done = unify_products(list(a.parts), list(b.parts))
    elif a.kind == b.kind == "sum":
        done = _unify_sums(list(a.parts), list(b.parts))
    else:
        done = _unify_mixed(a, b) if a.kind == "product" else _unify_mixed(b, a)
    if done and find(a) is not find(b):
        find(b).parent = find(a)
    return done


def unify_products(left: list[Axis], right: list[Axis]) -> bool:
    """Common refinement of two products of one size, from the minor end. A single axis on a side becomes the product."""
    if len(left) == 1 and len(right) == 1:
        return unify(left[0], right[0])
    left, right = _flat_product(left), _flat_product(right)
    while left and right:
        a, b = find(left[-1]), find(right[-1])
        if a.size == b.size:
            if not unify(a, b):
                return False
            left.pop()
            right.pop()
            continue
        long, short = (left, right) if a.size > b.size else (right, left)
        common = gcd(a.size, b.size)
        if common == 1 or not _split(long, common) or (common != min(a.size, b.size) and not _split(short, common)):
            return False
    return not left and not right


def _split(parts: list[Axis], inner: int) -> bool:
    """Replace the last axis of ``parts`` by a product whose last factor has size ``inner``."""
    axis = find(parts[-1])
    if axis.kind == "product":
        parts[-1:] = _flat_product([axis])
        return True
    if axis.kind == "sum":
        return _split_sum(parts, axis, inner)
    axis.kind = "product"
    axis.parts = (Axis(axis.size // inner), Axis(inner))
    parts[-1:] = axis.parts
    return True


def _split_sum(parts: list[Axis], axis: Axis, inner: int) -> bool:
    """A sum whose segments are all multiples of ``inner`` is (a sum of the quotients) x inner."""
    outer = _pull_out(axis, [Axis(inner)])
    if outer is None:
        return False
    parts[-1:] = find(axis).parts
    return True


def _pull_out(axis: Axis, inner: list[Axis]) -> Axis | None:
    """Turn the sum ``axis`` into the product ``outer x inner``, where the boundaries allow it."""
    size = 1
    for part in inner:
        size *= part.size
    segments = axis.parts
    if any(s.size % size for s in segments):
        return None
    outer = Axis(axis.size // size)
    quotients = []
    for segment in segments:
        quotient = Axis(segment.size // size)
        quotients.append(quotient)
        factors = ([quotient] if quotient.size > 1 else []) + inner
        if not unify_products([segment], factors):
            return None
    outer.kind, outer.parts = "sum", tuple(_flat_sum(quotients))
    axis.kind, axis.parts = "product", (outer, *inner)
    return outer


def _unify_mixed(product: Axis, total: Axis) -> bool:
    """A product with a sum: inner factors that divide every boundary are common, the outer factor is a sum."""
    factors = _flat_product(product.parts)
    for split in range(1, len(factors)):
        inner = factors[split:]
        if _pull_out(total, inner) is not None:
            outer = find(total).parts[0]
            return unify_products([outer], factors[:split])
    return False


def _unify_sums(left: list[Axis], right: list[Axis]) -> bool:
    """Common refinement of two sums of one size, segment by segment."""
    count = 0
    while left and right:
        count += 1
        if count > MOST_SEGMENTS:
            return False
        a, b = find(left[0]), find(right[0])
        if a.size == b.size:
            if a.size > 1 and not unify(a, b):
                return False
            left.pop(0)
            right.pop(0)
            continue
        long, short = (left, b) if a.size > b.size else (right, a)
        if not _split_segment(long, short.size):
            return False
    return True


def _split_segment(segments: list[Axis], first: int) -> bool:
    axis = find(segments[0])
    if axis.kind == "sum":
        segments[:1] = _flat_sum([axis])
        return True
    parts = (Axis(first), Axis(axis.size - first))
    if not make_sum(axis, parts):
        return False
    axis = find(axis)
    if axis.kind != "sum":
        return False  # the boundary went into an outer factor: the segment is not a plain sum
    segments[:1] = _flat_sum([axis])
    return True


def factors(axis: Axis) -> list[Axis]:
    """The flattened product: atoms and sums, major to minor."""
    axis = find(axis)
    return _flat_product([axis]) if axis.kind == "product" else [axis]


def segments(axis: Axis) -> list[Axis]:
    """The flattened sum, in order; the axis itself when it is not a sum."""
    axis = find(axis)
    return _flat_sum([axis]) if axis.kind == "sum" else [axis]
