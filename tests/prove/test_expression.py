"""Expressions mean what the terms mean: both are evaluated, at every level of the cut."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scalify.lift.atoms import iota, parameter
from scalify.lift.compare import at_least_zero, equals_zero
from scalify.lift.einsum import total
from scalify.lift.elementary import exponential
from scalify.lift.extremum import greatest
from scalify.lift.functions import clamp, maximum, select
from scalify.lift.instance import substitute
from scalify.lift.linear import add, combine
from scalify.lift.product import multiply, times
from scalify.lift.terms import Laws, Store, View
from scalify.prove.expression import Problem, problem
from tests.support.evaluate import Evaluator

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZES = (2, 3, 2, 3)  # of the free slots 0 .. 3
BASES = {"x": (0, 1), "y": (1, 2), "z": (2, 3), "w": (0,), "v": (3, 0)}


def leaves(source: random.Random) -> dict[Any, Any]:
    """An array of small numbers for each leaf."""
    made = {}
    for name, slots in BASES.items():
        array = np.empty([SIZES[s] for s in slots], dtype=object)
        array.reshape(-1)[:] = [Fraction(source.randint(1, 6), source.randint(1, 3)) for _ in range(array.size)]
        made[name,] = array
    return made


def random_view(store: Store, source: random.Random, depth: int) -> View:
    if depth == 0:
        name = source.choice([*BASES, "iota"])
        if name == "iota":
            slot = source.randrange(4)
            return iota(store, slot, SIZES[slot])
        view = parameter(store, (name,), [(s, SIZES[s]) for s in BASES[name]], None)
        return substitute(store, view, {BASES[name][0]: -1}) if source.random() < 0.2 else view
    a, b = random_view(store, source, depth - 1), random_view(store, source, source.randrange(depth))
    return _combined(store, source, a, b)


def _combined(store: Store, source: random.Random, a: View, b: View) -> View:
    slots = {s: SIZES[s] for s in source.sample(range(4), source.randint(1, 2))}
    made = {
        "add": lambda: add(store, a, b),
        "combine": lambda: combine(store, ((2, a), (Fraction(-1, 3), b)), Fraction(1, 2)),
        "times": lambda: times(store, a, b),
        "square": lambda: multiply(store, ((a, 2),)),
        "total": lambda: total(store, times(store, a, b), slots),
        "greatest": lambda: greatest(store, a, slots),
        "maximum": lambda: maximum(store, a, b),
        "clamp": lambda: clamp(store, a, 1, 3),
        "select": lambda: select(store, at_least_zero(store, a), b, a),
        "equal": lambda: equals_zero(store, combine(store, ((1, a), (-1, b)))),
        "exponential": lambda: exponential(store, combine(store, ((Fraction(-1, 8), clamp(store, a, -4, 4)),))),
    }
    return made[source.choice(sorted(made))]()


@pytest.mark.parametrize("seed", range(60))
def test_expressions_mean_what_the_terms_mean(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - test data
    laws = Laws() if seed % 2 else Laws(einsum=False, linear=False, exponential=False, select=False)
    store = Store(laws)
    left, right = random_view(store, source, 3), random_view(store, source, 3)
    evaluator = Evaluator(store, leaves(source))
    expected = [evaluator.view(v, range(4), SIZES) for v in (left, right)]
    for level in range(3):
        made = problem(left, right, level, 2000)
        names = {f"i{k}": s for k, s in enumerate(sorted({*left.at, *right.at}))}
        for index in itertools.product(*map(range, SIZES)):
            env = {name: index[s] for name, s in names.items()}
            for root, array in zip(made.goal, expected, strict=True):
                assert math.isclose(
                    float(Meaning(made, store, evaluator).value(root, env)), float(array[index]), rel_tol=1e-9, abs_tol=1e-12
                )


class Meaning:
    """The value of a node for values of its index variables, from the meaning of each operator alone."""

    def __init__(self, made: Problem, store: Store, evaluator: Evaluator) -> None:
        self.made = made
        self.store = store
        self.evaluator = evaluator

    def value(self, node: int, env: Mapping[str, int]) -> Any:
        op, data, args = self.made.nodes[node]
        if op in ("total", "greatest"):
            return self._over(op, data, args[0], env)
        if op in ("leaf", "at-var", "at-const"):
            return self._leaf(node, env)
        xs = [self.value(a, env) for a in args]
        meanings: dict[str, Any] = {
            "num": lambda: data,
            "iota": lambda: env[str(data)],
            "scale": lambda: data * xs[0],
            "add": lambda: sum(xs),
            "mul": lambda: math.prod(xs),
            "max": lambda: max(xs),
            "inv": lambda: 1 / xs[0],
            "ge0": lambda: int(xs[0] >= 0),
            "eq0": lambda: int(xs[0] == 0),
            "select": lambda: xs[1] if xs[0] else xs[2],
            "fn": lambda: {"exp": math.exp}[str(data)](xs[0]),
        }
        return meanings[op]()

    def _over(self, op: str, names: Any, body: int, env: Mapping[str, int]) -> Any:
        ranges = [range(self.made.sizes[name]) for name in names]
        values = [self.value(body, {**env, **dict(zip(names, pick, strict=True))}) for pick in itertools.product(*ranges)]
        return sum(values) if op == "total" else max(values)

    def _leaf(self, node: int, env: Mapping[str, int]) -> Any:
        index: list[int] = []
        op, data, args = self.made.nodes[node]
        while op != "leaf":
            index.insert(0, env[str(data)] if op == "at-var" else int(str(data)))
            op, data, args = self.made.nodes[args[0]]
        content: Any = self.made.names[str(data)]
        if content[0] == "term":
            return self.evaluator.term(self.store.terms[content[1]])[tuple(index)]
        return self.evaluator.leaves[content[0]][tuple(index)]
