"""A pair of modules executed on random inputs that satisfy their relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.dtypes import DTYPES
from scalify.hlo.interpret import Budget, run
from scalify.hlo.semantics.values import storage
from scalify.relation.execute import compare, distribute

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from scalify.hlo.module import Module, Shape
    from scalify.relation.model import Relation

    Array = npt.NDArray[Any]

INTEGER_RANGE = (0, 2)
"""Of integers that nothing is said of: valid as positions nearly everywhere."""


def draw(baseline: Module, relation: Relation, ranges: Mapping[int, tuple[int, int]], seed: int, scale: float = 1.0) -> list[Array]:
    """Baseline inputs with a leading device axis: normal floats times ``scale``, integers in the assumed (or ``ranges``) half-open ranges."""
    rng = np.random.default_rng(seed)
    bounds = {a.parameter: (a.low, a.high) for a in relation.assumptions if a.side == "baseline"}
    devices = relation.mesh.size if relation.same_mesh else 1
    drawn = [_draw(rng, shape, devices, bounds.get(n, ranges.get(n))) for n, shape in enumerate(baseline.parameter_shapes)]
    scaled = [x * scale if x.dtype.kind in "fc" else x for x in drawn]
    return [np.broadcast_to(relation.values[n], x.shape) if n in relation.values else x for n, x in enumerate(scaled)]


def _draw(rng: np.random.Generator, shape: Shape, devices: int, bounds: tuple[int, int] | None) -> Array:
    dims = (devices, *shape.dims)
    if not shape.is_array:
        return np.zeros((devices, 0))
    if DTYPES[shape.dtype].is_float:
        return rng.standard_normal(dims)
    if DTYPES[shape.dtype].is_complex:
        return rng.standard_normal(dims) + 1j * rng.standard_normal(dims)
    return rng.integers(*(bounds or INTEGER_RANGE), dims).astype(storage(shape.dtype))


def differences(
    baseline: Module,
    distributed: Module,
    relation: Relation,
    ranges: Mapping[int, tuple[int, int]] | None = None,
    seed: int = 0,
    scale: float = 1.0,
    budget: Budget | None = None,
) -> dict[int, float]:
    """For each related output how far the two modules are apart, relative to its largest value.

    Small epsilons show only at a small ``scale``.
    """
    budget = budget or Budget()
    inputs = draw(baseline, relation, ranges or {}, seed, scale)
    devices = relation.mesh.size
    expected = run(baseline, inputs, devices if relation.same_mesh else 1, budget=budget)
    found = run(distributed, distribute(relation, inputs, distributed.parameter_shapes), devices, budget=budget)
    return compare(relation, expected, found)
