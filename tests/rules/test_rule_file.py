"""Users' rule files, and the command that lists rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scalify.cli import main
from scalify.errors import ConfigError
from scalify.prove.catalogue import installed, rules
from scalify.prove.engine import Engine, Limits
from scalify.prove.rule_file import parse_rules, read_rules
from tests.prove.support import problem

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "version: 1\nrules:\n"
CUBE = "  - {name: cube, left: (* (cbrt x) (cbrt x) (cbrt x) *r), right: (* x *r), why: the definition}\n"


def test_a_users_rule_takes_part_and_is_named() -> None:
    users = parse_rules(HEAD + CUBE, "rules.yaml")
    pair = problem("(* p (cbrt q) (cbrt q) (cbrt q))", "(* p q)")
    without = Engine([r for r in rules(installed()) if not r.assumes])
    assert not without.prove(pair, Limits()).proved
    outcome = Engine(rules([r for r in rules(installed()) if not r.assumes], users)).prove(pair, Limits())
    assert outcome.proved
    assert outcome.user_rules == ("user:cube",)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: a, left: (* x y), right: (+ x y), why: w}", "line 3: rule a is wrong: the sides are"),
        ("{name: a, left: (exp (log x)), right: x, why: w}", "line 3: rule a is wrong"),
        ("{name: a, left: (* x y), right: (* y z), why: w}", "line 3: rule user:a: z does not occur on the left"),
        ("{name: a, left: (* x y, right: (* y x), why: w}", "line 3"),
        ("{name: a, left: (foo x), right: x, why: w}", "line 3: left: unknown operator"),
        ("{name: a, left: (* x y), right: (* y x), when: [(large x)], why: w}", "line 3: when: unknown condition"),
        ("{name: a, left: (* x y), right: (* y x), when: positive, why: w}", "line 3: when: must be a list"),
        ("{name: a, left: (* x y), right: (* y x)}", "line 3: a rule needs why"),
        ("{name: 1a, left: (* x y), right: (* y x), why: w}", "line 3: name: a name is letters"),
        ("{name: a, left: [x], right: (* y x), why: w}", "line 3: left: must be a text"),
        ("{name: a, left: x, right: x, why: w}", "line 3: rule user:a: the left side must not be a lone variable"),
        ("{name: a, left: (* x y), right: (* y x), why: w, extra: 1}", "line 3: unknown key extra"),
        ("nothing", "line 3: a rule is a mapping"),
    ],
)
def test_mistakes_name_file_line_and_key(entry: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rules(f"{HEAD}  - {entry}\n", "rules.yaml")
    assert str(caught.value).startswith("rules.yaml: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "version: 1", "version: 2\nrules: []", "version: 1\nrules: 3", HEAD + CUBE + CUBE])
def test_malformed_files_are_errors(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_rules(text, "rules.yaml")


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absent"):
        read_rules(tmp_path / "absent")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_rules(binary)


def test_the_command_lists_and_checks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["rules", "--family", "functions", "--why"]) == 0
    text = capsys.readouterr().out
    assert "logistic(x) = 1/(1 + exp(-x))" in text
    assert "the definition" in text
    assert "add-flat" not in text
    path = tmp_path / "rules.yaml"
    path.write_text(HEAD + CUBE)
    assert main(["rules", "--user", str(path), "--family", "user", "--check"]) == 0
    assert "1 entries, 0 failed" in capsys.readouterr().out


def test_the_command_complains_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(HEAD + "  - {name: a, left: (* x y), right: (+ x y), why: w}\n")
    assert main(["rules", "--user", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["rules", "--family", "none"]) == 2
    assert "no family none" in capsys.readouterr().err
