"""Both graphs executed on concrete inputs, in intervals: an output element whose two intervals lie apart differs over the reals.

That holds for these inputs whatever was rounded on the way. It refutes if the distance is also well beyond what rounding to the declared types does
to either graph: else a constant that one of them has in other digits would. Nothing else refutes: what cannot be decided (an order
of numbers too close to each other, a function without known meaning, random numbers) or does not fit the budget leaves the verdict as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import InputError, OverBudget, Undecidable
from scalify.hlo.arithmetic.interval import Interval
from scalify.hlo.arithmetic.real import Declared
from scalify.hlo.interpret import Budget, Evaluation, evaluate
from scalify.lift.custom_calls import expand
from scalify.refute.inputs import SAMPLINGS, Inputs
from scalify.relation.execute import apply, by_position, on_mesh, pieces_of, region
from scalify.report.model import Counterexample, Difference

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from scalify.hlo.arithmetic.domain import Domain
    from scalify.hlo.module import Module
    from scalify.hlo.semantics.values import Array
    from scalify.lift.custom_calls import Registry
    from scalify.relation.model import Piece, Relation

SEEDS = 2
ATTEMPTS = tuple(product(range(SEEDS), SAMPLINGS))
"""Seeds and samplings, in the order in which they are tried. The first shows nearly every difference that any does."""
PARAMETERS = 1 << 24
"""Elements of all parameters together."""
ELEMENTS = 1 << 23
"""Of any one value that is computed; arithmetic on it takes some ten times its 16 bytes an element."""
LIVE = 1 << 25
MARGIN = 8
"""A difference refutes if it is so many times the largest rounding error of its output, and more than ``FLOOR`` times the largest value."""
FLOOR = 2.0**-20


@dataclass(frozen=True, slots=True)
class Sides:
    """A region of an output: what the relation makes of the baseline's values and what the distributed graph gives, ``[*mesh.shape, *dims]``;
    ``here`` are the mesh positions that it speaks of.
    """

    output: int
    piece: Piece
    expected: Array
    found: Array
    here: Array


class Execution:
    """Two graphs and their relation, ready to be executed; custom calls have the meaning that the registry gives them.

    ``left`` is what is left of the element operations that all executions together may take.
    """

    def __init__(self, baseline: Module, distributed: Sequence[Module], relation: Relation, registry: Registry, operations: int) -> None:
        self.relation = relation
        self.baseline = expand(baseline, registry)
        self.distributed = [expand(module, registry) for module in distributed]
        self.left = operations

    def inputs(self, seed: int, sampling: str) -> Inputs:
        """:raises Undecidable: there are none that satisfy the relation."""
        return Inputs(self.baseline, self.distributed, self.relation, seed, sampling)

    def sides(self, inputs: Inputs, domain: type[Domain]) -> list[Sides]:
        """All related regions of all outputs, in a domain's representation.

        :raises Undecidable: a value that the domain cannot compute, or that depends on more than the inputs.
        :raises OverBudget: too much work. :raises HloError: a graph that cannot be executed.
        """
        size = self.relation.mesh.size
        several = len(self.distributed) > 1
        devices: Any = [inputs.devices(m) for m in range(len(self.distributed))] if several else size
        left = self._run(self.baseline, inputs.baseline, size if self.relation.same_mesh else 1, domain)
        right = self._run(self.distributed if several else self.distributed[0], self._given(inputs), devices, domain)
        found = []
        for module, outputs in enumerate(right.outputs):
            for q, own in enumerate(outputs):
                pieces = pieces_of(self.relation.outputs, q, module if several else None)
                found += [self._sides(q, piece, left.outputs[0], own, inputs.devices(module)) for piece in pieces]
        return found

    @staticmethod
    def _given(inputs: Inputs) -> Any:
        return inputs.distributed if len(inputs.distributed) > 1 else inputs.distributed[0]

    def _run(self, modules: Any, given: Any, devices: Any, domain: type[Domain]) -> Evaluation:
        budget = Budget(elements=ELEMENTS, live=LIVE, operations=self.left)
        try:
            found = evaluate(modules, given, devices, domain=domain, budget=budget)
        except OverBudget:
            self.left = 0
            raise
        self.left -= found.spent
        if found.arbitrary:
            raise Undecidable(f"values depend on {min(found.arbitrary)}")
        return found

    def _sides(self, output: int, piece: Piece, baseline: Sequence[Array], own: Array, devices: Sequence[int]) -> Sides:
        mesh = self.relation.mesh
        source = piece.recipe.source
        expected = apply(piece.recipe, on_mesh(self.relation, baseline[source]) if isinstance(source, int) else np.asarray(source))
        whole = np.zeros((mesh.size, *own.shape[1:]), own.dtype)
        whole[list(devices)] = own
        found = by_position(mesh, whole)[region(mesh, piece)]
        if piece.partial:
            found = np.broadcast_to(_summed(found, piece.partial), found.shape)
        if found.dtype.kind == "c" and expected.dtype.kind != "c":
            expected = Interval().encode(expected, "f64")
        here = np.isin(np.asarray(mesh.device_ids).reshape(mesh.shape), devices)
        return Sides(output, piece, expected, found, here)

    def differences(self, inputs: Inputs, among: Container[int]) -> tuple[Difference, ...]:
        """The largest difference of each of some outputs, where it is beyond rounding. :raises: as :meth:`sides`."""
        real = self.sides(inputs, Interval)
        if not any(s.output in among and _gap(s).any() for s in real):
            return ()
        found: dict[int, tuple[float, Difference]] = {}
        for exact, rounded in zip(real, self.sides(inputs, Declared), strict=True):
            largest = self._largest(exact, rounded) if exact.output in among else None
            if largest is not None and (exact.output not in found or largest[0] > found[exact.output][0]):
                found[exact.output] = largest
        return tuple([found[q][1] for q in sorted(found)])

    def _largest(self, exact: Sides, rounded: Sides) -> tuple[float, Difference] | None:
        mesh = self.relation.mesh
        gap = _gap(exact)
        rounding = _rounding(exact, rounded)
        gap[~(gap > MARGIN * rounding + FLOOR * _magnitude(exact.expected))] = 0
        if not gap.any():
            return None
        place = np.unravel_index(int(np.argmax(gap)), gap.shape)
        position, local = place[: len(mesh.shape)], place[len(mesh.shape) :]
        index = tuple([int(i) + start for i, start in zip(local, exact.piece.starts, strict=True)])
        device = int(np.asarray(mesh.device_ids).reshape(mesh.shape)[position])
        most = float(np.broadcast_to(rounding, gap.shape)[place])
        values = _ends(exact.expected[place]), _ends(exact.found[place])
        return float(gap[place]), Difference(exact.output, device, index, *values, most)


def refute(
    baseline: Module,
    distributed: Sequence[Module],
    relation: Relation,
    registry: Registry,
    outputs: Container[int],
    operations: int,
    attempts: Sequence[tuple[int, str]] = ATTEMPTS,
) -> Counterexample | None:
    """Inputs on which some of the outputs differ, if they are found within a number of element operations."""
    if _elements(baseline, distributed, relation) > PARAMETERS:
        return None
    try:
        execution = Execution(baseline, distributed, relation, registry, operations)
        for seed, sampling in attempts:
            found = _attempt(execution, seed, sampling, outputs)
            if found:
                return Counterexample(seed, sampling, found)
    except (OverBudget, InputError):
        pass
    except (ArithmeticError, LookupError, TypeError, ValueError):
        pass  # an instruction that is malformed in a way that the shape check does not see: the verdict must not be lost for it
    return None


def _attempt(execution: Execution, seed: int, sampling: str, outputs: Container[int]) -> tuple[Difference, ...]:
    try:
        return execution.differences(execution.inputs(seed, sampling), outputs)
    except Undecidable:
        return ()


def _elements(baseline: Module, distributed: Sequence[Module], relation: Relation) -> int:
    """Elements of all parameters on all devices."""
    size = relation.mesh.size
    own = (size if relation.same_mesh else 1) * sum(s.size for s in baseline.parameter_shapes)
    return own + size * sum(s.size for m in distributed for s in m.parameter_shapes)


def _summed(x: Array, axes: tuple[int, ...]) -> Array:
    total = Interval().reduce("add", x, axes, "f64") if x.dtype.kind == "c" else x.sum(axis=axes, dtype=x.dtype)
    return total.reshape([1 if a in axes else n for a, n in enumerate(x.shape)])


def _gap(sides: Sides) -> Array:
    """How far the intervals lie apart, 0 where they meet or nothing is known."""
    expected, found = sides.expected, sides.found
    gap = np.zeros(found.shape)
    if found.dtype.kind != "c":
        differ = expected != found
        apart = expected[differ].astype(np.float64) - found[differ].astype(np.float64)
        gap[differ] = np.maximum(np.abs(apart), 1.0)  # 64-bit integers may differ below the precision of floats
    else:
        with np.errstate(invalid="ignore"):
            apart = np.maximum(expected.real - found.imag, found.real - expected.imag)
        np.maximum(gap, apart, out=gap, where=~np.isnan(apart))
    gap[~sides.here] = 0
    return gap


def _rounding(exact: Sides, rounded: Sides) -> Array:
    """The largest error of rounding in either graph; of an integer infinite where rounding changes it, else 0."""
    pairs = [(exact.expected, rounded.expected), (exact.found, rounded.found)]
    if exact.found.dtype.kind != "c":
        return np.where((pairs[0][0] != pairs[0][1]) | (pairs[1][0] != pairs[1][1]), np.inf, 0.0)
    with np.errstate(invalid="ignore"):
        errors = [np.abs((x.real / 2 + x.imag / 2) - y)[exact.here] for x, y in pairs]
    return np.asarray(max(float(np.max(e[np.isfinite(e)], initial=0.0)) for e in errors))


def _magnitude(x: Array) -> float:
    if x.dtype.kind != "c":
        return 0.0
    low = np.abs(x.real)
    return float(np.max(low[np.isfinite(low)], initial=0.0))


def _ends(value: Any) -> tuple[float | None, float | None]:
    ends = (value.real, value.imag) if np.iscomplexobj(value) else (value, value)
    low, high = [float(x) if np.isfinite(x) else None for x in ends]
    return low, high
