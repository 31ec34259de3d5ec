"""Shape rules of dot, convolution and dense linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.hlo.dtypes import COMPLEX_OF, COMPLEX_PART
from scalify.hlo.module import Instruction, Module, Shape
from scalify.hlo.shape_rules.base import array, distinct, fail, kind, tuple_of, without
from scalify.hlo.shape_rules.reduction import check_window, positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.window import ConvDims


def _product_type(instruction: Instruction, left: Shape, right: Shape) -> str:
    """The declared element type, which is free within floats, within integers and within complex types."""
    family = {"s": "integer", "u": "integer", "pred": "integer", "f": "float", "c": "complex"}
    kinds = {family[kind(left)], family[kind(right)], family[kind(array(instruction.shape))]}
    if len(kinds) != 1:
        fail(f"cannot multiply {left.dtype} by {right.dtype} into {instruction.shape.dtype}")
    return instruction.shape.dtype


def dot(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    if len(operands) > 2:  # sparse operands carry their metadata as further operands, and have a dimension cut short
        return None
    left, right, attributes = operands[0], operands[1], instruction.attributes
    dtype = _product_type(instruction, left, right)
    lhs = (*attributes["lhs_batch_dims"], *attributes["lhs_contracting_dims"])
    rhs = (*attributes["rhs_batch_dims"], *attributes["rhs_contracting_dims"])
    batch = _paired(left, right, lhs, rhs, len(attributes["lhs_batch_dims"]))
    if len(attributes["lhs_batch_dims"]) != len(attributes["rhs_batch_dims"]):
        fail("operands have different numbers of batch dimensions")
    return Shape(dtype, batch + without(left.dims, lhs) + without(right.dims, rhs))


def _paired(left: Shape, right: Shape, lhs: Sequence[int], rhs: Sequence[int], batch: int) -> tuple[int, ...]:
    """Sizes of the batch dimensions, after comparing the sizes of all paired dimensions."""
    distinct(lhs, left.rank, "batch and contracting dimensions of the left operand")
    distinct(rhs, right.rank, "batch and contracting dimensions of the right operand")
    sizes = tuple([left.dims[d] for d in lhs])
    if sizes != tuple([right.dims[d] for d in rhs]):
        fail(f"batch or contracting dimensions differ: {tuple(lhs)} of {left} and {tuple(rhs)} of {right}")
    return sizes[:batch]


def ragged_dot(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    """The result depends on which dimension is ragged: only its element type is compared."""
    _product_type(instruction, operands[0], operands[1])
    return None


def convolution(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    left, right, attributes = operands[0], operands[1], instruction.attributes
    labels: ConvDims = attributes["dim_labels"]
    window = attributes.get("window", ())
    dtype = _product_type(instruction, left, right)
    _labels(left, right, labels, len(window))
    check_window(window)
    groups, batches = attributes.get("feature_group_count", 1), attributes.get("batch_group_count", 1)
    _features(left, right, labels, groups, batches)
    for w, d in zip(window, labels.kernel_spatial, strict=True):
        if right.dims[d] != w.size:
            fail(f"the window has size {w.size} along dimension {d} of the kernel {right}")
    sizes = {labels.output_batch: left.dims[labels.input_batch] // batches}
    sizes[labels.output_feature] = right.dims[labels.kernel_output_feature]
    for w, source, target in zip(window, labels.input_spatial, labels.output_spatial, strict=True):
        sizes[target] = positions(w, left.dims[source])
    return Shape(dtype, tuple(sizes[d] for d in range(left.rank)))


def _labels(left: Shape, right: Shape, labels: ConvDims, spatial: int) -> None:
    for what, rank, dims in (
        ("input", left.rank, (labels.input_batch, labels.input_feature, *labels.input_spatial)),
        ("kernel", right.rank, (labels.kernel_input_feature, labels.kernel_output_feature, *labels.kernel_spatial)),
        ("output", left.rank, (labels.output_batch, labels.output_feature, *labels.output_spatial)),
    ):
        distinct(dims, rank, f"dim_labels of the {what}")
        if len(dims) != rank or rank != spatial + 2:
            fail(f"dim_labels or window do not fit the rank of the {what}")


def _features(left: Shape, right: Shape, labels: ConvDims, groups: int, batches: int) -> None:
    inputs, outputs = right.dims[labels.kernel_input_feature], right.dims[labels.kernel_output_feature]
    if groups < 1 or batches < 1 or (groups > 1 and batches > 1):
        fail(f"feature_group_count={groups} and batch_group_count={batches} cannot be")
    if left.dims[labels.input_feature] != inputs * groups:
        fail(f"{left} has not feature_group_count={groups} times the input features of the kernel {right}")
    if left.dims[labels.input_batch] % batches or outputs % groups or outputs % batches:
        fail(f"group counts do not divide the batch of {left} or the output features of {right}")


def fft(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    operand, length, form = array(operands[0]), instruction.attributes["fft_length"], instruction.attributes["fft_type"]
    rank = len(length)
    if not 1 <= rank <= operand.rank:
        fail(f"fft_length={length} does not fit {operand}")
    half = (*length[:-1], length[-1] // 2 + 1)
    before, after = {"RFFT": (length, half), "IRFFT": (half, length)}.get(form, (length, length))
    if operand.dims[-rank:] != tuple(before) and 0 not in operand.dims:
        fail(f"fft_length={length} does not fit {operand}")
    table = {"RFFT": COMPLEX_OF, "IRFFT": COMPLEX_PART}.get(form)
    dtype = table.get(operand.dtype) if table else operand.dtype
    if dtype is None or (table is None and kind(operand) != "c"):
        fail(f"{form} is not defined on {operand}")
    return Shape(dtype, (*operand.dims[:-rank], *after))


def cholesky(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    _square(operands[0])
    return operands[0]


def triangular_solve(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    matrix, right = operands
    _square(matrix)
    side = -2 if instruction.attributes.get("left_side", False) else -1
    if right.dtype != matrix.dtype or right.rank != matrix.rank or right.dims[:-2] != matrix.dims[:-2]:
        fail(f"operands do not fit: {matrix} and {right}")
    if right.dims[side] != matrix.dims[-1]:
        fail(f"the solved dimension of {right} does not fit {matrix}")
    return right


def _square(matrix: Shape) -> None:
    if kind(matrix) not in ("f", "c") or matrix.rank < 2 or matrix.dims[-1] != matrix.dims[-2]:
        fail(f"needs square matrices of floats, got {matrix}")


def batch_norm_training(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    feature = _features_agree(instruction, operands[0], operands[1:])
    return tuple_of((operands[0], feature, feature))


def batch_norm_inference(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    _features_agree(instruction, operands[0], operands[1:])
    return operands[0]


def batch_norm_grad(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    feature = _features_agree(instruction, operands[0], operands[1:4])
    if operands[4].dims != operands[0].dims:
        fail(f"the gradient {operands[4]} does not fit {operands[0]}")
    return tuple_of((operands[0], feature, feature))


def _features_agree(instruction: Instruction, operand: Shape, features: Sequence[Shape]) -> Shape:
    index = instruction.attributes["feature_index"]
    if kind(operand) != "f" or not 0 <= index < operand.rank:
        fail(f"feature_index={index} does not fit {operand}")
    for feature in features:
        if feature.dims != (operand.dims[index],) or kind(feature) != "f":
            fail(f"{feature} does not fit feature dimension {index} of {operand}")
    return features[0]


def scaled_dot(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return dot(instruction, operands[:2], module)
