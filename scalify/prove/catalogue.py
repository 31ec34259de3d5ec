"""All rules that are installed: the project's own and those of other packages, found by their entry points."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from scalify.errors import ConfigError
from scalify.prove.rule import Law, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GROUP = "scalify.rules"


def installed() -> tuple[Rule | Law, ...]:
    """Rules and laws of all packages that declare ``scalify.rules``, in the order of the entry points' names.

    :raises ConfigError: a package that cannot be imported, or two rules of one name.
    """
    found: list[Rule | Law] = []
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        try:
            found += point.load()()
        except Exception as error:
            raise ConfigError(f"the rules of {point.value} cannot be loaded: {error}", f"entry point {point.name}") from error
    return tuple(found)


def rules(entries: Iterable[Rule | Law], users: Sequence[Rule] = ()) -> tuple[Rule, ...]:
    """The rules among the entries, then the user's.

    :raises ConfigError: two rules of one name.
    """
    found: dict[str, Rule] = {}
    for rule in [*[e for e in entries if isinstance(e, Rule)], *users]:
        if rule.name in found:
            raise ConfigError(f"two rules are named {rule.name}")
        found[rule.name] = rule
    return tuple(found.values())
