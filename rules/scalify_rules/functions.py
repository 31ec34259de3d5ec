"""Element functions in terms of others: what fused kernels and framework decompositions differ in."""

from __future__ import annotations

from scalify.prove.rule import Rule


def _rule(name: str, left: str, right: str, why: str, bounds: tuple[str, ...] = ()) -> Rule:
    return Rule(name, "functions", left, right, why, bounds=bounds)


_ODD = {
    "tanh": "a quotient of an odd and an even function is odd",
    "tan": "a quotient of an odd and an even function is odd",
    "sine": "its power series has odd powers only",
    "erf": "the integral from 0 of an even function",
    "cbrt": "the inverse of x^3, which is odd",
}
RULES = (
    _rule("logistic", "(logistic x)", "(inv (+ 1 (exp (- x))))", why="the definition"),
    _rule(
        "tanh",
        "(tanh x)",
        "(* (+ (exp (* 2 x)) -1) (inv (+ (exp (* 2 x)) 1)))",
        why="the definition, numerator and denominator times exp(x)",
    ),
    _rule("tan", "(tan x)", "(* (sine x) (inv (cosine x)))", why="the definition"),
    _rule("pythagoras", "(+ (* (sine x) (sine x)) (* (cosine x) (cosine x)) *r)", "(+ 1 *r)", why="a point on the unit circle"),
    _rule("abs", "(abs x)", "(max x (- x))", why="the definition"),
    _rule("sign", "(sign x)", "(- (ge0 x) (ge0 (- x)))", why="1 - 0, 1 - 1 or 0 - 1 for x positive, 0 or negative"),
    *[_rule(f"{f}-odd", f"({f} (scale q x))", f"(- ({f} (scale (- q) x)))", why=why, bounds=("(< q 0)",)) for f, why in _ODD.items()],
    _rule(
        "cosine-even", "(cosine (scale q x))", "(cosine (scale (- q) x))", bounds=("(< q 0)",), why="its power series has even powers only"
    ),
)
