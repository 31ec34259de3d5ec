"""Random expressions built twice: through the constructors of terms, and as plain arrays over all slots."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.lift import compare, elementary, extremum, functions, linear, product
from scalify.lift.atoms import from_array, iota, parameter
from scalify.lift.einsum import total
from scalify.lift.instance import make_index, substitute
from scalify.lift.terms import Index, Laws, Store, View, bounds, is_boolean, is_integer
from tests.support.evaluate import Evaluator, exact, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[Any]

SIZES = (2, 2, 3, 3)
"""Of slots 0, 1, ...: pairs of equal size, so that labels can be exchanged."""
LEAVES = {"a": (2,), "b": (2, 2), "c": (3, 3), "d": (2, 3), "e": (2, 2, 3)}
MOST = 10**12


def random_of(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - test data


@dataclass
class Built:
    """A view and its array over all slots; ``exact`` where the array holds ints and Fractions only."""

    view: View
    array: Array
    exact: bool = True


@dataclass
class Expression:
    """An expression in the making. ``order`` says which slot stands for which (for renaming)."""

    rnd: Random
    laws: Laws | None = None
    order: Sequence[int] = tuple(range(len(SIZES)))
    values: list[Built] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = Store(self.laws)
        data = np.random.default_rng(5)
        self.data = {name: exact(data.integers(-3, 4, dims)) for name, dims in LEAVES.items()}
        self.data |= {f"{name}+": exact(data.integers(0, 3, dims)) for name, dims in LEAVES.items()}
        self.data |= {f"{name}#": exact(data.integers(0, 12, dims)) for name, dims in LEAVES.items()}
        self.data |= {f"{name}?": exact(data.integers(0, 2, dims)) for name, dims in LEAVES.items()}
        self.data |= {f"{name}/": exact(data.integers(1, 5, dims) / 2) for name, dims in LEAVES.items()}
        leaves: dict[Any, Array] = {("parameter", name): array for name, array in self.data.items()}
        self.evaluator = Evaluator(self.store, leaves)

    # -- leaves ------------------------------------------------------------------------------------------------------------
    def leaf(self, name: str, at: Sequence[int]) -> Built:
        """A parameter at slots of its sizes. Its last letter says what is known: ``+`` 0..2, ``#`` 0..11, ``?`` 0..1, ``/`` no integer."""
        dims = self.data[name].shape
        assert [SIZES[s] for s in at] == list(dims)
        limits = {"+": (0, 2), "#": (0, 11), "?": (0, 1), "/": None}.get(name[-1], (-3, 3))
        at = [self.order[s] for s in at]
        view = parameter(self.store, ("parameter", name), list(zip(at, dims, strict=True)), limits)
        return Built(view, _spread(self.data[name], at))

    def random_leaf(self) -> Built:
        kind = self.rnd.randrange(6)
        if kind == 0:
            return self.iota(self.rnd.randrange(len(SIZES)))
        if kind == 1:
            slots = self.rnd.sample(range(len(SIZES)), self.rnd.choice([1, 2]))
            values = np.array([self.rnd.randrange(-1, 2) for _ in range(SIZES[slots[0]] * (SIZES[slots[1]] if len(slots) > 1 else 1))])
            values = values.reshape([SIZES[s] for s in slots])
            slots = [self.order[s] for s in slots]
            return Built(from_array(self.store, values, slots), _spread(exact(values), slots))
        name = self.rnd.choice(sorted(LEAVES))
        at = []
        for n in LEAVES[name]:
            at.append(self.rnd.choice([s for s, m in enumerate(SIZES) if m == n and s not in at]))
        return self.leaf(name + self.rnd.choice(["", "+", "#", "?", "?", "/"]), at)

    def iota(self, slot: int) -> Built:
        slot = self.order[slot]
        return Built(iota(self.store, slot, SIZES[slot]), _spread(exact(np.arange(SIZES[slot])), [slot]))

    def constant(self, value: Any) -> Built:
        return Built(self.store.constant(value), np.full(SIZES, value, dtype=object))

    # -- growing -----------------------------------------------------------------------------------------------------------
    def pick(self, wanted: Callable[[Built], bool] = lambda _: True) -> Built:
        found = [v for v in self.values if wanted(v)]
        if not found or self.rnd.random() < 0.3:
            while True:
                leaf = self.random_leaf()
                if wanted(leaf):
                    return leaf
        return self.rnd.choice(found)

    def keep(self, view: View, array: Array, *, is_exact: bool = True) -> Built | None:
        """Keeps and checks a new value, unless it has grown too large."""
        array = np.asarray(array, dtype=object)
        if is_exact and any(abs(v) > MOST for v in array.reshape(-1)):
            return None
        built = Built(view, array, is_exact)
        self.values.append(built)
        self.check(built)
        return built

    def check(self, built: Built) -> None:
        got = self.evaluator.view(built.view, range(len(SIZES)), SIZES)
        if built.exact:
            assert (got == built.array).all(), f"{built.view}\n{got.reshape(-1)}\n{built.array.reshape(-1)}"
        else:
            assert np.allclose(got.astype(float), built.array.astype(float), rtol=1e-9, atol=1e-9), built.view

    def grow(self, steps: int, names: Sequence[str] = ()) -> None:
        """Up to ``steps`` steps, of the given names only."""
        names = names or sorted(STEPS)
        for _ in range(steps):
            STEPS[self.rnd.choice(names)](self)


def _spread(array: Array, slots: Sequence[int]) -> Array:
    order = sorted(range(len(slots)), key=lambda d: slots[d])
    shape = [SIZES[s] if s in slots else 1 for s in range(len(SIZES))]
    return np.broadcast_to(array.transpose(order).reshape(shape), SIZES)


def each(function: Callable[..., Any], *arrays: Array) -> Array:
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)


def is_condition(v: Built) -> bool:
    return is_boolean(v.view)


def is_whole(v: Built) -> bool:
    return is_integer(v.view)


def is_natural(v: Built) -> bool:
    found = bounds(v.view)
    return is_integer(v.view) and found is not None and found[0] >= 0


def is_exact(v: Built) -> bool:
    return v.exact


NUMBERS: tuple[int | Fraction, ...] = (1, 1, 1, -1, 2, -3, Fraction(1, 2), Fraction(-2, 3), 0)
STEPS: dict[str, Callable[[Expression], object]] = {}


def step(function: Callable[[Expression], object]) -> Callable[[Expression], object]:
    STEPS[function.__name__] = function
    return function


def _number(e: Expression) -> int | Fraction:
    return e.rnd.choice(NUMBERS)


@step
def combination(e: Expression) -> object:
    parts = [(_number(e), e.pick()) for _ in range(e.rnd.choice([1, 2, 2, 3]))]
    constant = e.rnd.choice(NUMBERS)
    view = linear.combine(e.store, [(c, v.view) for c, v in parts], constant)
    return e.keep(
        view, sum((c * v.array for c, v in parts), np.full(SIZES, constant, dtype=object)), is_exact=all(v.exact for _, v in parts)
    )


@step
def whole_combination(e: Expression) -> object:
    parts = [(e.rnd.choice([1, -1, 2, -2, 3]), e.pick(is_whole)) for _ in range(e.rnd.choice([1, 2, 2, 3]))]
    constant = e.rnd.choice([0, 0, 1, -1, 2, -4])
    view = linear.combine(e.store, [(c, v.view) for c, v in parts], constant)
    return e.keep(
        view, sum((c * v.array for c, v in parts), np.full(SIZES, constant, dtype=object)), is_exact=all(v.exact for _, v in parts)
    )


@step
def products(e: Expression) -> object:
    parts = []
    for _ in range(e.rnd.choice([1, 2, 2, 3])):
        v = e.pick()
        exponents = [1, 1, 1, 2] + ([-1] if all(x != 0 for x in v.array.reshape(-1)) and v.view.coef != 0 else [])
        parts.append((v, e.rnd.choice(exponents)))
    view = product.multiply(e.store, [(v.view, k) for v, k in parts])
    array = np.full(SIZES, 1, dtype=object)
    for v, k in parts:
        array = array * each(lambda x, k=k, ok=v.exact: (Fraction(x) if ok else x) ** k, v.array)
    return e.keep(view, array, is_exact=all(v.exact for v, _ in parts))


@step
def masked(e: Expression) -> object:
    """A product of conditions and a value: where guards work."""
    conditions = [e.pick(is_condition) for _ in range(e.rnd.choice([1, 2, 3]))]
    value = e.pick()
    view = product.multiply(e.store, [*[(c.view, 1) for c in conditions], (value.view, 1)])
    array = value.array
    for c in conditions:
        array = array * c.array
    return e.keep(view, array, is_exact=value.exact and all(c.exact for c in conditions))


def _slots(e: Expression) -> list[int]:
    return e.rnd.sample(range(len(SIZES)), e.rnd.choice([1, 1, 2, 3]))


def _over(array: Array, slots: Sequence[int], reduce: Any) -> Array:
    return np.broadcast_to(reduce(array, axis=tuple(slots), keepdims=True), SIZES)


@step
def sums(e: Expression) -> object:
    v, slots = e.pick(), _slots(e)
    view = total(e.store, v.view, {s: SIZES[s] for s in slots})
    return e.keep(view, _over(v.array, slots, np.add.reduce), is_exact=v.exact)


@step
def sum_of_product(e: Expression) -> object:
    """A contraction, perhaps under conditions."""
    parts = [e.pick() for _ in range(e.rnd.choice([2, 3]))]
    slots = _slots(e)
    view = total(e.store, product.multiply(e.store, [(v.view, 1) for v in parts]), {s: SIZES[s] for s in slots})
    array = parts[0].array
    for v in parts[1:]:
        array = array * v.array
    return e.keep(view, _over(array, slots, np.add.reduce), is_exact=all(v.exact for v in parts))


@step
def look_up(e: Expression) -> object:
    """``sum_v [v = i] f(v)``."""
    slot = e.rnd.randrange(len(SIZES))
    index, value = e.pick(is_whole), e.pick()
    difference = linear.subtract(e.store, iota(e.store, slot, SIZES[slot]), index.view)
    hit = compare.equals_zero(e.store, difference)
    view = total(e.store, product.times(e.store, hit, value.view), {slot: SIZES[slot]})
    hits = each(lambda a, b: int(a == b), _spread(exact(np.arange(SIZES[slot])), [slot]), index.array)
    return e.keep(view, _over(hits * value.array, [slot], np.add.reduce), is_exact=value.exact and index.exact)


@step
def look_up_of_look_up(e: Expression) -> object:
    """``sum_v,w [v = i][w = j] f``, where each condition may use the other's label."""
    first, second = e.rnd.sample(range(len(SIZES)), 2)
    i, j, value = e.pick(is_whole), e.pick(is_whole), e.pick()
    found, array = value.view, value.array
    for slot, index in ((second, j), (first, i)):
        hit = compare.equals_zero(e.store, linear.subtract(e.store, iota(e.store, slot, SIZES[slot]), index.view))
        found = product.times(e.store, hit, found)
        array = array * each(lambda a, b: int(a == b), _spread(exact(np.arange(SIZES[slot])), [slot]), index.array)
    sizes = {s: SIZES[s] for s in (first, second)}
    summed = _over(_over(array, [first], np.add.reduce), [second], np.add.reduce)
    return e.keep(total(e.store, found, sizes), summed, is_exact=value.exact and i.exact and j.exact)


@step
def extrema(e: Expression) -> object:
    v, slots = e.pick(is_exact), _slots(e)
    sizes = {s: SIZES[s] for s in slots}
    if e.rnd.random() < 0.5:
        return e.keep(extremum.greatest(e.store, v.view, sizes), _over(v.array, slots, np.maximum.reduce))
    return e.keep(extremum.least(e.store, v.view, sizes), _over(v.array, slots, np.minimum.reduce))


@step
def products_over(e: Expression) -> object:
    v, slots = e.pick(is_exact), _slots(e)
    return e.keep(extremum.product_over(e.store, v.view, {s: SIZES[s] for s in slots}), _over(v.array, slots, np.multiply.reduce))


DIRECTIONS: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


@step
def comparison(e: Expression) -> object:
    a, b = e.pick(is_exact), e.pick(is_exact)
    name = e.rnd.choice(sorted(DIRECTIONS))
    return e.keep(compare.compare(e.store, name, a.view, b.view), each(lambda x, y: int(DIRECTIONS[name](x, y)), a.array, b.array))


@step
def whole_comparison(e: Expression) -> object:
    a = e.pick(lambda v: is_whole(v) and v.exact)
    b = e.constant(e.rnd.randrange(-2, 5)) if e.rnd.random() < 0.5 else e.pick(lambda v: is_whole(v) and v.exact)
    name = e.rnd.choice(sorted(DIRECTIONS))
    return e.keep(compare.compare(e.store, name, a.view, b.view), each(lambda x, y: int(DIRECTIONS[name](x, y)), a.array, b.array))


@step
def selection(e: Expression) -> object:
    p, a, b = e.pick(is_condition), e.pick(), e.pick()
    return e.keep(
        functions.select(e.store, p.view, a.view, b.view),
        each(lambda c, x, y: x if c else y, p.array, a.array, b.array),
        is_exact=a.exact and b.exact,
    )


@step
def logic(e: Expression) -> object:
    a, b = e.pick(is_condition), e.pick(is_condition)
    if e.rnd.random() < 0.4:
        return e.keep(product.complement(e.store, a.view), 1 - a.array)
    return e.keep(functions.either(e.store, a.view, b.view), each(lambda x, y: int(x or y), a.array, b.array))


@step
def maxima(e: Expression) -> object:
    a, b = e.pick(is_exact), e.pick(is_exact)
    if e.rnd.random() < 0.5:
        return e.keep(functions.maximum(e.store, a.view, b.view), each(max, a.array, b.array))
    return e.keep(functions.minimum(e.store, a.view, b.view), each(min, a.array, b.array))


@step
def clamped(e: Expression) -> object:
    v = e.pick(is_exact)
    low, high = (e.rnd.choice([None, -2, -1, 0, 1, 2, 3, Fraction(1, 2)]) for _ in range(2))

    def plain(x: Any) -> Any:
        x = x if low is None else max(x, low)
        return x if high is None else min(x, high)

    return e.keep(functions.clamp(e.store, v.view, low, high), each(plain, v.array))


@step
def division(e: Expression) -> object:
    v, k = e.pick(lambda v: is_natural(v) and v.exact), e.rnd.choice([1, 2, 3, 4])
    if e.rnd.random() < 0.5:
        view = functions.remainder(e.store, v.view, k)
        return None if view is None else e.keep(view, v.array % k)
    view = functions.integer_quotient(e.store, v.view, k)
    return None if view is None else e.keep(view, v.array // k)


@step
def wraps(e: Expression) -> object:
    v = e.pick(lambda v: is_whole(v) and v.exact)
    low, high = e.rnd.choice([(0, 3), (-2, 1), (-4, 3), (0, 1)])
    return e.keep(functions.wrap(e.store, v.view, low, high), each(lambda x: wrapped(x, low, high), v.array))


@step
def signs(e: Expression) -> object:
    v = e.pick(is_exact)
    if e.rnd.random() < 0.5:
        return e.keep(functions.sign(e.store, v.view), each(lambda x: (x > 0) - (x < 0), v.array))
    return e.keep(functions.magnitude(e.store, v.view), each(abs, v.array))


@step
def exponentials(e: Expression) -> object:
    v = e.pick(lambda v: all(abs(x) < 6 for x in v.array.reshape(-1)))
    view = elementary.exponential(e.store, v.view)
    kept = e.keep(view, each(lambda x: float(np.exp(float(x))), v.array), is_exact=False)
    if kept is not None and e.rnd.random() < 0.5:
        e.keep(elementary.logarithm(e.store, view), v.array, is_exact=False)
    return kept


@step
def instance(e: Expression) -> object:
    """Constants, other slots and tables in place of slots."""
    v = e.pick()
    change: dict[int, Index] = {}
    axes: dict[int, Array] = {}
    for s in e.rnd.sample(range(len(SIZES)), e.rnd.choice([1, 2])):
        kind = e.rnd.randrange(3)
        if kind == 0:
            k = e.rnd.randrange(SIZES[s])
            change[s], axes[s] = -1 - k, np.array(k)
        elif kind == 1:
            other = e.rnd.choice([t for t, n in enumerate(SIZES) if n == SIZES[s]])
            change[s], axes[s] = other, np.arange(SIZES[s]).reshape([-1 if t == other else 1 for t in range(len(SIZES))])
        else:
            slots = e.rnd.sample(range(len(SIZES)), e.rnd.choice([1, 2]))
            table = np.array([e.rnd.randrange(SIZES[s]) for _ in range(int(np.prod([SIZES[t] for t in slots])))])
            table = table.reshape([SIZES[t] for t in slots])
            change[s] = make_index(e.store, table, slots, SIZES[s])
            axes[s] = _spread(table, slots)
    index = [axes.get(s, np.arange(n).reshape([-1 if t == s else 1 for t in range(len(SIZES))])) for s, n in enumerate(SIZES)]
    return e.keep(substitute(e.store, v.view, change), np.broadcast_to(v.array[tuple(index)], SIZES), is_exact=v.exact)


GUARDS = (
    "whole_combination",
    "whole_combination",
    "whole_comparison",
    "masked",
    "masked",
    "division",
    "clamped",
    "wraps",
    "selection",
    "look_up",
    "sums",
)
"""Steps on integers and conditions, where conditions simplify each other."""
