"""``scalify relate``: a relation file from two graphs alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scalify.commands import files

if TYPE_CHECKING:
    import argparse

NAME = "relate"
SUMMARY = "infer a relation file from two graphs"
DESCRIPTION = """\
Writes the relation between the inputs and outputs of two graphs, as far as the shardings in DISTRIBUTED and the shapes leave one reading.
Read what it wrote before you rely on it; what shapes and shardings do not fix is an error that lists the open entries.

examples:
  scalify relate baseline.hlo.pb after_spmd.hlo.pb > relation.yaml
  scalify relate baseline.hlo.pb distributed.hlo.pb --mesh tp=8 --output relation.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("baseline", type=Path, metavar="BASELINE", help="graph of the single-device program")
    parser.add_argument("distributed", type=Path, nargs="+", metavar="DISTRIBUTED", help="graph of the distributed program")
    parser.add_argument("--mesh", metavar="AXIS=N[,AXIS=N]", help="mesh axes in order; derived from the shardings when absent")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the file here instead of printing it")


def run(options: argparse.Namespace) -> int:
    """Print or write the relation file; 0."""
    graphs = [options.baseline, *options.distributed]
    for path in graphs:
        files.check_input(path, files.LARGEST_GRAPH)
    if options.output is not None:
        files.check_outputs([options.output], graphs)
    text = _relate(options)
    if options.output is None:
        print(text, end="")
    else:
        files.write(options.output, text)
    return 0


def _relate(options: argparse.Namespace) -> str:
    from scalify.commands.load import load
    from scalify.relation.infer import infer, parse_mesh

    mesh = parse_mesh(options.mesh) if options.mesh else None
    _, text = infer(load(options.baseline), [load(path) for path in options.distributed], mesh)
    return text
