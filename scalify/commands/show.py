"""``scalify show``: what is in a module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scalify.commands import files

if TYPE_CHECKING:
    import argparse

NAME = "show"
SUMMARY = "print what is in a graph"
DESCRIPTION = """\
Prints what a user wants to know of a graph: parameters and results with their shapes and shardings, how many instructions of each
opcode, the collectives with their groups, and where the instructions come from.

examples:
  scalify show distributed.hlo.pb
  scalify show distributed.hlo.pb --text > distributed.txt      the graph as HLO text, which scalify reads too
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("module", type=Path, metavar="MODULE", help="graph file (HLO proto or text, also gzipped)")
    parser.add_argument("--text", action="store_true", help="print the graph itself as HLO text")


def run(options: argparse.Namespace) -> int:
    """Print the summary, or the text; 0."""
    files.check_input(options.module, files.LARGEST_GRAPH)
    from scalify.commands.load import load

    module = load(options.module)
    if options.text:
        from scalify.hlo.printer import to_text

        print(to_text(module), end="")
    else:
        from scalify.hlo.show import show

        print(show(module), end="")
    return 0
