"""Runs one command line in a process of its own and says what it took."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# The least that any verifier has to do: both files through the protobuf parser, in the same interpreter.
PARSE = """
import gzip, sys
from scalify.hlo.schema import message
for path in sys.argv[1:]:
    data = open(path, "rb").read()
    message("HloModuleProto").FromString(gzip.decompress(data) if data[:2] == b"\\x1f\\x8b" else data)
"""


@dataclass(frozen=True, slots=True)
class Measurement:
    """``seconds`` is the median wall time of the runs, ``peak_mib`` the largest resident set of any.

    The kernel counts the resident set of the process that starts the command too, so that one must be small.
    """

    seconds: float
    peak_mib: float


def verify(files: Sequence[str], relation: str, runs: int) -> tuple[str, Measurement]:
    """``scalify verify`` over graph files, baseline first: the verdict of the report (``failed`` without one) and what it took."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "report.json")
        command = [sys.executable, "-m", "scalify", "verify", *files, "--relation", relation, "--quiet", "--json", str(written)]
        took = run(command, runs)
        verdict = json.loads(written.read_bytes())["verdict"] if written.exists() else "failed"
    return verdict, took


def parse(files: Sequence[str], runs: int) -> Measurement:
    """Only reading the files with protobuf; what a verdict costs is best seen as a multiple of this."""
    return run([sys.executable, "-c", PARSE, *files], runs)


def run(command: Sequence[str], runs: int) -> Measurement:
    """Run the command ``runs`` times; whether it succeeds is not looked at."""
    results = [_once(command) for _ in range(runs)]
    return Measurement(statistics.median(seconds for seconds, _ in results), max(peak for _, peak in results))


def _once(command: Sequence[str]) -> tuple[float, float]:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return time.perf_counter() - start, usage.ru_maxrss / unit
