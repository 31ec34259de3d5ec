"""Algebra of recipe steps: result shapes, and the short canonical form of a step list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.relation.model import Broadcast, Pad, Reshape, Slice, Step, Transpose

if TYPE_CHECKING:
    from collections.abc import Iterable

Dims = tuple[int, ...]


def result_dims(step: Step, dims: Dims) -> Dims:
    """Shape of the result of ``step`` on an operand of shape ``dims``."""
    if isinstance(step, Slice):
        return tuple(high - low for low, high in zip(step.starts, step.limits, strict=True))
    if isinstance(step, Transpose):
        return tuple(dims[i] for i in step.permutation)
    if isinstance(step, Pad):
        return tuple(low + dim + high for dim, (low, high) in zip(dims, step.padding, strict=True))
    return step.dims


def simplify(steps: Iterable[Step], dims: Dims) -> tuple[Step, ...]:
    """The same function in few steps: no step without effect, neighbours of a kind merged."""
    done: list[tuple[Step, Dims]] = []
    for step in steps:
        operand = dims
        dims = result_dims(step, dims)
        _push(done, step, operand)
    return tuple(step for step, _ in done)


def _push(done: list[tuple[Step, Dims]], step: Step, operand: Dims) -> None:
    """Append ``step``, merged with the last steps as far as possible; each merge shortens ``done``, so the loop ends."""
    while True:
        step = _as_reshape(step, operand)
        if _is_identity(step, operand):
            return
        merged = _merge(done[-1][0], step, done[-1][1]) if done else None
        if merged is None:
            done.append((step, operand))
            return
        operand = done.pop()[1]
        step = merged


def _is_identity(step: Step, dims: Dims) -> bool:
    if isinstance(step, Transpose):
        return step.permutation == tuple(range(len(dims)))
    return result_dims(step, dims) == dims


def _as_reshape(step: Step, dims: Dims) -> Step:
    """A transpose or broadcast that moves or adds only dimensions of size 1 is a reshape."""
    if isinstance(step, Transpose):
        moved = [i for i in step.permutation if dims[i] != 1]
        return Reshape(result_dims(step, dims)) if moved == sorted(moved) and not _is_identity(step, dims) else step
    if isinstance(step, Broadcast) and all(dim == 1 for i, dim in enumerate(step.dims) if i not in step.dimensions):
        return Reshape(step.dims)
    return step


def _merge(first: Step, second: Step, dims: Dims) -> Step | None:
    """One step equal to ``first`` then ``second`` on an operand of shape ``dims``, or None."""
    if isinstance(first, Reshape) and isinstance(second, Reshape):
        return second
    if isinstance(first, Transpose) and isinstance(second, Transpose):
        return Transpose(tuple(first.permutation[i] for i in second.permutation))
    if isinstance(first, Slice) and isinstance(second, Slice):
        starts = tuple(a + b for a, b in zip(first.starts, second.starts, strict=True))
        return Slice(starts, tuple(a + b for a, b in zip(first.starts, second.limits, strict=True)))
    if isinstance(first, Pad) and isinstance(second, Pad):
        pairs = zip(first.padding, second.padding, strict=True)
        return Pad(tuple((a + c, b + d) for (a, b), (c, d) in pairs))
    return _merge_broadcast(first, second, dims)


def _merge_broadcast(first: Step, second: Step, dims: Dims) -> Step | None:
    if isinstance(first, Broadcast) and isinstance(second, Broadcast):
        return Broadcast(second.dims, tuple(second.dimensions[i] for i in first.dimensions))
    if isinstance(first, Broadcast) and isinstance(second, Reshape):
        kept = _insertion(first.dims, second.dims)
        return Broadcast(second.dims, tuple(kept[i] for i in first.dimensions)) if kept is not None else None
    if isinstance(first, Reshape) and isinstance(second, Broadcast):
        kept = _insertion(dims, first.dims)
        return Broadcast(second.dims, tuple(second.dimensions[i] for i in kept)) if kept is not None else None
    return None


def _insertion(small: Dims, large: Dims) -> tuple[int, ...] | None:
    """Where each dimension of ``small`` stands in ``large``, if ``large`` only adds dimensions of size 1."""
    kept: list[int] = []
    for position, dim in enumerate(large):
        if len(kept) < len(small) and dim == small[len(kept)]:
            kept.append(position)
        elif dim != 1:
            return None
    return tuple(kept) if len(kept) == len(small) else None
