"""Thousands of random, damaged and hostile inputs; prints what came of them and every defect with its seed.

    python -m tests.support.fuzz [COUNT [FIRST SEED]]

Exit status 1 when an input gave another exception than a message for the user, or took longer than allowed. The memory of the process is limited.
"""

from __future__ import annotations

import resource
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.support.fuzz.damage import cases, damaged
from tests.support.fuzz.hostile import HOSTILE
from tests.support.fuzz.modules import changed, random_module
from tests.support.fuzz.outcome import TooSlowError, place, same, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.fuzz.outcome import Input

CASES = Path(__file__).parents[2] / "cases"
COUNT = 2000
MEMORY = 3 << 30  #: address space, in bytes


def random_input(rnd: Random) -> Input:
    """A random module against itself or a slightly changed one, on some mesh, now and then as a program of the same mesh."""
    mesh = rnd.choice(({"x": 1}, {"x": 2}, {"x": 3}, {"x": 4}, {"a": 2, "b": 2}, {"a": 2, "b": 3}))
    count = 1
    for size in mesh.values():
        count *= size
    module = random_module(rnd, count)
    baseline = changed(rnd, module) if rnd.random() < 0.3 else module
    if rnd.random() < 0.5:
        baseline = replace(baseline, num_partitions=1)
    axes = ", ".join(f"{name}: {size}" for name, size in mesh.items())
    given = same(module, f"{{{axes}}}", baseline=baseline, more="baseline_mesh: same" if rnd.random() < 0.2 else "")
    return replace(given, exact=rnd.random() < 0.15)


def inputs(count: int, first: int) -> Iterator[tuple[str, Callable[[], Input]]]:
    """Hostile ones, then as many random as damaged ones."""
    yield from HOSTILE.items()
    pairs = cases(CASES, 40_000)
    for seed in range(first, first + count):
        rnd = Random(seed)  # noqa: S311 - reproducible, not secret
        if seed % 2:
            yield f"random {seed}", lambda r=rnd: random_input(r)  # type: ignore[misc]
        else:
            yield f"damaged {seed}", lambda r=rnd: damaged(r, r.choice(pairs))  # type: ignore[misc]


def main(arguments: list[str]) -> int:
    count, first = [int(a) for a in arguments] + [COUNT, 0][len(arguments) :]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    outcomes: Counter[str] = Counter()
    slowest: list[tuple[float, str]] = []
    defects = 0
    for name, make in inputs(count, first):
        try:
            found, seconds = timed(make())
        except (Exception, TooSlowError) as error:  # noqa: BLE001 - all of them are what is looked for
            defects += 1
            found, seconds = place(error), 0.0
            print(f"{name}: {found}", flush=True)  # noqa: T201 - a program
        outcomes[found] += 1
        slowest = sorted([*slowest, (round(seconds, 1), name)])[-5:]
    for found, times in outcomes.most_common():
        print(f"{times:6}  {found}")  # noqa: T201 - a program
    print("slowest:", ", ".join(f"{name} {seconds} s" for seconds, name in slowest))  # noqa: T201 - a program
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
