"""Every declared law in the constructors: it is applied where its conditions hold, and not where one of them fails.

The statements themselves are proved by ``scalify rules --check``; here is shown that the code looks at each condition that is declared.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from scalify_rules import catalogue

from scalify.lift.atoms import infinity, iota, parameter
from scalify.lift.compare import at_least_zero, compare, equals_zero
from scalify.lift.einsum import total
from scalify.lift.elementary import exponential, logarithm
from scalify.lift.extremum import greatest, product_over
from scalify.lift.functions import (
    clamp,
    either,
    integer_quotient,
    magnitude,
    maximum,
    minimum,
    remainder,
    select,
    sign,
    wrap,
)
from scalify.lift.instance import substitute
from scalify.lift.linear import add, combine, negate, scale, subtract
from scalify.lift.product import complement, divide, multiply, times
from scalify.lift.terms import Store, View
from scalify.prove.rule import Law

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (2, 2, 3, 3)  #: of slots 0 to 3
LAWS = [entry for entry in catalogue() if isinstance(entry, Law)]


class Terms(Store):
    """A store with short names for what the examples are made of."""

    def real(self, name: str, *slots: int) -> View:
        return parameter(self, (name,), [(s, SIZES[s]) for s in slots or (0,)], None)

    def whole(self, name: str, low: int, high: int) -> View:
        return parameter(self, (name,), [(0, 2)], (low, high))

    @property
    def x(self) -> View:
        return self.real("x")

    @property
    def y(self) -> View:
        return self.real("y")

    @property
    def n(self) -> View:
        return self.whole("n", -50, 50)

    @property
    def p(self) -> View:
        return self.whole("p", 0, 1)

    @property
    def q(self) -> View:
        return self.whole("q", 0, 1)

    @property
    def some(self) -> View:
        """0, 1 or 2: no 0/1 value."""
        return self.whole("some", 0, 2)

    @property
    def e(self) -> View:
        return exponential(self, self.x)

    @property
    def masked(self) -> View:
        """x where it is positive, else -inf."""
        return select(self, compare(self, "GT", self.x, self.number(0)), self.x, scale(self, infinity(self, 1), -1))

    def number(self, value: int) -> View:
        return self.constant(value)

    def plus(self, a: View, k: int, by: int = 1) -> View:
        """``by * a + k``."""
        return combine(self, ((by, a),), k)

    def form(self, by: int, a: View, b: View) -> View:
        """``by * a + b``."""
        return combine(self, ((by, a), (1, b)))

    def ge(self, a: View, k: int = 0) -> View:
        return at_least_zero(self, self.plus(a, k))

    def eq(self, a: View, k: int = 0) -> View:
        return equals_zero(self, self.plus(a, k))

    def all(self, *views: View) -> View:
        return multiply(self, [(v, 1) for v in views])

    def sum(self, view: View, *slots: int) -> View:
        return total(self, view, {s: SIZES[s] for s in slots})

    def stack(self, count: int) -> View:
        """``sum_k [i = k] x_k`` along slot 2."""
        return combine(self, [(1, times(self, self.eq(iota(self, 2, 3), -k), self.real(f"x{k}"))) for k in range(count)])

    def equal_booleans(self, a: View, b: View) -> View:
        return combine(self, ((-1, a), (-1, b), (2, times(self, a, b))), 1)

    def digits(self, i: View, q: View) -> tuple[View, View]:
        """``[i = x rem 3] [q = x div 3]`` and ``[x = 3 q + i]``."""
        x = self.whole("position", 0, 8)
        low, high = remainder(self, x, 3), integer_quotient(self, x, 3)
        assert low is not None
        assert high is not None
        both = self.all(equals_zero(self, subtract(self, low, i)), equals_zero(self, subtract(self, high, q)))
        return both, equals_zero(self, combine(self, ((1, x), (-3, q), (-1, i))))

    def quotient_is_one(self, x: View) -> View:
        """``[x div 4 = 1]``."""
        found = integer_quotient(self, x, 4)
        assert found is not None
        return self.eq(found, -1)


def _clamped(s: Terms, low: int, high: int) -> tuple[View, View]:
    a, b = s.number(low), s.number(high)
    return minimum(s, maximum(s, s.x, a), b), maximum(s, minimum(s, s.x, b), a)


def _taken(s: Terms, extra: int) -> bool:
    """The lowest digit of ``4 n + m`` for m from ``min(extra, 0)`` to ``3 + max(extra, 0)``."""
    n, m = s.whole("n", 1, 5), s.whole("m", min(extra, 0), 3 + max(extra, 0))
    form = s.form(4, n, m)
    return remainder(s, form, 4) == m or integer_quotient(s, form, 4) == n


def _small(s: Terms, low: int, high: int, a: View) -> bool:
    return at_least_zero(s, s.form(4, a, s.whole("m", low, high))) == at_least_zero(s, a)


def _split(s: Terms, low: int, high: int, a: View) -> bool:
    m = s.whole("m", low, high)
    return equals_zero(s, s.form(4, a, m)) == s.all(s.eq(a), s.eq(m))


def _ends(s: Terms, low: int, other: int) -> bool:
    n, m = s.whole("n", low, 5), s.whole("m", other, 5)
    return equals_zero(s, add(s, n, m)) == s.all(s.eq(n), s.eq(m))


def _hits(s: Terms, most: int) -> bool:
    x = s.whole("x", 0, most)
    return s.sum(equals_zero(s, combine(s, ((1, x), (-3, iota(s, 3, 3)), (-1, iota(s, 2, 3))))), 2, 3) == s.number(1)


def _picked(s: Terms, index: int) -> View:
    return s.sum(s.all(s.eq(iota(s, 2, 3), -index), s.real("c", 2)), 2)


#: the law gives what it says
HOLDS: dict[str, Callable[[Terms], bool]] = {
    "linear-combination": lambda s: add(s, s.x, add(s, s.y, s.x)) == combine(s, ((2, s.x), (1, s.y))),
    "cancel-sum": lambda s: subtract(s, s.x, s.x) == s.number(0) == scale(s, s.x, 0),
    "common-factor": lambda s: combine(s, ((2, s.x), (4, s.y))) == scale(s, combine(s, ((1, s.x), (2, s.y))), 2),
    "common-exponential": lambda s: add(s, s.all(s.e, s.real("a")), s.all(s.e, s.real("b"))) == s.all(s.e, add(s, s.real("a"), s.real("b"))),
    "product-form": lambda s: times(s, times(s, s.x, s.y), s.e) == times(s, s.x, times(s, s.e, s.y)),
    "cancel-product": lambda s: divide(s, s.e, s.e) == s.number(1),
    "idempotent": lambda s: times(s, s.p, s.p) == s.p,
    "sum-inline": lambda s: s.sum(s.all(s.x, s.sum(s.real("b", 0, 2), 2), s.real("c", 0, 3)), 0) == s.sum(s.all(s.x, s.real("b", 0, 2), s.real("c", 0, 3)), 0, 2),
    "sum-factor": lambda s: s.sum(s.all(s.real("a", 1), s.real("b", 0, 1)), 0) == s.all(s.real("a", 1), s.sum(s.real("b", 0, 1), 0)),
    "sum-components": lambda s: s.sum(s.all(s.x, s.real("c", 2)), 0, 2) == s.all(s.sum(s.x, 0), s.sum(s.real("c", 2), 2)),
    "sum-linear": lambda s: s.sum(combine(s, ((2, s.x), (3, s.y))), 0) == combine(s, ((2, s.sum(s.x, 0)), (3, s.sum(s.y, 0)))),
    "sum-unused": lambda s: s.sum(s.real("a", 1), 0) == scale(s, s.real("a", 1), 2),
    "one-hot": lambda s: _picked(s, 1) == substitute(s, s.real("c", 2), {2: -2}),
    "one-hot-outside": lambda s: _picked(s, 3) == _picked(s, -1) == s.number(0),
    "digit-hit": lambda s: _hits(s, 8),
    "stack": lambda s: s.sum(s.all(s.stack(3), s.real("c", 2)), 2) == combine(s, [(1, s.all(s.real(f"x{k}"), substitute(s, s.real("c", 2), {2: -1 - k}))) for k in range(3)]),
    "index-in-place": lambda s: substitute(s, s.sum(s.real("c", 2, 3), 2), {3: -2}) == s.sum(substitute(s, s.real("c", 2, 3), {3: -2}), 2),
    "guard-implied": lambda s: s.all(s.ge(s.n), s.ge(s.n, 3)) == s.ge(s.n),
    "guard-implied-by-equality": lambda s: s.all(s.ge(s.n, 1), s.eq(s.n)) == s.eq(s.n),
    "guard-excluded": lambda s: s.all(s.ge(s.n), at_least_zero(s, s.plus(s.n, -1, -1))) == s.number(0),
    "guard-excludes-equality": lambda s: s.all(s.eq(s.n), s.ge(s.n, -1)) == s.number(0),
    "guard-meets": lambda s: s.all(s.ge(s.n), s.ge(negate(s, s.n))) == s.eq(s.n),
    "guard-meets-unequal": lambda s: s.all(s.ge(s.n), complement(s, s.eq(s.n))) == s.ge(s.n, -1),
    "guard-resolves": lambda s: s.all(s.ge(s.n), equals_zero(s, subtract(s, clamp(s, s.n, 0, None), s.whole("m", -50, 50)))) == s.all(s.ge(s.n), equals_zero(s, subtract(s, s.n, s.whole("m", -50, 50)))),
    "guard-divides": lambda s: s.all(s.ge(_n20(s), -4), at_least_zero(s, s.plus(_n20(s), 7, -1)), s.quotient_is_one(_n20(s))) == s.all(s.ge(_n20(s), -4), at_least_zero(s, s.plus(_n20(s), 7, -1))),
    "guard-digits": lambda s: _same(s.digits(iota(s, 2, 3), iota(s, 3, 3))),
    "condition-scale": lambda s: at_least_zero(s, scale(s, s.x, Fraction(2, 3))) == s.ge(s.x),
    "condition-round": lambda s: at_least_zero(s, s.plus(s.n, 5, 3)) == s.ge(s.n, 1),
    "condition-small": lambda s: _small(s, 0, 3, s.n),
    "condition-opposite": lambda s: at_least_zero(s, s.plus(s.n, -1, -1)) == complement(s, s.ge(s.n)),
    "condition-negated": lambda s: compare(s, "LT", s.x, s.y) == complement(s, compare(s, "GE", s.x, s.y)) and compare(s, "NE", s.x, s.y) == complement(s, compare(s, "EQ", s.x, s.y)),
    "condition-at-end": lambda s: s.ge(s.whole("m", -5, 0)) == s.eq(s.whole("m", -5, 0)),
    "condition-positive": lambda s: s.ge(s.e) == s.number(1) and s.eq(s.e) == s.number(0),
    "equality-multiple": lambda s: equals_zero(s, s.plus(s.n, 1, 2)) == s.number(0),
    "equality-ends": lambda s: _ends(s, 0, 0),
    "equality-digits": lambda s: _split(s, -3, 3, s.n),
    "equality-boolean": lambda s: s.eq(s.p) == complement(s, s.p) and s.eq(s.p, -1) == s.p,
    "booleans-equal": lambda s: compare(s, "EQ", s.p, s.q) == s.equal_booleans(s.p, s.q),
    "condition-guarded": lambda s: s.ge(s.all(s.ge(s.n), s.n), 1) == s.number(1),
    "max-form": lambda s: maximum(s, s.x, maximum(s, s.y, s.x)) == maximum(s, s.y, s.x),
    "max-factor": lambda s: maximum(s, scale(s, s.x, 2), scale(s, s.y, 2)) == scale(s, maximum(s, s.x, s.y), 2),
    "max-boolean": lambda s: maximum(s, s.p, s.q) == either(s, s.p, s.q) and minimum(s, s.p, s.q) == s.all(s.p, s.q),
    "clamp": lambda s: _same(_clamped(s, 0, 2)) and clamp(s, s.plus(s.x, 3, 2), 1, None) == s.plus(clamp(s, s.x, -1, None), 3, 2),
    "clamp-range": lambda s: clamp(s, s.n, -50, 50) == s.n and clamp(s, s.n, 60, None) == s.number(60),
    "max-reduction": lambda s: greatest(s, s.real("a", 1), {0: 2}) == s.real("a", 1) and greatest(s, greatest(s, s.real("b", 0, 2), {0: 2}), {2: 3}) == greatest(s, s.real("b", 0, 2), {0: 2, 2: 3}),
    "max-reduction-parts": lambda s: greatest(s, scale(s, s.x, 2), {0: 2}) == scale(s, greatest(s, s.x, {0: 2}), 2),
    "product-unused": lambda s: product_over(s, s.real("a", 1), {0: 2}) == s.all(s.real("a", 1), s.real("a", 1)),
    "select-product": lambda s: select(s, s.ge(s.n), s.x, s.number(0)) == s.all(s.ge(s.n), s.x),
    "select-nested": lambda s: select(s, s.p, select(s, s.q, s.x, s.y), s.y) == select(s, s.all(s.p, s.q), s.x, s.y),
    "select-negated": lambda s: select(s, complement(s, s.p), s.x, s.y) == select(s, s.p, s.y, s.x),
    "select-same": lambda s: select(s, s.p, s.x, s.x) == s.x,
    "select-factor": lambda s: select(s, s.p, s.all(s.q, s.x), s.all(s.q, s.y)) == s.all(s.q, select(s, s.p, s.x, s.y)),
    "select-constants": lambda s: select(s, s.p, s.number(5), s.number(3)) == s.plus(s.p, 3, 2),
    "exp-homomorphism": lambda s: exponential(s, subtract(s, s.x, s.y)) == divide(s, s.e, exponential(s, s.y)),
    "exp-infinity": lambda s: exponential(s, subtract(s, s.x, infinity(s, 1))) == s.number(0),
    "exp-of-log": lambda s: exponential(s, logarithm(s, s.plus(s.e, 1))) == s.plus(s.e, 1),
    "log-exp": lambda s: logarithm(s, s.all(s.e, s.y)) == add(s, s.x, logarithm(s, s.y)),
    "wrap-range": lambda s: wrap(s, s.whole("m", 0, 3), 0, 3) == s.whole("m", 0, 3),
    "remainder-digits": lambda s: _taken(s, 0),
    "sign-range": lambda s: sign(s, s.whole("m", 0, 5)) == s.ge(s.whole("m", 0, 5), -1) and magnitude(s, s.whole("m", 0, 5)) == s.whole("m", 0, 5),
    "sign-positive": lambda s: sign(s, s.e) == s.number(1) and magnitude(s, s.e) == s.e,
    "sign-scale": lambda s: sign(s, scale(s, s.x, 2)) == sign(s, s.x) and magnitude(s, scale(s, s.x, -2)) == scale(s, magnitude(s, s.x), 2),
}  # fmt: skip


def _n20(s: Terms) -> View:
    return s.whole("twenty", 0, 20)


def _same(pair: tuple[View, View]) -> bool:
    return pair[0] == pair[1]


def _unresolved(s: Terms, guard: View) -> bool:
    """Whether a quotient stays in a product whose guard does not settle it."""
    return s.all(guard, s.quotient_is_one(_n20(s))) != guard


#: where one condition fails, the law is not applied
FAILS: dict[tuple[str, str], Callable[[Terms], bool]] = {
    ("cancel-sum", "x finite"): lambda s: subtract(s, s.masked, s.masked) != s.number(0) and scale(s, s.masked, 0) != s.number(0),
    ("cancel-product", "(positive x)"): lambda s: divide(s, s.x, s.x) != s.number(1),
    ("idempotent", "(boolean p)"): lambda s: times(s, s.some, s.some) != s.some,
    ("sum-inline", "r.. independent of w"): lambda s: s.sum(s.all(s.real("r", 0, 2), s.sum(s.real("b", 0, 2), 2)), 0) != s.sum(s.all(s.real("r", 0, 2), s.real("b", 0, 2)), 0, 2),
    ("sum-inline", "v and w distinct"): lambda s: s.sum(s.all(s.x, s.sum(s.y, 0)), 0) != s.sum(s.all(s.x, s.y), 0),
    ("sum-factor", "(free v x)"): lambda s: s.sum(s.all(s.x, s.y), 0) != s.all(s.x, s.sum(s.y, 0)),
    ("sum-components", "factors that share no label"): lambda s: s.sum(s.all(s.x, s.y), 0) != s.all(s.sum(s.x, 0), s.sum(s.y, 0)),
    ("sum-unused", "x independent of v"): lambda s: s.sum(s.x, 0) != scale(s, s.x, 2),
    ("one-hot", "0 <= k < size(v)"): lambda s: s.sum(s.all(equals_zero(s, subtract(s, iota(s, 2, 3), s.whole("k", -1, 5))), s.real("c", 2)), 2).term.kind == "sum",
    ("one-hot-outside", "e < 0 or e >= size(v)"): lambda s: _picked(s, 0) != s.number(0) != _picked(s, 2),
    ("digit-hit", "0 <= x < n m"): lambda s: not _hits(s, 9),
    ("stack", "as many parts as v has values"): lambda s: s.sum(s.all(s.stack(2), s.real("c", 2)), 2) != s.sum(s.all(s.stack(3), s.real("c", 2)), 2),
    ("index-in-place", "f binds neither v nor k"): lambda s: substitute(s, s.sum(s.x, 0), {0: -2}) == s.sum(s.x, 0) and substitute(s, s.sum(s.real("b", 0, 1), 0), {1: 0}) != s.sum(substitute(s, s.real("b", 0, 1), {1: 0}), 0),
    ("guard-implied", "(nonneg (- x y))"): lambda s: s.all(s.ge(s.n), s.ge(s.n, -3)) != s.ge(s.n),
    ("guard-implied-by-equality", "x - q y >= 0 for some q"): lambda s: s.all(s.ge(s.n, -1), s.eq(s.n)) != s.eq(s.n),
    ("guard-excluded", "(negative (- x y))"): lambda s: s.all(s.ge(s.n), at_least_zero(s, s.plus(s.n, 0, -1))) != s.number(0),
    ("guard-excludes-equality", "x - y > 0"): lambda s: s.all(s.eq(s.n), s.ge(s.n)) != s.number(0),
    ("guard-meets-unequal", "integers"): lambda s: s.all(s.ge(s.x), complement(s, s.eq(s.x))) not in (s.ge(s.x, -1), s.all(s.ge(s.x, -1), complement(s, s.eq(s.x)))),
    ("guard-divides", "K q <= x"): lambda s: _unresolved(s, at_least_zero(s, s.plus(_n20(s), 7, -1))),
    ("guard-divides", "x <= K q + K - 1"): lambda s: _unresolved(s, s.ge(_n20(s), -4)),
    ("guard-digits", "0 <= i"): lambda s: not _same(s.digits(s.whole("i", -1, 2), iota(s, 3, 3))),
    ("guard-digits", "i < K"): lambda s: not _same(s.digits(s.whole("i", 0, 3), iota(s, 3, 3))),
    ("condition-scale", "(< 0 q)"): lambda s: at_least_zero(s, scale(s, s.x, -2)) != s.ge(s.x),
    ("condition-round", "integers"): lambda s: at_least_zero(s, s.plus(s.x, 5, 3)) != s.ge(s.x, 1),
    ("condition-small", "integers"): lambda s: not _small(s, 0, 3, s.x),
    ("condition-small", "0 <= y"): lambda s: not _small(s, -1, 3, s.n),
    ("condition-small", "y < m"): lambda s: not _small(s, 0, 4, s.n),
    ("condition-opposite", "(integer x)"): lambda s: at_least_zero(s, s.plus(s.x, -1, -1)) != complement(s, s.ge(s.x)),
    ("condition-at-end", "x <= 0"): lambda s: s.ge(s.whole("m", -5, 1)) != s.eq(s.whole("m", -5, 1)),
    ("condition-positive", "(positive x)"): lambda s: s.ge(s.x) != s.number(1) and s.eq(s.x) != s.number(0),
    ("equality-multiple", "integers"): lambda s: equals_zero(s, s.plus(s.x, 1, 2)) != s.number(0),
    ("equality-multiple", "k no multiple of g"): lambda s: equals_zero(s, s.plus(s.n, 4, 2)) != s.number(0),
    ("equality-ends", "x >= 0"): lambda s: not _ends(s, -1, 0),
    ("equality-ends", "y >= 0"): lambda s: not _ends(s, 0, -1),
    ("equality-digits", "integers"): lambda s: not _split(s, -3, 3, s.x),
    ("equality-digits", "-g < y"): lambda s: not _split(s, -4, 3, s.n),
    ("equality-digits", "y < g"): lambda s: not _split(s, -3, 4, s.n),
    ("equality-boolean", "(boolean p)"): lambda s: s.eq(s.some) != complement(s, s.some) and s.eq(s.some, -1) != s.some,
    ("booleans-equal", "(boolean p)"): lambda s: compare(s, "EQ", s.some, s.q) != s.equal_booleans(s.some, s.q),
    ("booleans-equal", "(boolean q)"): lambda s: compare(s, "EQ", s.p, s.some) != s.equal_booleans(s.p, s.some),
    ("condition-guarded", "(boolean g)"): lambda s: s.ge(s.all(s.some, s.n), 1) != s.number(1),
    ("max-factor", "(< 0 q)"): lambda s: maximum(s, negate(s, s.x), negate(s, s.y)) != negate(s, maximum(s, s.x, s.y)),
    ("max-boolean", "(boolean p)"): lambda s: maximum(s, s.some, s.q) != either(s, s.some, s.q) and minimum(s, s.some, s.q) != s.all(s.some, s.q),
    ("max-boolean", "(boolean q)"): lambda s: maximum(s, s.p, s.some) != either(s, s.p, s.some) and minimum(s, s.p, s.some) != s.all(s.p, s.some),
    ("clamp", "(<= a b)"): lambda s: not _same(_clamped(s, 2, 0)),
    ("clamp", "(<= b a)"): lambda s: _clamped(s, 0, 2)[0] != s.number(2),
    ("clamp", "(< 0 q)"): lambda s: clamp(s, negate(s, s.x), 0, None) != negate(s, clamp(s, s.x, 0, None)),
    ("clamp-range", "(nonneg (- x a))"): lambda s: clamp(s, s.n, -49, None) != s.n,
    ("clamp-range", "(nonneg (- a x))"): lambda s: clamp(s, s.n, 49, None) != s.number(49),
    ("max-reduction", "x independent of v"): lambda s: greatest(s, s.x, {0: 2}) != s.x,
    ("max-reduction-parts", "(< 0 q)"): lambda s: greatest(s, negate(s, s.x), {0: 2}) != negate(s, greatest(s, s.x, {0: 2})),
    ("product-unused", "x independent of v"): lambda s: product_over(s, s.x, {0: 2}) != s.all(s.x, s.x),
    ("select-product", "x finite"): lambda s: select(s, s.p, s.masked, s.number(0)).term.kind == "fn",
    ("exp-homomorphism", "x_i finite"): lambda s: divide(s, exponential(s, s.masked), exponential(s, s.masked)) != s.number(1),
    ("exp-infinity", "x finite"): lambda s: exponential(s, subtract(s, negate(s, s.masked), infinity(s, 1))) != s.number(0),
    ("exp-of-log", "(positive x)"): lambda s: exponential(s, logarithm(s, s.x)) != s.x,
    ("log-exp", "(positive x)"): lambda s: logarithm(s, s.all(s.x, s.y)) != add(s, logarithm(s, s.x), logarithm(s, s.y)),
    ("wrap-range", "low <= x"): lambda s: wrap(s, s.whole("m", -1, 3), 0, 3) != s.whole("m", -1, 3),
    ("wrap-range", "x <= high"): lambda s: wrap(s, s.whole("m", 0, 4), 0, 3) != s.whole("m", 0, 4),
    ("remainder-digits", "0 <= r"): lambda s: not _taken(s, -1),
    ("remainder-digits", "r < K"): lambda s: not _taken(s, 1),
    ("sign-range", "integers"): lambda s: sign(s, s.x) != s.ge(s.x, -1),
    ("sign-range", "x >= 0"): lambda s: sign(s, s.n) != s.ge(s.n, -1) and magnitude(s, s.n) != s.n,
    ("sign-positive", "(positive x)"): lambda s: sign(s, s.x) != s.number(1) and magnitude(s, s.x) != s.x,
    ("sign-scale", "(< 0 q)"): lambda s: sign(s, negate(s, s.x)) != sign(s, s.x) and magnitude(s, negate(s, s.x)) != negate(s, magnitude(s, s.x)),
}  # fmt: skip

#: the condition of a select is a predicate: HLO has no other, and the lifter keeps predicates as 0/1 values
BY_TYPE = {
    ("guard-resolves", "(boolean p)"),
    ("select-nested", "(boolean p)"),
    ("select-nested", "(boolean q)"),
    ("select-same", "(boolean p)"),
    ("select-constants", "(boolean p)"),
}
#: laws that transfer functions apply, tested with these
ELSEWHERE = {"power-falling"}


def test_every_law_and_every_condition_has_an_example() -> None:
    assert {law.name for law in LAWS} == HOLDS.keys() | ELSEWHERE
    assert {(law.name, condition) for law in LAWS for part in law.parts for condition in part.when} == FAILS.keys() | BY_TYPE


@pytest.mark.parametrize("name", HOLDS)
def test_the_law_is_applied(name: str) -> None:
    assert HOLDS[name](Terms())


@pytest.mark.parametrize(("name", "condition"), FAILS)
def test_the_law_is_not_applied_where_a_condition_fails(name: str, condition: str) -> None:
    assert FAILS[name, condition](Terms())
