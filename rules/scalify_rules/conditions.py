"""What laws on integers, ranges and numbers that may be infinite state: the claims that are proved for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.prove.rule import Claim, stated

if TYPE_CHECKING:
    from scalify.prove.proof.claims import Setting
    from scalify.prove.proof.smt import Term


# -- integers and their ranges ---------------------------------------------------------------------------------------------------
def _whole(c: Setting, *names: str) -> list[Term]:
    """Numbers that are integers if the claim's condition says so."""
    integers = c.given("integers")
    return [c.integer(n) if integers else c.real(n) for n in names]


def _implied_by_equality(c: Setting) -> None:
    x, y, q = c.real("x"), c.real("y"), c.real("q")
    c.when("x - q y >= 0 for some q", x - q * y >= 0)
    c.prove(lambda: c.holds(x >= 0) * c.holds(y == 0) == c.holds(y == 0))


def _excludes_equality(c: Setting) -> None:
    x, y = c.real("x"), c.real("y")
    c.when("x - y > 0", x - y > 0)
    c.prove(lambda: c.holds(x == 0) * c.holds(y >= 0) == 0)


def _meets_unequal(c: Setting) -> None:
    (x,) = _whole(c, "x")
    c.prove(lambda: c.holds(x >= 0) * (1 - c.holds(x == 0)) == c.holds(x - 1 >= 0) * (1 - c.holds(x == 0)))


def _divides(c: Setting) -> None:
    """``x div K`` and ``x rem K`` are the numbers d and r with ``x = K d + r`` and ``0 <= r < K``; d is q."""
    x, k, q, d, r = (c.integer(n) for n in ("x", "K", "q", "d", "r"))
    c.suppose(c.z3.And(k >= 1, x == k * d + r, r >= 0, r < k))
    c.lemma(lambda: c.z3.Implies(d >= q + 1, k * (d - q) >= k))
    c.lemma(lambda: c.z3.Implies(d <= q - 1, k * (q - d) >= k))
    c.when("K q <= x", k * q <= x)
    c.when("x <= K q + K - 1", x <= k * q + k - 1)
    c.prove(lambda: c.z3.And(d == q, r == x - k * q))


def _digits(c: Setting) -> None:
    x, k, q, i, d, r = (c.integer(n) for n in ("x", "K", "q", "i", "d", "r"))
    c.suppose(c.z3.And(k >= 1, x == k * d + r, r >= 0, r < k))
    c.lemma(lambda: c.z3.Implies(d >= q + 1, k * (d - q) >= k))
    c.lemma(lambda: c.z3.Implies(d <= q - 1, k * (q - d) >= k))
    c.when("0 <= i", i >= 0)
    c.when("i < K", i < k)
    c.prove(lambda: c.holds(i == r) * c.holds(q == d) == c.holds(x == k * q + i))


def _round(c: Setting) -> None:
    """``floor(k / g)`` is the f with ``g f <= k < g (f + 1)``."""
    g, f, k = c.integer("g"), c.integer("f"), c.integer("k")
    (x,) = _whole(c, "x")
    c.suppose(c.z3.And(g >= 1, g * f <= k, k < g * f + g))
    c.lemma(lambda: c.z3.Implies(x + f >= 0, g * (x + f) >= 0))
    if c.dropped is None:
        c.lemma(lambda: c.z3.Implies(x + f <= -1, g * (x + f) <= -g))
    c.prove(lambda: c.holds(g * x + k >= 0) == c.holds(x + f >= 0))


def _small_part(c: Setting) -> None:
    m = c.integer("m")
    x, y = _whole(c, "x", "y")
    c.suppose(m >= 1)
    c.lemma(lambda: c.z3.Implies(x >= 0, m * x >= 0))
    if c.dropped is None:
        c.lemma(lambda: c.z3.Implies(x <= -1, m * x <= -m))
    c.when("0 <= y", y >= 0)
    c.when("y < m", y < m)
    c.prove(lambda: c.holds(m * x + y >= 0) == c.holds(x >= 0))


def _negated(c: Setting) -> None:
    x, y = c.real("x"), c.real("y")
    c.prove(lambda: c.holds(x < y) == 1 - c.holds(x - y >= 0))
    c.prove(lambda: c.holds(x != y) == 1 - c.holds(x - y == 0))


def _at_end(c: Setting) -> None:
    x = c.real("x")
    c.when("x <= 0", x <= 0)
    c.prove(lambda: c.holds(x >= 0) == c.holds(x == 0))


def _no_multiple(c: Setting) -> None:
    """A number k = g f + r with 0 <= r < g is a multiple of g exactly when r = 0."""
    g, k, f, r = (c.integer(n) for n in ("g", "k", "f", "r"))
    (x,) = _whole(c, "x")
    c.suppose(c.z3.And(g >= 1, k == g * f + r, r >= 0, r < g))
    if c.dropped is None:
        c.lemma(lambda: c.z3.Implies(x + f >= 1, g * (x + f) >= g))
        c.lemma(lambda: c.z3.Implies(x + f <= -1, g * (x + f) <= -g))
    c.when("k no multiple of g", r != 0)
    c.prove(lambda: c.holds(g * x + k == 0) == 0)


def _both_ends(c: Setting) -> None:
    x, y = c.real("x"), c.real("y")
    c.when("x >= 0", x >= 0)
    c.when("y >= 0", y >= 0)
    c.prove(lambda: c.holds(x + y == 0) == c.holds(x == 0) * c.holds(y == 0))


def _split(c: Setting) -> None:
    g = c.integer("g")
    x, y = _whole(c, "x", "y")
    c.suppose(g >= 1)
    if c.dropped is None:
        c.lemma(lambda: c.z3.Implies(x >= 1, g * x >= g))
        c.lemma(lambda: c.z3.Implies(x <= -1, g * x <= -g))
    c.when("-g < y", -g < y)
    c.when("y < g", y < g)
    c.prove(lambda: c.holds(g * x + y == 0) == c.holds(x == 0) * c.holds(y == 0))


def _wrap(c: Setting) -> None:
    """The number x wrapped is the w in the range that differs from x by a multiple of its length."""
    x, w, t, low, high = (c.integer(n) for n in ("x", "w", "t", "low", "high"))
    length = high - low + 1
    c.suppose(c.z3.And(low <= high, w == x + t * length, low <= w, w <= high))
    if c.dropped is None:
        c.lemma(lambda: c.z3.Implies(t >= 1, t * length >= length))
        c.lemma(lambda: c.z3.Implies(t <= -1, t * length <= -length))
    c.when("low <= x", low <= x)
    c.when("x <= high", x <= high)
    c.prove(lambda: w == x)


def _remainder(c: Setting) -> None:
    """The quotient d and the remainder e of K y + r by K."""
    k, y, r, d, e = (c.integer(n) for n in ("K", "y", "r", "d", "e"))
    c.suppose(c.z3.And(k >= 1, k * y + r == k * d + e, e >= 0, e < k))
    c.lemma(lambda: c.z3.Implies(d >= y + 1, k * (d - y) >= k))
    c.lemma(lambda: c.z3.Implies(d <= y - 1, k * (y - d) >= k))
    c.when("0 <= r", r >= 0)
    c.when("r < K", r < k)
    c.prove(lambda: c.z3.And(d == y, e == r))


def _sign(c: Setting) -> None:
    (x,) = _whole(c, "x")
    sign = c.holds(x > 0) - c.holds(x < 0)
    c.when("x >= 0", x >= 0)
    c.prove(lambda: c.z3.And(sign == c.holds(x - 1 >= 0), c.z3.If(x >= 0, x, -x) == x))


IMPLIED_BY_EQUALITY = Claim(_implied_by_equality, ("x - q y >= 0 for some q",))
EXCLUDES_EQUALITY = Claim(_excludes_equality, ("x - y > 0",))
MEETS_UNEQUAL = Claim(_meets_unequal, ("integers",))
DIVIDES = Claim(_divides, ("K q <= x", "x <= K q + K - 1"))
DIGITS = Claim(_digits, ("0 <= i", "i < K"))
ROUND = Claim(_round, ("integers",))
SMALL_PART = Claim(_small_part, ("integers", "0 <= y", "y < m"))
NEGATED = Claim(_negated)
AT_END = Claim(_at_end, ("x <= 0",))
NO_MULTIPLE = Claim(_no_multiple, ("integers", "k no multiple of g"))
BOTH_ENDS = Claim(_both_ends, ("x >= 0", "y >= 0"))
SPLIT = Claim(_split, ("integers", "-g < y", "y < g"))
WRAP = Claim(_wrap, ("low <= x", "x <= high"))
REMAINDER = Claim(_remainder, ("0 <= r", "r < K"))
SIGN = Claim(_sign, ("integers", "x >= 0"))
CLAMP = (
    stated("(min (max x (num a)) (num b))", "(max (min x (num b)) (num a))", "(<= a b)"),
    stated("(min (max x (num a)) (num b))", "(num b)", "(<= b a)"),
    stated("(+ x (max *r))", "(max (each (+ x _) *r))"),
    stated("(scale q (max *r))", "(max (each (scale q _) *r))", "(< 0 q)"),
    stated("(max (num a) (max (num b) x))", "(max (num b) x)", "(<= a b)"),
)


# -- numbers that may be infinite --------------------------------------------------------------------------------------------------
def _cancel_sum(c: Setting) -> None:
    x = c.extended("x")
    zero = c.finite_number(0)
    c.when("x finite", x.finite)
    c.prove(lambda: c.z3.And((x + -x).same(zero), (zero * x).same(zero)))


def _select_product(c: Setting) -> None:
    x, p = c.extended("x"), c.truth("p")
    zero = c.finite_number(0)
    product = zero.of(p) * x
    c.when("x finite", x.finite)
    c.prove(lambda: c.z3.And(c.z3.Implies(p == 1, product.same(x)), c.z3.Implies(p == 0, product.same(zero))))


def _exp_negative(c: Setting) -> None:
    """exp(-x) = 1/exp(x)."""
    x = c.extended("x")
    exp = c.z3.Function("exp", c.z3.RealSort(), c.z3.RealSort())
    c.suppose(c.z3.And(exp(x.value) > 0, exp(x.value) * exp(-x.value) == 1))
    c.when("x_i finite", x.finite)
    c.prove(lambda: (-x).exponential(exp).same(x.exponential(exp).inverse()))


def _exp_infinity(c: Setting) -> None:
    """exp(x - inf) = 0."""
    x = c.extended("x")
    exp = c.z3.Function("exp", c.z3.RealSort(), c.z3.RealSort())
    c.when("x finite", x.finite)
    c.prove(lambda: (x + -c.infinity()).exponential(exp).same(c.finite_number(0)))


CANCEL_SUM = Claim(_cancel_sum, ("x finite",))
SELECT_PRODUCT = Claim(_select_product, ("x finite",))
EXP_NEGATIVE = Claim(_exp_negative, ("x_i finite",))
EXP_INFINITY = Claim(_exp_infinity, ("x finite",))
