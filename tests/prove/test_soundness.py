"""Whatever is proved is true: random pairs of expressions, saturated, against their values."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from scalify.prove.catalogue import installed, rules
from scalify.prove.check import _difference, _Instance
from scalify.prove.engine import Engine, Limits
from scalify.prove.pattern import parse_pattern
from scalify.prove.rule import Rule
from tests.prove.support import problem

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("p", "q", "r", "g")
FORMS = (
    "(+ {} {})", "(+ {} {} {})", "(* {} {})", "(* 2 {})", "(* -1 {})", "(* 1/2 {})", "(- {} {})", "(max {} {})", "(max {} 0)",
    "(ge0 {})", "(eq0 {})", "(select g {} {})", "(inv {})", "(exp {})", "(abs {})", "(sqrt {})", "(log {})", "(logistic {})", "(tanh {})",
)  # fmt: skip


def expression(source: random.Random, depth: int) -> str:
    if depth == 0 or source.random() < 0.15:
        return source.choice((*NAMES, "0", "1", "-2"))
    form = source.choice(FORMS)
    return form.format(*[expression(source, depth - 1) for _ in range(form.count("{}"))])


def differs(left: str, right: str) -> bool:
    """Whether the sides differ for some small values where both are defined."""
    source = random.Random(f"{left} {right}")  # noqa: S311 - test data
    rule = Rule("pair", "test", left, right, "")
    return any(_difference(rule, instance(source)) for _ in range(60))


def instance(source: random.Random) -> _Instance:
    values = {n: Fraction(source.randint(1, 5), source.randint(1, 3)) * source.choice((1, 1, -1)) for n in NAMES}
    values["g"] = Fraction(source.randint(0, 1))
    values["q"] = abs(values["q"])
    return _Instance({n: constantly(v) for n, v in values.items()}, {}, {}, {})


def constantly(value: Fraction) -> Callable[[object], Fraction]:
    return lambda _: value


@pytest.mark.parametrize("seed", range(25))
def test_proved_pairs_have_equal_values(seed: int) -> None:
    engine = Engine([rule for rule in rules(installed()) if not rule.assumes]) if seed == 0 or not ENGINES else ENGINES[0]
    ENGINES[:] = [engine]
    source = random.Random(seed)  # noqa: S311 - test data
    left = expression(source, 3)
    right = (
        expression(source, 3)
        if source.random() < 0.5
        else left.replace(*source.choice((("max", "+"), ("2", "3"), (" p", " q"), ("1", "0"))))
    )
    parse_pattern(left)
    outcome = engine.prove(problem(left, right, {"g": "boolean", "q": "positive"}), Limits(rounds=5, rows=3000))
    assert not outcome.proved or not differs(left, right), (left, right, outcome.rules)


ENGINES: list[Engine] = []
