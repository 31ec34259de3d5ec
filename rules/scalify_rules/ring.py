"""Arithmetic of real numbers: what brings sums and products into normal form, and distributivity."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from scalify.prove.rule import Claim, Rule

if TYPE_CHECKING:
    from scalify.prove.proof.claims import Setting

_FIELD = "an axiom of the field of reals, or two applied in turn"


def _simplify(name: str, left: str, right: str, *when: str, why: str = _FIELD) -> Rule:
    return Rule(name, "ring", left, right, why, when, phase="simplify")


def _fixed(c: Setting) -> None:
    x, q = c.real("x"), c.real("q")
    c.when("x = q x", x == q * x)
    c.when("q other than 1", q != 1)
    c.prove(lambda: x == 0)


def _to_zero(c: Setting) -> None:
    x, q = c.real("x"), c.real("q")
    c.when("q x = 0", q * x == 0)
    c.when("q other than 0", q != 0)
    c.prove(lambda: x == 0)


RULES = (
    _simplify("add-flat", "(+ (+ *r) *s)", "(+ *r *s)", why="addition is associative"),
    _simplify("add-one", "(+ x)", "x"),
    _simplify("add-none", "(+)", "0"),
    _simplify("add-constants", "(+ (num p) (num q) *r)", "(+ (num (+ p q)) *r)"),
    _simplify("add-zero", "(+ 0 *r)", "(+ *r)"),
    _simplify("add-equal", "(+ x x *r)", "(+ (scale 2 x) *r)"),
    _simplify("add-like", "(+ x (scale q x) *r)", "(+ (scale (+ q 1) x) *r)"),
    _simplify("add-alike", "(+ (scale p x) (scale q x) *r)", "(+ (scale (+ p q) x) *r)"),
    _simplify("scale-sum", "(scale q (+ *r))", "(+ (each (scale q _) *r))", why="multiplication distributes over addition"),
    _simplify("scale-scale", "(scale p (scale q x))", "(scale (* p q) x)"),
    _simplify("scale-one", "(scale 1 x)", "x"),
    _simplify("scale-zero", "(scale 0 x)", "0", why="every expression is finite; values that may be infinite are never opened"),
    Rule(
        "scale-fixed",
        "ring",
        "x",
        "0",
        "(q - 1) x = 0 and q is not 1",
        ("x = q x", "q other than 1"),
        program=(
            (
                "(rule ((= x (Scale q x)) (!= q (bigrat (bigint 1) (bigint 1)))) ((union x (Num (bigrat (bigint 0) (bigint 1)))) (subsume (Scale q x))) "
                ':ruleset simplify :name "scale-fixed")'
            ),
        ),
        instances=lambda: [(Fraction(x), Fraction(0)) for x in range(-5, 6) for q in range(-5, 6) if q != 1 and q * x == x],
        claims=(Claim(_fixed, ("x = q x", "q other than 1")),),
    ),
    Rule(
        "scale-to-zero",
        "ring",
        "x",
        "0",
        "a product is 0 only if a factor is",
        ("q x = 0", "q other than 0"),
        program=(
            (
                "(rule ((= z (Num (bigrat (bigint 0) (bigint 1)))) (= z (Scale q x)) (!= q (bigrat (bigint 0) (bigint 1)))) ((union x z) (subsume (Scale q x))) "
                ':ruleset simplify :name "scale-to-zero")'
            ),
        ),
        instances=lambda: [(Fraction(x), Fraction(0)) for x in range(-5, 6) for q in range(-5, 6) if q != 0 and q * x == 0],
        claims=(Claim(_to_zero, ("q x = 0", "q other than 0")),),
    ),
    _simplify("scale-constant", "(scale p (num q))", "(num (* p q))"),
    _simplify("mul-flat", "(* (* *r) *s)", "(* *r *s)", why="multiplication is associative"),
    _simplify("mul-one", "(* x)", "x"),
    _simplify("mul-none", "(*)", "1"),
    _simplify("mul-constant", "(* (num q) *r)", "(scale q (* *r))"),
    _simplify("mul-scale", "(* (scale q x) *r)", "(scale q (* x *r))"),
    _simplify("mul-boolean", "(* x x *r)", "(* x *r)", "(boolean x)", why="0 * 0 = 0 and 1 * 1 = 1"),
    _simplify("mul-inverse", "(* x (inv x) *r)", "(* *r)", "(nonzero x)", why="x * 1/x = 1 for x other than 0"),
    Rule("cancel", "ring", "(* x (inv x) *r)", "(* *r)", "x * 1/x = 1 for x other than 0", assumes=("(nonzero x)",)),
    Rule("distribute", "ring", "(* (+ *r) *s)", "(+ (each (* _ *s) *r))", "multiplication distributes over addition"),
    Rule("inverse-product", "ring", "(inv (* *r))", "(* (each (inv _) *r))", "1/(x y) = 1/x 1/y where both are defined"),
    Rule("inverse-scale", "ring", "(inv (scale q x))", "(scale (/ 1 q) (inv x))", "1/(q x) = 1/q 1/x", bounds=("(!= q 0)",)),
    Rule("inverse-constant", "ring", "(inv (num q))", "(num (/ 1 q))", "division of rationals", bounds=("(!= q 0)",)),
    Rule("inverse-inverse", "ring", "(inv (inv x))", "x", "1/(1/x) = x", ("(nonzero x)",)),
    Rule(
        "inverse-clears",
        "ring",
        "(inv (+ (* (inv d) *r) *s))",
        "(* d (inv (+ (* *r) (each (* d _) *s))))",
        "numerator and denominator are multiplied by d; for d other than 0 both are defined for the same values",
        ("(nonzero d)",),
    ),
    Rule(
        "inverse-clears-one",
        "ring",
        "(inv (+ (inv d) *s))",
        "(* d (inv (+ 1 (each (* d _) *s))))",
        "numerator and denominator are multiplied by d; for d other than 0 both are defined for the same values",
        ("(nonzero d)",),
    ),
    Rule(
        "common-denominator",
        "ring",
        "(+ (* (inv d) *r) *s)",
        "(* (inv d) (+ (* *r) (each (* d _) *s)))",
        "x/d + y = (x + d y)/d; for d = 0 both are undefined",
        bounds=("(nonzero d)",),
    ),
    Rule(
        "common-denominator-one",
        "ring",
        "(+ (inv d) *s)",
        "(* (inv d) (+ 1 (each (* d _) *s)))",
        "1/d + y = (1 + d y)/d; for d = 0 both are undefined",
        bounds=("(nonzero d)",),
    ),
    Rule(
        "common-denominator-scaled",
        "ring",
        "(+ (scale q (* (inv d) *r)) *s)",
        "(* (inv d) (+ (scale q (* *r)) (each (* d _) *s)))",
        "q x/d + y = (q x + d y)/d; for d = 0 both are undefined",
        bounds=("(nonzero d)",),
    ),
    Rule(
        "common-denominator-constant",
        "ring",
        "(+ (scale q (inv d)) *s)",
        "(* (inv d) (+ (num q) (each (* d _) *s)))",
        "q/d + y = (q + d y)/d; for d = 0 both are undefined",
        bounds=("(nonzero d)",),
    ),
)
