"""Registry files: what they mean, and every mistake by file, line and key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scalify.cli import main
from scalify.errors import ConfigError
from scalify.hlo.printer import to_text
from scalify.lift.custom_calls import Identity, Opaque, Registry, expand
from scalify.lift.pair import claimed, lift_pair
from scalify.lift.registry_file import read_registry
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from tests.support.builder import Builder

if TYPE_CHECKING:
    from pathlib import Path

    from scalify.hlo.module import Module

HEAD = "version: 1\ncustom_calls:\n"
RELATION = "version: 1\nmesh: {tp: 2}\ninputs:\n  - {baseline: 0, distributed: 0, spec: [tp]}\noutputs:\n  - {baseline: 0, distributed: 0, spec: [tp]}\n"


def registry(folder: Path, *entries: str) -> Registry:
    path = folder / "calls.yaml"
    path.write_text(HEAD + "".join(f"  - {e}\n" for e in entries))
    return read_registry(path)


def calling(rows: int, target: str = "Twice", config: str | None = None) -> Module:
    b = Builder()
    p = b.parameter("f32", (rows, 3))
    attributes: dict[str, Any] = {"custom_call_target": target} | ({} if config is None else {"backend_config": config})
    return b.build(b.add("custom-call", "f32", (rows, 3), [p], **attributes))


def twice(rows: int, times: float = 2.0) -> Module:
    b = Builder()
    p = b.parameter("f32", (rows, 3))
    inner = b.computation("scaled")
    x = inner.parameter("f32", (rows, 3))
    scaled = inner.end(inner.like("multiply", inner.broadcast(inner.constant("f32", times), (rows, 3)), x))
    return b.build(b.add("call", "f32", (rows, 3), [p], calls=[scaled]))


def proved(baseline: Module, distributed: Module, known: Registry) -> bool:
    pair = lift_pair(baseline, [distributed], resolve(parse(RELATION, "r.yaml"), baseline, [distributed]), registry=known)
    expected, actual = claimed(pair, pair.claims[0])
    return expected.views == actual.views


def test_identity_and_opaque(tmp_path: Path) -> None:
    found = registry(tmp_path, "{target: A, semantics: identity}", "{target: B, semantics: opaque, batch: {1: [[0, 0]]}}")
    assert found.entries["A"] == Identity()
    opaque = found.entries["B"]
    assert isinstance(opaque, Opaque)
    b = Builder()
    p = b.parameter("f32", (2, 3))
    expanded = expand(b.build(b.add("custom-call", "f32", (2, 3), [p, p], custom_call_target="B")), found)
    assert ((), ((0, 0),)) in expanded.entry.instructions[1].attributes.values()
    assert "AwsNeuronRmsNorm" in found.entries


@pytest.mark.parametrize(
    ("batch", "expected"), [("", False), (", batch: [[0, 0]]", True), (", batch: [[1, 1]]", False), (", batch: []", False)]
)
def test_only_batch_dimensions_may_be_cut(tmp_path: Path, batch: str, expected: bool) -> None:
    assert proved(calling(4), calling(2), registry(tmp_path, f"{{target: Twice, semantics: opaque{batch}}}")) is expected


def test_decompositions_by_shape(tmp_path: Path) -> None:
    (tmp_path / "four.txt").write_text(to_text(twice(4)))
    (tmp_path / "two.txt").write_text(to_text(twice(2)))
    one = registry(tmp_path, "{target: Twice, decomposition: four.txt}")
    assert proved(calling(4), twice(2), one)
    assert not proved(calling(4), calling(2), one)
    both = registry(tmp_path, "{target: Twice, decomposition: four.txt}", "{target: Twice, decomposition: two.txt}")
    assert proved(calling(4), calling(2), both)
    assert not proved(twice(4, 3.0), calling(2), both)


def test_decompositions_by_backend_config(tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text(to_text(twice(2)))
    (tmp_path / "three.txt").write_text(to_text(twice(2, 3.0)))
    found = registry(tmp_path, "{target: Twice, decomposition: two.txt}", '{target: Twice, backend_config: "3", decomposition: three.txt}')
    assert proved(twice(4), calling(2), found)
    assert proved(twice(4, 3.0), calling(2, config="3"), found)
    assert not proved(twice(4), calling(2, config="3"), found)
    only = registry(tmp_path, '{target: Twice, backend_config: "3", decomposition: three.txt}')
    assert not proved(twice(4, 3.0), calling(2), only)


def test_custom_calls_inside_of_a_decomposition(tmp_path: Path) -> None:
    b = Builder()
    p = b.parameter("f32", (2, 3))
    (tmp_path / "silu.txt").write_text(to_text(b.build(b.add("custom-call", "f32", (2, 3), [p], custom_call_target="AwsNeuronSilu"))))
    found = registry(tmp_path, "{target: Swish, decomposition: silu.txt}")
    assert proved(calling(4, "AwsNeuronSilu"), calling(2, "Swish"), found)


WRONG: dict[str, tuple[str, str]] = {
    "no mapping": ("- 1\n", "line 1: the file must be a mapping"),
    "no version": ("custom_calls: []\n", "line 1: version: must be 1, not nothing"),
    "another version": ("version: 2\ncustom_calls: []\n", "line 1: version: must be 1, not 2"),
    "no list": ("version: 1\ncustom_calls: 3\n", "line 2: custom_calls: must be a list"),
    "nothing": ("version: 1\n", "line 1: custom_calls: must be a list"),
    "an unknown top key": ("version: 1\ncalls: []\n", "line 2: calls: unknown key; valid: version, custom_calls"),
    "an unknown key": (HEAD + "  - {target: A, semantic: identity}\n", "line 3: semantic: unknown key; did you mean semantics?"),
    "an entry that is a word": (HEAD + "  - A\n", "line 3: an entry must be a mapping"),
    "no target": (HEAD + "  - {semantics: identity}\n", "line 3: target: an entry needs a target"),
    "a number as target": (HEAD + "  - {target: 3, semantics: identity}\n", "line 3: target: must be text, not 3; put it in quotes"),
    "no semantics": (HEAD + "  - {target: A}\n", "line 3: an entry needs either semantics"),
    "both": (HEAD + "  - {target: A, semantics: opaque, decomposition: a.txt}\n", "line 3: an entry needs either semantics"),
    "other semantics": (HEAD + "  - {target: A, semantics: pure}\n", "line 3: semantics: must be identity or opaque, not 'pure'"),
    "batch of an identity": (HEAD + "  - {target: A, semantics: identity, batch: []}\n", "line 3: batch: only opaque calls"),
    "batch as a number": (HEAD + "  - {target: A, semantics: opaque, batch: 0}\n", "line 3: batch: must be a list of"),
    "batch without pairs": (HEAD + "  - {target: A, semantics: opaque, batch: [0, 1]}\n", "line 3: batch: a batch dimension is a pair"),
    "a batch pair of three": (HEAD + "  - {target: A, semantics: opaque, batch: [[0, 1, 2]]}\n", "line 3: batch: a batch dimension is a pair"),
    "a negative dimension": (HEAD + "  - {target: A, semantics: opaque, batch: [[-1, -1]]}\n", "line 3: batch: a batch dimension is a pair"),
    "batch of no operand": (HEAD + "  - {target: A, semantics: opaque, batch: {x: []}}\n", "line 3: x: must be the number of an operand"),
    "batch of too many operands": (HEAD + "  - {target: A, semantics: opaque, batch: {9999999: []}}\n", "must be the number of an operand"),
    "two entries": (
        HEAD + "  - {target: A, semantics: identity}\n  - {target: A, semantics: opaque}\n", "line 4: target: this target has another entry",
    ),
    "no such file": (HEAD + "  - {target: A, decomposition: missing.txt}\n", "line 3: decomposition: "),
    "no graph": (HEAD + "  - {target: A, decomposition: calls.yaml}\n", "line 3: decomposition: "),
    "an alias": (HEAD + "  - &a {target: A, semantics: identity}\n  - *a\n", "line 4: aliases"),
    "no YAML": ("version: [\n", "not valid YAML"),
    "empty": ("", "the file is empty"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_name_file_line_and_key(tmp_path: Path, case: str) -> None:
    text, message = WRONG[case]
    path = tmp_path / "calls.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_registry(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "is no file"), (tmp_path / "missing.yaml", "does not exist")):
        with pytest.raises(ConfigError, match=message):
            read_registry(path)
    broken = tmp_path / "latin.yaml"
    broken.write_bytes(b"version: 1 # \xff\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_registry(broken)


def test_shapes_of_a_decomposition_are_checked(tmp_path: Path) -> None:
    b = Builder()
    p = b.parameter("f32", (2, 3))
    (tmp_path / "wrong.txt").write_text(to_text(b.build(b.add("negate", "f32", (3, 2), [p]))))
    with pytest.raises(ConfigError, match=r"line 3: decomposition: .*wrong\.txt"):
        registry(tmp_path, "{target: A, decomposition: wrong.txt}")


def test_command_line(tmp_path: Path) -> None:
    graphs = [tmp_path / "b.txt", tmp_path / "d.txt"]
    for path, rows in zip(graphs, (4, 2), strict=True):
        path.write_text(to_text(calling(rows)))
    (tmp_path / "r.yaml").write_text(RELATION)
    arguments = ["verify", *map(str, graphs), "--relation", str(tmp_path / "r.yaml"), "--quiet"]
    assert main(arguments) == 3
    registry(tmp_path, "{target: Twice, semantics: opaque, batch: [[0, 0]]}")
    assert main([*arguments, "--custom-calls", str(tmp_path / "calls.yaml")]) == 0
    (tmp_path / "calls.yaml").write_text("version: 3\n")
    assert main([*arguments, "--custom-calls", str(tmp_path / "calls.yaml")]) == 2
