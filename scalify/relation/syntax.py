"""YAML text to a small tree in which every key and value knows its line.

Only what a relation file needs: one document of mappings, sequences and plain or quoted scalars. Aliases and tags are errors, nesting
and size are bounded, and scalars follow the YAML 1.2 core schema (so that ``1e-5`` is a number and ``no`` is a name). The events come from
libyaml where PyYAML has it; no recursion, no construction of Python objects from tags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from scalify.errors import RelationError

MAX_DEPTH = 24
"""Levels of nesting; a ``value`` of rank 8 needs about a dozen."""
MAX_NODES = 2_000_000
MAX_CHARACTERS = 64_000_000
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, bool | float | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF", "inf")},
    **{word: float("nan") for word in (".nan", ".NaN", ".NAN", "nan")},
}  # fmt: skip

Plain = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value without parts."""

    value: Plain
    line: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list; ``line`` is where it starts."""

    items: list[Node]
    line: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys in the order of the file, each with its own line."""

    items: dict[str | int, Node]
    lines: dict[str | int, int]
    line: int


Node = Scalar | Sequence | Mapping


def describe(node: Node) -> str:
    """What a user wrote, in a few words for an error."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    if node.value is None:
        return "nothing"
    return repr(node.value) if isinstance(node.value, str) else str(node.value).lower() if isinstance(node.value, bool) else str(node.value)


def read_tree(text: str, where: str) -> Node:
    """The tree of the one document in ``text``.

    Raises:
        RelationError: not YAML, several documents, an alias, a tag, a duplicate key, too deep or too large.
    """
    if len(text) > MAX_CHARACTERS:
        raise RelationError(f"the file has {len(text)} characters; at most {MAX_CHARACTERS} are read", where)
    try:
        return _Builder(where).build(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{where}: line {mark.line + 1}" if mark else where
        raise RelationError(f"not valid YAML: {' '.join(str(error.problem or error.context).split())}", at) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise RelationError(f"not valid YAML: {' '.join(str(error).split())[:200]}", where) from None


def plain_scalar(text: str) -> Plain:
    """The value of an unquoted scalar by YAML 1.2's core schema, plus ``inf`` and ``nan`` without the dot."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text) and len(text) <= 40:
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text


def quoted(name: str) -> str:
    """A name as YAML text: in quotes where the plain word would be read as something else (``null``, ``true``, ``nan``)."""
    return name if isinstance(plain_scalar(name), str) else f'"{name}"'


class _Builder:
    """Folds parse events into a tree with an explicit stack."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.nodes = 0
        self.stack: list[Sequence | Mapping] = []
        self.keys: list[tuple[str | int, int] | None] = []
        self.root: Node | None = None

    def build(self, text: str) -> Node:
        for event in yaml.parse(text, Loader=LOADER):
            if isinstance(event, yaml.ScalarEvent):
                self._add(self._scalar(event))
            elif isinstance(event, yaml.MappingStartEvent):
                self._open(Mapping({}, {}, self._line(event)), event)
            elif isinstance(event, yaml.SequenceStartEvent):
                self._open(Sequence([], self._line(event)), event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self.stack.pop()
                self.keys.pop()
            elif isinstance(event, yaml.AliasEvent):
                raise self._error(event, "aliases (*name) are not allowed; write the value out")
            elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
                raise self._error(event, "a second document starts here; a relation file is one document")
        if self.root is None:
            raise RelationError("the file is empty; it needs at least `version: 1`, `mesh`, `inputs` and `outputs`", self.where)
        return self.root

    def _line(self, event: Any) -> int:
        return int(event.start_mark.line) + 1

    def _error(self, event: Any, message: str) -> RelationError:
        return RelationError(message, f"{self.where}: line {self._line(event)}")

    def _scalar(self, event: Any) -> Scalar:
        if event.tag not in (None, "!"):
            raise self._error(event, f"tags are not allowed: {event.tag}")
        text = event.value
        value = plain_scalar(text) if event.implicit[0] else text
        if isinstance(value, float) and abs(value) == float("inf") and "inf" not in text.lower():
            raise self._error(event, f"the number {text[:40]} is too large; write .inf for infinity")
        return Scalar(value, self._line(event))

    def _open(self, node: Sequence | Mapping, event: Any) -> None:
        if event.tag is not None:
            raise self._error(event, f"tags are not allowed: {event.tag}")
        if len(self.stack) >= MAX_DEPTH:
            raise self._error(event, f"nested more than {MAX_DEPTH} levels deep")
        self._add(node)
        self.stack.append(node)
        self.keys.append(None)

    def _add(self, node: Node) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise RelationError(f"more than {MAX_NODES} values", f"{self.where}: line {node.line}")
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif self.keys[-1] is None:
            self.keys[-1] = self._key(parent, node)
        else:
            key, line = self.keys[-1]
            parent.items[key] = node
            parent.lines[key] = line
            self.keys[-1] = None

    def _key(self, parent: Mapping, node: Node) -> tuple[str | int, int]:
        where = f"{self.where}: line {node.line}"
        if not isinstance(node, Scalar) or isinstance(node.value, (bool, float)) or node.value is None:
            raise RelationError(f"a key must be a name or a number, not {describe(node)}", where)
        if node.value in parent.items:
            raise RelationError(f"duplicate key; it stands also on line {parent.lines[node.value]}", f"{where}: {node.value}")
        return node.value, node.line
