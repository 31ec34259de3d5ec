"""What proofs believe beyond the arithmetic of real numbers that z3 decides: one list, each entry with its justification.

Nothing else is assumed. The functions are those of real analysis; a function that is not in the list is uninterpreted, of which only congruence
(equal arguments give equal values) is known.
"""

from __future__ import annotations

from typing import NamedTuple


class Axiom(NamedTuple):
    """A statement that proofs may use."""

    name: str
    statement: str
    justification: str


AXIOMS = (
    Axiom("congruence", "a = b implies f(a) = f(b)", "functions are functions"),
    Axiom(
        "induction on sizes",
        "what holds for one element, and for n + 1 elements if it holds for n, holds for all sizes",
        "natural numbers",
    ),
    Axiom(
        "sum by recursion",
        "the sum over one element is its value; over n + 1 elements that over the first n plus the last",
        "the definition of a finite sum",
    ),
    Axiom(
        "maximum by recursion",
        "the maximum over one element is its value; over n + 1 elements the greater of that over the first n and the last",
        "the definition of a finite maximum",
    ),
    Axiom(
        "operands by recursion",
        "an operator over a list of operands followed by another list is the operator of both results; over no operands it is 0, or 1",
        "addition, multiplication and max are associative and commutative, 0 and 1 their neutral elements",
    ),
    Axiom(
        "homomorphism over operands",
        "f(a op b) = f(a) op' f(b) and f(neutral) = neutral' give f of all operands under op as op' of all f",
        "induction over the number of operands; both premises are proved for each use",
    ),
    Axiom("reciprocal", "x * (1/x) = 1 for x other than 0; 1/0 is undefined", "the definition"),
    Axiom("square root", "sqrt(x) >= 0 and sqrt(x)^2 = x for x >= 0; undefined elsewhere", "the definition"),
    Axiom("cube root", "cbrt(x)^3 = x", "the definition"),
    Axiom("exponential", "exp(x) > 0, exp(0) = 1, exp(x + y) = exp(x) exp(y)", "the functional equation of exp"),
    Axiom("logarithm", "log(exp(x)) = x, exp(log(x)) = x for x > 0; undefined elsewhere", "log is the inverse of exp"),
    Axiom("logarithm of a product", "log(x y) = log(x) + log(y) for positive x, y; log(1) = 0", "exp of both sides"),
    Axiom("logistic", "logistic(x) (1 + exp(-x)) = 1", "the definition"),
    Axiom("hyperbolic tangent", "tanh(x) (exp(2x) + 1) = exp(2x) - 1", "the definition, numerator and denominator times exp(x)"),
    Axiom("circle", "sine(x)^2 + cosine(x)^2 = 1, sine(-x) = -sine(x), cosine(-x) = cosine(x)", "a point on the unit circle and its mirror image"),
    Axiom("tangent", "tan(x) cosine(x) = sine(x) where cosine(x) is not 0; undefined elsewhere", "the definition"),
    Axiom("error function", "erf(-x) = -erf(x)", "the integral from 0 of an even function"),
    Axiom("infinities", "x + inf = inf and exp(-inf) = 0, exp(inf) = inf; inf - inf and 0 inf have no value", "IEEE 754"),
)  # fmt: skip
