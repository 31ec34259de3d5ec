"""What equality saturation proves, and what it must not prove."""

from __future__ import annotations

import pytest

from scalify.prove.catalogue import installed, rules
from scalify.prove.engine import Engine, Limits
from tests.prove.support import problem

PROVED: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("distributivity", "(* a (+ b c))", "(+ (* a b) (* a c))", {}),
    ("factoring", "(+ (* 2 a b) (* 2 a c) (* -2 a c))", "(* 2 a b)", {}),
    ("square", "(* (+ p q) (+ p q))", "(+ (* p p) (* 2 p q) (* q q))", {}),
    ("sum-of-sums", "(total k (* (+ b c) w))", "(+ (total k (* b w)) (total k (* c w)))", {}),
    ("scale-outside", "(total k (* a b))", "(* a (total k b))", {}),
    ("two-steps", "(total k (* b (total i (* a x))))", "(total ik (* a b x))", {}),
    ("unused-variable", "(total k a)", "(* 5 a)", {}),
    ("logistic", "(logistic p)", "(/ 1 (+ 1 (exp (- p))))", {}),
    ("logistic-other", "(logistic p)", "(/ (exp p) (+ 1 (exp p)))", {}),
    ("logistic-mirror", "(logistic (- p))", "(- 1 (logistic p))", {}),
    ("silu", "(* p (logistic p))", "(/ p (+ 1 (exp (- p))))", {}),
    ("tanh-by-logistic", "(tanh p)", "(- (* 2 (logistic (* 2 p))) 1)", {}),
    ("tanh-by-exp", "(tanh p)", "(/ (- (exp p) (exp (- p))) (+ (exp p) (exp (- p))))", {}),
    ("tanh-odd", "(tanh (- p))", "(- (tanh p))", {}),
    ("gelu", "(* 1/2 p (+ 1 (erf (* 3 p))))", "(* p (- 1/2 (* 1/2 (erf (* -3 p)))))", {}),
    ("gelu-tanh", "(* 1/2 p (+ 1 (tanh q)))", "(* p (logistic (* 2 q)))", {}),
    ("gelu-tanh-inside", "(* 1/2 (+ 1 (tanh (* 4 (+ p (* 1/9 p p p))))))", "(logistic (* 8 (+ p (* 1/9 p p p))))", {}),
    ("relu-as-select", "(select (- 1 (ge0 (- p))) p 0)", "(max p 0)", {}),
    ("relu-as-product", "(* (ge0 p) p)", "(max p 0)", {}),
    ("relu-mirror", "(+ p (max (- p) 0))", "(max p 0)", {}),
    ("abs", "(abs p)", "(+ (max p 0) (max (- p) 0))", {}),
    ("leaky", "(+ (* 3/4 (max p 0)) (* 1/4 p))", "(max p (* 1/4 p))", {}),
    ("max-shift", "(max (+ a c) (+ b c))", "(+ c (max a b))", {}),
    ("max-scale", "(max (* 3 a) (* 3 b))", "(* 3 (max a b))", {}),
    ("min-max", "(+ (max p q) (min p q))", "(+ p q)", {}),
    ("max-over-shift", "(greatest k (+ a b))", "(+ a (greatest k b))", {}),
    ("rsqrt", "(/ p (sqrt q))", "(* p (sqrt (/ 1 q)))", {"q": "positive"}),
    ("root", "(/ q (sqrt q))", "(sqrt q)", {"q": "positive"}),
    ("scaled-root", "(/ p (sqrt (* 4/9 q)))", "(/ p (* (sqrt 4/9) (sqrt q)))", {}),
    ("softmax-shift", "(/ (exp (- b a)) (total k (exp (- b a))))", "(/ (exp b) (total k (exp b)))", {}),
    ("log-softmax", "(log (/ (exp b) (total k (exp b))))", "(- b (log (total k (exp b))))", {}),
    ("softplus", "(log (+ 1 (exp p)))", "(+ p (log (+ 1 (exp (- p)))))", {}),
    ("select-swap", "(select (- 1 g) p q)", "(select g q p)", {"g": "boolean"}),
    ("select-same", "(select g p p)", "p", {"g": "boolean"}),
    ("select-sum", "(+ (select g p 0) (select g q 0))", "(select g (+ p q) 0)", {"g": "boolean"}),
    ("guards-meet", "(* (ge0 n) (ge0 (- n)))", "(eq0 n)", {"n": "integer"}),
    ("guard-implied", "(* (ge0 n) (ge0 (+ n 1)))", "(ge0 n)", {"n": "integer"}),
    ("guards-exclude", "(* (ge0 n) (ge0 (- -1 n)))", "0", {"n": "integer"}),
)
OPEN: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("double-count", "(total k (* a b))", "(* 2 a (total k b))", {}),
    ("wrong-variable", "(total k (* b c))", "(* b (total k c))", {}),
    ("no-cancelling", "(* q (/ 1 q))", "1", {}),
    ("root-of-anything", "(* (sqrt q) (sqrt q))", "q", {}),
    ("log-of-product", "(log (* p q))", "(+ (log p) (log q))", {}),
    ("exp-of-log", "(exp (log q))", "q", {}),
    ("guards-of-reals", "(* (ge0 p) (ge0 (- -1/2 p)))", "(ge0 p)", {}),
    ("off-by-one", "(* (ge0 n) (ge0 (- n 1)))", "(ge0 n)", {"n": "integer"}),
    ("not-boolean", "(* p p)", "p", {"p": "integer"}),
    ("max-scale-negative", "(max (* -3 a) (* -3 b))", "(* -3 (max a b))", {}),
    ("max-shift-varies", "(greatest k (+ b c))", "(+ b (greatest k c))", {}),
    ("softmax-shift-varies", "(/ (exp (- b c)) (total k (exp (- b c))))", "(/ (exp b) (total k (exp b)))", {}),
    ("tanh", "(tanh p)", "(- (* 2 (logistic p)) 1)", {}),
    ("relu", "(max p 0)", "(+ p (max p 0))", {}),
    ("sum-of-products", "(total k (* b c))", "(* (total k b) (total k c))", {}),
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine([rule for rule in rules(installed()) if not rule.assumes])


@pytest.mark.parametrize(("left", "right", "facts"), [p[1:] for p in PROVED], ids=[p[0] for p in PROVED])
def test_is_proved(engine: Engine, left: str, right: str, facts: dict[str, str]) -> None:
    outcome = engine.prove(problem(left, right, facts), Limits())
    assert outcome.proved, outcome


@pytest.mark.parametrize(("left", "right", "facts"), [p[1:] for p in OPEN], ids=[p[0] for p in OPEN])
def test_is_not_proved(engine: Engine, left: str, right: str, facts: dict[str, str]) -> None:
    outcome = engine.prove(problem(left, right, facts), Limits())
    assert not outcome.proved, outcome


def test_assumptions_are_listed_and_come_last() -> None:
    engine = Engine(rules(installed()))
    outcome = engine.prove(problem("(* q (/ 1 q))", "1"), Limits())
    assert outcome.proved
    assert outcome.assumptions == ("cancel: x nonzero (assumed)",)
    derived = engine.prove(problem("(* q (/ 1 q))", "1", {"q": "positive"}), Limits())
    assert derived.proved
    assert derived.assumptions == ()


def test_the_same_obligation_has_the_same_outcome(engine: Engine) -> None:
    first, second = (engine.prove(problem("(tanh p)", "(- (* 2 (logistic (* 2 p))) 1)"), Limits()) for _ in range(2))
    assert first == second


def test_limits_are_named(engine: Engine) -> None:
    pair = problem("(tanh p)", "(- (* 2 (logistic (* 2 p))) 1)")
    assert engine.prove(pair, Limits(rows=100)).limit == "rows"
    assert engine.prove(pair, Limits(rounds=1)).limit == "rounds"
    assert engine.prove(pair, Limits()).proved
