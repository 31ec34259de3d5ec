"""Modules executed and lifted: every value that the lifter gives must be what execution gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.dtypes import DTYPES
from scalify.hlo.interpret import run
from scalify.lift.pair import Pair, lift_pair
from scalify.relation.execute import distribute
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from tests.support.builder import Builder
from tests.support.evaluate import Evaluator, NoMeaningError, cut, exact

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy.typing as npt

    from scalify.hlo.module import Module, Shape
    from scalify.lift.lifter import Lifter
    from scalify.lift.terms import Term, View
    from scalify.relation.model import Relation

    Array = npt.NDArray[Any]

Spec = tuple[Any, ...]  # for each dimension None, a mesh axis, or a tuple of mesh axes (major to minor)


@dataclass
class Outcome:
    """What a comparison covered. ``opaque`` names the instructions whose value has no arithmetic meaning."""

    pair: Pair
    checked: int = 0
    opaque: list[str] = field(default_factory=list)


def check(
    b: Builder,
    inputs: Sequence[Array],
    mesh: Mapping[str, int] | None = None,
    specs: Sequence[Spec] | None = None,
    *,
    device_ids: Sequence[int] | None = None,
    ranges: Mapping[int, tuple[int, int]] | None = None,
    opaque: bool = False,
    infinities: bool = False,
    **module: Any,
) -> Outcome:
    """Lifts the builder's computation and compares all its values with execution.

    ``inputs`` are whole arrays; ``specs`` say how each is cut over the mesh (default: replicated). ``ranges`` (half-open) are assumed of
    integer inputs. ``opaque`` allows values without arithmetic meaning; ``infinities`` compares infinities and NaN too.
    """
    mesh = dict(mesh or {"one": 1})
    devices = math.prod(mesh.values())
    distributed = _all_values(b, **{"num_partitions": devices, **module})
    specs = specs or [()] * len(inputs)
    baseline = _baseline(distributed, mesh, specs)
    relation = resolve(parse(_relation_text(distributed, mesh, specs, device_ids, ranges or {}), "r.yaml"), baseline, [distributed])
    return compare(baseline, distributed, relation, [np.asarray(x)[None] for x in inputs], opaque=opaque, infinities=infinities)


def _all_values(b: Builder, **module: Any) -> Module:
    """With every array of the computation as a result, and a constant that the baseline has too (something must be related)."""
    b.constant("f32", 0.0)
    roots = [n for n, i in enumerate(b.instructions) if i.shape.is_array]
    return b.build(roots, **module)


def _baseline(distributed: Module, mesh: Mapping[str, int], specs: Sequence[Spec]) -> Module:
    """A module that hands back its parameters: the relation is all that matters."""
    b = Builder("baseline")
    for shape, spec in zip(distributed.parameter_shapes, specs, strict=True):
        dims = list(shape.dims)
        for d, axes in enumerate(spec):
            for axis in _axes(axes):
                dims[d] *= mesh[axis]
        b.parameter(shape.dtype, dims)
    return b.build(b.constant("f32", 0.0))


def _axes(entry: Any) -> tuple[str, ...]:
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def _relation_text(
    distributed: Module,
    mesh: Mapping[str, int],
    specs: Sequence[Spec],
    device_ids: Sequence[int] | None,
    ranges: Mapping[int, tuple[int, int]],
) -> str:
    lines = ["version: 1", f"mesh: {{{', '.join(f'{k}: {v}' for k, v in mesh.items())}}}"]
    if device_ids is not None:
        lines.append(f"device_ids: {list(device_ids)}")
    lines.append("inputs:" if specs else "inputs: []")
    for p, spec in enumerate(specs):
        entries = ["null" if not _axes(a) else f"[{', '.join(_axes(a))}]" for a in spec]
        lines.append(f"  - {{baseline: {p}, distributed: {p}, spec: [{', '.join(entries)}]}}")
    lines.append("outputs:")
    last = len(distributed.output_shapes) - 1
    lines += [f"  - {{distributed: {n}, ignore: true}}" for n in range(last)]
    lines.append(f"  - {{baseline: 0, distributed: {last}}}")
    if ranges:
        lines.append("assume:")
        lines += [f"  - {{baseline: {p}, range: [{low}, {high}]}}" for p, (low, high) in ranges.items()]
    return "\n".join(lines)


def compare(
    baseline: Module,
    distributed: Module,
    relation: Relation,
    inputs: Sequence[Array],
    *,
    opaque: bool = False,
    infinities: bool = False,
) -> Outcome:
    """The distributed module's results, executed and lifted; ``inputs`` are the baseline's, with a leading device axis."""
    found = run(distributed, distribute(relation, inputs, distributed.parameter_shapes), relation.mesh.size)
    pair = lift_pair(baseline, [distributed], relation)
    outcome = Outcome(pair)
    evaluator = Evaluator(pair.store, leaves(pair.baseline, inputs))
    program = pair.distributed.program
    for number, (value, shape) in enumerate(zip(program.outputs, distributed.output_shapes, strict=True)):
        name = distributed.entry.instructions[distributed.entry.instructions[distributed.entry.root].operands[number]].name
        expected = found[number][list(relation.mesh.device_ids)]
        if not _compare_value(pair.distributed, evaluator, value, expected, shape, name, infinities=infinities):
            outcome.opaque.append(name)
        outcome.checked += 1
    check_facts(evaluator)
    assert opaque or not outcome.opaque, f"no arithmetic meaning: {outcome.opaque}, {pair.distributed.unsupported}"
    return outcome


def leaves(lifter: Lifter, inputs: Sequence[Array]) -> dict[Hashable, Array]:
    """The array of each parameter leaf of the baseline."""
    found: dict[Hashable, Array] = {}
    for p, value in enumerate(lifter.program.parameters):
        layout = lifter.layout_of(value)
        for number, block in enumerate(layout.blocks):
            base = ("parameter", p) if layout.plain else ("parameter", p, number)
            found[base] = exact(cut(layout, block, inputs[p]))
    return found


def _compare_value(lifter: Lifter, evaluator: Evaluator, value: int, expected: Array, shape: Shape, name: str, *, infinities: bool) -> bool:
    """Whether the lifted value could be evaluated at all; it must then be the executed one."""
    lifted = lifter.values[value]
    layout = lifted.layout
    assert layout.sizes[1:] == shape.dims, (name, layout.sizes, shape)
    expected = np.broadcast_to(expected, layout.sizes)
    meaning = True
    for block, view in zip(layout.blocks, lifted.views, strict=True):
        want = cut(layout, block, expected)
        try:
            got = evaluator.view(view, range(len(block.sizes)), block.sizes)
        except NoMeaningError:
            meaning = False
            if not _bind(evaluator, view, want):
                continue
            got = evaluator.view(view, range(len(block.sizes)), block.sizes)
        _assert_equal(got, want, shape.dtype, name, infinities=infinities)
    return meaning


def _bind(evaluator: Evaluator, view: View, want: Array) -> bool:
    """Gives a bare opaque term the executed values, which every other use of the same term must then agree with."""
    coef, term, at = view
    if coef != 1 or term.kind != "at" or term in evaluator.leaves:
        return False
    array = exact(want)
    rest = [s for s in range(want.ndim) if s not in at]
    moved = array.transpose([*rest, *at])
    evaluator.leaves[term] = moved[tuple([0] * len(rest))]
    return True


def _assert_equal(got: Array, want: Array, dtype: str, name: str, *, infinities: bool) -> None:
    kind = DTYPES[dtype]
    if kind.is_integer:
        span = 1 << kind.bits
        same = [int(a) == a and (int(a) - int(b)) % span == 0 for a, b in zip(got.reshape(-1), want.reshape(-1), strict=True)]
    elif kind.is_float:
        same = [_close(a, b, infinities=infinities) for a, b in zip(got.reshape(-1).tolist(), want.reshape(-1).tolist(), strict=True)]
    elif kind.is_complex:
        same = [bool(np.isclose(complex(a), b)) for a, b in zip(got.reshape(-1).tolist(), want.reshape(-1).tolist(), strict=True)]
    else:
        same = [a == int(b) for a, b in zip(got.reshape(-1).tolist(), want.reshape(-1).tolist(), strict=True)]
    wrong = [k for k, ok in enumerate(same) if not ok]
    shown = [(k, got.reshape(-1)[k], want.reshape(-1)[k]) for k in wrong[:4]]
    assert not wrong, f"{name}: (position, lifted, executed) {shown}"


def _close(a: Any, b: float, *, infinities: bool) -> bool:
    if not math.isfinite(b):
        return not infinities or a == b or (math.isnan(a) and math.isnan(b))
    return (not isinstance(a, float) and a == b) or math.isclose(float(a), b, rel_tol=1e-9, abs_tol=1e-9)


def check_facts(evaluator: Evaluator) -> None:
    """What a term says of its values (integer, range, sign) holds for those that it has."""
    for term, array in evaluator.evaluated():
        if not term.taint:
            _check_facts(term, array)


def _check_facts(term: Term, array: Array) -> None:
    values = array.reshape(-1).tolist()
    if term.integer:
        assert all(int(v) == v for v in values), (term, values)
        assert term.low is None or min(values) >= term.low, (term, term.low, values)
        assert term.high is None or max(values) <= term.high, (term, term.high, values)
    if term.positive:
        assert all(v > 0 or (isinstance(v, float) and not v > 1e-300) for v in values), (term, values)
