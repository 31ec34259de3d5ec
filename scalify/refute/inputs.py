"""Inputs that satisfy the relation and its assumptions, chosen by a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scalify.errors import Undecidable, UsageError
from scalify.hlo.arithmetic import hashing
from scalify.hlo.dtypes import DTYPES
from scalify.relation.execute import assemble, pieces_of
from scalify.relation.modules import module_positions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scalify.hlo.arithmetic.hashing import Words
    from scalify.hlo.module import Module, Shape
    from scalify.hlo.semantics.values import Array
    from scalify.relation.model import Relation

    Ranges = Mapping[tuple[str, int], tuple[int, int]]

SAMPLINGS = ("sparse", "wide", "positive", "signed")
"""Floats between -1 and 1, most of them 0; the same with integers that may be anything; floats between 0 and 1; and between -1 and 1.

The error bound of a contraction grows with the number of its terms, and with the layers of a model to the power of their number: where most
weights are 0 there are few terms.
"""
DENSE = 6
"""Elements that are not 0 along the largest dimension of a sparse array, on average."""
UNBOUNDED = 8
"""Integers of which the relation says nothing lie below this, unless sampling is wide: as indices they are then more often inside than outside."""
NEAR = 64
"""Of integers that are sampled widely every fourth is between this and its negative, every second anything."""
STEP = 2.0**-17


class Inputs:
    """Arrays for all parameters of both sides.

    Floats are odd multiples of 2^-17, so that they are not 0 and have few digits; integers are spread evenly over the range that the relation assumes, or small.

    :raises Undecidable: the relation asks for what this choice does not satisfy. :raises UsageError: an unknown sampling.
    """

    def __init__(self, baseline: Module, distributed: Sequence[Module], relation: Relation, seed: int, sampling: str) -> None:
        if sampling not in SAMPLINGS:
            raise UsageError(f"there is no sampling {sampling!r}; they are {', '.join(SAMPLINGS)}")
        self.relation = relation
        self.seed = seed
        self.sampling = sampling
        self.places = module_positions(relation.mesh, len(distributed))
        self._ranges: Ranges = {(a.side, a.parameter): (a.low, a.high) for a in relation.assumptions}
        self.baseline = [self._baseline(n, shape) for n, shape in enumerate(baseline.parameter_shapes)]
        several = len(distributed) > 1
        self.distributed = [self._distributed(module, n if several else None) for n, module in enumerate(distributed)]

    def _baseline(self, number: int, shape: Shape) -> Array:
        lanes = self.relation.mesh.size if self.relation.same_mesh else 1
        known = self.relation.values.get(number)
        if known is None:
            return self._chosen("baseline", number, shape, lanes)
        data = np.asarray(known).reshape(-1, *shape.dims)
        if lanes == 1:
            return data
        by_id = np.empty_like(data)
        by_id[list(self.relation.mesh.device_ids)] = data
        return by_id

    def _chosen(self, side: str, number: int, shape: Shape, lanes: int) -> Array:
        if not shape.is_array:
            return np.zeros((lanes, 0))
        dims = (lanes, *shape.dims)
        words = hashing.combined(hashing.key(self.seed, self.sampling, side, number), [hashing.positions(dims)])
        dtype = DTYPES[shape.dtype]
        if shape.dtype == "pred":
            return (words & np.uint64(1)).astype(np.bool_)
        if dtype.is_integer:
            return self._integers(words, shape, self._ranges.get((side, number)))
        floats = 2 * ((words >> np.uint64(48)).astype(np.float64) - (0 if self.sampling == "positive" else 1 << 15)) + 1
        few = DENSE / max([1, *shape.dims])
        if self.sampling in ("sparse", "wide") and len(shape.dims) > 1 and few < 1:
            floats *= (words & np.uint64(0xFFFF)) < np.uint64(int(few * 0x10000))
        return floats * STEP

    def _integers(self, words: Words, shape: Shape, limits: tuple[int, int] | None) -> Array:
        dtype = DTYPES[shape.dtype]
        least, most = dtype.minimum or 0, (dtype.maximum or 0) + 1
        if limits is not None:
            return _spread(words, max(limits[0], least), min(limits[1], most))
        few = _spread(words, 0, min(UNBOUNDED, most))
        if self.sampling != "wide":
            return few
        near, any_ = _spread(words, max(-NEAR, least), min(NEAR, most)), _spread(words, least, most)
        which = words >> np.uint64(62)
        return np.where(which == 0, few.astype(any_.dtype), np.where(which == 1, near.astype(any_.dtype), any_))

    def _distributed(self, module: Module, number: int | None) -> list[Array]:
        """The parameters of a module on its own devices."""
        found = []
        for q, shape in enumerate(module.parameter_shapes):
            if pieces_of(self.relation.inputs, q, number):
                array = assemble(self.relation, self.baseline, q, shape, number)
            else:
                array = self._chosen("distributed", q, shape, self.relation.mesh.size)
            self._check(q, array)
            found.append(array[self.devices(number or 0)])
        return found

    def _check(self, number: int, array: Array) -> None:
        low, high = self._ranges.get(("distributed", number), (None, None))
        if low is not None and high is not None and array.size and (array.min() < low or array.max() >= high):
            raise Undecidable("a distributed parameter is outside the range that is assumed of it")

    def devices(self, module: int) -> list[int]:
        """The device ids that a distributed module runs on, in increasing order."""
        return sorted(self.relation.mesh.device_ids[p] for p in self.places[module])


def _spread(words: Words, low: int, high: int) -> Array:
    """Integers from ``low`` to ``high - 1`` chosen by words. :raises Undecidable: there are none."""
    if high <= low:
        raise Undecidable("no value of an integer parameter is in its range")
    chosen = (words % np.uint64(min(high - low, (1 << 64) - 1))).astype(np.uint64)
    return (chosen + np.uint64(low)) if high > 1 << 63 else (chosen + np.uint64(low % (1 << 64))).view(np.int64)
