"""Elements of arrays: exact numbers where they are known (indices, constants), polynomials over symbols where they are not.

A symbol stands for any real number, or for a function of polynomials. Equal polynomials are equal for all values of the symbols; z3 decides for those
that are not written alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from scalify.prove.proof.smt import Algebra

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from scalify.prove.proof.smt import Formula, Value

Number = int | Fraction
Monomial = tuple[tuple[int, int], ...]  # symbol numbers with their exponents, ascending


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Monomials with their coefficients, ascending; never a constant alone."""

    terms: tuple[tuple[Monomial, Number], ...]


Element = Number | Polynomial
_ONE: Monomial = ()


class Elements:
    """Arithmetic on elements, and the question whether two are equal for all values of the symbols."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._contents: list[tuple[str, tuple[Element, ...]]] = []
        self._values: dict[int, Value] = {}
        self._algebra: Algebra | None = None

    # -- symbols -----------------------------------------------------------------------------------------------------------------
    def symbol(self, name: str) -> Element:
        """An unknown real number."""
        return self._atom(f"real {name}", ())

    def truth(self, name: str) -> Element:
        """An unknown 0/1 value."""
        return self._atom(f"truth {name}", ())

    @property
    def undefined(self) -> Element:
        """What has no value."""
        return self._atom("undefined", ())

    def _atom(self, name: str, args: tuple[Element, ...], key: Hashable = None) -> Polynomial:
        content = (name, args if key is None else key)
        number = self._numbers.setdefault(content, len(self._contents))
        if number == len(self._contents):
            self._contents.append((name, args))
        return Polynomial(((((number, 1),), 1),))

    # -- arithmetic --------------------------------------------------------------------------------------------------------------
    def add(self, xs: Sequence[Element]) -> Element:
        if len(xs) == 1:
            return xs[0]
        found: dict[Monomial, Number] = {}
        for x in xs:
            for monomial, c in _terms(x):
                found[monomial] = found.get(monomial, 0) + c
        return _polynomial(found)

    def multiply(self, xs: Sequence[Element]) -> Element:
        known: Number = 1
        unknown: list[Polynomial] = []
        for x in xs:
            if isinstance(x, Polynomial):
                unknown.append(x)
            else:
                known *= x
        found: dict[Monomial, Number] = {_ONE: known}
        for p in unknown:
            product: dict[Monomial, Number] = {}
            for a, c in found.items():
                for b, d in p.terms:
                    monomial = _joined(a, b)
                    product[monomial] = product.get(monomial, 0) + c * d
            found = product
        return _polynomial(found)

    def power(self, x: Element, exponent: int) -> Element:
        base = x if exponent >= 0 else self.inverse(x)
        return self.multiply([base] * abs(exponent)) if exponent != 1 else base

    def inverse(self, x: Element) -> Element:
        if isinstance(x, Polynomial):
            return self._atom("inv", (x,))
        return self.undefined if x == 0 else Fraction(1) / x

    def greatest(self, xs: Sequence[Element]) -> Element:
        """The maximum: flat, of equal values one, in any order."""
        flat = [y for x in xs for y in self._members(x)]
        numbers = [x for x in flat if not isinstance(x, Polynomial)]
        unknown = {x: None for x in flat if isinstance(x, Polynomial)}
        if not unknown:
            return max(numbers)
        parts = (*unknown, *([max(numbers)] if numbers else []))
        return parts[0] if len(parts) == 1 else self._atom("max", parts, frozenset(parts))

    def _members(self, x: Element) -> Sequence[Element]:
        """What a maximum is taken over."""
        if isinstance(x, Polynomial) and len(x.terms) == 1 and x.terms[0][1] == 1 and len(x.terms[0][0]) == 1:
            ((number, exponent),) = x.terms[0][0]
            name, args = self._contents[number]
            if name == "max" and exponent == 1:
                return args
        return (x,)

    def least(self, xs: Sequence[Element]) -> Element:
        return self.negative(self.greatest([self.negative(x) for x in xs]))

    def negative(self, x: Element) -> Element:
        return self.multiply([-1, x])

    def holds(self, name: str, x: Element) -> Element:
        """``ge0`` or ``eq0``."""
        if isinstance(x, Polynomial):
            return self._atom(name, (x,))
        return int(x >= 0 if name == "ge0" else x == 0)

    def select(self, p: Element, x: Element, y: Element) -> Element:
        if not isinstance(p, Polynomial):
            return x if p else y
        return self._atom("select", (p, x, y))

    def apply(self, name: str, xs: Sequence[Element]) -> Element:
        """A function of real numbers by its name in patterns, or any other: uninterpreted."""
        return self._atom(name, tuple(xs))

    # -- comparison --------------------------------------------------------------------------------------------------------------
    def differ(self, pairs: Sequence[tuple[Element, Element]]) -> str | None:
        """What is wrong if the two elements of some pair can differ, None when all are equal for all values of the symbols."""
        for a, b in pairs:
            if a == b:
                continue
            if not isinstance(a, Polynomial) and not isinstance(b, Polynomial):
                return f"{a} instead of {b}"
            wrong = self._differ(a, b)
            if wrong is not None:
                return wrong
        return None

    def _differ(self, a: Element, b: Element) -> str | None:
        self._algebra = algebra = Algebra()
        self._values.clear()
        statement = algebra.same(self._value(a), self._value(b))
        z3 = algebra.z3
        truths = [self._values[n].term for n, (name, _) in enumerate(self._contents) if name.startswith("truth ") and n in self._values]
        answer = algebra.prove([z3.Or(t == 0, t == 1) for t in truths], statement)
        if answer.proved:
            return None
        return f"the elements differ for {answer.model}" if answer.model is not None else "equality was not decided"

    def _value(self, x: Element) -> Value:
        assert self._algebra is not None
        algebra = self._algebra
        if not isinstance(x, Polynomial):
            return algebra.number(x)
        return algebra.add([
            algebra.multiply([algebra.number(c), *[self._symbol(n) for n, e in monomial for _ in range(e)]]) for monomial, c in x.terms
        ])  # fmt: skip

    def _symbol(self, number: int) -> Value:
        if number not in self._values:
            name, args = self._contents[number]
            self._values[number] = self._meaning(name, [self._value(a) for a in args])
        return self._values[number]

    def _meaning(self, name: str, args: list[Value]) -> Value:
        assert self._algebra is not None
        algebra = self._algebra
        if name == "undefined":
            return algebra.real(name)._replace(defined=algebra.z3.BoolVal(False))
        if not args:
            return algebra.real(name)
        if name == "max":
            return algebra.greatest(args)
        if len(args) == 1 or name == "select":
            return algebra.apply(name, args)
        z3 = algebra.z3
        function: Callable[..., Formula] = z3.Function(name, *[z3.RealSort()] * (len(args) + 1))
        return algebra.number(0)._replace(term=function(*[a.term for a in args]), defined=algebra.both(*args))


def _terms(x: Element) -> Sequence[tuple[Monomial, Number]]:
    return x.terms if isinstance(x, Polynomial) else ((_ONE, x),)


def _polynomial(found: dict[Monomial, Number]) -> Element:
    left = sorted([(m, c) for m, c in found.items() if c])
    if not left:
        return 0
    if len(left) == 1 and left[0][0] == _ONE:
        return left[0][1]
    return Polynomial(tuple(left))


def _joined(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers = dict(a)
    for n, e in b:
        powers[n] = powers.get(n, 0) + e
    return tuple(sorted(powers.items()))
