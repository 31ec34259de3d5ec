"""Hash-consed terms over labelled axes, and views of them.

A *term* denotes a real-valued function of its *labels*: ``sizes[i]`` is the number of values that label ``i`` takes, from 0. A term has no
layout. A :class:`View` applies a term to *slots* (the axes of some HLO value, mesh axes, or bound variables of a larger
expression) and scales it by an exact rational: ``coef * term[at]``. The slots of a view are distinct.

Inside a node an *index* is an int or a tuple:
    label        int >= 0
    constant k   int  -1 - k
    table        (table number, label, ...): an arbitrary function of labels, kept in the store

Nodes are made only by the constructors of the sibling modules, which keep the normal forms. One store serves one run: ids from
two stores must never meet.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

Number = int | Fraction
Index = int | tuple[int, ...]

MOST_BITS = 1 << 16  #: of a coefficient
#: what a run may spend: entries of sums, products and maxima longer than ``FREE``, of index tables and data, blocks that are moved, and
#: terms rebuilt with other indices. Graphs of whole models take a few percent of it; what takes it all would take minutes.
BUDGETS = {"entries": 500_000, "tables": 40_000_000, "moves": 50_000, "substitutions": 60_000}
TABLE = 200  #: entries that a table counts for at least
FREE = 64
WORD = 1 << 60
FRESH = 1 << 24  #: slots of bound variables start here
BOUND = 1 << 16  #: labels of bound variables inside a node start here


class Term:
    """One node. ``kind`` and ``data`` say what it is; see the constructor of the kind for the form of ``data``.

    ``integer``: every value is an integer, within ``low .. high`` where these are known.
    ``positive``: every value is > 0. ``taint``: an infinity or NaN literal may be inside, so ``0 * x`` is not 0.
    ``odd``: a linear form that equals its own negation up to the order of its labels. ``scaled``: a product with an exponential in it.
    """

    __slots__ = ("data", "high", "id", "integer", "kind", "low", "odd", "positive", "scaled", "sizes", "taint")

    def __init__(self, number: int, kind: str, data: Any, sizes: tuple[int, ...]) -> None:
        self.id = number
        self.kind = kind
        self.data = data
        self.sizes = sizes
        self.integer = False
        self.low: int | None = None
        self.high: int | None = None
        self.positive = False
        self.taint = False
        self.odd = False
        self.scaled = False

    @property
    def boolean(self) -> bool:
        return self.integer and self.low is not None and self.high is not None and self.low >= 0 and self.high <= 1

    def __repr__(self) -> str:
        return f"<{self.id}:{self.kind}>"


class View(NamedTuple):
    """``coef * term[at]``."""

    coef: Number
    term: Term
    at: tuple[int, ...]


def number(value: Number) -> Number:
    """The same rational, as an int when it is one."""
    if type(value) is Fraction and value.denominator == 1:
        return value.numerator
    return value


def absolute(value: Number) -> Number:
    """The value without its sign."""
    return -value if value < 0 else value


def check_size(value: Number) -> None:
    """:raises LimitReached: a number of so many digits that arithmetic on it takes long."""
    bits = value.numerator.bit_length() + value.denominator.bit_length()
    if bits > MOST_BITS:
        raise LimitReached("bits", MOST_BITS)


def quotient(a: Number, b: Number) -> Number:
    """``a / b``, exactly."""
    if b == 1:
        return a
    return number(Fraction(a) / Fraction(b))


class LimitReached(Exception):
    """A counted limit was reached; the verdict is then ``unverified`` and names it."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        super().__init__(f"limit {name}={limit} reached")


class Laws(NamedTuple):
    """Which families of normal forms the constructors apply; all are on unless a developer switches one off."""

    einsum: bool = True
    guards: bool = True
    one_hot: bool = True
    exponential: bool = True
    linear: bool = True
    select: bool = True


class Store:
    """The nodes of one run, and what the constructors memoise."""

    def __init__(self, laws: Laws | None = None, limit: int = 2_000_000) -> None:
        self.laws = laws or Laws()
        self.terms: list[Term] = []
        self._known: dict[tuple[Any, ...], Term] = {}
        self._fresh = FRESH
        self.asked = 0  # how often a node was asked for: a measure of work
        self.tables: list[npt.NDArray[np.int64]] = []
        self._table_ids: dict[tuple[tuple[int, ...], bytes], int] = {}
        self.memo: dict[Any, Any] = {}
        self.used: set[str] = set()  # laws with assumptions that some proof leaned on
        self.limit = limit
        self.spent = dict.fromkeys(BUDGETS, 0)
        self.one = self.node("one", (), (), _make_one)

    def node(self, kind: str, data: Any, sizes: tuple[int, ...], fill: Callable[[Term], None] | None = None) -> Term:
        """The one term of this content; ``fill`` sets its derived facts when it is made. :raises LimitReached: the store is full."""
        key = (kind, data, sizes)
        self.asked += 1
        term = self._known.get(key)
        if term is None:
            if len(self.terms) >= self.limit:
                raise LimitReached("terms", self.limit)
            term = Term(len(self.terms), kind, data, sizes)
            if fill is not None:
                fill(term)
            self._known[key] = term
            self.terms.append(term)
        return term

    def spend(self, what: str, amount: int = 1) -> None:
        """Counts work of one kind. :raises LimitReached: more than :data:`BUDGETS` has of it."""
        self.spent[what] += amount
        if self.spent[what] > BUDGETS[what]:
            raise LimitReached(what, BUDGETS[what])

    def charge(self, entries: int) -> None:
        """Counts the entries of a sum, product or maximum where it is long: each operation on one costs as much as it is long."""
        if entries > FREE:
            self.spend("entries", entries)

    def charge_table(self, entries: int) -> None:
        """Counts the entries of a table that is about to be made or looked through."""
        self.spend("tables", entries + TABLE)

    def fresh(self) -> int:
        """A new bound slot."""
        self._fresh += 1
        return self._fresh

    def table(self, values: npt.NDArray[np.int64]) -> int:
        """The number of a table; equal tables have equal numbers."""
        key = (values.shape, values.tobytes())
        found = self._table_ids.get(key)
        if found is None:
            found = self._table_ids[key] = len(self.tables)
            self.tables.append(values)
        return found

    def constant(self, value: Number) -> View:
        return View(value, self.one, ())


def _make_one(term: Term) -> None:
    term.integer = term.positive = True
    term.low = term.high = 1


class Labels:
    """Numbers labels in the order in which slots are first met, after those given; ``sizes`` are those of the slots met through :meth:`sized`."""

    __slots__ = ("of", "sizes", "slots")

    def __init__(self, slots: Sequence[int] = (), sizes: Sequence[int] = ()) -> None:
        self.slots = list(slots)
        self.sizes = list(sizes)
        self.of = {slot: label for label, slot in enumerate(self.slots)}

    def index(self, entry: Index) -> Index:
        if type(entry) is tuple:
            return (entry[0], *[self.label(s) for s in entry[1:]])
        assert isinstance(entry, int)
        return entry if entry < 0 else self.label(entry)

    def label(self, slot: int) -> int:
        found = self.of.get(slot)
        if found is None:
            found = self.of[slot] = len(self.slots)
            self.slots.append(slot)
        return found

    def sized(self, at: Iterable[int], sizes: Iterable[int]) -> tuple[int, ...]:
        """The labels of a term's slots, whose sizes are noted."""
        known = self.of
        found = []
        for slot, size in zip(at, sizes, strict=True):
            label = known.get(slot)
            if label is None:
                label = known[slot] = len(self.slots)
                self.slots.append(slot)
                self.sizes.append(size)
            found.append(label)
        return tuple(found)

    def labels(self, at: Iterable[int]) -> tuple[int, ...]:
        label = self.label
        return tuple([label(s) for s in at])


def remember(
    store: Store,
    name: Hashable,
    views: Sequence[View],
    make: Callable[[list[View], dict[int, int]], View],
    slots: Mapping[int, int] | None = None,
) -> View:
    """``make(views, slots)``, remembered under its name by the terms and by which of their slots meet: what one graph has asked for the other asks
    for again. ``slots`` are bound ones with their sizes. Nothing is remembered of numbers with many digits: all powers of two have one of 61 hashes.
    """
    if any(not (-WORD < coef.numerator < WORD and coef.denominator < WORD) for coef, _, _ in views if coef != 1):
        return make(list(views), dict(slots or {}))
    labels = Labels()
    own = tuple([(coef, term, labels.labels(at)) for coef, term, at in views])
    bound = tuple([(labels.label(s), n) for s, n in slots.items()]) if slots else ()
    key = (name, own, bound)
    found: View | None = store.memo.get(key)
    if found is None:
        found = store.memo[key] = make([View(*v) for v in own], dict(bound))
    coef, term, at = found
    names = labels.slots
    return View(coef, term, tuple([names[s] for s in at]))


def bounds(view: View) -> tuple[Number, Number] | None:
    """Range of an integer-valued view, or None when it is not known to be one. Both ends inclusive."""
    coef, term, _ = view
    if not term.integer or term.low is None or term.high is None:
        return None
    a, b = coef * term.low, coef * term.high
    return (a, b) if a <= b else (b, a)


def is_integer(view: View) -> bool:
    """True when every value of the view is an integer."""
    return view.term.integer and type(view.coef) is int


def is_boolean(view: View) -> bool:
    """True when the view's only values are 0 and 1."""
    if not is_integer(view):
        return False
    found = bounds(view)
    return found is not None and found[0] >= 0 and found[1] <= 1
