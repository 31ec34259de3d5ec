"""The copy entries of a relation file to recipes: expand maps, solve sizes, emit HLO data movement."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import TYPE_CHECKING

from scalify.errors import RelationError
from scalify.relation.einops import Group, Map, show
from scalify.relation.file import Place, StepText
from scalify.relation.model import Broadcast, Mesh, Pad, Reshape, Step, Transpose
from scalify.relation.parse import did_you_mean
from scalify.relation.sizes import Equation, Sizes, Variable
from scalify.relation.steps import Dims, result_dims, simplify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Frame:
    """What a chain of steps runs between.

    ``source`` and ``target`` are dimensions without the mesh. ``lead`` is whether the source has the mesh dimensions in front already.
    ``context`` ends every error with the two shapes.
    """

    source: Dims
    target: Dims
    mesh: Mesh
    sizes: Mapping[str, int]
    lead: bool
    context: str
    place: Place


@dataclass(frozen=True, slots=True)
class _Plan:
    """A step with its groups written out. ``axes`` is None when the step does not cut over the mesh."""

    place: Place
    left: tuple[Group, ...]
    right: tuple[Group, ...]
    axes: Mapping[str, Group] | None
    pad_dims: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    pad_factors: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lowered:
    """Recipe steps, the mesh axes (numbers) that are still to be summed over, and those that cut the source."""

    steps: tuple[Step, ...]
    partial: tuple[int, ...]
    cuts: frozenset[int]


def lower(steps: Sequence[StepText], frame: Frame) -> Lowered:
    """The recipe steps from ``frame.source`` to mesh and ``frame.target``.

    Raises:
        RelationError: the steps contradict the shapes, the mesh, or do not settle a size.
    """
    maps = list(_maps(steps, frame))
    plans, partial = _plans(maps, frame)
    if len(plans[-1].right) != len(frame.target):
        count_, rank = len(plans[-1].right), len(frame.target)
        raise plans[-1].place.error(
            f"gives {count_} local dimension{'s' * (count_ != 1)}, but the distributed array has {rank}{frame.context}"
        )
    values = _solve(plans, frame)
    shape = frame.mesh.shape
    emitted: list[Step] = []
    dims = shape * frame.lead + frame.source
    lead = len(shape) * frame.lead
    for number, plan in enumerate(plans):
        for step in _emit(plan, {n: v for (s, n), v in values.items() if s == number}, frame.mesh, dims, lead):
            emitted.append(step)
            dims = result_dims(step, dims)
        lead = len(shape) if plan.axes is not None else lead
    return Lowered(simplify(emitted, shape * frame.lead + frame.source), partial, _cuts(plans, frame.mesh))


def _cuts(plans: list[_Plan], mesh: Mesh) -> frozenset[int]:
    """Mesh axes that hold a factor of the source: devices along them see different parts of it."""
    cuts = set()
    for plan in plans:
        old = {name for group in plan.left for name in group}
        cuts |= {i for i, (axis, _) in enumerate(mesh.axes) if old.intersection((plan.axes or {}).get(axis, ()))}
    return frozenset(cuts)


# -- expansion --------------------------------------------------------------------------------------------------------
def _maps(steps: Sequence[StepText], frame: Frame) -> Iterator[tuple[StepText, Map]]:
    """Each step with its map, spec and pure paddings written as maps; ranks are followed from step to step."""
    rank = len(frame.source)
    for step in steps or (StepText(frame.place),):
        try:
            expanded = step.map.expand(rank) if step.map else _spec_map(step, rank)
        except RelationError as error:
            raise step.place.error(error.message + frame.context) from None
        _check_step(step, expanded, rank, frame)
        rank = len(expanded.right)
        yield step, expanded


def _spec_map(step: StepText, rank: int) -> Map:
    """A PartitionSpec as a map: dimension ``i`` is its mesh axes, major to minor, times what is left."""
    spec = step.spec or ()
    if len(spec) > rank:
        raise RelationError(f"has {len(spec)} entries, but there {'are' if rank != 1 else 'is'} {rank} dimension{'s' * (rank != 1)}")
    axes = tuple(axis for entry in spec for axis in entry)
    twice = next((a for i, a in enumerate(axes) if a in axes[:i]), None)
    if twice is not None:
        raise RelationError(f"mesh axis {twice} stands twice; an axis cuts one dimension")
    names = tuple(f"dim {i}" for i in range(rank))
    left = tuple((*(spec[i] if i < len(spec) else ()), name) for i, name in enumerate(names))
    return Map("spec", left, tuple((n,) for n in names), tuple((a, (a,)) for a in axes), (), bool(axes))


def _check_step(step: StepText, expanded: Map, rank: int, frame: Frame) -> None:
    names = [axis for axis, _ in frame.mesh.axes]
    for axis in (*(a for a, _ in expanded.axes), *expanded.partial):
        if axis not in names:
            raise step.place.error(f"{axis} is not a mesh axis; {did_you_mean(axis, names)}")
    for dim in step.pad_dims:
        if not 0 <= dim < rank:
            raise step.place.error(f"pad names dimension {dim}, but the dimensions are 0 to {rank - 1}{frame.context}")
    left = [name for group in expanded.left for name in group]
    for name in step.pad_factors:
        if name not in left:
            writable = [n for n in left if not n.startswith("dim ")]
            raise step.place.error(f"pad names factor {name}, which the left side does not have; {did_you_mean(name, writable)}")


def _plans(maps: list[tuple[StepText, Map]], frame: Frame) -> tuple[list[_Plan], tuple[int, ...]]:
    """Exactly one plan cuts over the mesh: the one with brackets, else the last; none if the source is on the mesh already."""
    cutting = [i for i, (_, m) in enumerate(maps) if m.bracket]
    if len(cutting) > 1:
        raise maps[cutting[1]][0].place.error("a second step names mesh axes; one step cuts over the mesh")
    if frame.lead and any(m.axes for _, m in maps):
        raise maps[cutting[0]][0].place.error("names a mesh axis, but with `baseline_mesh: same` both sides are on the mesh already")
    cut = cutting[0] if cutting else len(maps) - 1
    plans = [
        _Plan(s.place, m.left, m.right, dict(m.axes) if i == cut and not frame.lead else None, s.pad_dims, s.pad_factors)
        for i, (s, m) in enumerate(maps)
    ]
    partial = {axis for _, m in maps for axis in m.partial}
    return plans, tuple(i for i, (axis, _) in enumerate(frame.mesh.axes) if axis in partial)


# -- sizes ------------------------------------------------------------------------------------------------------------
def _solve(plans: list[_Plan], frame: Frame) -> dict[Variable, int]:
    pads = {(s, name): sum(pair) for s, plan in enumerate(plans) for name, pair in plan.pad_factors.items()}
    known: dict[Variable, int] = {}
    for s, plan in enumerate(plans):
        for name in {n for group in (*plan.left, *plan.right, *(plan.axes or {}).values()) for n in group} & set(frame.sizes):
            later = sum(pads.get((t, name), 0) for t in range(s + 1, len(plans)))
            known[s, name] = frame.sizes[name] - later
            if known[s, name] < 1:
                raise plan.place.error(f"sizes gives factor {name} size {frame.sizes[name]}, but its padding is {later}")
    equations = [e for s, plan in enumerate(plans) for e in _equations(s, plan, plans, pads, frame)]
    return Sizes(known).solve(equations, pads, frame.context)


def _equations(s: int, plan: _Plan, plans: list[_Plan], pads: Mapping[Variable, int], frame: Frame) -> Iterator[Equation]:
    last = s == len(plans) - 1
    for i, group in enumerate(plan.left):
        total: int | Variable = frame.source[i] if s == 0 else (s, f"#{i}")
        label = f"dimension {i} of the {'baseline' if s == 0 else f'result of step {s - 1}'}"
        terms = tuple(((s, name), pads.get((s, name), 0)) for name in group)
        yield Equation(terms, total, sum(plan.pad_dims.get(i, (0, 0))), label, show(group), plan.place)
    for i, group in enumerate(plan.right):
        total = frame.target[i] if last else (s + 1, f"#{i}")
        label = f"local dimension {i}" if last else f"dimension {i} of the result of step {s}"
        yield Equation(tuple(((s, name), 0) for name in group), total, 0, label, show(group), plan.place)
    for axis, size in frame.mesh.axes:
        if plan.axes is not None and axis in plan.axes:
            group = plan.axes[axis]
            yield Equation(tuple(((s, name), 0) for name in group), size, 0, f"mesh axis {axis}", show(group), plan.place)


# -- emission ---------------------------------------------------------------------------------------------------------
def _emit(plan: _Plan, sizes: Mapping[str, int], mesh: Mesh, dims: Dims, lead: int) -> Iterator[Step]:
    """Pad, split, pad factors, permute, repeat, merge; steps without effect are removed by the caller."""
    front = dims[:lead]
    quiet = ((0, 0),) * lead
    yield Pad((*quiet, *(plan.pad_dims.get(i, (0, 0)) for i in range(len(plan.left)))))
    groups, sizes = _result_groups(plan, sizes, mesh)
    before = {name: size - sum(plan.pad_factors.get(name, (0, 0))) for name, size in sizes.items()}
    atoms = _atoms(plan, groups, sizes, before)
    home = {name: atom for atom in atoms for name in atom}
    left = list(dict.fromkeys(home[name] for group in plan.left for name in group if name in home))
    yield Reshape((*front, *(_product(before, atom) for atom in left)))
    yield Pad((*quiet, *(plan.pad_factors.get(atom[0], (0, 0)) for atom in left)))
    old = [atom for atom in atoms if atom in left]
    yield Transpose((*range(lead), *(lead + left.index(atom) for atom in old)))
    positions = tuple(lead + i for i, atom in enumerate(atoms) if atom in left)
    yield Broadcast((*front, *(_product(sizes, atom) for atom in atoms)), (*range(lead), *positions))
    yield Reshape((*front, *(_product(sizes, group) for group in groups)))


def _result_groups(plan: _Plan, sizes: Mapping[str, int], mesh: Mesh) -> tuple[list[Group], dict[str, int]]:
    """The groups of the result, mesh axes first; a mesh axis that the map does not name repeats along a factor of its own."""
    groups: list[Group] = []
    known = dict(sizes)
    for (axis, size), number in zip(mesh.axes if plan.axes is not None else (), count()):
        assert plan.axes is not None
        groups.append(plan.axes.get(axis, (f"mesh {number}",)))
        known[f"mesh {number}"] = size
    return [*groups, *plan.right], known


def _atoms(plan: _Plan, groups: list[Group], sizes: Mapping[str, int], before: Mapping[str, int]) -> list[Group]:
    """Runs of factors that stay together, in the result's order; factors of size 1 vanish unless they are whole dimensions."""
    whole = {group[0] for group in plan.left if len(group) == 1} & {group[0] for group in groups if len(group) == 1}
    kept = {n for g in groups for n in g if sizes[n] != 1 or before[n] != 1 or n in whole}
    old = {name for group in plan.left for name in group}
    follows: dict[str, str] = {}
    for group in plan.left:
        names = [name for name in group if name in kept]
        follows.update(pairwise(names))
    atoms: list[Group] = []
    for group in groups:
        run: Group = ()
        for name in (n for n in group if n in kept):
            fresh = name not in old and bool(run) and run[-1] not in old
            joined = bool(run) and follows.get(run[-1]) == name and not {name, run[-1]} & set(plan.pad_factors)
            if run and not (fresh or joined):
                atoms.append(run)
                run = ()
            run += (name,)
        atoms += [run] if run else []
    return atoms


def _product(sizes: Mapping[str, int], group: Group) -> int:
    total = 1
    for name in group:
        total *= sizes[name]
    return total
