"""Whatever the input, the end is a verdict or one line for the user: no other exception, no hang, no explosion.

A small, seeded part of ``make fuzz-input``.
"""

from __future__ import annotations

import random

import pytest

from scalify.hlo.module import Module, Shape
from tests.support.builder import Builder
from tests.support.fuzz.__main__ import CASES, random_input
from tests.support.fuzz.damage import cases, damaged
from tests.support.fuzz.hostile import HOSTILE
from tests.support.fuzz.outcome import outcome, same, timed

#: what these end with; those that are not here take longer and run with ``make fuzz-input`` only
QUICK = {
    "integer squares": "unverified limit",
    "tiny factors": "unverified limit",
    "nested exponentials": "verified",
    "exclusive or": "verified",
    "huge_arrays": "verified",
    "huge slice": "unverified limit",
    "huge reverse": "unverified limit",
    "huge reshape": "unverified limit",
    "huge_padding": "unverified limit",
    "rank 30": "verified",
    "endless loop": "unverified limit",
    "long loop": "unverified limit",
    "deep calls": "input HloError",
    "unknown_loops_in_loops": "verified",
    "choices of exponentials": "verified",
    "a million devices": "input RelationError",
    "100,000 devices": "verified",
    "groups without structure": "unverified saturated",
}


VERDICTS = {"verified", "refuted", "unverified", "input"}


@pytest.mark.parametrize("name", QUICK)
def test_hostile(name: str) -> None:
    assert timed(HOSTILE[name]())[0] == QUICK[name]


@pytest.mark.parametrize("seed", range(4))
def test_random_modules(seed: int) -> None:
    rnd = random.Random(seed)  # noqa: S311 - reproducible, not secret
    assert {timed(random_input(rnd))[0].split()[0] for _ in range(25)} <= VERDICTS


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files(seed: int) -> None:
    rnd = random.Random(seed)  # noqa: S311 - reproducible, not secret
    pairs = cases(CASES, 8_000)
    assert {timed(damaged(rnd, rnd.choice(pairs)))[0].split()[0] for _ in range(15)} <= VERDICTS


def empty(opcode: str) -> Module:
    """What is left of an operation when an operand has no elements."""
    b = Builder()
    x, nothing, zero = b.parameter("f32", (4,)), b.parameter("f32", (0,)), b.constant("f32", 2.0)
    more = {
        "concatenate": lambda: b.add("concatenate", "f32", (4,), [nothing, x, nothing], dimensions=(0,)),
        "pad": lambda: b.add("pad", "f32", (4,), [nothing, zero], padding=((1, 3, 0),)),
        "reduce": lambda: b.add("reduce", "f32", (), [nothing, zero], calls=[b.reducer("maximum", "f32")], dimensions=(0,)),
        "dynamic-update-slice": lambda: b.add("dynamic-update-slice", "f32", (4,), [x, nothing, b.parameter("s32")]),
    }
    return b.build(more[opcode]())


@pytest.mark.parametrize(
    ("opcode", "same_as"), [("concatenate", "parameter"), ("dynamic-update-slice", "parameter"), ("pad", "2"), ("reduce", "2")]
)
def test_operands_without_elements(opcode: str, same_as: str) -> None:
    module = empty(opcode)
    b = Builder()
    parameters = [b.parameter(s) for s in module.parameter_shapes]
    shape = module.output_shapes[0]
    root = b.like("copy", parameters[0]) if same_as == "parameter" else b.broadcast(b.constant("f32", 2.0), shape.dims)
    assert outcome(same(module, baseline=b.build(root))) == "verified"
    other = Builder()
    parameters = [other.parameter(s) for s in module.parameter_shapes]
    wrong = other.like("negate", parameters[0]) if same_as == "parameter" else other.broadcast(other.constant("f32", 3.0), shape.dims)
    assert outcome(same(module, baseline=other.build(wrong))).split()[0] in ("refuted", "unverified")


def test_results_without_elements_and_tokens() -> None:
    b = Builder()
    b.parameter(Shape("token"))
    x = b.parameter("f32", (0, 4))
    token = b.add("after-all", Shape("token"))
    assert outcome(same(b.build([b.like("exponential", x), token, b.parameter("f32", (2,))]))) == "verified"


def test_parameters_behind_a_token_keep_their_numbers() -> None:
    b = Builder()
    b.parameter(Shape("token"))
    first, second = b.parameter("f32", (2,)), b.parameter("f32", (2,))
    module = b.build(b.like("subtract", first, second))
    other = Builder()
    other.parameter(Shape("token"))
    first, second = other.parameter("f32", (2,)), other.parameter("f32", (2,))
    assert outcome(same(module, baseline=module)) == "verified"
    assert outcome(same(module, baseline=other.build(other.like("subtract", second, first)))).startswith("refuted")


def test_asynchronous_starts_give_what_they_declare() -> None:
    """A start is a tuple of operands, result and context; its parts can be used, its context cannot."""
    b = Builder()
    x = b.parameter("f32", (2,))
    inner = b.computation("inner")
    inner.end(inner.like("negate", inner.parameter("f32", (2,))))
    s = Shape("f32", (2,))
    start = b.add("async-start", Shape("tuple", (), (Shape("tuple", (), (s,)), s, Shape("u32"))), (), [x], calls=["inner"])
    copy = b.add("copy-start", Shape("tuple", (), (s, s, Shape("u32"))), (), [x])
    done = b.add("async-done", s, (), [start])
    module = b.build([done, b.get(start, 1), b.get(copy, 0), b.add("copy-done", s, (), [copy])])
    plain = Builder()
    y = plain.parameter("f32", (2,))
    z = plain.like("negate", y)
    assert outcome(same(module, baseline=plain.build([z, z, y, y]))) == "verified"
    assert outcome(same(b.build(b.get(copy, 2)))) == "input HloError"
