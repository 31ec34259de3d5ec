"""Exponentials, logarithms, roots."""

from __future__ import annotations

from scalify.prove.rule import Rule


def _rule(name: str, left: str, right: str, *when: str, why: str, bounds: tuple[str, ...] = ()) -> Rule:
    return Rule(name, "exponential", left, right, why, when, bounds)


RULES = (
    _rule("exp-sum", "(exp (+ *r))", "(* (each (exp _) *r))", why="exp is a homomorphism from addition to multiplication"),
    _rule("exp-zero", "(exp 0)", "1", why="exp(0) = 1"),
    _rule("exp-negative", "(exp (scale q x))", "(inv (exp (scale (- q) x)))", why="exp(-y) = 1/exp(y)", bounds=("(< q 0)",)),
    _rule("exp-peel", "(exp (scale q x))", "(* (exp x) (exp (scale (- q 1) x)))", why="exp(q x) = exp(x) exp((q - 1) x)", bounds=("(< 1 q)", "(<= q 16)")),
    _rule(
        "exp-join",
        "(* (exp (scale p x)) (exp (scale q x)) *r)",
        "(* (exp (scale (+ p q) x)) *r)",
        why="exp(p x) exp(q x) = exp((p + q) x)",
        bounds=("(< 0 p)", "(< 0 q)", "(<= (+ p q) 1)"),  # else it would undo exp-peel
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
)
