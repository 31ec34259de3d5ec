"""Users' custom calls: a YAML file that says what each target means.

    version: 1
    custom_calls:
      - {target: MyMarker, semantics: identity}
      - {target: MyTopK, semantics: opaque, batch: [[0, 0], [1, 1]]}
      - {target: MyAttention, semantics: opaque, batch: {0: [[0, 0]], 1: [[0, 0]]}}
      - {target: MyNorm, backend_config: "0", decomposition: my_norm.hlo.txt}

``batch`` pairs a dimension of an operand with the same dimension of every result: a list speaks of operand 0, a mapping of several operands.
A ``decomposition`` is a graph file (beside the registry) whose entry computation takes the call's operands; one target may have several, for
other shapes. ``backend_config`` restricts an entry to calls that have exactly this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalify.errors import ConfigError, InputError
from scalify.hlo.load import load
from scalify.hlo.shapes import check
from scalify.lift.custom_calls import (
    Body,
    Call,
    Choice,
    Decomposition,
    Identity,
    Opaque,
    Pairs,
    Refused,
    Registry,
    Semantics,
    Single,
    expand,
)
from scalify.lift.known_calls import BUILT_IN
from scalify.relation.parse import did_you_mean
from scalify.relation.syntax import Mapping, Node, Scalar, Sequence, describe, read_tree

if TYPE_CHECKING:
    from scalify.hlo.module import Computation, Module

LARGEST = 16 << 20
"""Bytes of the file, and of each decomposition."""

_TOP = ("version", "custom_calls")
_KEYS = ("target", "semantics", "batch", "decomposition", "backend_config")


def read_registry(path: str | Path, base: Registry = BUILT_IN) -> Registry:
    """``base`` with the entries of the file, which win over those of ``base``.

    Raises:
        ConfigError: the file or a decomposition cannot be read or is malformed; the message names file, line and key.
    """
    where = str(path)
    try:
        root = read_tree(_text(Path(path), where), where)
    except InputError as error:
        raise ConfigError(error.message, error.where) from None
    return base.extended(_Reader(where, Path(path).parent).entries(root))


def _text(path: Path, where: str) -> str:
    try:
        if not path.is_file():
            raise ConfigError("is no file" if path.exists() else "does not exist", where)
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"cannot be read: {reason}", where) from None
    if len(data) > LARGEST:
        raise ConfigError(f"is larger than {LARGEST} bytes", where)
    if not text.strip():
        raise ConfigError("the file is empty; it needs `version: 1` and `custom_calls`", where)
    return text


@dataclass(frozen=True, slots=True)
class _Rule:
    """One entry: what it means, and the only ``backend_config`` that it is for."""

    semantics: Single
    config: str | None


class _Reader:
    def __init__(self, where: str, folder: Path) -> None:
        self.where = where
        self.folder = folder

    def error(self, message: str, line: int, key: object = "") -> ConfigError:
        return ConfigError(message, f"{self.where}: line {line}" + (f": {key}" if key != "" else ""))

    def entries(self, root: Node) -> dict[str, Semantics]:
        top = self._mapping(root, _TOP, "the file")
        version = top.items.get("version")
        if not isinstance(version, Scalar) or version.value != 1:
            found = "nothing" if version is None else describe(version)
            raise self.error(f"must be 1, not {found}", version.line if version else top.line, "version")
        calls = top.items.get("custom_calls")
        if not isinstance(calls, Sequence):
            raise self.error("must be a list of entries", calls.line if calls else top.line, "custom_calls")
        rules: dict[str, list[_Rule]] = {}
        for node in calls.items:
            target, rule = self._entry(node)
            self._check_several(rules.setdefault(target, []), rule, node)
            rules[target].append(rule)
        return {target: _chosen(found) for target, found in rules.items()}

    def _check_several(self, before: list[_Rule], rule: _Rule, node: Node) -> None:
        for other in before:
            if other.config == rule.config and not (
                isinstance(rule.semantics, Decomposition) and isinstance(other.semantics, Decomposition)
            ):
                raise self.error("this target has another entry; only decompositions may be several, for other shapes", node.line, "target")

    def _mapping(self, node: Node, keys: tuple[str, ...], what: str) -> Mapping:
        if not isinstance(node, Mapping):
            raise self.error(f"{what} must be a mapping, not {describe(node)}", node.line)
        for key, line in node.lines.items():
            if key not in keys:
                raise self.error(f"unknown key; {did_you_mean(str(key), keys)}", line, key)
        return node

    def _word(self, entry: Mapping, key: str) -> str | None:
        node = entry.items.get(key)
        if node is None:
            return None
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            raise self.error(
                f"must be text, not {describe(node)}" + ("; put it in quotes" if isinstance(node, Scalar) else ""), node.line, key
            )
        return node.value

    def _entry(self, node: Node) -> tuple[str, _Rule]:
        entry = self._mapping(node, _KEYS, "an entry")
        target = self._word(entry, "target")
        if not target:
            raise self.error("an entry needs a target", entry.line, "target")
        return target, _Rule(self._semantics(entry), self._word(entry, "backend_config"))

    def _semantics(self, entry: Mapping) -> Single:
        word, file = self._word(entry, "semantics"), self._word(entry, "decomposition")
        if (word is None) == (file is None):
            raise self.error("an entry needs either semantics (identity or opaque) or a decomposition", entry.line)
        if word not in (None, "identity", "opaque"):
            raise self.error(f"must be identity or opaque, not {word!r}", entry.lines["semantics"], "semantics")
        if word != "opaque" and "batch" in entry.items:
            raise self.error("only opaque calls have batch dimensions", entry.lines["batch"], "batch")
        if file is not None:
            return self._decomposition(file, entry.lines["decomposition"])
        if word == "identity":
            return Identity()
        batch = self._batch(entry)
        return Opaque(lambda call: batch)

    # -- opaque ------------------------------------------------------------------------------------------------------------
    def _batch(self, entry: Mapping) -> tuple[Pairs, ...]:
        node = entry.items.get("batch")
        if node is None:
            return ()
        if isinstance(node, Sequence):
            return (self._pairs(node),)
        if not isinstance(node, Mapping):
            raise self.error(f"must be a list of [operand dimension, result dimension], not {describe(node)}", node.line, "batch")
        found: dict[int, Pairs] = {}
        for key, pairs in node.items.items():
            if not isinstance(key, int) or not 0 <= key < 1000:
                raise self.error("must be the number of an operand", node.lines[key], key)
            found[key] = self._pairs(pairs)
        return tuple([found.get(n, ()) for n in range(max(found, default=-1) + 1)])

    def _pairs(self, node: Node) -> Pairs:
        if not isinstance(node, Sequence):
            raise self.error(f"must be a list of [operand dimension, result dimension], not {describe(node)}", node.line, "batch")
        return tuple([self._pair(item) for item in node.items])

    def _pair(self, node: Node) -> tuple[int, int]:
        numbers = [i.value for i in node.items if isinstance(i, Scalar)] if isinstance(node, Sequence) else []
        if len(numbers) != 2 or not isinstance(node, Sequence) or len(node.items) != 2 or any(type(n) is not int or n < 0 for n in numbers):
            raise self.error("a batch dimension is a pair [operand dimension, result dimension], both from 0", node.line, "batch")
        a, b = numbers
        assert isinstance(a, int)
        assert isinstance(b, int)
        return a, b

    # -- decompositions ----------------------------------------------------------------------------------------------------
    def _decomposition(self, file: str, line: int) -> Decomposition:
        path = self.folder / file
        try:
            if not path.is_file():
                raise self.error(f"{path} is no file", line, "decomposition")
            module = load(path, LARGEST)
            check(module)
        except ConfigError:
            raise
        except (InputError, ValueError, OSError) as error:
            raise self.error(f"{path}: {error}" if str(path) not in str(error) else str(error), line, "decomposition") from None
        return Decomposition(_Written(expand(module, BUILT_IN)))


class _Written:
    """A decomposition that stands in a file, for calls of exactly its shapes."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.body = Body(module.entry, tuple(_called(module)))

    def fits(self, call: Call) -> bool:
        entry = self.module.entry
        return self.module.parameter_shapes == call.operands and entry.instructions[entry.root].shape == call.shape

    def __call__(self, call: Call) -> Body:
        if not self.fits(call):
            raise Refused("its decomposition is for other shapes; give one for each shape that occurs")
        return self.body


def _called(module: Module) -> list[Computation]:
    """The computations that the entry needs, callees first (readers give them in this order)."""
    needed = {module.entry_name}
    for computation in reversed(list(module.computations.values())):
        if computation.name in needed:
            needed.update(c for i in computation.instructions for c in i.calls)
    return [c for c in module.computations.values() if c.name in needed and c.name != module.entry_name]


def _chosen(rules: list[_Rule]) -> Semantics:
    """One semantics for all entries of a target."""
    if len(rules) == 1 and rules[0].config is None:
        return rules[0].semantics
    return Choice(tuple([(r.config, r.semantics) for r in sorted(rules, key=lambda r: r.config is None)]))
