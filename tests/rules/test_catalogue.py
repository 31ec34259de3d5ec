"""The rule catalogue: every rule is right, every condition is needed, and the checks would notice if not."""

from __future__ import annotations

import dataclasses

import pytest
from scalify_rules import catalogue

from scalify.errors import ConfigError
from scalify.prove.catalogue import installed, rules
from scalify.prove.check import check, needless
from scalify.prove.pattern import parse_condition, parse_pattern
from scalify.prove.rule import Law, Rule

ENTRIES = catalogue()
RULES = [entry for entry in ENTRIES if isinstance(entry, Rule)]
LAWS = [entry for entry in ENTRIES if isinstance(entry, Law)]


def made(left: str, right: str, *when: str) -> Rule:
    return Rule("made", "test", left, right, "a test", when)


@pytest.mark.parametrize("rule", RULES, ids=[r.name for r in RULES])
def test_rule_holds_and_needs_its_conditions(rule: Rule) -> None:
    rule.validate()
    assert rule.why
    assert check(rule) is None
    assert needless(rule) == []


@pytest.mark.parametrize("rule", [r for r in RULES if r.when and not r.program], ids=lambda r: r.name)
def test_without_a_condition_the_rule_is_wrong(rule: Rule) -> None:
    for number in range(len(rule.when)):
        weaker = dataclasses.replace(rule, when=rule.when[:number] + rule.when[number + 1 :])
        assert check(weaker) is not None or needless(rule) == []


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(* x (+ y z))", "(+ (* x y) z)"),
        ("(exp (+ x y))", "(+ (exp x) (exp y))"),
        ("(max x y)", "(+ x (max 0 (- x y)))"),
        ("(total v (* x y))", "(* x (total v y))"),
        ("(total v x)", "(greatest v x)"),
        ("(sqrt (* x x))", "x"),
        ("(* x (inv x))", "1"),
        ("(exp (log x))", "x"),
        ("(log (* x y))", "(+ (log x) (log y))"),
        ("(ge0 (- x))", "(- 1 (ge0 x))"),
        ("(tanh x)", "(- (* 2 (logistic x)) 1)"),
        ("(* *r)", "(+ *r)"),
        ("(scale q (max *r))", "(max (each (scale q _) *r))"),
    ],
)
def test_a_wrong_rule_is_found(left: str, right: str) -> None:
    assert check(made(left, right)) is not None


def test_a_needless_condition_is_found() -> None:
    assert needless(made("(* x y)", "(* y x)", "(positive x)")) == ["(positive x)"]


def test_names_are_unique_and_the_package_is_found_by_its_entry_point() -> None:
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert {entry.name for entry in installed()} >= {entry.name for entry in ENTRIES}
    with pytest.raises(ConfigError, match="two rules are named"):
        rules([*RULES, RULES[0]])


def test_every_family_of_normal_forms_is_declared() -> None:
    assert {"linear", "einsum", "guards", "one_hot", "exponential", "select"} <= {law.family for law in LAWS}
    assert all(law.why and law.statement and law.where.startswith("scalify/lift/") for law in LAWS)


def test_statements_read_like_algebra() -> None:
    assert made("(* x (+ y z *r))", "(- (inv (inv x)) 1/2)").statement == "x (y + z + r..) = 1/(1/x) - 1/2"
    assert made("(exp (scale q x))", "(inv (exp (scale (- q) x)))", "(< q 0)").requirement == "q < 0"


@pytest.mark.parametrize(
    "text",
    ["", "(", ")", "(+ a", "(+ a b))", "(foo a)", "(exp a b)", "1/0", "()", "(1 a)", "+", "a b", "(each (exp _))", "(scale (exp q) x)",
     "(exp *r)", "9" * 60, "(" * 3000, "(exp " * 60 + "x" + ")" * 60, "A", "(+ a $)", "x" * 5000],
)  # fmt: skip
def test_malformed_patterns_are_errors(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_pattern(text)


@pytest.mark.parametrize(
    "text", ["x", "(large x)", "(positive x y)", "(positive (+ x y))", "(free 3 x)", "(free v (+ x y))", "(< (exp x) 1)"]
)
def test_malformed_conditions_are_errors(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_condition(text)


@pytest.mark.parametrize(
    ("left", "right"),
    [("(scale x y)", "(* x y)"), ("(total v y)", "(* v y)"), ("(* x *r)", "(* x r)"), ("(* x _)", "(* x y)"), ("(* x y)", "(* (+ _ x) y)")],
)
def test_a_name_stands_for_one_thing(left: str, right: str) -> None:
    with pytest.raises(ConfigError, match=r"does not occur on the left|_ is"):
        made(left, right).validate()
