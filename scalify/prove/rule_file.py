"""Users' own rules from a YAML file, proved before they are used.

    version: 1
    rules:
      - name: silu
        left: (* x (logistic x))
        right: (/ x (+ 1 (exp (- x))))
        when: []                        # such as [(positive x), (free v x), (< 0 q)]
        why: the definition of silu

The language of ``left``, ``right`` and ``when`` is that of :mod:`scalify.prove.pattern`. A proof that may lean on such a rule says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scalify.errors import ConfigError, InputError
from scalify.prove.catalogue import proved_on_load
from scalify.prove.rule import Rule
from scalify.relation.syntax import Mapping, Node, Scalar, Sequence, describe, read_tree

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 1 << 20  #: bytes of a rule file
MOST_RULES = 200
KEYS = ("name", "left", "right", "when", "why")
_NAME = re.compile(r"[A-Za-z][\w-]{0,59}")


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules in the file, each proved.

    :raises ConfigError: the file cannot be read or is malformed, or a rule is wrong or cannot be proved; the message names file, line and key.
    """
    where = str(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where) from None
    if len(data) > LARGEST:
        raise ConfigError(f"is larger than {LARGEST} bytes", where)
    return parse_rules(text, where)


def parse_rules(text: str, where: str) -> tuple[Rule, ...]:
    """The rules in the text of a rule file; ``where`` names it in errors."""
    try:
        top = read_tree(text, where)
    except InputError as error:
        raise ConfigError(error.message, error.where) from None
    if not isinstance(top, Mapping) or set(top.items) != {"version", "rules"}:
        raise ConfigError("needs the keys version and rules, and no others", where)
    version, entries = top.items["version"], top.items["rules"]
    if not isinstance(version, Scalar) or version.value != 1:
        raise ConfigError(f"version must be 1, not {describe(version)}", _place(where, version))
    if not isinstance(entries, Sequence) or len(entries.items) > MOST_RULES:
        raise ConfigError(f"rules must be a list of at most {MOST_RULES}", _place(where, entries))
    found: dict[str, Rule] = {}
    for entry in entries.items:
        rule = _rule(entry, where)
        if rule.name in found:
            raise ConfigError(f"two rules are named {rule.name}", _place(where, entry))
        found[rule.name] = rule
    return tuple(found.values())


def _place(where: str, node: Node, key: str = "") -> str:
    return f"{where}: line {node.line}" + (f": {key}" if key else "")


def _rule(entry: Node, where: str) -> Rule:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"a rule is a mapping of {', '.join(KEYS)}, not {describe(entry)}", _place(where, entry))
    for key in entry.items:
        if key not in KEYS:
            raise ConfigError(f"unknown key {key}; a rule has {', '.join(KEYS)}", f"{where}: line {entry.lines[key]}")
    name, left, right, why = (_text(entry, key, where) for key in ("name", "left", "right", "why"))
    if not _NAME.fullmatch(name):
        raise ConfigError("a name is letters, digits, - and _, and starts with a letter", _place(where, entry, "name"))
    rule = Rule(f"user:{name}", "user", left, right, why, _conditions(entry, where), user=True)
    _parts(rule, entry, where)
    try:
        rule.validate()
    except ConfigError as error:
        raise ConfigError(error.message, _place(where, entry)) from None
    return proved_on_load(rule, _place(where, entry))


def _parts(rule: Rule, entry: Mapping, where: str) -> None:
    """Reads each text by itself, so that an error names its key."""
    for key, part in (("left", "lhs"), ("right", "rhs"), ("when", "conditions")):
        try:
            getattr(rule, part)
        except ConfigError as error:
            raise ConfigError(error.message, f"{where}: line {entry.lines.get(key, entry.line)}: {key}") from None


def _text(entry: Mapping, key: str, where: str) -> str:
    node = entry.items.get(key)
    if node is None:
        raise ConfigError(f"a rule needs {key}", _place(where, entry))
    if not isinstance(node, Scalar) or node.value is None or not str(node.value).strip():
        raise ConfigError(f"must be a text, not {describe(node)}", _place(where, node, key))
    return str(node.value)


def _conditions(entry: Mapping, where: str) -> tuple[str, ...]:
    node = entry.items.get("when")
    if node is None:
        return ()
    if not isinstance(node, Sequence) or not all(isinstance(item, Scalar) for item in node.items):
        raise ConfigError(f"must be a list of conditions, not {describe(node)}", _place(where, node, "when"))
    return tuple([str(item.value) for item in node.items if isinstance(item, Scalar)])
