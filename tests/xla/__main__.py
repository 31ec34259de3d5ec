"""``python -m tests.xla [COUNT] [SEED]``: random programs executed by XLA and by the reference interpreter; ends with 1 if any two disagree.

Integers must agree exactly, floats within the ball that :mod:`tests.xla.rounding` computes for the program. XLA may abort: it runs in a process of its
own, which is started again after the program that ended it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.xla", description="Random programs on XLA and on the reference interpreter.")
    parser.add_argument("count", type=int, nargs="?", default=3000)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    families: Counter[str] = Counter()
    first, end = options.seed, options.seed + options.count
    while first < end:
        first = _batch(first, end, outcomes, families)
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    print("agreed by family: " + ", ".join(f"{name} {count}" for name, count in sorted(families.items())))
    return 1 if outcomes["differ"] else 0


def _batch(first: int, end: int, outcomes: Counter[str], families: Counter[str]) -> int:
    """Programs until the end, or until XLA ends its process. The next seed."""
    seed = first
    with subprocess.Popen([sys.executable, "-m", "tests.xla.compare", str(first), str(end)], stdout=subprocess.PIPE, text=True) as worker:
        for line in worker.stdout or ():
            if not line.startswith("{"):
                continue
            told = json.loads(line)
            seed = told["seed"] + 1
            outcomes[told["outcome"]] += 1
            if told["outcome"] == "agree":
                families.update(set(told["families"]))
            elif told["outcome"] in ("differ", "refused"):
                print(f"seed {told['seed']}: {told['outcome']}: {told['message']}", flush=True)
    if seed < end:
        outcomes["aborted by XLA"] += 1
        print(f"seed {seed}: XLA ended its process", flush=True)
        seed += 1
    return seed


if __name__ == "__main__":
    sys.exit(main())
