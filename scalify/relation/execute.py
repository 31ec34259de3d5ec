"""What a relation says of concrete arrays: distributed inputs made from baseline inputs, outputs compared.

Arrays have a leading axis of devices in the order of device ids, as :func:`scalify.hlo.interpret.run` takes and gives them; that of a
baseline on one device has size 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from scalify.errors import RelationError
from scalify.hlo.semantics.values import Array, storage
from scalify.relation.model import Broadcast, Pad, Piece, Recipe, Relation, Reshape, Slice, Step, Transpose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scalify.hlo.module import Shape
    from scalify.relation.model import Mesh

FLOOR = 1e-6
"""Outputs whose values all lie below this are compared as if the largest were this: they are rounding errors of larger ones."""


def apply(recipe: Recipe, array: Array) -> Array:
    """The result of a recipe on its source, shape ``mesh.shape + local dims``. ``array`` is not looked at where the source is known data."""
    result = recipe.source if isinstance(recipe.source, np.ndarray) else array
    for step in recipe.steps:
        result = _step(step, result)
    return result


def _step(step: Step, x: Array) -> Array:
    match step:
        case Slice():
            return x[tuple(map(slice, step.starts, step.limits))]
        case Reshape():
            return x.reshape(step.dims)
        case Transpose():
            return x.transpose(step.permutation)
        case Pad():
            return np.pad(x, step.padding)
        case Broadcast():
            sizes = dict(zip(step.dimensions, x.shape, strict=True))
            return np.broadcast_to(x.reshape([sizes.get(d, 1) for d in range(len(step.dims))]), step.dims)


def distribute(
    relation: Relation, baseline_inputs: Mapping[int, Array] | Sequence[Array], parameter_shapes: Sequence[Shape], module: int | None = None
) -> list[Array]:
    """The distributed parameters ``[devices, *dims]`` in device-id order, in the interpreter's types.

    ``module`` chooses the entries of one of several distributed modules; the result then has rows for all devices all the same.

    :raises RelationError: no entry speaks of a parameter.
    """
    return [assemble(relation, baseline_inputs, number, shape, module) for number, shape in enumerate(parameter_shapes)]


def assemble(
    relation: Relation, baseline_inputs: Mapping[int, Array] | Sequence[Array], number: int, shape: Shape, module: int | None = None
) -> Array:
    """One distributed parameter, as :func:`distribute` gives it."""
    mesh = relation.mesh
    if not shape.is_array:
        return np.zeros((mesh.size, 0))
    pieces = pieces_of(relation.inputs, number, module)
    if not pieces:
        raise RelationError(f"no entry speaks of distributed parameter {number}")
    whole = np.zeros((*mesh.shape, *shape.dims), storage(shape.dtype))
    for piece in pieces:
        source = piece.recipe.source
        given = source if isinstance(source, np.ndarray) else on_mesh(relation, baseline_inputs[source])
        whole[region(mesh, piece)] = apply(piece.recipe, given)
    return _by_device(mesh, whole)


def pieces_of(entries: Mapping[int, tuple[Piece, ...]], number: int, module: int | None) -> list[Piece]:
    """The pieces of a parameter or output that speak of a module."""
    return [p for p in entries.get(number, ()) if module is None or p.module is None or p.module == module]


def on_mesh(relation: Relation, array: Array) -> Array:
    """A baseline array as recipes take it: with the mesh dimensions in front if the baseline runs on the mesh, else without any."""
    return by_position(relation.mesh, array) if relation.same_mesh else array[0]


def by_position(mesh: Mesh, array: Array) -> Array:
    """``[devices, *dims]`` in device-id order as ``[*mesh.shape, *dims]``."""
    return array[list(mesh.device_ids)].reshape(*mesh.shape, *array.shape[1:])


def _by_device(mesh: Mesh, array: Array) -> Array:
    flat = array.reshape(mesh.size, *array.shape[len(mesh.shape) :])
    result = np.empty_like(flat)
    result[list(mesh.device_ids)] = flat
    return result


def region(mesh: Mesh, piece: Piece) -> tuple[slice, ...]:
    """The region that a piece speaks of, of an array ``[*mesh.shape, *dims]``."""
    return (slice(None),) * len(mesh.shape) + tuple(map(slice, piece.starts, piece.limits))


def compare(
    relation: Relation, baseline_outputs: Sequence[Array], distributed_outputs: Sequence[Array], module: int | None = None
) -> dict[int, float]:
    """For each related distributed output the largest difference, relative to the largest baseline value (at least :data:`FLOOR`).

    Equal infinities and NaN in the same places do not differ; NaN or infinity on one side alone is an infinite difference.
    """
    return {
        number: max(
            _difference(relation, p, baseline_outputs, distributed_outputs[number]) for p in pieces_of(relation.outputs, number, module)
        )
        for number in relation.outputs
        if pieces_of(relation.outputs, number, module)
    }


def _difference(relation: Relation, piece: Piece, baseline_outputs: Sequence[Array], output: Array) -> float:
    source = piece.recipe.source
    given = source if isinstance(source, np.ndarray) else on_mesh(relation, baseline_outputs[source])
    expected = apply(piece.recipe, given)
    found = by_position(relation.mesh, output)[region(relation.mesh, piece)]
    if piece.partial:
        found = np.broadcast_to(found.sum(axis=piece.partial, keepdims=True, dtype=found.dtype), found.shape)
    return relative_difference(expected, found)


def relative_difference(expected: Array, found: Array) -> float:
    """The largest difference of two equally shaped arrays, relative to the largest finite expected value."""
    wide = np.complex128 if "c" in (expected.dtype.kind, found.dtype.kind) else np.float64
    left, right = expected.astype(wide), found.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, np.abs(left - right))
    if expected.dtype.kind in "biu" and expected.dtype == found.dtype:
        apart = np.where(expected == found, 0.0, np.maximum(apart, 1.0))  # 64-bit integers may differ below the precision of floats
    finite = np.abs(left[np.isfinite(left)])
    largest = float(np.max(np.where(np.isnan(apart), math.inf, apart), initial=0.0))
    return largest / max(float(np.max(finite, initial=0.0)), FLOOR)
