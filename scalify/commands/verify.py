"""``scalify verify``: two graphs and a relation in, a verdict out."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from scalify.commands import files
from scalify.commands.arguments import assignments, merged
from scalify.commands.memory import peak_memory
from scalify.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from scalify.hlo.module import Module
    from scalify.lift.custom_calls import Registry
    from scalify.prove.rule import Rule
    from scalify.relation.model import Relation
    from scalify.report.model import Report

NAME = "verify"
SUMMARY = "decide whether a distributed graph computes what the baseline computes"
DESCRIPTION = """\
Decides whether DISTRIBUTED, run by every device of a mesh, computes what BASELINE computes on one device.

Graphs are serialized HloModuleProto, HloProto or HloSnapshot, each also gzipped, or HLO text; the content decides. Several
DISTRIBUTED files mean one program for each device, in the order of device ids.

The relation file says how inputs and outputs are cut over the mesh. Without --relation the relation is inferred from
the shardings in DISTRIBUTED and from shapes, and the report says what was assumed.

examples:
  scalify verify baseline.hlo.pb distributed.hlo.pb --relation relation.yaml
  scalify verify baseline.hlo.pb.gz after_spmd.hlo.pb --mesh dp=2,tp=4
  scalify verify b.txt d.txt --relation r.yaml --json report.json --sarif report.sarif

exit status:
  0 verified   1 refuted   2 wrong usage or unusable input   3 unverified   4 internal failure
"""
FORMATS = ("json", "html", "sarif", "markdown")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("baseline", type=Path, metavar="BASELINE", help="graph of the single-device program")
    parser.add_argument("distributed", type=Path, nargs="+", metavar="DISTRIBUTED", help="graph of the distributed program")
    how = parser.add_argument_group("how inputs and outputs correspond")
    how.add_argument("--relation", type=Path, metavar="FILE", help="relation file (YAML); inferred when absent")
    how.add_argument(
        "--mesh", type=assignments, action="append", metavar="AXIS=N[,AXIS=N]", help="mesh axes in order, when the relation is inferred"
    )
    proof = parser.add_argument_group("the proof")
    proof.add_argument(
        "--precision",
        choices=("real", "exact"),
        default="real",
        help="read numbers as reals and report narrowing (the default), or keep each rounding as part of the meaning",
    )
    proof.add_argument(
        "--limit", type=assignments, action="append", metavar="NAME=N", help="counted limit of the search; the report names the one reached"
    )
    proof.add_argument(
        "--custom-calls", type=Path, metavar="FILE", help="registry file (YAML): what custom calls mean; extends the built-in one"
    )
    proof.add_argument("--rules", type=Path, metavar="FILE", help="rewrite rules of your own (YAML); a proof that leans on them says so")
    proof.add_argument("--source-root", type=Path, metavar="DIR", help="report the innermost stack frame below this folder")
    results = parser.add_argument_group("results")
    for name in FORMATS:
        results.add_argument(
            f"--{name}", type=Path, metavar="FILE", help=f"write the report as {name.upper() if name != 'markdown' else 'Markdown'}"
        )
    loudness = results.add_mutually_exclusive_group()
    loudness.add_argument("--quiet", action="store_true", help="print nothing; the exit status is the verdict")
    loudness.add_argument("--verbose", action="store_true", help="print each finding with its whole stack")


def run(options: argparse.Namespace) -> int:
    """Verify, write the reports asked for, print the verdict; returns its exit status."""
    outputs = {name: path for name in FORMATS if (path := getattr(options, name)) is not None}
    _check_files(options, outputs)
    report = _verify(options)
    for name, path in outputs.items():
        files.write(path, _render(report, name))
    if not options.quiet:
        _print(report, verbose=options.verbose)
    return report.verdict.exit_status


def _check_files(options: argparse.Namespace, outputs: dict[str, Path]) -> None:
    if options.relation is not None and options.mesh:
        raise UsageError("--mesh is for inferred relations; the relation file has its own mesh")
    graphs = [options.baseline, *options.distributed]
    for path in graphs:
        files.check_input(path, files.LARGEST_GRAPH)
    texts = [path for path in (options.relation, options.custom_calls) if path is not None]
    for path in texts:
        files.check_input(path, files.LARGEST_TEXT)
    files.check_outputs(list(outputs.values()), [*graphs, *texts])


def _verify(options: argparse.Namespace) -> Report:
    from scalify.api import Options, no_collection, verify
    from scalify.commands.load import load

    start = time.perf_counter()
    with no_collection():
        baseline = load(options.baseline)
        distributed = [load(path) for path in options.distributed]
        relation = _relation(options, baseline, distributed)
    read = time.perf_counter() - start
    settings = Options(
        precision=options.precision,
        limits=merged(options.limit),
        rules=_rules(options.rules),
        source_root=options.source_root,
        registry=_registry(options.custom_calls),
    )
    return _complete(verify(baseline, distributed, relation, settings), options, read)


def _rules(path: Path | None) -> tuple[Rule, ...]:
    if path is None:
        return ()
    from scalify.prove.rule_file import read_rules

    return read_rules(path)


def _registry(path: Path | None) -> Registry:
    from scalify.lift.known_calls import BUILT_IN
    from scalify.lift.registry_file import read_registry

    return BUILT_IN if path is None else read_registry(path)


def _relation(options: argparse.Namespace, baseline: Module, distributed: list[Module]) -> Relation:
    if options.relation is not None:
        from scalify.commands.load import load_relation

        return load_relation(options.relation, baseline, distributed)
    from scalify.relation.infer import infer, parse_mesh

    relation, _ = infer(baseline, distributed, parse_mesh(options.mesh) if options.mesh else None)
    return relation


def _complete(report: Report, options: argparse.Namespace, read: float) -> Report:
    """The report with what only the command line knows: file names, reading time and the memory of the process."""
    from scalify.report.model import Inputs

    inputs = Inputs(str(options.baseline), tuple(map(str, options.distributed)), str(options.relation) if options.relation else None)
    seconds = {"read": read, **report.stats.seconds}
    stats = dataclasses.replace(report.stats, seconds=seconds, peak_rss_mib=round(peak_memory() / (1 << 20), 1))
    return dataclasses.replace(report, inputs=inputs, stats=stats)


def _render(report: Report, name: str) -> str:
    if name == "json":
        return report.to_json()
    from importlib import import_module

    text: str = import_module(f"scalify.report.{name}").render(report)
    return text


def _print(report: Report, *, verbose: bool) -> None:
    from scalify.report import terminal

    tty = sys.stdout.isatty()
    width = shutil.get_terminal_size((100, 24)).columns if tty else 100
    color = tty and "NO_COLOR" not in os.environ
    print(terminal.render(report, width=width, color=color, verbose=verbose), end="")
