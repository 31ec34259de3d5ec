"""``dot`` and ``convolution``. Source: XLA's operation semantics, "DotGeneral" and "ConvWithGeneralPadding"."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.semantics.movement import dilate_and_pad
from scalify.hlo.semantics.reduction import output_size
from scalify.hlo.semantics.values import Array, Handler, Op, storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.window import ConvDims, WindowDimension


def _accumulator(op: Op) -> np.dtype[np.generic]:
    """Products are made in the result's type; half floats in single precision, as devices do."""
    held = storage(op.dtype, op.scope.machine.arithmetic)
    return np.dtype(np.float32) if held == np.float16 else held


def _dot(op: Op, operands: Sequence[Array]) -> Array:
    at = op.attributes
    left = _matrices(operands[0], at["lhs_batch_dims"], at["lhs_contracting_dims"], contracted_last=True)
    right = _matrices(operands[1], at["rhs_batch_dims"], at["rhs_contracting_dims"], contracted_last=False)
    if left.shape[1] != right.shape[1] or left.shape[3] != right.shape[2]:
        raise HloError("batch or contracted dimensions differ in size")
    op.charge(left.shape[0] * left.shape[1] * left.shape[2] * left.shape[3] * right.shape[3])
    held = _accumulator(op)
    product = np.matmul(left.astype(held, copy=False), right.astype(held, copy=False))
    result: Array = product.reshape(op.scope.lanes, *op.shape.dims)
    return result


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
    op.charge(lanes * batch * outputs * positions * kernel.shape[2] * taps)
    held, inner = _accumulator(op), kernel.shape[2] * taps
    x = patches.astype(held, copy=False).reshape(lanes, batch_groups, batch // batch_groups, groups, kernel.shape[2], positions, taps)
    blocks, each = batch_groups * groups, outputs // (batch_groups * groups)
    x = x.transpose(0, 1, 3, 2, 5, 4, 6).reshape(lanes, blocks, batch // batch_groups * positions, inner)
    w = kernel.astype(held, copy=False).reshape(lanes, blocks, each, inner)
    product = np.matmul(x, w.swapaxes(2, 3)).reshape(lanes, blocks, batch // batch_groups, positions, each)
    result: Array = product.transpose(0, 2, 1, 4, 3).reshape(lanes, batch // batch_groups, outputs, positions)
    return result


HANDLERS: dict[str, Handler] = {"dot": _dot, "convolution": _convolution}
