"""The normal forms of the term constructors, declared: what holds by construction and is never searched for."""

from __future__ import annotations

from scalify.prove.rule import Law

_TESTS = "tests/lift/test_laws.py"


def _law(name: str, family: str, statement: str, why: str, where: str, when: str = "") -> Law:
    return Law(name, family, statement, when, why, f"scalify/lift/{where}.py", _TESTS)


LAWS = (
    _law(
        "linear-combination",
        "linear",
        "sums, differences and multiples are flat linear combinations, like terms collected",
        "vector space over the rationals",
        "linear",
    ),
    _law("cancel-sum", "linear", "x - x = 0, 0 x = 0", "vector space over the rationals", "linear", "x finite"),
    _law("common-factor", "linear", "q a + q b = q (a + b), the factor kept outside the term", "distributivity", "linear"),
    _law(
        "product-form",
        "linear",
        "products are flat, with integer exponents and one rational coefficient",
        "commutative ring; 1/(x y) = 1/x 1/y",
        "product",
    ),
    _law("cancel-product", "linear", "x 1/x = 1", "field", "product", "x positive"),
    _law("idempotent", "guards", "p p = p", "0 * 0 = 0 and 1 * 1 = 1", "product", "p is 0 or 1"),
    _law("sum-inline", "einsum", "sum_v (r.. sum_w x) = sum_{v,w} (r.. x)", "distributivity; bound labels are fresh", "einsum"),
    _law("sum-factor", "einsum", "sum_v (x r..) = x sum_v r..", "distributivity", "einsum", "x independent of v"),
    _law(
        "sum-components",
        "einsum",
        "sum_{v,w} (x(v) y(w)) = sum_v x(v) sum_w y(w)",
        "distributivity",
        "einsum",
        "factors that share no label",
    ),
    _law("sum-linear", "einsum", "sum_v (p x + q y) = p sum_v x + q sum_v y", "a finite sum is linear", "einsum"),
    _law("sum-unused", "einsum", "sum_v x = size(v) x", "all summands are equal", "einsum", "x independent of v"),
    _law("one-hot", "one_hot", "sum_v [v = e] f(v) = f(e)", "one summand is not 0", "einsum", "0 <= e < size(v)"),
    _law("stack", "one_hot", "sum_v (sum_k [v = k] x_k) f(v) is multiplied out", "distributivity", "einsum"),
    _law(
        "guard-implied",
        "guards",
        "[x >= 0] [y >= 0] = [y >= 0]",
        "the second condition implies the first",
        "guards",
        "x - y >= 0 from ranges; integers",
    ),
    _law(
        "guard-excluded",
        "guards",
        "[x >= 0] [y >= 0] = 0",
        "both conditions never hold together",
        "guards",
        "-x - y - 1 >= 0 from ranges; integers",
    ),
    _law("guard-meets", "guards", "[x >= 0] [-x >= 0] = [x = 0]", "order is antisymmetric", "guards", "integers"),
    _law(
        "guard-resolves",
        "guards",
        "clamp, select, remainder and quotient take the value that they have where the other factors hold",
        "the product is 0 elsewhere",
        "guards",
        "integers",
    ),
    _law("condition-scale", "guards", "[q x >= 0] = [x >= 0]", "q > 0 keeps the order", "compare", "q > 0"),
    _law("condition-small", "guards", "[m x + y >= 0] = [x >= 0]", "y is too small to change the sign", "compare", "0 <= y < m; integers"),
    _law(
        "max-form",
        "max",
        "nested maxima are flat, sorted and without repetitions",
        "max is associative, commutative and idempotent",
        "functions",
    ),
    _law(
        "clamp", "max", "max and min with constants are one clamp; shifts and scales move out", "monotone maps keep the order", "functions"
    ),
    _law(
        "max-reduction",
        "max",
        "nested reductions of one kind merge; an axis that is not used vanishes",
        "max is associative and idempotent",
        "extremum",
    ),
    _law("select-product", "select", "select(p, x, 0) = p x", "both values of p", "functions", "x finite"),
    _law("select-nested", "select", "select(p, select(q, x, y), y) = select(p q, x, y)", "all values of p and q", "functions"),
    _law("select-negated", "select", "select(1 - p, x, y) = select(p, y, x)", "both values of p", "functions"),
    _law(
        "exp-homomorphism",
        "exponential",
        "exp(sum q_i x_i) = product exp(|q_i| x_i)^sign(q_i)",
        "exp is a homomorphism",
        "functions",
        "x_i finite",
    ),
    _law("exp-infinity", "exponential", "exp(-inf) = 0, also through select", "the limit that floating point takes", "functions"),
    _law("log-exp", "exponential", "log(exp(x) y) = x + log y", "log is a homomorphism", "functions", "y positive"),
)
