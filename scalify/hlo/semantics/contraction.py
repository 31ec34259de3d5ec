"""``dot`` and its relatives, ``convolution``. Source: XLA's operation semantics, "DotGeneral" and "ConvWithGeneralPadding"."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.semantics.movement import dilate_and_pad
from scalify.hlo.semantics.reduction import output_size
from scalify.hlo.semantics.values import Array, Handler, Op, as_index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scalify.hlo.window import ConvDims, WindowDimension


def _product(op: Op, left: Array, right: Array) -> Array:
    """Products are made in the result's type."""
    types = (op.shapes[0].dtype, op.shapes[1].dtype)
    sides = [x if t == op.dtype else op.domain.convert(x, t, op.dtype) for x, t in zip((left, right), types, strict=True)]
    return op.domain.matmul(sides[0], sides[1], op.dtype)


def _dot(op: Op, operands: Sequence[Array]) -> Array:
    return _dot_of(op, operands[0], operands[1], op.attributes, op.shape.dims)


def _dot_of(op: Op, left: Array, right: Array, at: Mapping[str, Any], dims: Sequence[int]) -> Array:
    left = _matrices(left, at["lhs_batch_dims"], at["lhs_contracting_dims"], contracted_last=True)
    right = _matrices(right, at["rhs_batch_dims"], at["rhs_contracting_dims"], contracted_last=False)
    if left.shape[1] != right.shape[1] or left.shape[3] != right.shape[2]:
        raise HloError("batch or contracted dimensions differ in size")
    op.charge(products=left.shape[0] * left.shape[1] * left.shape[2] * left.shape[3] * right.shape[3])
    return _product(op, left, right).reshape(op.scope.lanes, *dims)


def _matrices(x: Array, batch: Sequence[int], contracted: Sequence[int], *, contracted_last: bool) -> Array:
    """``[lanes, batch, free, contracted]``, or the last two swapped."""
    free = [d for d in range(x.ndim - 1) if d not in batch and d not in contracted]
    sizes = [math.prod(x.shape[d + 1] for d in group) for group in (batch, free, contracted)]
    order, shape = [*batch, *free, *contracted], sizes
    if not contracted_last:
        order, shape = [*batch, *contracted, *free], [sizes[0], sizes[2], sizes[1]]
    return x.transpose(0, *(d + 1 for d in order)).reshape(x.shape[0], *shape)


def _convolution(op: Op, operands: Sequence[Array]) -> Array:
    """Patches of the dilated, padded input against the kernel, group by group."""
    dims: ConvDims = op.attributes["dim_labels"]
    groups, batch_groups = op.attributes.get("feature_group_count", 1), op.attributes.get("batch_group_count", 1)
    x = _ordered(operands[0], dims.input_batch, dims.input_feature, dims.input_spatial)
    kernel = _ordered(operands[1], dims.kernel_output_feature, dims.kernel_input_feature, dims.kernel_spatial)
    window: Sequence[WindowDimension] = op.attributes.get("window", ())
    if tuple(w.size for w in window) != kernel.shape[3:]:
        raise HloError("the window does not have the kernel's sizes")
    patches = _patches(op, x, window)
    spatial = patches.shape[3 : 3 + len(dims.input_spatial)]
    result = _grouped(op, patches, kernel, groups, batch_groups)
    result = result.reshape(*result.shape[:3], *spatial)
    target = [dims.output_batch, dims.output_feature, *dims.output_spatial]
    inverse = sorted(range(len(target)), key=target.__getitem__)
    return result.transpose(0, *(i + 1 for i in inverse))


def _ordered(x: Array, first: int, second: int, spatial: Sequence[int]) -> Array:
    return x.transpose(0, first + 1, second + 1, *(d + 1 for d in spatial))


def _patches(op: Op, x: Array, window: Sequence[WindowDimension]) -> Array:
    """``[lanes, batch, feature, *output spatial, *window]`` from ``[lanes, batch, feature, *spatial]``."""
    sizes = [output_size(w, d) for w, d in zip(window, x.shape[3:], strict=True)]
    elements = math.prod(x.shape[:3]) * math.prod(sizes) * math.prod(w.size for w in window)
    op.charge(elements, elements)
    padding = [(0, 0, 0), (0, 0, 0), *((w.pad_low, w.pad_high, w.lhs_dilate - 1) for w in window)]
    padded = dilate_and_pad(op, x, padding, np.zeros(x.shape[0], x.dtype))
    places: list[Any] = []
    for n, (w, size) in enumerate(zip(window, sizes, strict=True)):
        offsets = np.arange(w.size)[:: -1 if w.reversal else 1] * w.rhs_dilate
        place = np.arange(size)[:, None] * w.stride + offsets
        shape = [1] * (2 * len(window))
        shape[n], shape[len(window) + n] = place.shape
        places.append(place.reshape(shape))
    patches: Array = padded[(slice(None), slice(None), slice(None), *places)]
    return patches


def _grouped(op: Op, patches: Array, kernel: Array, groups: int, batch_groups: int) -> Array:
    """``[lanes, batch, feature, flat output spatial]``; at most one of the two group counts is above 1."""
    lanes, batch, features = patches.shape[:3]
    outputs, taps = kernel.shape[1], math.prod(kernel.shape[3:])
    positions = math.prod(patches.shape[3 : kernel.ndim])
    if features != kernel.shape[2] * groups or outputs % (groups * batch_groups) or batch % batch_groups:
        raise HloError("input features, kernel and group counts do not fit together")
    op.charge(products=lanes * batch * outputs * positions * kernel.shape[2] * taps)
    inner = kernel.shape[2] * taps
    x = patches.reshape(lanes, batch_groups, batch // batch_groups, groups, kernel.shape[2], positions, taps)
    blocks, each = batch_groups * groups, outputs // (batch_groups * groups)
    x = x.transpose(0, 1, 3, 2, 5, 4, 6).reshape(lanes, blocks, batch // batch_groups * positions, inner)
    w = kernel.reshape(lanes, blocks, each, inner)
    product = _product(op, x, w.swapaxes(2, 3)).reshape(lanes, blocks, batch // batch_groups, positions, each)
    result: Array = product.transpose(0, 2, 1, 4, 3).reshape(lanes, batch // batch_groups, outputs, positions)
    return result


def _scaled_dot(op: Op, operands: Sequence[Array]) -> Array:
    """Both sides times their scales (operands 2 and 3), each of which is repeated over blocks or a scalar."""
    sides = list(operands[:2])
    for number, scale in enumerate(operands[2:]):
        side, types = sides[number], (op.shapes[number].dtype, op.shapes[number + 2].dtype)
        factors = [op.domain.convert(x, t, op.dtype) for x, t in zip((side, _repeated(scale, side)), types, strict=True)]
        sides[number] = op.domain.convert(op.domain.apply("multiply", factors, op.dtype), op.dtype, types[0])
    return _dot(op, sides)


def _repeated(scale: Array, side: Array) -> Array:
    if scale.ndim == 1:
        return scale.reshape(-1, *(1,) * (side.ndim - 1))
    for axis, size in enumerate(side.shape[1:], start=1):
        if not scale.shape[axis] or size % scale.shape[axis]:
            raise HloError("a scale does not divide its operand into blocks")
        scale = np.repeat(scale, size // scale.shape[axis], axis=axis)
    return scale


def _ragged_dot(op: Op, operands: Sequence[Array]) -> Array:
    """A dot for each group of positions along the ragged dimension of the left side. Positions beyond the groups count as zero.

    A ragged free dimension gives each group its own right side; a ragged contracted one gives the result a group dimension in front;
    a ragged batch dimension changes nothing. Source: ``jax.lax.ragged_dot_general``.
    """
    at = op.attributes
    left, right, sizes = operands
    (ragged,) = at["lhs_ragged_dims"]
    if ragged in at["lhs_batch_dims"]:
        return _dot_of(op, left, right, at, op.shape.dims)
    if sizes.ndim != 2:
        raise HloError("group sizes of more than one dimension are not supported")
    op.charge(left.size * sizes.shape[1])
    masked = [np.where(_group(sizes, n, left, ragged), left, np.zeros_like(left)) for n in range(sizes.shape[1])]
    if ragged in at["lhs_contracting_dims"]:
        return np.stack([_dot_of(op, x, right, at, op.shape.dims[1:]) for x in masked], axis=1)
    (axis,) = at["rhs_group_dims"]
    dims = {k: tuple(d - (d > axis) for d in at[k]) for k in ("rhs_batch_dims", "rhs_contracting_dims")}
    parts = [_dot_of(op, x, np.take(right, n, axis=axis + 1), {**at, **dims}, op.shape.dims) for n, x in enumerate(masked)]
    return op.domain.reduce("add", np.stack(parts), (0,), op.dtype)


def _group(sizes: Array, number: int, x: Array, axis: int) -> Array:
    """Which positions along an axis are in a group, with the rank of ``x``."""
    ends = np.cumsum(as_index(sizes), axis=1)
    place = np.arange(x.shape[axis + 1])
    inside = (place >= (ends[:, number] - as_index(sizes)[:, number])[:, None]) & (place < ends[:, number, None])
    return inside.reshape(x.shape[0], *(x.shape[d] if d == axis + 1 else 1 for d in range(1, x.ndim)))


HANDLERS: dict[str, Handler] = {
    "convolution": _convolution,
    "dot": _dot,
    "ragged-dot": _ragged_dot,
    "scaled-dot": _scaled_dot,
}
