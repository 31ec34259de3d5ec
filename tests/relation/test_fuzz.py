"""Broken files give a RelationError or a relation: no other exception, no hang, no explosion."""

from __future__ import annotations

import random
import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import RelationError
from scalify.relation.einops import parse_map
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from tests.relation.support import module

GOOD = """\
version: 1
mesh: {dp: 2, tp: 4}
device_ids: [0, 1, 2, 3, 4, 5, 6, 7]
inputs:
  - {baseline: 0, distributed: 0, spec: [null, tp]}
  - {baseline: 1, baseline_slice: {0: [0, 8]}, distributed: 1, map: "(tp k) -> [tp] k"}
  - {baseline: 2, distributed: 2, steps: [{map: "(kv d) -> (kv rep d)"}, {pad: {0: [0, 4]}, map: "(tp k) -> [tp] k"}]}
  - {distributed: 3, device_index: [dp, tp]}
  - {distributed: 4, value: 1.0e-12}
  - {distributed: 5, per_device: [[0, 1], [2, 3], [0, 1], [2, 3], [0, 1], [2, 3], [0, 1], [2, 3]]}
outputs:
  - {baseline: 0, distributed: 0, map: "a b -> [+tp] a b"}
assume:
  - {baseline: 3, range: [0, 32000]}
sizes: {d: 2, rep: 2}
"""
BASELINE = module("f32[4,8] f32[8] f32[6] s32[2]", "f32[2,2]")
DISTRIBUTED = module("f32[4,2] f32[2] f32[4] u32[] f32[] s32[2] s32[2]", "f32[2,2]")
WORDS = [
    "-1",
    "0",
    "3",
    "99999999999999999999",
    "1e400",
    "null",
    "true",
    "[]",
    "{}",
    "[[[[1]]]]",
    "tp",
    "dp",
    "'x'",
    "&a",
    "*a",
    "!!int",
    "...",
    "(",
    "->",
    "\t",
    "\x00",
    "é",
    "- ",
    ": ",
]


def outcome(text: str) -> None:
    start = time.monotonic()
    try:
        resolve(parse(text, "r.yaml"), BASELINE, [DISTRIBUTED])
    except RelationError as error:
        assert "\n" not in str(error)  # noqa: PT017  one line for the user
    assert time.monotonic() - start < 5


def test_the_seed_is_good() -> None:
    file = parse(GOOD.replace("inputs:\n", "inputs:\n  - {baseline: 3, distributed: 6}\n"))
    assert resolve(file, BASELINE, [DISTRIBUTED]).inputs.keys() == set(range(7))


@pytest.mark.parametrize("seed", range(300))
def test_mutated_files(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  reproducible, not secret
    text = GOOD
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text))
        match rng.randrange(4):
            case 0:
                text = text[:at]
            case 1:
                text = text[:at] + chr(rng.randrange(32, 127)) + text[at + 1 :]
            case 2:
                text = text[:at] + rng.choice(WORDS) + text[at:]
            case _:
                words = text.split(" ")
                words[rng.randrange(len(words))] = rng.choice(WORDS)
                text = " ".join(words)
        text = text or "x"
    outcome(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["tp", "a -> a", "same", ""]) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["0", "1", "map", "spec", "pad", "range", "tp"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["version", "mesh", "device_ids", "assume", "sizes", "baseline_mesh"]), values)
def test_wrong_types_at_the_top(key: str, value: object) -> None:
    outcome("\n".join(line for line in GOOD.splitlines() if not line.startswith(key)) + "\n" + yaml.safe_dump({key: value}))


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "baseline",
                "distributed",
                "module",
                "map",
                "spec",
                "pad",
                "steps",
                "value",
                "per_device",
                "device_index",
                "ignore",
                "baseline_slice",
                "distributed_slice",
            ]
        ),
        values,
        max_size=5,
    ),
    st.booleans(),
)
def test_wrong_types_in_an_entry(entry: dict[str, object], result: bool) -> None:
    key = "outputs" if result else "inputs"
    other = "inputs" if result else "outputs"
    outcome(yaml.safe_dump({"version": 1, "mesh": {"dp": 2, "tp": 4}, key: [{"baseline": 0, "distributed": 0, **entry}], other: []}))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab()[]=+1 .->tp\n", max_size=30))
def test_any_text_as_a_map(text: str) -> None:
    try:
        parse_map(text).expand(2)
    except RelationError as error:
        assert "\n" not in str(error)  # noqa: PT017  one line for the user


BOMBS = {
    "deep flow": "a: " + "[" * 100_000,
    "deep block": "\n".join(" " * i + "a:" for i in range(3000)),
    "deep list": "- " * 50_000,
    "aliases": "a: &a [x, x]\n" + "\n".join(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]" for i in range(20)),
    "many digits": "a: " + "9" * 1_000_000,
    "many devices": "version: 1\nmesh: {a: 99999999999999999999}\ninputs: []\noutputs: []",
    "long map": GOOD.replace("(tp k) -> [tp] k", "(" * 100_000),
    "huge pad": GOOD.replace("[0, 4]", "[0, 281474976710656]"),
    "huge sizes": GOOD.replace("rep: 2", "rep: 281474976710656"),
    "many steps": GOOD.replace("steps: [", "steps: [" + "{map: 'a -> a'}, " * 5000),
    "many pieces": GOOD.replace(
        "  - {distributed: 4", "  - {distributed: 4, distributed_slice: {}, value: 0}\n" * 5000 + "  - {distributed: 4"
    ),
    "many axes": "version: 1\nmesh: {"
    + ", ".join(f"a{i}: 1" for i in range(5000))
    + "}\ninputs: [{baseline: 0, distributed: 0}]\noutputs: []",
    "many keys": "\n".join(f"k{i}: 1" for i in range(100_000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_quickly(name: str) -> None:
    start = time.monotonic()
    with pytest.raises(RelationError) as caught:
        resolve(parse(BOMBS[name], "r.yaml"), BASELINE, [DISTRIBUTED])
    assert len(str(caught.value)) < 1000
    assert time.monotonic() - start < 5
