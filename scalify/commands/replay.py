"""``scalify replay``: the counterexample of a report, executed again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scalify.commands import files
from scalify.errors import OverBudget, Undecidable, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from scalify.report.model import Counterexample, Report

NAME = "replay"
SUMMARY = "execute the counterexample of a report again"
DESCRIPTION = """\
Executes both graphs on the inputs of the counterexample in REPORT (what `scalify verify --json` wrote) and shows where the outputs differ. --save
writes these inputs as NumPy files, to try them on your own code.

examples:
  scalify verify baseline.hlo.pb distributed.hlo.pb --relation relation.yaml --json report.json
  scalify replay report.json
  scalify replay report.json --distributed mended.hlo.pb --save inputs/

exit status:
  1 the outputs differ again   3 they do not, or it cannot be decided   2 wrong usage or unusable input   4 internal failure
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("report", type=Path, metavar="REPORT", help="JSON report whose verdict is refuted")
    graphs = parser.add_argument_group("files, where they are not those that the report names")
    graphs.add_argument("--baseline", type=Path, metavar="FILE", help="graph of the single-device program")
    graphs.add_argument("--distributed", type=Path, nargs="+", metavar="FILE", help="graph of the distributed program, one or one a device")
    graphs.add_argument("--relation", type=Path, metavar="FILE", help="relation file")
    parser.add_argument("--custom-calls", type=Path, metavar="FILE", help="registry file (YAML), as it was given to verify")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the inputs there, one .npy file a parameter")


def run(options: argparse.Namespace) -> int:
    """Execute, print the differences; 1 where some are left, else 3."""
    from scalify.report.model import Report

    files.check_input(options.report, files.LARGEST_TEXT)
    report = Report.from_json(options.report.read_bytes())
    if report.counterexample is None:
        raise UsageError(f"its verdict is {report.verdict}: there is no counterexample", str(options.report))
    return _replay(options, report, report.counterexample)


def _replay(options: argparse.Namespace, report: Report, found: Counterexample) -> int:
    from scalify.commands.load import load, load_relation
    from scalify.lift.known_calls import BUILT_IN
    from scalify.lift.registry_file import read_registry
    from scalify.prove.verify import DEFAULT_LIMITS
    from scalify.refute.search import Execution
    from scalify.report.text import difference

    baseline = load(_input(options.baseline, report.inputs.baseline))
    distributed = [load(_input(path, str(path))) for path in options.distributed or map(Path, report.inputs.distributed)]
    relation = load_relation(_relation(options, report), baseline, distributed)
    registry = BUILT_IN if options.custom_calls is None else read_registry(options.custom_calls)
    execution = Execution(baseline, distributed, relation, registry, DEFAULT_LIMITS["refutation"])
    try:
        inputs = execution.inputs(found.seed, found.sampling)
        if options.save is not None:
            _save(options.save, {"baseline": [inputs.baseline], "distributed": inputs.distributed})
        now = execution.differences(inputs, {d.output for d in found.outputs})
    except (Undecidable, OverBudget) as error:
        print(f"cannot be decided: {error}")
        return 3
    for line in map(difference, now):
        print(line)
    if not now:
        print("the outputs do not differ on these inputs")
    return 1 if now else 3


def _input(given: Path | None, named: str) -> Path:
    path = given if given is not None else Path(named)
    files.check_input(path, files.LARGEST_GRAPH)
    return path


def _relation(options: argparse.Namespace, report: Report) -> Path:
    if options.relation is not None:
        return _input(options.relation, "")
    if report.inputs.relation is None:
        raise UsageError("the relation was inferred; write it with `scalify relate` and give it with --relation", str(options.report))
    return _input(None, report.inputs.relation)


def _save(folder: Path, sides: Mapping[str, Sequence[Sequence[object]]]) -> None:
    import numpy as np

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for side, modules in sides.items():
            for module, arrays in enumerate(modules):
                name = side if len(modules) == 1 else f"{side}_{module}"
                for number, array in enumerate(arrays):
                    np.save(folder / f"{name}_parameter_{number}.npy", np.asarray(array), allow_pickle=False)
    except OSError as error:
        raise UsageError(f"cannot write there: {error.strerror}", str(folder)) from None
