"""Elementary functions: exp, log and square root, over the reals."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from scalify.lift import product
from scalify.lift.functions import LAWS, arguments, function, is_maximum, select
from scalify.lift.instance import substitute
from scalify.lift.linear import combine, form, scale
from scalify.lift.terms import BOUND, Index, Number, Store, Term, View, absolute, number, remember


def exponential(store: Store, view: View) -> View:
    """``exp``, as :func:`_exponential` makes it."""
    return remember(store, "exp", [view], lambda v, _: _exponential(store, v[0], 0))


def _exponential(store: Store, view: View, depth: int) -> View:
    """``exp``, as a homomorphism from sums to products: ``exp(sum of c x) = product of exp(|c| x) ** sign(c)``.

    True for finite x. ``exp`` of a masking ``-inf`` is 0 and goes through select, for as many selects inside each other as ``MOST_NESTED``.
    """
    if not store.laws.exponential:
        return store.constant(1) if view.coef == 0 else function(store, "exp", [view])
    entries, constant = form(view)
    if any(term.kind == "infinity" for term, _ in entries) and not all(t.kind == "infinity" or _finite(store, t) for t, _ in entries):
        return function(store, "exp", [view])  # -inf may meet inf
    parts: list[tuple[View, int]] = []
    if constant:
        parts.append(_exp_atom(store, store.constant(1), constant, depth))
    for (term, at), c in entries.items():
        if term.kind == "infinity" and c < 0:
            return store.constant(0)
        parts.append(_exp_atom(store, View(1, term, at), c, depth))
    if len(parts) > 1:
        store.used.add("exp-homomorphism")
    return product.multiply(store, parts)


MOST_NESTED = 4


def _exp_atom(store: Store, view: View, c: Number, depth: int) -> tuple[View, int]:
    if view.term.kind == "fn" and view.term.data[0] == "select" and depth < MOST_NESTED:
        p, a, b = arguments(view)
        return select(store, p, _exponential(store, scale(store, a, c), depth + 1), _exponential(store, scale(store, b, c), depth + 1)), 1
    if view.term.taint and is_maximum(view.term):
        store.used.add("finite-maximum")
    if type(c) is int:
        if view.term.kind == "fn" and view.term.data[0] == "log":
            (inner,) = arguments(view)
            if inner.coef > 0 and inner.term.positive:
                return inner, c
        return function(store, "exp", [view]), c
    return function(store, "exp", [scale(store, view, absolute(c))]), 1 if c > 0 else -1


def _finite(store: Store, term: Term) -> bool:
    """Whether a value is finite for finite inputs: no infinity in it, or a greatest value over a mask that surely lets one through."""
    if not term.taint:
        return True
    key = ("finite", term)
    found: bool | None = store.memo.get(key)
    if found is None:
        parts = [term]
        if term.kind == "fn" and term.data[0] == "max" and all(c > 0 for c, _, _ in term.data[2]):
            parts = [t for _, t, _ in term.data[2]]
        found = all(_masked(t) is not None or not t.taint for t in parts) and any(_lets_through(store, t) for t in parts)
        store.memo[key] = found
    return found


def _masked(term: Term) -> View | None:
    """The mask ``p`` of a greatest value of ``select(p, x, -inf)`` with finite x, over the labels of the ``red`` node."""
    if term.kind != "red" or term.data[0] != "max" or term.data[1] < 0:
        return None
    inner, labels = term.data[2:4]
    if inner.kind != "fn" or inner.data[0] != "select":
        return None
    p, a, b = arguments(View(1, inner, labels))
    if b.term.kind == "infinity" and b.coef < 0 and not a.term.taint:
        return p
    return None


def _lets_through(store: Store, term: Term) -> bool:
    """Whether the mask is 1 at the first or at the last element, wherever its other labels are."""
    mask = _masked(term)
    if mask is None:
        return not term.taint
    sizes = term.data[4]
    corners = ([0] * len(sizes), [n - 1 for n in sizes])
    changes: list[dict[int, Index]] = [{BOUND + j: -1 - k for j, k in enumerate(corner)} for corner in corners]
    return any(substitute(store, mask, change) == store.constant(1) for change in changes)


def logarithm(store: Store, view: View) -> View:
    """``log``, with exponentials taken out: ``log(exp(x) y) = x + log y``; over the reals, for y > 0."""
    if view == store.constant(1):
        return store.constant(0)
    if not store.laws.exponential or view.coef <= 0:
        return function(store, "log", [view])
    parts: list[tuple[Number, View]] = []
    rest: list[product.Factor] = []
    for factor in product.factors_of(view):
        term, exponent, at = factor
        if term.kind == "fn" and term.data[0] == "exp":
            parts.append((exponent, arguments(View(1, term, at))[0]))
        else:
            rest.append(factor)
    if parts:
        store.used.add("log-exp")
    remaining = product.from_factors(store, view.coef, rest)
    if remaining != store.constant(1):
        parts.append((1, function(store, "log", [remaining])))
    return combine(store, parts)


def root(store: Store, view: View) -> View:
    """Square root; exact for the squares of rationals."""
    if view.term is store.one and view.coef >= 0:
        value = Fraction(view.coef)
        top, bottom = _exact_root(value.numerator), _exact_root(value.denominator)
        if top is not None and bottom is not None:
            return store.constant(number(Fraction(top, bottom)))
    return function(store, "sqrt", [view])


def _exact_root(value: int) -> int | None:
    found = isqrt(value)
    return found if found * found == value else None


LAWS["exp"] = lambda store, _, views: exponential(store, views[0])
LAWS["log"] = lambda store, _, views: logarithm(store, views[0])
LAWS["sqrt"] = lambda store, _, views: root(store, views[0])
