"""``scalify rules``: the catalogue of rewrite rules and normal forms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scalify.commands import files

if TYPE_CHECKING:
    import argparse

    from scalify.prove.rule import Law, Rule

NAME = "rules"
SUMMARY = "list the rewrite rules, with their conditions and how each is checked"
DESCRIPTION = """\
Lists what a proof may use: the rewrite rules of the search, with the conditions that must be derived before one fires, and the
normal forms that hold by construction. --check runs the checks: every rule is evaluated on small instances on both sides, and every
condition must be needed, that is, breaking it alone must make some instance wrong.

examples:
  scalify rules
  scalify rules --family exponential --why
  scalify rules --check
  scalify rules --user rules.yaml --check        your own rules, as for scalify verify --rules

exit status:
  0 all is well   2 wrong usage or a user's rule is wrong   4 a rule of an installed package fails its check
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--family", metavar="NAME", help="only the rules of this family")
    parser.add_argument("--user", type=Path, metavar="FILE", help="also the rules of this file (YAML)")
    parser.add_argument("--why", action="store_true", help="print why each rule is sound")
    parser.add_argument("--check", action="store_true", help="run the checks of the rules listed")


def run(options: argparse.Namespace) -> int:
    """Print the catalogue; 0, or 4 when a check fails."""
    entries = _entries(options)
    width = max(len(entry.name) for entry in entries)
    failures = 0
    for entry in entries:
        result = _checked(entry) if options.check else None
        failures += bool(result)
        print(_line(entry, width) + (f"\n  FAILED: {result}" if result else ""))
        if options.why:
            print(f"  {entry.why}")
    if options.check:
        print(f"{len(entries)} entries, {failures} failed")
    return 4 if failures else 0


def _entries(options: argparse.Namespace) -> list[Rule | Law]:
    from scalify.errors import UsageError
    from scalify.prove.catalogue import installed
    from scalify.prove.rule_file import read_rules

    entries = list(installed())
    if options.user is not None:
        entries += read_rules(files.check_input(options.user, files.LARGEST_TEXT))
    families = sorted({entry.family for entry in entries})
    if options.family is not None and options.family not in families:
        raise UsageError(f"no family {options.family}; there are {', '.join(families)}")
    return [entry for entry in entries if options.family in (None, entry.family)]


def _line(entry: Rule | Law, width: int) -> str:
    from scalify.prove.rule import Rule

    condition = entry.requirement if isinstance(entry, Rule) else entry.when
    how = ("instances" if not entry.program else "program, instances") if isinstance(entry, Rule) else f"normal form, {entry.checked}"
    return f"{entry.name:{width}}  {entry.family:11}  {entry.statement}" + (f"   if {condition}" if condition else "") + f"   [{how}]"


def _checked(entry: Rule | Law) -> str | None:
    """What is wrong with a rule; normal forms are checked by the tests that they name."""
    from scalify.prove.check import check, needless
    from scalify.prove.rule import Rule

    if not isinstance(entry, Rule):
        return None
    found = check(entry)
    if found is None and not entry.user:
        idle = needless(entry)
        found = f"conditions that make no difference: {', '.join(idle)}" if idle else None
    return found
