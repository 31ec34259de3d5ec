"""``gather`` and ``scatter`` with their full dimension numbers.

Source: XLA's operation semantics. Gather clamps each start so that the whole slice is inside; scatter drops an update whose
whole window is not inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.semantics.reduction import accumulate, unpack
from scalify.hlo.semantics.values import Array, Handler, Op, as_index

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Indexing:
    """What gather and scatter have in common, under gather's names.

    ``sizes`` is the window's extent in each operand dimension, ``window_dims`` the operand dimensions that appear as window
    dimensions of the other array, in order.
    """

    operand: tuple[int, ...]
    sizes: tuple[int, ...]
    collapsed: tuple[int, ...]
    batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    start_map: tuple[int, ...]
    vector_dim: int

    @property
    def window_dims(self) -> tuple[int, ...]:
        return tuple(d for d in range(len(self.operand)) if d not in self.collapsed and d not in self.batching)

    def vectors(self, indices: Array) -> Array:
        """The index vectors ``[lanes, *batch, entries]``."""
        if self.vector_dim == indices.ndim - 1:
            indices = indices[..., None]
        vectors = np.moveaxis(as_index(indices), self.vector_dim + 1, -1)
        if vectors.shape[-1] != len(self.start_map):
            raise HloError(f"index vectors have {vectors.shape[-1]} entries for {len(self.start_map)} dimensions")
        return vectors

    def starts(self, vectors: Array) -> list[Array]:
        """The start in each operand dimension, before clamping: each ``[lanes, *batch]``."""
        return [np.broadcast_to(self._start(dim, vectors), vectors.shape[:-1]) for dim in range(len(self.operand))]

    def _start(self, dim: int, vectors: Array) -> Array:
        if dim in self.start_map:
            return vectors[..., self.start_map.index(dim)]
        if dim not in self.batching:
            return np.zeros((1,) * (vectors.ndim - 1), np.int64)
        axis = self.indices_batching[self.batching.index(dim)]
        # Batch axes count the lanes; those after the index vector moved down by one.
        axis = axis + 1 if axis < self.vector_dim else axis
        return np.arange(self.operand[dim]).reshape([-1 if a == axis else 1 for a in range(vectors.ndim - 1)])

    def flat(self, starts: Sequence[Array], batch: tuple[int, ...]) -> Array:
        """Row-major positions in the operand, ``[lanes, *batch, *window]``; ``batch`` counts the lanes."""
        strides = [math.prod(self.operand[d + 1 :]) for d in range(len(self.operand))]
        window = self.window_dims
        offset = np.zeros((1,) * len(window), np.int64)
        for position, dim in enumerate(window):
            offset = offset + strides[dim] * np.arange(self.sizes[dim]).reshape([-1 if p == position else 1 for p in range(len(window))])
        start = np.zeros(batch, np.int64)
        for stride, value in zip(strides, starts, strict=True):
            start = start + stride * value
        return start.reshape(*batch, *(1,) * len(window)) + offset


def _gather(op: Op, operands: Sequence[Array]) -> Array:
    x, indices = operands
    at = op.attributes
    indexing = Indexing(
        x.shape[1:], at["slice_sizes"], at["collapsed_slice_dims"], at["operand_batching_dims"],
        at["start_indices_batching_dims"], at["start_index_map"], at["index_vector_dim"],
    )  # fmt: skip
    op.charge(0, op.scope.lanes * op.shape.size)
    if any(size > dim for dim, size in zip(indexing.operand, indexing.sizes, strict=True)):
        raise HloError("a slice is larger than the operand")
    vectors = indexing.vectors(indices)
    starts = indexing.starts(vectors)
    clamped = [np.clip(s, 0, dim - size) for s, dim, size in zip(starts, indexing.operand, indexing.sizes, strict=True)]
    places = indexing.flat(clamped, vectors.shape[:-1])
    lanes = np.arange(x.shape[0]).reshape(-1, *(1,) * (places.ndim - 1))
    gathered = x.reshape(x.shape[0], -1)[lanes, places]
    return gathered.transpose(0, *_interleave(gathered.ndim - 1, at["offset_dims"]))


def _interleave(rank: int, window: Sequence[int]) -> list[int]:
    """Axes (after the lanes) that bring ``[*batch, *window]`` to the order where window dimensions stand at ``window``."""
    batch = rank - len(window)
    others = iter(range(1, batch + 1))
    where = {dim: batch + 1 + n for n, dim in enumerate(window)}
    return [where[d] if d in where else next(others) for d in range(rank)]


def _scatter(op: Op, operands: Sequence[Array]) -> Any:
    count = (len(operands) - 1) // 2
    targets, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    indexing = _scatter_indexing(op, targets[0].shape[1:], updates[0].shape[1:])
    vectors = indexing.vectors(indices)
    starts = indexing.starts(vectors)
    places = indexing.flat(starts, vectors.shape[:-1])
    ordered = [_batch_first(u, op.attributes["update_window_dims"]) for u in updates]
    shape, lanes = ordered[0].shape, ordered[0].shape[0]
    op.charge(2 * ordered[0].size)
    valid = _inside(indexing, starts)
    valid = np.broadcast_to(valid.reshape(*valid.shape, *(1,) * (len(shape) - valid.ndim)), shape)
    results = [np.array(t.reshape(lanes, -1)) for t in targets]
    flat = [np.ascontiguousarray(np.broadcast_to(a, shape)).reshape(lanes, -1) for a in (places, *ordered, valid)]
    if op.attributes.get("unique_indices") and _meet(flat[0], flat[-1]):
        op.domain.arbitrary.add("a scatter whose indices are not unique, as it promises")
    accumulate(op.scope, op.instruction.calls[0], results, flat[0], flat[1:-1], flat[-1])
    reshaped = tuple(r.reshape(t.shape) for r, t in zip(results, targets, strict=True))
    return unpack(reshaped, as_tuple=op.shape.is_tuple)


def _meet(places: Array, valid: Array) -> bool:
    """Whether two updates of one lane go to the same place."""
    return any(np.unique(own[ok]).size != np.count_nonzero(ok) for own, ok in zip(places, valid, strict=True))


def _scatter_indexing(op: Op, operand: tuple[int, ...], update: tuple[int, ...]) -> Indexing:
    at = op.attributes
    inserted, batching = at["inserted_window_dims"], at["input_batching_dims"]
    window = iter(at["update_window_dims"])
    sizes = tuple(1 if d in inserted or d in batching else update[next(window)] for d in range(len(operand)))
    return Indexing(
        operand, sizes, inserted, batching, at["scatter_indices_batching_dims"], at["scatter_dims_to_operand_dims"], at["index_vector_dim"]
    )


def _batch_first(update: Array, window: Sequence[int]) -> Array:
    batch = [d + 1 for d in range(update.ndim - 1) if d not in window]
    return update.transpose(0, *batch, *(d + 1 for d in window))


def _inside(indexing: Indexing, starts: Sequence[Array]) -> Array:
    inside = np.asarray(True)
    for start, dim, size in zip(starts, indexing.operand, indexing.sizes, strict=True):
        inside = inside & (start >= 0) & (start <= dim - size)
    return np.asarray(inside)


HANDLERS: dict[str, Handler] = {"gather": _gather, "scatter": _scatter}
