"""A graph computes what it computes: every graph of the cases against itself, renamed, re-ordered, and printed and read again."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from scalify.api import verify
from scalify.hlo.load import load
from scalify.hlo.module import Computation, Module
from scalify.hlo.printer import to_text
from scalify.hlo.text import parse
from scalify.relation.parse import parse as parse_relation
from scalify.relation.resolve import resolve
from scalify.report.model import Verdict
from tests.support.relations import identity

GRAPHS = sorted(Path(__file__).parent.glob("cases/*/*.hlo.pb*"))
NAMES = [f"{path.parent.name}-{path.name.split('.')[0]}" for path in GRAPHS]


def shuffled(computation: Computation, rng: random.Random) -> Computation:
    """The same computation with other names and another topological order."""
    needs = [{*i.operands, *i.control} for i in computation.instructions]
    order: list[int] = []
    done: set[int] = set()
    while len(order) < len(needs):
        ready = [p for p, need in enumerate(needs) if p not in done and need <= done]
        chosen = rng.choice(ready)
        order.append(chosen)
        done.add(chosen)
    where = {old: new for new, old in enumerate(order)}
    instructions = [
        dataclasses.replace(
            computation.instructions[old],
            name=f"renamed.{new}.{rng.randrange(1000)}",
            operands=tuple(where[o] for o in computation.instructions[old].operands),
            control=tuple(where[o] for o in computation.instructions[old].control),
        )
        for new, old in enumerate(order)
    ]
    return Computation(computation.name, tuple(instructions), where[computation.root])


def renamed(module: Module, seed: int) -> Module:
    rng = random.Random(seed)  # noqa: S311 - an order, not a secret
    return dataclasses.replace(module, computations={name: shuffled(c, rng) for name, c in module.computations.items()})


@pytest.mark.parametrize("path", GRAPHS, ids=NAMES)
def test_a_graph_equals_itself(path: Path) -> None:
    module = load(path)
    for other in (module, renamed(module, 1), parse(to_text(module), "printed")):
        report = verify(module, [other], identity(module))
        assert report.verdict is Verdict.VERIFIED, report.stopped
        assert not report.findings


@pytest.mark.parametrize("path", [p for p in GRAPHS if p.name.startswith("distributed")], ids=lambda p: p.parent.name)
def test_a_program_of_a_mesh_equals_itself(path: Path) -> None:
    """With ``baseline_mesh: same``: two versions of a distributed program, device by device."""
    mesh = next(line for line in path.with_name("relation.yaml").read_text().splitlines() if line.startswith("mesh:"))
    module = load(path)
    relation = resolve(parse_relation(f"version: 1\n{mesh}\nbaseline_mesh: same\n", "same"), module, [module])
    assert verify(module, [renamed(module, 2)], relation).verdict is Verdict.VERIFIED
