"""What lifted terms mean, element by element, from the documented meaning of each kind of node alone."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.lift.terms import BOUND
from scalify.prove.proof.opcodes.functions import UnknownError, function

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from scalify.lift.layout import Value
    from scalify.lift.terms import Index, Store, Term, View
    from scalify.prove.proof.opcodes.elements import Element, Elements

Position = tuple[int, ...]


class Meaning:
    """``leaves`` gives the element of each parameter at an index."""

    def __init__(self, elements: Elements, store: Store, leaves: Mapping[Hashable, Callable[[Position], Element]]) -> None:
        self.elements = elements
        self.store = store
        self.leaves = leaves
        self._known: dict[tuple[Term, Position], Element] = {}

    def value(self, value: Value) -> Iterator[tuple[Position, Element]]:
        """Every element of a lifted value with its index, the position of the device first. :raises UnknownError: it has none."""
        layout = value.layout
        for block, view in zip(layout.blocks, value.views, strict=True):
            dims = [layout.alternative((d,), block) for d in range(len(layout.dims))]
            for slots in itertools.product(*map(range, block.sizes)):
                index = tuple([offset + sum(slots[s] * stride for s, _, stride in digits) for offset, digits in dims])
                yield index, self.view(view, slots)

    def view(self, view: View, slots: Sequence[int]) -> Element:
        return self.elements.multiply([view.coef, self.term(view.term, tuple([slots[s] for s in view.at]))])

    def term(self, term: Term, at: Position) -> Element:
        """A term at values of its labels. The terms of single operations are shallow, so recursion is bounded."""
        key = (term, at)
        if key not in self._known:
            self._known[key] = _KINDS[term.kind](self, term, dict(enumerate(at)))
        return self._known[key]

    def operand(self, term: Term, labels: Sequence[Index], at: Mapping[int, int]) -> Element:
        return self.term(term, tuple([self.place(entry, at) for entry in labels]))

    def place(self, entry: Index, at: Mapping[int, int]) -> int:
        """An index entry: a label, a constant, or a table of labels."""
        if isinstance(entry, tuple):
            return int(self.store.tables[entry[0]][tuple([at[label] for label in entry[1:]])])
        return at[entry] if entry >= 0 else -1 - entry


def _linear(m: Meaning, term: Term, at: dict[int, int]) -> Element:
    entries, constant = term.data
    return m.elements.add([constant, *[m.elements.multiply([c, m.operand(t, labels, at)]) for t, c, labels in entries]])


def _product(m: Meaning, factors: Any, at: dict[int, int]) -> Element:
    return m.elements.multiply([m.elements.power(m.operand(t, labels, at), exponent) for t, exponent, labels in factors])


def _bound(at: Mapping[int, int], sizes: Sequence[int]) -> Iterator[dict[int, int]]:
    for values in itertools.product(*map(range, sizes)):
        yield {**at, **{BOUND + j: v for j, v in enumerate(values)}}


def _sum(m: Meaning, term: Term, at: dict[int, int]) -> Element:
    factors, sizes = term.data
    return m.elements.add([_product(m, factors, inner) for inner in _bound(at, sizes)])


def _reduction(m: Meaning, term: Term, at: dict[int, int]) -> Element:
    name, sign, inner, labels, sizes = term.data
    values = [m.elements.multiply([sign, m.operand(inner, labels, where)]) for where in _bound(at, sizes)]
    return m.elements.greatest(values) if name == "max" else m.elements.multiply(values)


def _function(m: Meaning, term: Term, at: dict[int, int]) -> Element:
    name, attribute, arguments = term.data
    values = [m.elements.multiply([c, m.operand(t, labels, at)]) for c, t, labels in arguments]
    return function(m.elements, name, attribute, values)


def _at_least_zero(m: Meaning, term: Term, at: dict[int, int]) -> Element:
    sign, inner, labels = term.data
    return m.elements.holds("ge0", m.elements.multiply([sign, m.operand(inner, labels, at)]))


def _equals_zero(m: Meaning, term: Term, at: dict[int, int]) -> Element:
    inner, labels = term.data
    return m.elements.holds("eq0", m.operand(inner, labels, at))


def _leaf(m: Meaning, term: Term, at: dict[int, int]) -> Element:
    base, arguments, index, _ = term.data
    place = tuple([m.place(entry, at) for entry in index])
    if base[0] == "dense":
        _, char, shape, data = base
        return int(np.frombuffer(data, dtype=char).reshape(shape)[place].item())
    if base == ("argmax",):
        return _first_greatest(m, term, at)
    if base not in m.leaves or arguments:
        raise UnknownError(str(base[:2]))
    return m.leaves[base](place)


def _first_greatest(m: Meaning, term: Term, at: dict[int, int]) -> Element:
    """The first value of the core axis at which the argument is greatest."""
    ((coef, inner, labels, (size,)),) = term.data[1]
    values = [m.elements.multiply([coef, m.operand(inner, labels, {**at, BOUND: k})]) for k in range(size)]
    return first_of(m.elements, values)


def first_of(elements: Elements, values: Sequence[Element]) -> Element:
    """The number of the first of the values that is at least as great as all others."""
    found: Element = len(values) - 1
    for k in range(len(values) - 2, -1, -1):
        wins = [elements.holds("ge0", elements.add([values[k], elements.multiply([-1, v])])) for v in values]
        found = elements.select(elements.multiply(wins), k, found)
    return found


def _nothing(m: Meaning, term: Term, at: dict[int, int]) -> Element:
    raise UnknownError(term.kind)


_KINDS: dict[str, Callable[[Meaning, Term, dict[int, int]], Element]] = {
    "one": lambda _m, _t, _at: 1,
    "iota": lambda _m, _t, at: at[0],
    "lin": _linear,
    "mul": lambda m, t, at: _product(m, t.data, at),
    "sum": _sum,
    "red": _reduction,
    "fn": _function,
    "ge0": _at_least_zero,
    "eq0": _equals_zero,
    "at": _leaf,
    "infinity": _nothing,
    "nan": _nothing,
}
