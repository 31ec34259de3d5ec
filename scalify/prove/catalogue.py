"""All rules that are installed: the project's own and those of other packages, found by their entry points.

No rule is registered without a proof. The project's own carry the record of one, which must be of the same declaration; those of other packages are
proved when they are loaded, and a verdict that leans on one says so.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from scalify.errors import ConfigError, InputError
from scalify.prove.rule import Entry, Record, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GROUP = "scalify.rules"
OWN = "scalify_rules"  #: the package whose proofs on record are trusted: it comes with this one


def declared() -> tuple[tuple[str, Entry], ...]:
    """Rules and laws of all packages that declare ``scalify.rules``, each with its package, in the order of the entry points' names; proved or not.

    :raises ConfigError: a package that cannot be imported.
    """
    found: list[tuple[str, Entry]] = []
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        try:
            entries = point.load()()
        except Exception as error:
            raise ConfigError(f"the rules of {point.value} cannot be loaded: {error}", f"entry point {point.name}") from error
        found += [(point.module.partition(".")[0], entry) for entry in entries]
    return tuple(found)


def installed() -> tuple[Entry, ...]:
    """The rules and laws of all packages, each with its proof.

    :raises ConfigError: a package that cannot be imported, or a rule without a proof.
    """
    return tuple([registered(entry, package) for package, entry in declared()])


def registered(entry: Entry, package: str) -> Entry:
    """The entry with its proof. :raises ConfigError: it has none."""
    if package == OWN:
        if entry.proof is None:
            raise ConfigError(f"the rule {entry.name} has no proof on record; prove it with: make rules")
        if entry.proof.digest != entry.digest:
            raise ConfigError(f"the rule {entry.name} has changed since it was proved; prove it again with: make rules")
        return entry
    if not isinstance(entry, Rule):
        raise ConfigError(f"the law {entry.name} is of another package; only this one has term constructors")
    entry.validate()
    return proved_on_load(replace(entry, user=True), package)


def proved_on_load(rule: Rule, where: str) -> Rule:
    """A rule that is not the project's own, with the proof found now.

    :raises ConfigError: it is wrong on an instance, or no proof was found.
    """
    try:
        kind, verdict = _proved(rule)
    except InputError as error:
        raise ConfigError(error.message, where) from None
    if not kind:
        raise ConfigError(f"rule {rule.name.removeprefix('user:')} is {verdict}", where)
    return replace(rule, proof=Record(rule.digest, kind))


@cache
def _proved(rule: Rule) -> tuple[str, str]:
    """The kind of proof, or what to say without one. Remembered in memory only: a file that says what was proved could be written by anybody."""
    from scalify.prove.proof.entry import UNDECIDED, prove_only  # noqa: PLC0415 - a proof by the project's own rules needs none of it

    proof = prove_only(rule)
    return proof.kind, f"not proved: {proof.wrong}" if proof.wrong == UNDECIDED else f"wrong: {proof.wrong}"


def rules(entries: Iterable[Entry], users: Sequence[Rule] = ()) -> tuple[Rule, ...]:
    """The rules among the entries, then the user's.

    :raises ConfigError: two rules of one name.
    """
    found: dict[str, Rule] = {}
    for rule in [*[e for e in entries if isinstance(e, Rule)], *users]:
        if rule.name in found:
            raise ConfigError(f"two rules are named {rule.name}")
        found[rule.name] = rule
    return tuple(found.values())
