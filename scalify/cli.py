"""The command line: arguments in, exit status out. Everything heavy is imported by the command that needs it.

Exit status: 0 verified; 1 refuted; 2 wrong usage or unusable input; 3 unverified; 4 internal or infrastructure failure; 130 interrupted.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from scalify import __version__
from scalify.errors import InputError, ScalifyError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

DESCRIPTION = """\
Proves that a distributed HLO graph computes what a single-device HLO graph computes,
or points at the source line that breaks it.

examples:
  scalify verify baseline.hlo.pb distributed.hlo.pb --relation relation.yaml
  scalify relate baseline.hlo.pb distributed.hlo.pb --mesh tp=8
  scalify show distributed.hlo.pb
  scalify COMMAND --help                 more of each command, with examples

exit status:
  0 verified   1 refuted   2 wrong usage or unusable input   3 unverified   4 internal failure
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose mistakes are errors like all others: one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (`{self.prog} --help` explains)")


def command() -> NoReturn:
    """The console script: :func:`main`, without collection of graphs and terms, which live as long as the process; the operating system takes them
    back in one piece.
    """
    gc.disable()
    status = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; never raises an ``Exception``."""
    traceback = bool(os.environ.get("SCALIFY_TRACEBACK"))
    try:
        options = _parser().parse_args(arguments)
        traceback = traceback or options.traceback
        _tolerate_any_text()
        status: int = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _stop_writing()
    except InputError as error:
        return _complain(str(error), error.exit_status, traceback=traceback)
    except MemoryError:
        return _complain("out of memory; smaller --limit values need less", 4, traceback=traceback)
    except ScalifyError as error:
        return _complain(f"internal: {error}", error.exit_status, traceback=traceback, hint=True)
    except Exception as error:  # noqa: BLE001  the last resort: users get one line, developers the traceback on request
        return _complain(f"internal: {type(error).__name__}: {error}", 4, traceback=traceback, hint=True)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="scalify", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"scalify {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _commands():
        sub = commands.add_parser(
            command.NAME,
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(sub)
        sub.add_argument("--traceback", action="store_true", help="show the Python traceback of an error (also SCALIFY_TRACEBACK=1)")
        sub.set_defaults(run=command.run)
    return parser


def _commands() -> tuple[ModuleType, ...]:
    """Imported here, not above: a broken installation must not end with Python's status 1, which means refuted."""
    from scalify.commands import relate, replay, rules, show, verify  # noqa: PLC0415

    return verify, relate, show, replay, rules


def _tolerate_any_text() -> None:
    """Names in graphs may not be encodable in the terminal's encoding; that must not end the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _complain(message: str, status: int, *, traceback: bool, hint: bool = False) -> int:
    if traceback:
        import traceback as tracebacks  # noqa: PLC0415

        tracebacks.print_exc()
    from scalify.report.text import visible  # noqa: PLC0415

    advice = " (--traceback shows where; please report it)" if hint and not traceback else ""
    print(f"scalify: error: {visible(message)}{advice}", file=sys.stderr)
    return status


def _stop_writing() -> int:
    """The reader of our output went away: leave quietly, with the status of a process that SIGPIPE ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


if __name__ == "__main__":
    command()
