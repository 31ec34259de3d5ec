"""Every rule and law is proved, each of its conditions is needed, and the provers notice what is wrong."""

from __future__ import annotations

import dataclasses
import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scalify_rules import catalogue

from scalify.cli import main
from scalify.errors import ConfigError
from scalify.prove import catalogue as catalogues
from scalify.prove.catalogue import installed, registered
from scalify.prove.proof import claims, patterns
from scalify.prove.proof.entry import prove, prove_only
from scalify.prove.proof.opcodes import entry as opcodes
from scalify.prove.proof.table import markdown, row
from scalify.prove.rule import Claim, Law, Rule, stated
from tests.support import rule_mutations

if TYPE_CHECKING:
    from scalify.prove.proof.claims import Setting
    from scalify.prove.rule import Entry

ROOT = Path(__file__).parents[2]
ENTRIES = catalogue()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_every_entry_is_proved_and_needs_its_conditions(entry: Entry) -> None:
    found = prove(entry)
    assert found.kind, found.wrong
    assert entry.proof is not None
    assert (entry.proof.kind, entry.proof.digest) == (found.kind, entry.digest), "run: make rules"


def test_the_page_of_rules_is_up_to_date() -> None:
    rows = [*[row(entry) for entry in installed()], *opcodes.rows()]
    assert (ROOT / "docs" / "rules.md").read_text() == markdown(rows), "run: make rules"


# -- the provers notice what is wrong ------------------------------------------------------------------------------------------
WRONG = [
    ("(* x (+ y z))", "(+ (* x y) z)", ()), ("(exp (+ x y))", "(+ (exp x) (exp y))", ()), ("(max x y)", "(+ x (max 0 (- x y)))", ()),
    ("(total v (* x y))", "(* x (total v y))", ()), ("(total v x)", "(greatest v x)", ()), ("(sqrt (* x x))", "x", ()), ("(* x (inv x))", "1", ()),
    ("(log (* x y))", "(+ (log x) (log y))", ()), ("(tanh x)", "(- (* 2 (logistic x)) 1)", ()), ("(* *r)", "(+ *r)", ()),
    ("(scale q (max *r))", "(max (each (scale q _) *r))", ()), ("(max x *r)", "(max *r)", ()), ("(total v (+ x y))", "(+ (total v x) y)", ()),
    ("(exp (+ *r))", "(+ (each (exp _) *r))", ()), ("(greatest v (+ x y))", "(+ (greatest v x) (greatest v y))", ()), ("(total v 1)", "1", ()),
    ("(log (* *r))", "(+ (each (log _) *r))", ()), ("(inv (+ *r))", "(+ (each (inv _) *r))", ()), ("(floor (+ x y))", "(+ (floor x) (floor y))", ()),
    ("(ge0 (scale q x))", "(ge0 x)", ("(!= q 0)",)), ("(* (ge0 x) (ge0 y))", "(ge0 y)", ("(nonneg (- y x))",)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "when"), WRONG)
def test_what_is_wrong_is_not_proved(left: str, right: str, when: tuple[str, ...]) -> None:
    assert not patterns.prove(stated(left, right, *when)).proved
    assert not patterns.prove_small(stated(left, right, *when)).proved


@pytest.mark.parametrize(
    ("left", "right", "when"),
    [
        ("(erf (- x))", "(- (erf x))", ()),
        ("(* (cbrt x) (cbrt x) (cbrt x))", "x", ()),
        ("(- (* 2 (logistic (* 2 x))) 1)", "(tanh x)", ()),
        ("(* (exp (+ x y)) (exp (- x)))", "(exp y)", ()),
        ("(floor x)", "x", ("(integer x)",)),
        ("(total v (- x y))", "(- (total v x) (total v y))", ()),
        ("(max (+ x z) (+ y z))", "(+ z (max x y))", ()),
        ("(greatest v (max x 0))", "(max 0 (greatest v x))", ()),
        ("(log (/ 1 x))", "(- (log x))", ()),
        ("(sqrt (* x y))", "(* (sqrt x) (sqrt y))", ("(nonneg x)", "(nonneg y)")),
    ],
)
def test_what_is_right_is_proved(left: str, right: str, when: tuple[str, ...]) -> None:
    assert patterns.prove(stated(left, right, *when)).proved


def _wrong_sum(c: Setting) -> None:
    n, x = c.size("v"), c.function("x", 1)
    c.prove(lambda: c.total(n, lambda v: x(v) + 1) == c.total(n, x) + 1, over=n)


def _wrong_lemma(c: Setting) -> None:
    n, x = c.size("v"), c.function("x", 1)
    c.lemma(lambda: c.total(n, x) == x(0), over=n)
    c.prove(lambda: c.total(n, x) == x(0))


def _right_sum(c: Setting) -> None:
    n, x = c.size("v"), c.function("x", 1)
    c.prove(lambda: c.total(n, lambda v: x(v) + 1) == c.total(n, x) + c.length(n), over=n)


@pytest.mark.parametrize("state", [_wrong_sum, _wrong_lemma])
def test_wrong_claims_are_refuted(state: Any) -> None:
    assert not claims.run(state, claims.Setting()).proved
    assert claims.prove_small(state).model is not None


def test_claims_by_induction() -> None:
    assert claims.run(_right_sum, claims.Setting()).proved
    assert claims.prove_small(_right_sum).proved


def test_a_needless_condition_is_an_error() -> None:
    found = prove(Rule("made", "test", "(* x y)", "(* y x)", "", ("(positive x)",)))
    assert "(positive x) makes no difference" in found.wrong
    silent = Claim(lambda c: c.when("x", c.real("x") == 0), ("x",))
    assert prove(Law("made", "test", "", "", "", (silent,))).wrong.endswith("x makes no difference")


def test_conditions_of_a_claim_are_declared() -> None:
    hidden = Claim(lambda c: c.when("x = 0", c.real("x") == 0))
    assert "declared are ()" in prove(Law("made", "test", "", "", "", (hidden,))).wrong
    assert prove(Law("made", "test", "", "", "", ())).wrong == "nothing is stated that could be proved"


def test_exhaustive_where_nothing_general_is_found() -> None:
    """Operands that occur under two operators are beyond the general proof."""
    rule = Rule("made", "test", "(+ (* *r) (* *r) (+ *r))", "(+ (scale 2 (* *r)) (+ *r))", "")
    assert prove_only(rule).kind in ("z3", "exhaustive")


# -- registration ----------------------------------------------------------------------------------------------------------------
def test_no_rule_is_registered_without_a_proof() -> None:
    entry = ENTRIES[0]
    assert registered(entry, catalogues.OWN) is entry
    with pytest.raises(ConfigError, match="no proof on record"):
        registered(dataclasses.replace(entry, proof=None), catalogues.OWN)
    changed = next(e for e in ENTRIES if isinstance(e, Rule) and e.when)
    with pytest.raises(ConfigError, match="has changed since it was proved"):
        registered(dataclasses.replace(changed, when=()), catalogues.OWN)


def test_rules_of_other_packages_are_proved_on_load_and_are_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    good = Rule("theirs", "test", "(* (cbrt x) (cbrt x) (cbrt x))", "x", "the definition", proof=ENTRIES[0].proof)
    found = registered(good, "another")
    assert isinstance(found, Rule)
    assert found.user
    assert found.proof is not None
    assert (found.proof.kind, found.proof.digest) == ("z3", good.digest)
    with pytest.raises(ConfigError, match="rule theirs is wrong"):
        registered(dataclasses.replace(good, right="(* 2 x)"), "another")
    with pytest.raises(ConfigError, match="term constructors"):
        registered(next(e for e in ENTRIES if isinstance(e, Law)), "another")
    point = EntryPoint("another", "tests.rules.test_proofs:forged", catalogues.GROUP)
    monkeypatch.setattr(catalogues, "entry_points", lambda group: [point])
    with pytest.raises(ConfigError, match="rule forged is wrong"):
        installed()


def forged() -> tuple[Rule, ...]:
    return (Rule("forged", "test", "(* x y)", "(+ x y)", "trust me", proof=ENTRIES[0].proof),)


def test_a_rule_that_cannot_be_proved_is_refused() -> None:
    """True, but not by what the prover knows of sine."""
    rule = Rule("double-angle", "test", "(sine (* 2 x))", "(* 2 (sine x) (cosine x))", "trigonometry")
    with pytest.raises(ConfigError, match="rule double-angle is not proved"):
        registered(rule, "another")


# -- the command -----------------------------------------------------------------------------------------------------------------
def test_the_command_proves_and_reports(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert main(["rules", "--family", "functions", "--check"]) == 0
    out = capsys.readouterr().out
    assert "[z3, " in out
    assert out.endswith("entries, 0 failed\n")
    wrong = Rule("wrong", "wrong", "(* x y)", "(+ x y)", "")
    monkeypatch.setattr(catalogues, "declared", lambda: [(catalogues.OWN, wrong)])
    assert main(["rules", "--family", "wrong", "--check"]) == 4
    assert "FAILED: the sides are" in capsys.readouterr().out
    assert main(["rules", "--family", "wrong"]) == 2
    assert "no proof on record" in capsys.readouterr().err
    assert main(["rules", "--record", str(tmp_path / "r.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_record_holds_nothing_else() -> None:
    found = json.loads((ROOT / "rules" / "scalify_rules" / "proofs.json").read_text())
    assert list(found) == [entry.name for entry in ENTRIES]


# -- mutations -------------------------------------------------------------------------------------------------------------------
def test_conditions_deleted_in_the_engine_are_noticed() -> None:
    """A part; ``make rule-mutations`` runs all."""
    found = [*rule_mutations.patterns(installed(), every=7), *rule_mutations.programs(installed(), every=31)]
    assert len(found) > 8
    assert [m for m in found if not m.noticed] == []


def test_no_false_goal_is_proved() -> None:
    assert rule_mutations.sound(every=3) == []
