"""What rules in egglog text and laws on axes state, for axes of any size: the claims that are proved for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.prove.rule import Claim

if TYPE_CHECKING:
    from scalify.prove.proof.claims import Setting
    from scalify.prove.proof.smt import Term


# -- sums and maxima ---------------------------------------------------------------------------------------------------------------
def _unused(c: Setting) -> None:
    """The sum over v and w of x(w) is size(v) times that over w alone."""
    n, k = c.size("v"), c.size("w")
    x, y = c.function("x", 1), c.function("y", 2)
    elsewhere = c.index("v0", n)
    free = c.given("x independent of v")

    def value(v: Term, w: Term) -> Term:
        return x(w) if free else y(v, w)

    c.lemma(lambda w: c.total(n, lambda v: value(v, w)) == c.length(n) * value(elsewhere, w), over=n, along=k)
    c.prove(
        lambda: c.total(k, lambda w: c.total(n, lambda v: value(v, w))) == n.length * c.total(k, lambda w: value(elsewhere, w)),
        over=k,
    )


def _unused_greatest(c: Setting) -> None:
    n, k = c.size("v"), c.size("w")
    x, y = c.function("x", 1), c.function("y", 2)
    elsewhere = c.index("v0", n)
    free = c.given("x independent of v")

    def value(v: Term, w: Term) -> Term:
        return x(w) if free else y(v, w)

    c.lemma(lambda w: c.greatest(n, lambda v: value(v, w)) == value(elsewhere, w), over=n, along=k)
    c.prove(
        lambda: c.greatest(k, lambda w: c.greatest(n, lambda v: value(v, w))) == c.greatest(k, lambda w: value(elsewhere, w)),
        over=k,
    )


def _no_axis(c: Setting) -> None:
    """A sum, and a maximum, over no axis has one element."""
    x = c.real("x")
    c.prove(lambda: c.over_axes("total", (), lambda: x) == x)
    c.prove(lambda: c.over_axes("greatest", (), lambda: x) == x)


def _nested(c: Setting) -> None:
    """A sum over w inside one over v is one over both; over the same axis twice it would not be."""
    n, k = c.size("v"), c.size("w")
    x, y = c.function("x", 2), c.function("y", 1)
    if c.given("v and w distinct"):
        c.prove(lambda: c.total(n, lambda v: c.total(k, lambda w: x(v, w))) == c.over_axes("total", (n, k), x))
    else:
        c.prove(lambda: c.total(n, lambda _: c.total(n, y)) == c.total(n, y))


def _nested_greatest(c: Setting) -> None:
    """A maximum over w inside one over v is one over both, also where v and w are one axis."""
    n, k = c.size("v"), c.size("w")
    x, y = c.function("x", 2), c.function("y", 1)
    c.prove(lambda: c.greatest(n, lambda v: c.greatest(k, lambda w: x(v, w))) == c.over_axes("greatest", (n, k), x))
    c.prove(lambda: c.greatest(n, lambda _: c.greatest(k, y)) == c.greatest(k, y), over=n)


def _inline(c: Setting) -> None:
    """sum_v r(v) sum_w x(v, w) = sum_{v,w} r(v) x(v, w)."""
    n, k = c.size("v"), c.size("w")
    r, s, x, y = c.function("r", 1), c.function("s", 2), c.function("x", 2), c.function("y", 1)
    outside = c.index("w0", k)
    free = c.given("r.. independent of w")

    def factor(v: Term, w: Term) -> Term:
        return r(v) if free else s(v, w)

    if c.given("v and w distinct"):
        c.lemma(
            lambda v: factor(v, outside) * c.total(k, lambda w: x(v, w)) == c.total(k, lambda w: factor(v, w) * x(v, w)),
            over=k,
            along=n,
        )
        c.prove(
            lambda: (
                c.total(n, lambda v: factor(v, outside) * c.total(k, lambda w: x(v, w)))
                == c.total(n, lambda v: c.total(k, lambda w: factor(v, w) * x(v, w)))
            ),
            over=n,
        )
    else:
        c.prove(lambda: c.total(n, lambda v: r(v) * c.total(n, y)) == c.total(n, lambda v: r(v) * y(v)))


def _part(c: Setting) -> None:
    """sum_{v,w} x(v) r(v, w) = sum_v x(v) sum_w r(v, w)."""
    n, k = c.size("v"), c.size("w")
    r, x, y = c.function("r", 2), c.function("x", 1), c.function("y", 2)
    outside = c.index("w0", k)
    free = c.given("x independent of w")

    def factor(v: Term, w: Term) -> Term:
        return x(v) if free else y(v, w)

    c.lemma(lambda v: factor(v, outside) * c.total(k, lambda w: r(v, w)) == c.total(k, lambda w: factor(v, w) * r(v, w)), over=k, along=n)
    c.prove(
        lambda: (
            c.total(n, lambda v: c.total(k, lambda w: factor(v, w) * r(v, w)))
            == c.total(n, lambda v: factor(v, outside) * c.total(k, lambda w: r(v, w)))
        ),
        over=n,
    )


def _components(c: Setting) -> None:
    """sum_{v,w} x(v) y(w) = (sum_v x(v)) (sum_w y(w))."""
    n, k = c.size("v"), c.size("w")
    x, y, z = c.function("x", 1), c.function("y", 1), c.function("z", 2)
    there = c.index("v0", n)
    apart = c.given("factors that share no label")

    def second(v: Term, w: Term) -> Term:
        return y(w) if apart else z(v, w)

    c.lemma(lambda v: c.total(k, lambda w: x(v) * second(v, w)) == x(v) * c.total(k, lambda w: second(v, w)), over=k, along=n)
    c.prove(
        lambda: c.total(n, lambda v: c.total(k, lambda w: x(v) * second(v, w))) == c.total(n, x) * c.total(k, lambda w: second(there, w)),
        over=n,
    )


def _power(c: Setting) -> None:
    """A product over an axis that the factor does not depend on: with k values after n, it is the n-th power times the k-th."""
    n = c.size("v")
    x, y, power = c.real("x"), c.function("y", 1), c.function("power of x", 1)
    free = c.given("x independent of v")
    c.suppose(power(0) == 1)

    def factor(v: Term) -> Term:
        return x if free else y(v)

    def statement() -> Term:
        c.suppose(power(c.length(n)) == power(c.length(n) - 1) * factor(c.integer("v0")))
        return c.product(n, factor) == power(c.length(n))

    if c.sizes is not None:
        for k in range(1, 4):
            c.suppose(power(k) == power(k - 1) * factor(c.integer("v0")))
    c.prove(statement, over=n)


UNUSED = Claim(_unused, ("x independent of v",))
UNUSED_GREATEST = Claim(_unused_greatest, ("x independent of v",))
NO_AXIS = Claim(_no_axis)
NESTED = Claim(_nested, ("v and w distinct",))
NESTED_GREATEST = Claim(_nested_greatest)
INLINE = Claim(_inline, ("r.. independent of w", "v and w distinct"))
PART = Claim(_part, ("x independent of w",))
COMPONENTS = Claim(_components, ("factors that share no label",))
POWER = Claim(_power, ("x independent of v",))


# -- one-hot sums --------------------------------------------------------------------------------------------------------------------
def _one_hot(c: Setting) -> None:
    """sum_v [v = k] x(v) = x(k)."""
    n, k, x = c.size("v"), c.integer("k"), c.function("x", 1)
    _pick(c, k)
    c.when("0 <= k < size(v)", c.z3.And(k >= 0, k < n.length))
    c.prove(lambda: c.total(n, lambda v: c.holds(v == k) * x(v)) == x(k))


def _pick(c: Setting, k: Term) -> None:
    """The same with 0 for an index outside, which induction proves."""
    n, x = c.size("v"), c.function("x", 1)
    c.lemma(
        lambda: c.total(n, lambda v: c.holds(v == k) * x(v)) == c.z3.If(c.z3.And(k >= 0, k < c.length(n)), x(k), c.z3.RealVal(0)), over=n
    )


def _outside(c: Setting) -> None:
    """sum_v [v = k] x(v) = 0 for an index outside."""
    n, k, x = c.size("v"), c.integer("k"), c.function("x", 1)
    _pick(c, k)
    c.when("e < 0 or e >= size(v)", c.z3.Or(k < 0, k >= n.length))
    c.prove(lambda: c.total(n, lambda v: c.holds(v == k) * x(v)) == 0)


def _digit_hit(c: Setting) -> None:
    """sum_{b,a} [x = n b + a] = 1: over the digits a, those of n b <= x < n b + n are hit; over b, exactly one is."""
    n, m, x = c.size("a"), c.size("b"), c.integer("x")

    def row(b: Term) -> Term:
        return c.total(n, lambda a: c.holds(x == n.length * b + a))

    def hit(b: Term) -> Term:
        return c.holds(c.z3.And(n.length * b <= x, x < n.length * b + c.length(n)))

    c.lemma(lambda b: c.total(n, lambda a: c.holds(x == n.length * b + a)) == hit(b), over=n, along=m)
    c.lemma(lambda: c.total(m, row) == c.holds(c.z3.And(x >= 0, x < n.length * c.length(m))), over=m)
    c.when("0 <= x < n m", c.z3.And(x >= 0, x < n.length * m.length))
    c.prove(lambda: c.total(m, row) == 1)


def _one_hot_variable(c: Setting) -> None:
    """sum_v [v = w] x(v) = x(w) for an index w of an axis of the same size."""
    n, m, x = c.size("v"), c.size("w"), c.function("x", 1)
    w = c.index("w", m)
    _pick(c, w)
    c.when("size(v) = size(w)", n.length == m.length)
    c.prove(lambda: c.total(n, lambda v: c.holds(v == w) * x(v)) == x(w))


def _instance(c: Setting) -> None:
    """[v = k] x(k) = [v = k] x(v)."""
    v, k, x = c.integer("v"), c.integer("k"), c.function("x", 1)
    c.prove(lambda: c.holds(v == k) * x(k) == c.holds(v == k) * x(v))


def _first_of_two(c: Setting) -> None:
    n = c.size("v")
    v = c.index("v", n)
    c.when("size(v) = 2", n.length == 2)
    c.prove(lambda: c.holds(v == 0) == 1 - c.z3.ToReal(v))


def _substitution(c: Setting) -> None:
    """An index put in place of another goes to the operands, of functions and of reductions over other indices."""
    n, k = c.size("w"), c.integer("k")
    f, x, y = c.z3.Function("f", c.z3.RealSort(), c.z3.RealSort(), c.z3.RealSort()), c.function("x", 1), c.function("y", 2)
    v = c.integer("v")
    c.prove(lambda: c.z3.substitute(f(x(v), x(v + 1)), (v, k)) == f(x(k), x(k + 1)))
    if c.given("f binds neither v nor k"):
        c.prove(lambda: c.z3.substitute(c.total(n, lambda w: y(v, w)), (v, k)) == c.total(n, lambda w: y(k, w)))
    else:
        c.prove(lambda: c.total(n, x) == c.total(n, lambda _: x(k)))


def _stack(c: Setting) -> None:
    """sum_v (sum_k [v = k] x(k)) f(v) = sum_k x(k) f(k), the parts x(0), x(1), ... being as many as v has values."""
    n, m = c.size("v"), c.size("k")
    x, f = c.function("x", 1), c.function("f", 1)

    def part(v: Term) -> Term:
        return c.total(m, lambda k: c.holds(v == k) * x(k))

    def cut(v: Term) -> Term:
        return c.z3.If(c.z3.And(v >= 0, v < c.length(m)), x(v), c.z3.RealVal(0))

    c.lemma(lambda v: part(v) == cut(v), over=m, along=n)
    c.lemma(lambda: c.total(n, lambda v: part(v) * f(v)) == c.total(n, lambda v: cut(v) * f(v)), over=n)
    c.lemma(lambda: c.z3.Implies(c.length(n) <= m.length, c.total(n, lambda v: cut(v) * f(v)) == c.total(n, lambda v: x(v) * f(v))), over=n)
    c.when("as many parts as v has values", m.length == n.length)
    same = n if c.sizes is None else m  # one size, by the condition
    c.prove(lambda: c.total(n, lambda v: part(v) * f(v)) == c.total(same, lambda k: x(k) * f(k)))


ONE_HOT = Claim(_one_hot, ("0 <= k < size(v)",))
OUTSIDE = Claim(_outside, ("e < 0 or e >= size(v)",))
DIGIT_HIT = Claim(_digit_hit, ("0 <= x < n m",))
ONE_HOT_VARIABLE = Claim(_one_hot_variable, ("size(v) = size(w)",))
INSTANCE = Claim(_instance)
FIRST_OF_TWO = Claim(_first_of_two, ("size(v) = 2",))
SUBSTITUTION = Claim(_substitution, ("f binds neither v nor k",))
STACK = Claim(_stack, ("as many parts as v has values",))
