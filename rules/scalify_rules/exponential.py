"""Exponentials, logarithms, roots."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import TYPE_CHECKING

from scalify.prove.rule import Rule, stated

if TYPE_CHECKING:
    from scalify_rules.support import Pairs


def _rule(name: str, left: str, right: str, *when: str, why: str, bounds: tuple[str, ...] = ()) -> Rule:
    return Rule(name, "exponential", left, right, why, when, bounds)


#: two exponentials of multiples of one x that are both there; only then does one help to write the other
_MULTIPLES = (
    '(= s (Fn "exp" u)) (= u (Scale q x)) (= t (Fn "exp" v)) (= v (Scale p x))',
    '(= s (Fn "exp" u)) (= u (Scale q x)) (= t (Fn "exp" x)) (= p (bigrat (bigint 1) (bigint 1)))',
    '(= s (Fn "exp" x)) (= q (bigrat (bigint 1) (bigint 1))) (= t (Fn "exp" v)) (= v (Scale p x))',
)
_ZERO = "(bigrat (bigint 0) (bigint 1))"
_MOST = "(bigrat (bigint 16) (bigint 1))"


def _multiples() -> Pairs:
    numbers = [Fraction(a, b) for a in (1, 2, 3) for b in (1, 2)]
    return [(exp(q * x), exp(p * x) * exp((q - p) * x)) for p in numbers for q in numbers for x in numbers]


RULES = (
    _rule("exp-sum", "(exp (+ *r))", "(* (each (exp _) *r))", why="exp is a homomorphism from addition to multiplication"),
    _rule("exp-zero", "(exp 0)", "1", why="exp(0) = 1"),
    _rule("exp-negative", "(exp (scale q x))", "(inv (exp (scale (- q) x)))", why="exp(-y) = 1/exp(y)", bounds=("(< q 0)",)),
    Rule(
        "exp-opposite", "exponential", "exp(-x)", "1/exp(x)", "exp is a homomorphism; a negated sum has no factor -1 to be seen",
        program=(
            '(rule ((= s (Fn "exp" x)) (= x (Add ms))) ((Neg x)) :ruleset demand :name "exp-opposite?")',
            '(rule ((= s (Fn "exp" y)) (= y (Neg x)) (= t (Fn "exp" x))) ((union s (Inv t))) :ruleset expand :name "exp-opposite")',
        ),
        instances=lambda: [(exp(-x), 1 / exp(x)) for x in (-2, 0, 1, 3)],
        claims=(stated("(exp (- x))", "(inv (exp x))"),),
    ),
    Rule(
        "exp-multiple", "exponential", "exp(q x)", "exp(p x) exp((q - p) x)", "exp is a homomorphism from addition to multiplication",
        program=tuple([
            f'(rule ({body} (< {_ZERO} p) (< p q) (<= q (* p {_MOST}))) ((union s (Mul (multiset-of t (Fn "exp" (Scale (- q p) x)))))) '
            f':ruleset expand :name "exp-multiple{number or ""}")'
            for number, body in enumerate(_MULTIPLES)
        ]),
        instances=_multiples,
        claims=(stated("(exp (scale q x))", "(* (exp (scale p x)) (exp (scale (- q p) x)))"),),
    ),
    _rule("exp-constants", "(* (exp (num p)) (exp (num q)) *r)", "(* (exp (num (+ p q))) *r)", why="exp(p) exp(q) = exp(p + q)"),
    _rule("exp-guard", "(exp (* p *r))", "(+ 1 (scale -1 p) (* p (exp (* *r))))", "(boolean p)", why="p is 0: exp(0) = 1; p is 1: exp of the rest"),
    _rule("exp-select", "(exp (select p x y))", "(select p (exp x) (exp y))", why="a function of a choice is the choice of its values"),
    _rule("log-of-exp", "(log (exp x))", "x", why="log is the inverse of exp"),
    _rule("exp-log", "(exp (log x))", "x", "(positive x)", why="log is defined on positive numbers and exp is its inverse"),
    _rule("log-one", "(log 1)", "0", why="exp(0) = 1"),
    _rule("log-product", "(log (* *r))", "(+ (each (log _) *r))", "(positive *r)", why="log is a homomorphism on positive numbers"),
    _rule("log-scale", "(log (scale q x))", "(+ (log (num q)) (log x))", "(< 0 q)", why="log is a homomorphism on positive numbers"),
    _rule("log-inverse", "(log (inv x))", "(- (log x))", why="log(1/x) = -log(x) on positive numbers, and both are undefined elsewhere"),
    _rule("sqrt-square", "(* (sqrt x) (sqrt x) *r)", "(* x *r)", "(nonneg x)", why="the definition of the square root, on its domain"),
    _rule("sqrt-of-square", "(sqrt (* x x))", "(abs x)", why="the square root is the one that is not negative"),
    _rule("sqrt-product", "(sqrt (* *r))", "(* (each (sqrt _) *r))", "(nonneg *r)", why="squares of both sides agree and both are not negative"),
    _rule("sqrt-scale", "(sqrt (scale q x))", "(* (sqrt (num q)) (sqrt x))", "(< 0 q)", why="squares of both sides agree and both are not negative"),
    _rule("sqrt-inverse", "(sqrt (inv x))", "(inv (sqrt x))", why="squares of both sides agree and both are positive, for positive x; both are undefined elsewhere"),
    _rule("root-of-itself", "(* x (inv (sqrt x)) *r)", "(* (sqrt x) *r)", "(positive x)", why="x = sqrt(x) sqrt(x), and sqrt(x) is not 0"),
)  # fmt: skip
