"""Products with integer exponents: the normal form of multiply, divide, and of logical and.

A ``mul`` node is a tuple of ``(term, exponent, labels)``. Nested products are flat, rational coefficients belong to the view, 0/1 factors are
idempotent. ``x * x^-1`` cancels only where ``x`` is known to be positive (an exponential, a sum of exponentials); otherwise both
stay, since the graphs may differ where ``x`` is 0.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from scalify.lift.linear import arrange, combine, scale, zero_times
from scalify.lift.terms import MOST_BITS, Labels, LimitReached, Number, Store, Term, View, check_size, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST_EXPONENT_BITS = 2048  #: masks like -1e30 are exponents of exp(1)
MOST_BITS_OF_BOUNDS = 1024  #: a product whose range has larger ends counts as unbounded

Factor = tuple[Term, int, tuple[int, ...]]
Powers = dict[tuple[Term, tuple[int, ...], bool], int]

#: set by scalify.lift.guards: rewrites the factors of a product that has 0/1 factors; None when nothing applies
simplify_guarded: list[Callable[[Store, list[Factor]], tuple[Number, list[Factor]] | None]] = []


def power_of(coef: Number, exponent: int) -> Number:
    """``coef ** exponent``, exactly. :raises LimitReached: it has too many digits."""
    bits = coef.numerator.bit_length() + coef.denominator.bit_length() - 2  # 0 for 1
    if bits * abs(exponent) > MOST_BITS:
        raise LimitReached("bits", MOST_BITS)
    return number(Fraction(coef) ** exponent) if exponent < 0 else coef**exponent


def factors_of(view: View) -> list[Factor]:
    """The factors of the view's term, over the view's slots."""
    _, term, at = view
    if term.kind == "mul":
        return [(t, e, tuple([at[i] for i in labels])) for t, e, labels in term.data]
    if term.kind == "one":
        return []
    return [(term, 1, at)]


def multiply(store: Store, parts: Iterable[tuple[View, int]]) -> View:
    """Product of ``view ** exponent``; a view of coefficient 0 must have a positive exponent."""
    coef: Number = 1
    powers: Powers = {}
    tainted = False
    for view, exponent in parts:
        coef = coef * (view.coef if exponent == 1 else power_of(view.coef, exponent))
        tainted = tainted or view.term.taint
        for term, e, at in factors_of(view):
            key = (term, at, e * exponent > 0)
            powers[key] = powers.get(key, 0) + e * exponent
    if coef == 0 and not tainted:
        return store.constant(0)
    store.charge(len(powers))
    check_size(coef)
    return from_factors(store, number(coef), collect(powers))


def collect(powers: Powers) -> list[Factor]:
    """Factors with idempotent 0/1 terms taken once and positive ones cancelled."""
    found = []
    for (term, at, up), power in powers.items():
        if not up and term.positive and (term, at, True) in powers:
            continue
        exponent = power + powers.get((term, at, False), 0) if up and term.positive else power
        if exponent == 0:
            continue
        if exponent.bit_length() > MOST_EXPONENT_BITS:
            raise LimitReached("exponent-bits", MOST_EXPONENT_BITS)
        found.append((term, 1 if exponent > 0 and term.boolean else exponent, at))
    return found


def merge(factors: Iterable[Factor]) -> list[Factor]:
    """Equal factors taken together."""
    powers: Powers = {}
    for term, e, at in factors:
        key = (term, at, e > 0)
        powers[key] = powers.get(key, 0) + e
    return collect(powers)


def from_factors(store: Store, coef: Number, factors: list[Factor]) -> View:
    """The normal form of ``coef * product of factors``; no factor is itself a product or a constant."""
    if simplify_guarded and store.laws.guards and len(factors) > 1 and any(t.boolean for t, _, _ in factors):
        found = simplify_guarded[0](store, factors)
        if found is not None:
            by, factors = found
            coef = number(coef * by)
    if coef == 0:
        return zero_times(store, plain(store, 1, factors))
    return plain(store, coef, factors)


def plain(store: Store, coef: Number, factors: list[Factor]) -> View:
    """The node of a product as it stands."""
    if not factors:
        return View(coef, store.one, ())
    if len(factors) == 1 and factors[0][1] == 1:
        term, _, at = factors[0]
        return scale(store, View(1, term, at), coef)
    entries = arrange(factors)  # type: ignore[arg-type]
    labels = Labels()
    data = tuple([(t, e, labels.sized(at, t.sizes)) for t, e, at in entries])
    term = store.node("mul", data, tuple(labels.sizes), _facts)
    return View(coef, term, tuple(labels.slots))


def is_exponential(term: Term) -> bool:
    """An exponential that is not 0: its powers of both signs are always taken together."""
    return term.kind == "fn" and term.data[0] == "exp" and term.positive


def _facts(term: Term) -> None:
    factors = term.data
    term.taint = any(t.taint for t, _, _ in factors)
    term.scaled = any(is_exponential(t) for t, _, _ in factors)
    term.positive = all(t.positive for t, _, _ in factors)
    if not all(t.integer and e > 0 for t, e, _ in factors):
        return
    term.integer = True
    low = high = 1
    for t, e, _ in factors:
        if t.low is None or t.high is None or e * max(t.low.bit_length(), t.high.bit_length()) > MOST_BITS_OF_BOUNDS:
            return
        ends = [t.low**e, t.high**e] + ([0] if t.low < 0 < t.high else [])
        products = [low * min(ends), low * max(ends), high * min(ends), high * max(ends)]
        low, high = min(products), max(products)
    term.low, term.high = low, high


def times(store: Store, a: View, b: View) -> View:
    """``a * b``."""
    return multiply(store, ((a, 1), (b, 1)))


def divide(store: Store, a: View, b: View) -> View:
    """``a / b`` for a divisor whose coefficient is not 0."""
    return multiply(store, ((a, 1), (b, -1)))


def all_of(store: Store, conditions: Iterable[View]) -> View:
    """Logical and of 0/1 views."""
    return multiply(store, [(c, 1) for c in conditions])


def complement(store: Store, condition: View) -> View:
    """Logical not of a 0/1 view."""
    return combine(store, ((-1, condition),), 1)
