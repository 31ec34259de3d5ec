"""Greatest values, conditions as 0/1 numbers, and selection."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from scalify.prove.rule import Rule, stated

if TYPE_CHECKING:
    from scalify_rules.support import Pairs


def _rule(family: str, name: str, left: str, right: str, *when: str, why: str, phase: str = "expand") -> Rule:
    return Rule(name, family, left, right, why, when, phase=phase)


def _instances() -> Pairs:
    """Both sides of the rules in egglog text, on small numbers."""
    numbers = [Fraction(a, 2) for a in range(-6, 7)]
    found: Pairs = [(max(x, y), x + max(Fraction(0), y - x)) for x in numbers for y in numbers]
    found += [(int(-x >= 0), 1 - int(x >= 0) + int(x == 0)) for x in numbers]
    return found + [(int(-1 - n >= 0), 1 - int(n >= 0)) for n in range(-6, 7)]


def _program(family: str, name: str, left: str, right: str, why: str, body: str, head: str, claim: Rule) -> Rule:
    text = f'(rule ({body}) ({head}) :ruleset expand :name "{name}")'
    when = (claim.requirement,) if claim.when else ()
    return Rule(name, family, left, right, why, when, program=(text,), instances=_instances, claims=(claim,))


_MINUS = "(bigrat (bigint -1) (bigint 1))"
RULES = (
    _rule("max", "max-flat", "(max (max *r) *s)", "(max *r *s)", why="max is associative", phase="simplify"),
    _rule("max", "max-one", "(max x)", "x", why="the greatest of one value", phase="simplify"),
    _rule("max", "max-same", "(max x x *r)", "(max x *r)", why="max is idempotent", phase="simplify"),
    _rule("max", "max-constants", "(max (num p) (num q) *r)", "(max (num q) *r)", "(<= p q)", why="the greater of two constants", phase="simplify"),
    _rule("max", "max-scale", "(scale q (max *r))", "(max (each (scale q _) *r))", "(< 0 q)", why="x -> q x is increasing"),
    _program(
        "max", "max-shift", "max(x, y)", "x + max(0, y - x)", "u -> u + x is increasing",
        "(= s (Max ms)) (= 2 (multiset-length ms)) (= x (multiset-pick ms)) (= r (multiset-remove ms x)) (= y (multiset-pick r)) "
        "(= z (Num (bigrat (bigint 0) (bigint 1)))) (!= x z) (!= y z)",
        "(union s (Add (multiset-of x (Max (multiset-of (Num (bigrat (bigint 0) (bigint 1))) (Diff y x))))))",
        stated("(max x y)", "(+ x (max 0 (- y x)))"),
    ),
    _rule("max", "max-nonneg", "(max 0 x)", "x", "(nonneg x)", why="0 <= x"),
    _rule("max", "max-guard", "(max 0 x)", "(* (ge0 x) x)", why="x where x >= 0, else 0"),
    _rule("guards", "ge0-true", "(ge0 x)", "1", "(nonneg x)", why="the condition holds"),
    _rule("guards", "ge0-false", "(ge0 x)", "0", "(negative x)", why="the condition fails"),
    _rule("guards", "ge0-scale", "(ge0 (scale q x))", "(ge0 x)", "(< 0 q)", why="q x >= 0 exactly when x >= 0, for q > 0"),
    _program(
        "guards", "ge0-negate", "[-x >= 0]", "1 - [x >= 0] + [x = 0]", "of x >= 0 and -x >= 0 one holds, both exactly when x = 0",
        "(= s (Ge0 nx)) (= x (Neg nx)) (!= x nx) (= x (pole (multiset-of x nx)))",
        f"(union s (Add (multiset-of (Num (bigrat (bigint 1) (bigint 1))) (Scale {_MINUS} (Ge0 x)) (Eq0 x))))",
        stated("(ge0 (- x))", "(+ 1 (- (ge0 x)) (eq0 x))"),
    ),
    _program(
        "guards", "ge0-integer", "[-1 - x >= 0]", "1 - [x >= 0]", "an integer is either >= 0 or <= -1",
        "(= s (Ge0 y)) (integer y) (= g (Ge0 x)) (= x (Before y)) (= x (pole (multiset-of x y))) (!= x y)",
        f"(union s (Add (multiset-of (Num (bigrat (bigint 1) (bigint 1))) (Scale {_MINUS} g))))",
        stated("(ge0 (- -1 x))", "(- 1 (ge0 x))", "(integer x)"),
    ),
    _rule("guards", "eq0-true", "(eq0 0)", "1", why="0 = 0"),
    _rule("guards", "eq0-false", "(eq0 x)", "0", "(nonzero x)", why="the condition fails"),
    _rule("guards", "eq0-scale", "(eq0 (scale q x))", "(eq0 x)", "(!= q 0)", why="q x = 0 exactly when x = 0, for q other than 0"),
    _rule("guards", "eq0-times", "(* (eq0 x) x *r)", "0", why="one of the two factors is 0"),
    _rule("guards", "eq0-substitute", "(* (eq0 (+ x (scale -1 y))) x *r)", "(* (eq0 (+ x (scale -1 y))) y *r)", why="where the condition holds, x = y"),
    _rule("guards", "eq0-boolean", "(eq0 x)", "(- 1 x)", "(boolean x)", why="both values of x"),
    _rule("guards", "ge0-eq0", "(* (ge0 x) (eq0 x) *r)", "(* (eq0 x) *r)", why="x = 0 implies x >= 0"),
    _rule("guards", "ge0-implied", "(* (ge0 x) (ge0 y) *r)", "(* (ge0 y) *r)", "(nonneg (- x y))", why="y >= 0 and x >= y imply x >= 0"),
    _rule("guards", "ge0-implied-by-eq0", "(* (ge0 x) (eq0 y) *r)", "(* (eq0 y) *r)", "(nonneg (- x y))", why="y = 0 and x >= y imply x >= 0"),
    _rule("select", "select-linear", "(select p x y)", "(+ (* p x) y (- (* p y)))", "(boolean p)", why="p is 0: y; p is 1: x + y - y"),
)  # fmt: skip
