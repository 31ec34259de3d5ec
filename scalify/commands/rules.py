"""``scalify rules``: the catalogue of rewrite rules, normal forms and transfer functions, with their proofs."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from scalify.commands import files

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from scalify.prove.proof.entry import Proof
    from scalify.prove.proof.table import Row
    from scalify.prove.rule import Entry

NAME = "rules"
SUMMARY = "list the rewrite rules, with their conditions and how each is proved"
DESCRIPTION = """\
Lists what a proof may use: the rewrite rules of the search with the conditions that must be derived before one fires, the laws behind the
normal forms, which hold by construction, and the transfer functions, which say what an opcode means. Each line ends with the kind of its proof:
z3 (for all sizes) or exhaustive (all small sizes and attributes, symbolic elements), and how long it took.

--check proves everything again: every rule, law and transfer function, and for every condition that something is wrong without it. It needs z3
(pip install 'scalify-verify[prove]').

examples:
  scalify rules
  scalify rules --family exponential --why
  scalify rules --check
  scalify rules --user rules.yaml --check        your own rules, as for scalify verify --rules
  scalify rules --markdown > docs/rules.md

exit status:
  0 all is well   2 wrong usage, or a user's rule is wrong or cannot be proved   4 a rule of an installed package fails its check
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--family", metavar="NAME", help="only the rules of this family")
    parser.add_argument("--user", type=Path, metavar="FILE", help="also the rules of this file (YAML)")
    parser.add_argument("--why", action="store_true", help="print why each rule is sound")
    parser.add_argument("--check", action="store_true", help="prove the rules listed again")
    parser.add_argument("--markdown", action="store_true", help="print the table as a page, without times")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="with --check: write the record of the project's own proofs (for developers)"
    )


def run(options: argparse.Namespace) -> int:
    """Print the catalogue; 0, or 4 when a check fails."""
    if options.record is not None and (options.family is not None or options.user is not None or not options.check):
        from scalify.errors import UsageError

        raise UsageError("--record needs --check and the whole catalogue")
    items = _items(options)
    if options.markdown:
        from scalify.prove.proof.table import markdown

        print(markdown([row for row, _, _ in items]), end="")
        return 0
    return _list(items, options)


Item = tuple["Row", "Entry | None", "Callable[[], Proof]"]


def _items(options: argparse.Namespace) -> list[Item]:
    from scalify.errors import UsageError

    items = [*_entries(options), *_transfers()]
    families = sorted({row.family for row, _, _ in items})
    if options.family is not None and options.family not in families:
        raise UsageError(f"no family {options.family}; there are {', '.join(families)}")
    return [item for item in items if options.family in (None, item[0].family)]


def _entries(options: argparse.Namespace) -> list[Item]:
    """Rules and laws; with --check also those that have no proof yet."""
    from scalify.prove.catalogue import OWN, declared, registered
    from scalify.prove.proof.entry import prove, prove_only
    from scalify.prove.proof.table import row
    from scalify.prove.rule_file import read_rules

    found: list[Item] = []
    for package, entry in declared():
        own = package == OWN
        known = entry if options.check and own else registered(entry, package)
        found.append((row(known), known, partial(prove if own else prove_only, known)))
    if options.user is not None:
        users = read_rules(files.check_input(options.user, files.LARGEST_TEXT))
        found += [(row(rule), rule, partial(prove_only, rule)) for rule in users]
    return found


def _transfers() -> list[Item]:
    """The transfer functions of all opcodes that are lifted."""
    from scalify.prove.proof.opcodes.entry import missing, prove, rows

    return [(row, None, partial(prove, row.name)) for row in (*rows(), *missing())]


def _list(items: list[Item], options: argparse.Namespace) -> int:
    from scalify.prove.proof.table import line

    width = max(len(row.name) for row, _, _ in items)
    failures, recorded = 0, {}
    for number, (row, entry, prove) in enumerate(items):
        wrong = ""
        shown = row
        if options.check:
            _progress(f"{number + 1}/{len(items)} {row.name}")
            start = time.monotonic()
            proof = prove()
            wrong, shown = proof.wrong, replace(row, kind=proof.kind, milliseconds=round(1000 * (time.monotonic() - start)))
            failures += not proof.kind
            if entry is not None:
                recorded[entry.name] = {"digest": entry.digest, "proof": proof.kind, "milliseconds": shown.milliseconds}
            _progress("")
        print(line(shown, width) + (f"\n  FAILED: {wrong}" if wrong else ""))
        if options.why:
            print(f"  {row.why}")
    if options.check:
        print(f"{len(items)} entries, {failures} failed")
    if options.record is not None and not failures:
        rows = ",\n".join([f"{json.dumps(name)}: {json.dumps(found)}" for name, found in recorded.items()])
        options.record.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    return 4 if failures else 0


def _progress(text: str) -> None:
    """One line that is overwritten, where somebody watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
