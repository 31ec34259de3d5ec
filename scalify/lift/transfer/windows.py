"""Convolutions and windowed reductions as sums and extrema with an equation between positions.

An output at ``o`` reads, at element ``w`` of its window, the input at the ``j`` with ``lhs_dilate * j = stride * o + rhs_dilate * w - pad_low``. So a
convolution is the sum over ``j``, ``w`` and the input features of input, kernel and the 0/1 value of that equation: padding and dilation
are places without a solution, and a halo that another device holds is a part of the sum over ``j``. A windowed sum needs no ``w``: it is the sum over
the ``j`` that lie in the window. Extrema read the elements themselves where no window reaches into padding.

Source: XLA's operation semantics, "ConvWithGeneralPadding" and "ReduceWindow".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scalify.lift.axes import Axis
from scalify.lift.compare import at_least_zero, equals_zero
from scalify.lift.functions import select
from scalify.lift.infer import Side, infers, new_axes, same
from scalify.lift.layout import Layout, Value
from scalify.lift.linear import combine
from scalify.lift.moves import Source, move
from scalify.lift.product import multiply
from scalify.lift.transfer.base import Unsupported, exact_value, lifts
from scalify.lift.transfer.contraction import reduce_last, reduction_of, with_initial
from scalify.lift.transfer.movement import position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.window import ConvDims, WindowDimension
    from scalify.lift.layout import Axes, Block
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation
    from scalify.lift.terms import View


def is_trivial(window: WindowDimension) -> bool:
    """Whether each output reads the input at its own position."""
    return window.size == window.stride == window.lhs_dilate == 1 and window.pad_low == window.pad_high == 0


# -- axes ----------------------------------------------------------------------------------------------------------------
def _along(side: Side, axis: Axis | None, size: int, window: WindowDimension) -> Axis | None:
    """The axis of an output dimension: the input's own where the sizes are equal, its major part where windows of its stride tile it."""
    if axis is not None and size == axis.size:
        return axis
    result = Axis(size) if size > 1 else None
    if axis is not None and window.lhs_dilate == 1 and size * window.stride == axis.size:
        side.demands.product([axis], [result, Axis(window.stride)])
    return result


@infers("reduce-window")
def _infer_reduce_window(side: Side, operation: Operation) -> list[Axes]:
    window = operation.instruction.attributes["window"]
    count = len(operation.results)
    first = side.of(operation.operands[0])
    for operand in operation.operands[1:count]:
        for a, b in zip(first, side.of(operand), strict=True):
            same(a, b)
    axes = tuple([_along(side, a, n, w) for a, n, w in zip(first, operation.shapes[0].dims, window, strict=True)])
    return [axes] * count


@infers("convolution")
def _infer_convolution(side: Side, operation: Operation) -> list[Axes]:
    attributes = operation.instruction.attributes
    dims: ConvDims = attributes["dim_labels"]
    x, kernel = side.of(operation.operands[0]), side.of(operation.operands[1])
    shape = operation.shapes[0]
    result = list(new_axes(shape))
    result[dims.output_feature] = kernel[dims.kernel_output_feature]
    features, batches = _group_counts(operation)
    if features > 1 or batches > 1:
        group = Axis(max(features, batches))
        each = shape.dims[dims.output_feature] // group.size
        side.demands.product([kernel[dims.kernel_output_feature]], [group, Axis(each) if each > 1 else None])
        if features > 1:
            side.demands.product([x[dims.input_feature]], [group, kernel[dims.kernel_input_feature]])
        else:
            side.demands.product([x[dims.input_batch]], [group, result[dims.output_batch]])
    if features == 1:
        same(x[dims.input_feature], kernel[dims.kernel_input_feature])
    if batches == 1:
        result[dims.output_batch] = x[dims.input_batch]
    for d, o, w in zip(dims.input_spatial, dims.output_spatial, attributes.get("window", ()), strict=True):
        result[o] = _along(side, x[d], shape.dims[o], w)
    return [tuple(result)]


def _group_counts(operation: Operation) -> tuple[int, int]:
    attributes = operation.instruction.attributes
    return attributes.get("feature_group_count", 1), attributes.get("batch_group_count", 1)


# -- convolution ---------------------------------------------------------------------------------------------------------
class _Sliding(NamedTuple):
    """A spatial dimension that a window slides along: its parameters, the output's dimension, those of kernel element and input position."""

    window: WindowDimension
    output: int
    element: int
    input: int


@lifts("convolution")
def _convolution(lifter: Lifter, operation: Operation) -> list[Value]:
    """The sum over input features, kernel elements and input positions, all behind the dimensions of the output."""
    if lifter.dtype(operation.results[0]) == "pred":
        raise Unsupported("a convolution of predicates")
    attributes = operation.instruction.attributes
    dims: ConvDims = attributes["dim_labels"]
    x_axes, kernel_axes = lifter.axes_of(operation.operands[0]), lifter.axes_of(operation.operands[1])
    target = lifter.result_layout(operation)
    rank = len(operation.shapes[0].dims)
    extra: list[Axis | None] = [kernel_axes[dims.kernel_input_feature]]
    to_kernel = {dims.kernel_output_feature: dims.output_feature + 1, dims.kernel_input_feature: rank + 1}
    to_input: dict[int, int] = {}
    sliding: list[_Sliding] = []
    for i, window in enumerate(attributes.get("window", ())):
        d, k, o = dims.input_spatial[i], dims.kernel_spatial[i], dims.output_spatial[i] + 1
        to_kernel[k] = rank + 1 + len(extra)
        extra.append(kernel_axes[k])
        to_input[d] = o
        if not is_trivial(window):
            to_input[d] = rank + 1 + len(extra)
            sliding.append(_Sliding(window, o, to_kernel[k], to_input[d]))
            extra.append(x_axes[d])
    layout = lifter.extended(operation.results[0], extra)
    x, kernel = (lifter.exact_float(o, operation.results[0]) for o in operation.operands)
    grouped = _input_sources(operation, dims, layout, rank + 1)
    sources = [Source((0,), (0,)), *grouped, *[Source((d + 1,), (t,)) for d, t in to_input.items()]]
    views = move(lifter.store, x, layout, sources)
    weights = lifter.spread(kernel, layout, [0, *[to_kernel[d] for d in range(len(kernel_axes))]])
    summands = []
    for block, view, weight in zip(layout.blocks, views, weights.views, strict=True):
        conditions = [(_meets(lifter, layout, block, s), 1) for s in sliding]
        summands.append(multiply(lifter.store, [(view, 1), (weight, 1), *conditions]))
    return [lifter.value(target, reduce_last(lifter.store, Value(layout, tuple(summands)), target, "add"))]


def _input_sources(operation: Operation, dims: ConvDims, layout: Layout, feature: int) -> list[Source]:
    """How the input's batch and feature dimensions are indexed; ``feature`` is the summed dimension of the kernel's input features.

    With groups, output features are (group, feature of the group), and the group is the major part of the input's features or batch.
    """
    features, batches = _group_counts(operation)
    batch, channel = (dims.input_batch + 1,), (dims.input_feature + 1,)
    output = dims.output_batch + 1
    if features == batches == 1:
        return [Source(batch, (output,)), Source(channel, (feature,))]
    group = _major_factors(layout, dims.output_feature + 1, max(features, batches))
    if features > 1:
        each = layout.sizes[feature]
        return [Source(batch, (output,)), Source(channel, (feature,), extra=tuple([(f, s * each) for f, s in group]))]
    each = layout.sizes[output]
    return [Source(batch, (output,), extra=tuple([(f, s * each) for f, s in group])), Source(channel, (feature,))]


def _major_factors(layout: Layout, dim: int, count: int) -> list[tuple[int, int]]:
    """The factors of a dimension that make up its major part of some size, each with its stride in that part. :raises Unsupported: none do."""
    found: list[int] = []
    size = 1
    for f in layout.range(dim):
        if size < count:
            found.append(f)
            size *= layout.factors[f].size
    if size != count:
        raise Unsupported("groups that do not follow the cuts of the features")
    strides: list[tuple[int, int]] = []
    for f in reversed(found):
        strides.append((f, count // size if not strides else strides[-1][1] * layout.factors[strides[-1][0]].size))
    return strides[::-1]


def _meets(lifter: Lifter, layout: Layout, block: Block, place: _Sliding) -> View:
    """1 where the input position is the one that a kernel element meets at an output."""
    window = place.window
    element = position(lifter, layout, block, place.element)
    if window.reversal:
        element = combine(lifter.store, ((-1, element),), window.size - 1)
    parts = [
        (window.stride, position(lifter, layout, block, place.output)),
        (window.rhs_dilate, element),
        (-window.lhs_dilate, position(lifter, layout, block, place.input)),
    ]
    return equals_zero(lifter.store, combine(lifter.store, parts, -window.pad_low))


# -- reduce-window ---------------------------------------------------------------------------------------------------------
@lifts("reduce-window")
def _reduce_window(lifter: Lifter, operation: Operation) -> list[Value]:
    """The reduction over the elements of each window."""
    if len(operation.results) > 1:
        raise Unsupported("a windowed reduction of several operands")
    dtype = lifter.dtype(operation.results[0])
    name = reduction_of(operation, dtype)
    if name not in ("add", "maximum", "minimum"):
        raise Unsupported("a windowed reduction that is no sum, maximum or minimum")
    windows: Sequence[WindowDimension] = operation.instruction.attributes["window"]
    sizes = lifter.program.shapes[operation.operands[0]].dims
    outputs = operation.shapes[0].dims
    inside = all(_stays_inside(w, n, m) for w, n, m in zip(windows, sizes, outputs, strict=True))
    tiled = all(is_trivial(w) or (w.stride == w.size and w.rhs_dilate == 1) for w in windows)
    if inside and (tiled or name != "add"):
        return [_by_element(lifter, operation, name, dtype, windows)]
    return [_by_position(lifter, operation, name, dtype, windows)]


def _stays_inside(window: WindowDimension, size: int, outputs: int) -> bool:
    """Whether no window reaches into padding."""
    last = (outputs - 1) * window.stride + (window.size - 1) * window.rhs_dilate
    return window.lhs_dilate == 1 and window.pad_low == 0 and last < size


def _by_element(lifter: Lifter, operation: Operation, name: str, dtype: str, windows: Sequence[WindowDimension]) -> Value:
    """Over the elements of the window, which all are elements of the input."""
    target = lifter.result_layout(operation)
    sliding = [d for d, w in enumerate(windows) if not is_trivial(w)]
    layout = lifter.extended(operation.results[0], [Axis(windows[d].size) if windows[d].size > 1 else None for d in sliding])
    sources = [Source((0,), (0,))]
    for d, window in enumerate(windows):
        extra: list[tuple[int, int]] = []
        if d in sliding:
            extra = _strides(layout, 1 + len(windows) + sliding.index(d), window.rhs_dilate)
        sources.append(Source((d + 1,), (d + 1,), stride=window.stride, extra=tuple(extra)))
    source = _operand(lifter, operation, name, dtype)
    views = tuple(move(lifter.store, source, layout, sources))
    return _finished(lifter, operation, name, dtype, reduce_last(lifter.store, Value(layout, views), target, name))


def _strides(layout: Layout, dim: int, step: int) -> list[tuple[int, int]]:
    found = []
    for f in reversed(layout.range(dim)):
        found.append((f, step))
        step *= layout.factors[f].size
    return found[::-1]


def _by_position(lifter: Lifter, operation: Operation, name: str, dtype: str, windows: Sequence[WindowDimension]) -> Value:
    """Over all positions of the input, those outside of the window being the initial value."""
    if any(w.lhs_dilate != 1 or w.rhs_dilate != 1 for w in windows):
        raise Unsupported("a dilated window with padding")
    store = lifter.store
    target = lifter.result_layout(operation)
    axes = lifter.axes_of(operation.operands[0])
    sliding = [d for d, w in enumerate(windows) if not is_trivial(w)]
    layout = lifter.extended(operation.results[0], [axes[d] for d in sliding])
    where = {d: 1 + len(windows) + k for k, d in enumerate(sliding)}
    dims = [0, *[where.get(d, d + 1) for d in range(len(windows))]]
    spread = lifter.spread(_operand(lifter, operation, name, dtype), layout, dims)
    outside = lifter.scalar(operation.operands[1], layout)
    if name == "add" and any(o.coef for o in outside):
        raise Unsupported("a windowed sum that starts from another value than 0")
    views = []
    for block, view, other in zip(layout.blocks, spread.views, outside, strict=True):
        hits = [c for d in sliding for c in _covers(lifter, layout, block, windows[d], d + 1, where[d])]
        views.append(select(store, multiply(store, hits), view, other))
    return _finished(lifter, operation, name, dtype, reduce_last(store, Value(layout, tuple(views)), target, name))


def _covers(lifter: Lifter, layout: Layout, block: Block, window: WindowDimension, output: int, place: int) -> list[tuple[View, int]]:
    """The conditions for an input position to lie in the window of an output."""
    store = lifter.store
    parts = [(1, position(lifter, layout, block, place)), (-window.stride, position(lifter, layout, block, output))]
    element = combine(store, parts, window.pad_low)
    last = combine(store, ((-1, element),), window.size - 1)
    return [(at_least_zero(store, element), 1), (at_least_zero(store, last), 1)]


def _operand(lifter: Lifter, operation: Operation, name: str, dtype: str) -> Value:
    value = lifter.values[operation.operands[0]]
    return value if name == "add" else exact_value(lifter, value, dtype)


def _finished(lifter: Lifter, operation: Operation, name: str, dtype: str, views: Sequence[View]) -> Value:
    target = lifter.result_layout(operation)
    initial = lifter.scalar(operation.operands[1], target)
    return lifter.value(target, [with_initial(lifter, name, dtype, v, i) for v, i in zip(views, initial, strict=True)])
