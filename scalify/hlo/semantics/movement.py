"""Opcodes that move data without looking at it: shapes, slices, padding, dynamic slices.

Source: XLA's operation semantics. Starts of dynamic slices are clamped so that the whole slice is inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.semantics.elementwise import bitcast_convert
from scalify.hlo.semantics.values import Array, Handler, Op, Value, as_index, bounded_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Shape


def _same(_op: Op, operands: Sequence[Value]) -> Value:
    return operands[0]


def _broadcast(op: Op, operands: Sequence[Array]) -> Array:
    x, dims, dimensions = operands[0], op.shape.dims, op.attributes.get("dimensions", ())
    order = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    target = [1] * len(dims)
    for size, position in zip(x.shape[1:], dimensions, strict=True):
        target[position] = size
    ordered = x.transpose(0, *(d + 1 for d in order)).reshape(x.shape[0], *target)
    return np.broadcast_to(ordered, (x.shape[0], *dims))


def _reshape(op: Op, operands: Sequence[Array]) -> Array:
    return operands[0].reshape(operands[0].shape[0], *op.shape.dims)


def _transpose(op: Op, operands: Sequence[Array]) -> Array:
    return operands[0].transpose(0, *(d + 1 for d in op.attributes["dimensions"]))


def _bitcast(op: Op, operands: Sequence[Array]) -> Array:
    """The same memory under another shape: row-major unless layouts say otherwise."""
    x, source = operands[0], op.shapes[0]
    x = x.transpose(0, *(d + 1 for d in _major_to_minor(source)))
    if source.dtype != op.dtype:
        x = bitcast_convert(op.domain, x, source.dtype, op.dtype)
    order = _major_to_minor(op.shape)
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return x.reshape(x.shape[0], *(op.shape.dims[d] for d in order)).transpose(0, *(i + 1 for i in inverse))


def _major_to_minor(shape: Shape) -> tuple[int, ...]:
    return tuple(range(shape.rank)) if shape.layout is None else shape.layout[::-1]


def _slice(op: Op, operands: Sequence[Array]) -> Array:
    starts, limits = op.attributes["starts"], op.attributes["limits"]
    strides = op.attributes.get("strides") or (1,) * len(starts)
    if any(limit > size for limit, size in zip(limits, operands[0].shape[1:], strict=True)):
        raise HloError("a slice limit is outside the operand")
    return operands[0][(slice(None), *map(slice, starts, limits, strides))]


def dilate_and_pad(op: Op, x: Array, padding: Sequence[tuple[int, int, int]], fill: Array) -> Array:
    """``x`` ``[lanes, ...]`` with ``interior`` fills between neighbours and ``low``, ``high`` at the ends (negative removes).

    ``padding`` has one ``(low, high, interior)`` a dimension, ``fill`` is one scalar a lane. Each step is charged: later dimensions may
    remove what earlier ones add.
    """
    for axis, (low, high, interior) in enumerate(padding, start=1):
        if (low, high, interior) != (0, 0, 0):
            x = _pad_axis(op, x, axis, low, high, interior, fill)
    return x


def _pad_axis(op: Op, x: Array, axis: int, low: int, high: int, interior: int, fill: Array) -> Array:
    size = x.shape[axis]
    dilated = size + max(size - 1, 0) * interior
    shape = list(x.shape)
    shape[axis] = max(dilated + low + high, 0)
    op.charge(0, bounded_size(shape))
    result = np.empty(shape, x.dtype)
    result[...] = fill.reshape(-1, *(1,) * (x.ndim - 1))
    positions = np.arange(size) * (interior + 1) + low
    kept = np.flatnonzero((positions >= 0) & (positions < shape[axis]))
    np.moveaxis(result, axis, 0)[positions[kept]] = np.moveaxis(x, axis, 0)[kept]
    return result


def _pad(op: Op, operands: Sequence[Array]) -> Array:
    return dilate_and_pad(op, operands[0], op.attributes["padding"], operands[1])


def _concatenate(op: Op, operands: Sequence[Array]) -> Array:
    return np.concatenate(operands, axis=op.attributes["dimensions"][0] + 1)


def _reverse(op: Op, operands: Sequence[Array]) -> Array:
    return np.flip(operands[0], axis=tuple(d + 1 for d in op.attributes["dimensions"]))


def _iota(op: Op, _operands: Sequence[Array]) -> Array:
    dims, axis = op.shape.dims, op.attributes["iota_dimension"]
    line = np.arange(dims[axis]).reshape([-1 if d == axis else 1 for d in range(len(dims))])
    return np.broadcast_to(op.domain.encode(line, op.dtype), (op.scope.lanes, *dims))


def _constant(op: Op, _operands: Sequence[Array]) -> Array:
    if "literal" not in op.attributes:
        raise HloError("the constant's data is not in the file")
    value = op.domain.encode(np.asarray(op.instruction.literal), op.dtype)
    return np.broadcast_to(value, (op.scope.lanes, *op.shape.dims))


def clamped_starts(starts: Sequence[Array], dims: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """For each lane the start of each dimension, clamped to ``[0, dim - size]``.

    ``starts`` is one scalar an operand dimension, or (older form) one vector with all of them.
    """
    if len(starts) == 1 and starts[0].ndim == 2:
        starts = list(starts[0].T)
    columns = [np.clip(as_index(s), 0, dim - size).tolist() for s, dim, size in zip(starts, dims, sizes, strict=True)]
    return list(zip(*columns, strict=True))


def _windows(starts: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> list[tuple[Any, ...]]:
    return [tuple(slice(s, s + size) for s, size in zip(lane, sizes, strict=True)) for lane in starts]


def _dynamic_slice(op: Op, operands: Sequence[Array]) -> Array:
    x, sizes = operands[0], op.attributes["dynamic_slice_sizes"]
    if not sizes:
        return x
    windows = _windows(clamped_starts(operands[1:], x.shape[1:], sizes), sizes)
    if all(window == windows[0] for window in windows):
        return x[(slice(None), *windows[0])]
    return np.stack([x[(lane, *window)] for lane, window in enumerate(windows)])


def _dynamic_update_slice(_op: Op, operands: Sequence[Array]) -> Array:
    x, update = operands[:2]
    if x.ndim == 1:
        return update
    result = x.copy()
    for lane, window in enumerate(_windows(clamped_starts(operands[2:], x.shape[1:], update.shape[1:]), update.shape[1:])):
        result[(lane, *window)] = update[lane]
    return result


def _get_dimension_size(op: Op, _operands: Sequence[Array]) -> Array:
    return np.full(op.scope.lanes, op.shapes[0].dims[op.attributes["dimensions"][0]])


def _set_dimension_size(op: Op, operands: Sequence[Array]) -> Array:
    """The operand, where the size is that of the whole dimension."""
    x, size = operands
    if (as_index(size) != x.shape[op.attributes["dimensions"][0] + 1]).any():
        raise HloError("dimensions of a size known at run time only are not supported")
    return x


HANDLERS: dict[str, Handler] = {
    "add-dependency": _same,
    "bitcast": _bitcast,
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "constant": _constant,
    "copy": _same,
    "domain": _same,
    "dynamic-reshape": _reshape,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "get-dimension-size": _get_dimension_size,
    "iota": _iota,
    "opt-barrier": _same,
    "pad": _pad,
    "reshape": _reshape,
    "reverse": _reverse,
    "set-dimension-size": _set_dimension_size,
    "slice": _slice,
    "transpose": _transpose,
}
