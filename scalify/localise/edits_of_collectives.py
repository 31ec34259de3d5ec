"""Edits of communication: collectives within other groups, of another kind, left out or put in."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from scalify.lift.transfer.contraction import reducer_opcode
from scalify.localise.edits import combiner, edits, grouped
from scalify.localise.known import COLLECTIVES, Status
from scalify.report.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from scalify.hlo.module import ReplicaGroups
    from scalify.localise.edits import Edit, Site

_REDUCERS = ("add", "maximum", "minimum", "multiply")
_ORDERED = frozenset({"all-gather", "reduce-scatter", "all-to-all"})


def axis_groups(site: Site, *, ordered: bool) -> Iterator[tuple[str, list[list[int]]]]:
    """The groups of every set of mesh axes, in each order of the axes where that matters, with their names."""
    mesh = site.bench.pair.relation.mesh
    ids = np.array(mesh.device_ids).reshape(mesh.shape)
    axes = [n for n, size in enumerate(mesh.shape) if size > 1]
    for count in range(1, len(axes) + 1):
        for chosen in permutations(axes, count) if ordered else combinations(axes, count):
            rest = [n for n in range(len(mesh.shape)) if n not in chosen]
            groups = ids.transpose([*rest, *chosen]).reshape(-1, int(np.prod([mesh.shape[n] for n in chosen])))
            yield " and ".join([mesh.axes[n][0] for n in chosen]), groups.tolist()


def index_in(site: Site, groups: list[list[int]]) -> npt.NDArray[np.int64]:
    """The index of every device within its group, in the order of mesh positions."""
    index = np.zeros(site.bench.program.devices, dtype=np.int64)
    for group in groups:
        for k, device in enumerate(group):
            index[site.bench.lifter.side.positions[device]] = k
    return index


@edits(Kind.WRONG_GROUPS, "all-reduce", "all-gather", "reduce-scatter", "all-to-all")
def _other_groups(site: Site) -> Iterator[Edit]:
    old: ReplicaGroups = site.attributes["replica_groups"]
    opcode = site.operation.opcode
    for names, groups in axis_groups(site, ordered=opcode in _ORDERED):
        for order in (groups, [g[::-1] for g in groups]) if opcode in _ORDERED else (groups,):
            problem = f"`{opcode}` {_shown(old)}has to run over {names}"
            yield from site.having(problem, f"verifies if it runs over {names}: {_groups(order)}", replica_groups=grouped(order))


@edits(Kind.WRONG_OPERATION, "all-reduce", "reduce-scatter", "reduce")
def _other_reducer(site: Site) -> Iterator[Edit]:
    opcode = site.operation.opcode
    now = reducer_opcode(site.operation.computations[0]) if site.operation.computations else None
    for reducer in _REDUCERS:
        if reducer != now:
            wanted = "a sum" if reducer == "add" else f"`{reducer}`"
            problem = f"`{opcode}` reduces with `{now or 'another computation'}` where {wanted} is needed"
            yield from site.reducing(reducer, problem, f"verifies if it reduces with `{reducer}`")


@edits(Kind.WRONG_AXIS, "all-gather", "reduce-scatter", "all-to-all")
def _other_dimension(site: Site) -> Iterator[Edit]:
    opcode = site.operation.opcode
    for d in range(len(site.operation.shapes[0].dims)):
        yield from site.having(
            f"`{opcode}` works along another dimension than the data needs", f"verifies along dimension {d}", dimensions=(d,)
        )


@edits(Kind.WRONG_GROUPS, "collective-permute")
def _other_pairs(site: Site) -> Iterator[Edit]:
    pairs = site.attributes["source_target_pairs"]
    problem = "`collective-permute` sends to other devices than the data needs"
    back = tuple([(b, a) for a, b in pairs])
    yield from site.having(problem, "verifies with the pairs reversed", source_target_pairs=back)
    for names, step, ring in rings(site):
        yield from site.having(problem, f"verifies if each device sends to the one {step:+d} along {names}", source_target_pairs=ring)


def rings(site: Site) -> Iterator[tuple[str, int, tuple[tuple[int, int], ...]]]:
    """Shifts by one along a mesh axis, open and closed."""
    for names, groups in axis_groups(site, ordered=False):
        for step in (1, -1):
            closed = [(g[k], g[(k + step) % len(g)]) for g in groups for k in range(len(g))]
            opened = [(g[k], g[k + step]) for g in groups for k in range(len(g)) if 0 <= k + step < len(g)]
            yield names, step, tuple(closed)
            yield names, step, tuple(opened)


@edits(Kind.MISSING_REDUCTION)
def _missing_reduction(site: Site) -> Iterator[Edit]:
    """Operands, or the result, that are parts of a sum: their sums."""
    operation, known = site.operation, site.bench.known
    if operation.opcode in COLLECTIVES or len(operation.results) != 1:
        return
    for value in (*dict.fromkeys(operation.operands), *operation.results):
        axes = known.partial_axes(site.bench.lifter.values[value]) if known.status(value) is Status.PARTIAL else None
        names = " and ".join(axes or ())
        groups = next((g for n, g in axis_groups(site, ordered=False) if n == names), None)
        if groups is None:
            continue
        user = f"{site.name} uses it" if value in operation.operands else "it is used"
        problem = f"{site.called(value)} gives a part of the sum over {names}, and {user} as if it were whole: a reduction is missing"
        _, partitions = site.bench.program.counts
        attributes = {"replica_groups": grouped(groups)} | ({"channel_id": 1, "use_global_device_ids": True} if partitions > 1 else {})
        remedy = f"verifies if an all-reduce over {names} comes after {site.called(value)}"
        yield from site.inserted(problem, remedy, value, "all-reduce", attributes, [combiner("add", site.shape(value).dtype)])


@edits(Kind.WRONG_GROUPS)
def _missing_permute(site: Site) -> Iterator[Edit]:
    """An operand sent as the program sends other values."""
    found = [o.instruction.attributes for o in site.bench.operations if o.opcode == "collective-permute"]
    for value in dict.fromkeys(site.operation.operands) if found else ():
        if site.bench.lifter.dtype(value) == "pred" or not site.dims(value) or site.maker(value).opcode == "constant":
            continue
        for pairs in dict.fromkeys([a["source_target_pairs"] for a in found]):
            problem = f"{site.name} uses {site.called(value)} of its own device where the one of another is needed"
            remedy = f"verifies if a collective-permute with {_groups(pairs)} comes before it"
            yield from site.inserted(problem, remedy, value, "collective-permute", {"source_target_pairs": pairs})


def _shown(groups: ReplicaGroups) -> str:
    return f"over {_groups(groups.groups)} " if groups.groups else ""


def _groups(groups: object) -> str:
    text = str(groups).replace(" ", "").replace("(", "{").replace(")", "}").replace("[", "{").replace("]", "}").replace(",}", "}")
    return text if len(text) <= 60 else text[:57] + "..."
