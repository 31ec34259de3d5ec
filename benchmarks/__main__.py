"""``python -m benchmarks``: what ``scalify verify`` takes, end to end, from files to verdict."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import re
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import measure
from benchmarks.generate import LLAMA_405B, Config
from benchmarks.serialize import write

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = Path(__file__).parent.parent / "tests" / "cases"
TINY = Config()
SERIES: dict[str, list[tuple[str, Config, int]]] = {
    "layers (tp 8)": [(f"{n} layers", dataclasses.replace(TINY, layers=n), 8) for n in (1, 2, 4, 8, 16, 32, 64, 126)],
    "mesh (8 layers)": [(f"tp {tp}", dataclasses.replace(TINY, layers=8), tp) for tp in (2, 4, 8, 16, 32, 64)],
    "sequence (8 layers, tp 8)": [(f"sequence {n}", dataclasses.replace(TINY, layers=8, sequence=n), 8) for n in (24, 384, 6144, 98304)],
    "full size": [(f"Llama-405B, 126 layers, tp {tp}, sequence 8192", LLAMA_405B, tp) for tp in (8, 32, 64)],
}
HEADER = f"{'':52}{'verdict':>11}{'instr.':>9}{'seconds':>9}{'parse':>8}{'ratio':>7}{'MiB':>7}"


def main() -> int:
    """Measure what the arguments select and print one table a group; 1 if anything failed to give a verdict."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help="regular expression on `group/row`, for example 'layers' or 'full size'")
    parser.add_argument("--runs", type=int, default=3, help="runs of each row; the median is printed (3)")
    parser.add_argument("--json", type=Path, help="also write all numbers to this file")
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores; seconds: median of {options.runs}, whole process"
    )
    rows = list(_rows(options.only, options.runs))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return int(any(row["verdict"] == "failed" for row in rows))


def _rows(only: str, runs: int) -> Iterator[dict[str, object]]:
    group = None
    # Graphs are made in a process of their own, so that this one stays small: see Measurement.
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, get_context("spawn")) as maker:
        for title, name, files, relation, instructions in _questions(Path(folder), only, maker):
            if title != group:
                print(f"\n{title}\n{HEADER}")
                group = title
            yield _row(title, name, files, relation, instructions, runs)


def _questions(folder: Path, only: str, maker: ProcessPoolExecutor) -> Iterator[tuple[str, str, list[str], str, int | None]]:
    """Group, name, graph files, relation file and number of instructions of every row selected."""
    for case in sorted(CASES.glob("*/case.yaml")):
        if re.search(only, f"cases/{case.parent.name}"):
            graphs = [*case.parent.glob("baseline.*"), *sorted(case.parent.glob("distributed*"))]
            yield "cases", case.parent.name, list(map(str, graphs)), str(case.with_name("relation.yaml")), None
    for title, rows in SERIES.items():
        for name, config, tp in rows:
            if re.search(only, f"{title}/{name}"):
                files, relation, instructions = maker.submit(write, folder, config, tp).result()
                yield title, name, files, relation, instructions


def _row(group: str, name: str, files: list[str], relation: str, instructions: int | None, runs: int) -> dict[str, object]:
    verdict, whole = measure.verify(files, relation, runs)
    least = measure.parse(files, runs)
    ratio = whole.seconds / least.seconds
    count = "" if instructions is None else f"{instructions:,}"
    print(f"{name:52}{verdict:>11}{count:>9}{whole.seconds:9.2f}{least.seconds:8.2f}{ratio:7.1f}{whole.peak_mib:7.0f}", flush=True)
    return {
        "group": group,
        "name": name,
        **dataclasses.asdict(whole),
        "verdict": verdict,
        "parse_seconds": least.seconds,
        "instructions": instructions,
    }


if __name__ == "__main__":
    raise SystemExit(main())
