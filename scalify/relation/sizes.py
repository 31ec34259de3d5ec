"""Sizes of factors from shapes: products of factors that must equal dimensions.

Every dimension of a map gives one equation ``product of (factor - padding) = dimension + padding``. An equation with one unknown
gives its value; that is repeated until nothing changes. Steps of an entry are solved together: the shape between two
steps is unknown at first. A factor name means the same size in all steps only where a step cannot settle it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scalify.relation.file import Place

Variable = tuple[int, str]
"""A factor, by step and name; the size is the one right of the arrow. Dimensions between steps are named ``#i``."""


@dataclass(frozen=True, slots=True)
class Equation:
    """``product of (variable - minus) = total + plus``; ``label`` and ``text`` say what it is, for errors."""

    terms: tuple[tuple[Variable, int], ...]
    total: int | Variable
    plus: int
    label: str
    text: str
    place: Place


class Sizes:
    """Known sizes, growing while equations are solved."""

    def __init__(self, known: Mapping[Variable, int]) -> None:
        self.values: dict[Variable, int] = dict(known)

    def total(self, equation: Equation) -> int | None:
        if isinstance(equation.total, int):
            return equation.total
        return self.values.get(equation.total)

    def solve(self, equations: Sequence[Equation], pads: Mapping[Variable, int], context: str) -> dict[Variable, int]:
        """Values of all variables.

        Raises:
            RelationError: a contradiction, or a factor that shapes do not fix.
        """
        while True:
            news = sum(self._propagate(equation, context) for equation in equations)
            if not news and not self._borrow(equations, pads):
                break
        self._check_complete(equations, context)
        return self.values

    def _propagate(self, equation: Equation, context: str) -> bool:
        """Learn from one equation; whether anything is new."""
        product = 1
        unknown: list[tuple[Variable, int]] = []
        for variable, minus in equation.terms:
            value = self.values.get(variable)
            if value is None:
                unknown.append((variable, minus))
            elif value < minus:
                raise equation.place.error(f"factor {variable[1]} has size {value}, less than its padding {minus}{context}")
            else:
                product *= value - minus
        total = self.total(equation)
        if total is None:
            return not unknown and self._learn_total(equation, product, context)
        total += equation.plus
        if not unknown:
            if product != total:
                raise equation.place.error(
                    f"{self._product(equation, product)}, but {equation.label} has {total}{_padded(equation)}{context}"
                )
            return False
        return self._divide(equation, unknown, product, total, context)

    def _learn_total(self, equation: Equation, product: int, context: str) -> bool:
        assert not isinstance(equation.total, int)
        if product < equation.plus:
            raise equation.place.error(
                f"{self._product(equation, product)}, less than the padding {equation.plus} of {equation.label}{context}"
            )
        self.values[equation.total] = product - equation.plus
        return True

    def _divide(self, equation: Equation, unknown: list[tuple[Variable, int]], product: int, total: int, context: str) -> bool:
        if product == 0 and total == 0:
            return False
        if product == 0 or total % product:
            known = " * ".join(f"{v[1]} = {self.values[v] - m}" for v, m in equation.terms if v in self.values)
            raise equation.place.error(f"{equation.label} has {total} elements{_padded(equation)}, which {known} does not divide{context}")
        quotient = total // product
        if len(unknown) > 1 and quotient != 1:
            return False
        self.values.update({variable: quotient + minus for variable, minus in unknown})
        return True

    def _borrow(self, equations: Iterable[Equation], pads: Mapping[Variable, int]) -> bool:
        """Give one unknown factor the size that its name has in another step."""
        for equation in equations:
            for (step, name), _ in equation.terms:
                if (step, name) in self.values:
                    continue
                other = next((s for s, n in self.values if n == name and not n.startswith("#")), None)
                if other is None:
                    continue
                low, high = sorted((step, other))
                between = sum(pads.get((s, name), 0) for s in range(low + 1, high + 1))
                self.values[step, name] = self.values[other, name] + (between if step > other else -between)
                return True
        return False

    def _check_complete(self, equations: Iterable[Equation], context: str) -> None:
        for equation in equations:
            for variable, _ in equation.terms:
                if variable not in self.values:
                    raise equation.place.error(
                        f"the size of factor {variable[1]} in {equation.text} does not follow from the shapes; "
                        f"give it as `sizes: {{{variable[1]}: N}}`{context}"
                    )

    def _product(self, equation: Equation, product: int) -> str:
        factors = " * ".join(str(self.values[v] - m) for v, m in equation.terms)
        return f"{equation.text} is {f'{factors} = ' if len(equation.terms) > 1 else ''}{product}"


def _padded(equation: Equation) -> str:
    return f" (with padding {equation.plus})" if equation.plus else ""
