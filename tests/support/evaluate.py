"""Lifted terms evaluated in exact Python numbers, from the documented meaning of each kind of node alone.

Integers and rationals stay exact, so that a lifted value can be compared with execution bit by bit; only transcendental functions
give floats. Arrays have dtype object. Opaque operations and unknown values have no meaning of their own: their arrays are given.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.lift.terms import BOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy.typing as npt

    from scalify.lift.layout import Block, Layout, Value
    from scalify.lift.terms import Index, Store, Term, View

    Array = npt.NDArray[Any]

MOST_ELEMENTS = 1 << 21


class NoMeaningError(Exception):
    """A leaf that no array was given for."""


def exact(values: Any) -> Array:
    """The same numbers as Python ints and Fractions; infinities and NaN stay floats."""
    array = np.asarray(values)
    flat = [_number(v) for v in array.reshape(-1).tolist()]
    result = np.empty(len(flat), dtype=object)
    result[:] = flat
    return result.reshape(array.shape)


def _number(value: Any) -> Any:
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() else Fraction(value)
    return value


def block_indices(layout: Layout, block: Block, dim: int) -> Array:
    """The index along a dimension for every combination of the block's slots (shape ``block.sizes``)."""
    offset, digits = layout.alternative((dim,), block)
    index = np.full(block.sizes, offset, dtype=np.int64)
    for slot, size, stride in digits:
        index += stride * np.arange(size).reshape([-1 if s == slot else 1 for s in range(len(block.sizes))])
    return index


def cut(layout: Layout, block: Block, array: Array) -> Array:
    """What a block holds of an array ``[devices, *dims]``, one axis a slot."""
    return array[tuple([block_indices(layout, block, d) for d in range(len(layout.dims))])]


class Evaluator:
    """``leaves`` gives the array of each leaf: by the base of a parameter, or by the term of an opaque operation."""

    def __init__(self, store: Store, leaves: Mapping[Hashable, Array] | None = None) -> None:
        self.store = store
        self.leaves = dict(leaves or {})
        self._memo: dict[Term, Array] = {}

    # -- values ------------------------------------------------------------------------------------------------------------
    def value(self, value: Value) -> Array:
        """``[devices, *dims]``, devices in the order of mesh positions."""
        layout = value.layout
        result = np.empty(layout.sizes, dtype=object)
        for block, view in zip(layout.blocks, value.views, strict=True):
            where = tuple([block_indices(layout, block, d) for d in range(len(layout.dims))])
            result[where] = self.view(view, list(range(len(block.sizes))), block.sizes)
        return result

    def view(self, view: View, slots: Sequence[int], sizes: Sequence[int]) -> Array:
        """The view over the given slots."""
        grids = _grids(slots, sizes)
        part = _at(self.term(view.term), view.at, grids, self.store)
        return np.broadcast_to(_times(view.coef, part), tuple(sizes))

    def evaluated(self) -> list[tuple[Term, Array]]:
        """All terms met so far with their arrays."""
        return list(self._memo.items())

    # -- terms -------------------------------------------------------------------------------------------------------------
    def term(self, term: Term) -> Array:
        """The array of a term, one axis a label."""
        stack = [term]
        while stack:
            top = stack[-1]
            if top in self._memo:
                stack.pop()
                continue
            missing = [t for t in _operands(top) if t not in self._memo]
            if missing and not (top in self.leaves or (top.kind == "at" and top.data[0] in self.leaves)):
                stack += missing
                continue
            result = np.asarray(self._node(top), dtype=object)
            assert result.shape == top.sizes, (top, result.shape, top.sizes)
            self._memo[top] = result
            stack.pop()
        return self._memo[term]

    def _node(self, term: Term) -> Array:
        if term in self.leaves:
            return self.leaves[term]
        with np.errstate(all="ignore"):
            array: Array = _KINDS[term.kind](self, term)
        return array

    def operand(self, term: Term, labels: Sequence[int], grids: Mapping[int, Array]) -> Array:
        return _at(self._memo[term], labels, grids, self.store)


def _operands(term: Term) -> list[Term]:
    data = term.data
    if term.kind == "lin":
        return [t for t, _, _ in data[0]]
    if term.kind == "mul":
        return [t for t, _, _ in data]
    if term.kind == "sum":
        return [t for t, _, _ in data[0]]
    if term.kind == "red":
        return [data[2]]
    if term.kind == "fn":
        return [t for _, t, _ in data[2]]
    if term.kind == "ge0":
        return [data[1]]
    if term.kind == "eq0":
        return [data[0]]
    return [t for _, t, _, _ in data[1]] if term.kind == "at" and data[0] == ("argmax",) else []


def _grids(names: Sequence[int], sizes: Sequence[int]) -> dict[int, Array]:
    if math.prod(sizes) > MOST_ELEMENTS:
        raise MemoryError(f"an array of {math.prod(sizes)} elements")
    rank = len(names)
    return {s: np.arange(n).reshape([-1 if i == d else 1 for i in range(rank)]) for d, (s, n) in enumerate(zip(names, sizes, strict=True))}


def _at(array: Array, index: Sequence[Index], grids: Mapping[int, Array], store: Store) -> Array:
    """``array`` at an index for each axis, over the axes of the grids (of size 1 where it does not depend on them)."""
    rank = next(iter(grids.values())).ndim if grids else 0
    picked = array[tuple([_position(entry, grids, store) for entry in index])]
    return np.asarray(picked, dtype=object).reshape((1,) * (rank - np.ndim(picked)) + np.shape(picked))


def _position(entry: Index, grids: Mapping[int, Array], store: Store) -> Any:
    if isinstance(entry, tuple):
        return store.tables[entry[0]][tuple([grids[s] for s in entry[1:]])]
    return -1 - entry if entry < 0 else grids[entry]


def _labelled(term: Term) -> dict[int, Array]:
    return _grids(range(len(term.sizes)), term.sizes)


def _times(coef: Any, array: Array) -> Array:
    return array if coef == 1 else _each(_product, np.asarray(coef, dtype=object), array)


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    with np.errstate(all="ignore"):
        result = np.frompyfunc(function, len(arrays), 1)(*arrays)
    return np.asarray(result, dtype=object)


def _product(a: Any, b: Any) -> Any:
    return a * b


def _power(x: Any, exponent: int) -> Any:
    if exponent >= 0:
        return x**exponent
    if x == 0:
        return math.inf
    return Fraction(x) ** exponent if not isinstance(x, float) else x**exponent


def _full(term: Term, array: Array) -> Array:
    return np.broadcast_to(array, term.sizes)


def _linear(e: Evaluator, term: Term) -> Array:
    entries, constant = term.data
    grids = _labelled(term)
    result = np.full(term.sizes, constant, dtype=object)
    for t, c, labels in entries:
        result = result + _times(c, e.operand(t, labels, grids))
    return result


def _factors(e: Evaluator, factors: Any, grids: Mapping[int, Array], shape: Sequence[int]) -> Array:
    result = np.full(tuple(shape), 1, dtype=object)
    for t, exponent, labels in factors:
        part = e.operand(t, labels, grids)
        result = result * (part if exponent == 1 else _each(lambda x, k=exponent: _power(x, k), part))
    return result


def _multiple(e: Evaluator, term: Term) -> Array:
    return _factors(e, term.data, _labelled(term), term.sizes)


def _bound(term: Term, sizes: Sequence[int]) -> tuple[dict[int, Array], tuple[int, ...], tuple[int, ...]]:
    """Grids over a node's own labels and its bound ones; the whole shape; the bound axes."""
    free = len(term.sizes)
    shape = (*term.sizes, *sizes)
    grids = _grids([*range(free), *[BOUND + j for j in range(len(sizes))]], shape)
    return grids, shape, tuple(range(free, len(shape)))


def _sum(e: Evaluator, term: Term) -> Array:
    factors, sizes = term.data
    grids, shape, axes = _bound(term, sizes)
    return np.asarray(_factors(e, factors, grids, shape).sum(axis=axes), dtype=object)


def _reduction(e: Evaluator, term: Term) -> Array:
    name, sign, inner, labels, sizes = term.data
    grids, shape, axes = _bound(term, sizes)
    values = np.broadcast_to(_times(sign, e.operand(inner, labels, grids)), shape)
    if name == "max":
        return np.asarray(np.frompyfunc(_greatest, 2, 1).reduce(values.reshape(*term.sizes, -1), axis=-1), dtype=object)
    return np.asarray(values.prod(axis=axes), dtype=object)


def _function(e: Evaluator, term: Term) -> Array:
    name, attribute, arguments = term.data
    grids = _labelled(term)
    views = [_times(c, e.operand(t, labels, grids)) for c, t, labels in arguments]
    return _full(term, _each(lambda *xs: apply(name, attribute, xs), *views) if views else np.asarray(apply(name, attribute, ())))


def _at_least_zero(e: Evaluator, term: Term) -> Array:
    sign, inner, labels = term.data
    return _full(term, _each(lambda x: int(sign * x >= 0), e.operand(inner, labels, _labelled(term))))


def _equals_zero(e: Evaluator, term: Term) -> Array:
    inner, labels = term.data
    return _full(term, _each(lambda x: int(x == 0), e.operand(inner, labels, _labelled(term))))


def _leaf(e: Evaluator, term: Term) -> Array:
    base, arguments, index, _ = term.data
    if base == ("argmax",):
        return _first_greatest(e, term)
    if base[0] == "dense":
        _, char, shape, data = base
        array = exact(np.frombuffer(data, dtype=char).reshape(shape))
    elif base in e.leaves and not arguments:
        array = e.leaves[base]
    else:
        raise NoMeaningError(str(base[:2]))
    return _full(term, _at(array, index, _labelled(term), e.store))


def _first_greatest(e: Evaluator, term: Term) -> Array:
    """The first value of its one core axis at which the argument is greatest."""
    ((coef, inner, labels, (size,)),) = term.data[1]
    shape = (*term.sizes, size)
    grids = _grids([*range(len(term.sizes)), BOUND], shape)
    values = np.broadcast_to(_times(coef, e.operand(inner, labels, grids)), shape)
    return exact(np.array([int(row.tolist().index(max(row))) for row in values.reshape(-1, size)], dtype=np.int64).reshape(term.sizes))


_KINDS: dict[str, Callable[[Evaluator, Term], Any]] = {
    "one": lambda _e, _t: np.array(1, dtype=object),
    "infinity": lambda _e, _t: np.array(math.inf, dtype=object),
    "nan": lambda _e, _t: np.array(math.nan, dtype=object),
    "iota": lambda _e, t: exact(np.arange(t.sizes[0])),
    "lin": _linear,
    "mul": _multiple,
    "sum": _sum,
    "red": _reduction,
    "fn": _function,
    "ge0": _at_least_zero,
    "eq0": _equals_zero,
    "at": _leaf,
}


# -- functions by name -----------------------------------------------------------------------------------------------------
def apply(name: str, attribute: Any, xs: Sequence[Any]) -> Any:
    """A ``fn`` node's function of numbers."""
    if name == "bits":
        return _bits(attribute[0], attribute[1], xs)
    function = _FUNCTIONS.get(name)
    if function is None:
        raise NoMeaningError(f"function {name}")
    return function(attribute, *xs)


def _greatest(*xs: Any) -> Any:
    return math.nan if any(isinstance(x, float) and math.isnan(x) for x in xs) else max(xs)


def _clamp(ends: Any, x: Any) -> Any:
    low, high = ends
    if isinstance(x, float) and math.isnan(x):
        return x
    x = x if low is None else max(x, low)
    return x if high is None else min(x, high)


def wrapped(value: int, low: int, high: int) -> int:
    return (value - low) % (high - low + 1) + low


def _trunc(limits: Any, x: Any) -> int:
    """Towards zero, saturating; NaN is 0."""
    if math.isnan(x):
        return 0
    if x in (math.inf, -math.inf):
        return int(limits[1] if x > 0 else limits[0])
    return int(min(max(math.trunc(x), limits[0]), limits[1]))


def _integer_divide(limits: Any, a: int, b: int) -> int:
    low, high = limits
    a, b = wrapped(a, low, high), wrapped(b, low, high)
    if b == 0:
        return -1 if low < 0 else int(high)
    return wrapped(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), low, high)


def _remainder(limits: Any, a: Any, b: Any) -> Any:
    if limits is None:
        return _nan(math.fmod)(None, a, b)
    a, b = wrapped(a, *limits), wrapped(b, *limits)
    return a if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)


def _divide(limits: Any, a: Any, b: Any) -> Any:
    return _integer_divide(limits, a, b)


def _integer_power(limits: Any, a: int, b: int) -> int:
    a, b = wrapped(a, *limits), wrapped(b, *limits)
    if b < 0:
        return 0 if abs(a) != 1 else a ** (-b % 2)
    return wrapped(pow(a, b, 1 << (limits[1] - limits[0]).bit_length()), *limits)


def _float_power(x: float, y: float) -> float:
    if x == 0 and y < 0:
        return math.inf
    return math.pow(x, y)


def _nan(function: Callable[..., float]) -> Callable[..., float]:
    def call(_attribute: Any, *xs: Any) -> float:
        try:
            return function(*[float(x) for x in xs])
        except (ValueError, OverflowError):
            return math.nan

    return call


def _log(x: float) -> float:
    return -math.inf if x == 0 else math.log(x)


def _exp(x: float) -> float:
    return math.inf if x >= 700 else math.exp(x)


def _away(_: Any, x: Any) -> Any:
    return int(math.copysign(math.floor(abs(x) + Fraction(1, 2)), x))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "indefinite": lambda _, x: 0 if math.isfinite(x) else math.nan,
    "max": lambda _, *xs: _greatest(*xs),
    "clamp": _clamp,
    "select": lambda _, p, a, b: a if p else b,
    "exp": _nan(_exp),
    "log": _nan(_log),
    "sqrt": _nan(math.sqrt),
    "rem": lambda k, x: x % k,
    "quotient": lambda k, x: x // k,
    "wrap": lambda ends, x: wrapped(x, *ends),
    "trunc": _trunc,
    "sign": lambda _, x: x if math.isnan(x) else (x > 0) - (x < 0),
    "abs": lambda _, x: abs(x),
    "floor": lambda _, x: math.floor(x) if math.isfinite(x) else x,
    "round-nearest-even": lambda _, x: round(x),
    "round-nearest-afz": _away,
    "divide": _divide,
    "remainder": _remainder,
    "power": lambda limits, a, b: _nan(_float_power)(None, a, b) if limits is None else _integer_power(limits, a, b),
    "divide-by-zero": lambda _, x=1: math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x),
    "logistic": _nan(lambda x: 1 / (1 + math.exp(-x))),
    "tanh": _nan(math.tanh),
    "tan": _nan(math.tan),
    "sine": _nan(math.sin),
    "cosine": _nan(math.cos),
    "erf": _nan(math.erf),
    "cbrt": _nan(math.cbrt),
    "atan2": _nan(math.atan2),
}


def _bits(name: str, limits: tuple[int, int], xs: Sequence[Any]) -> int:
    function = _BITWISE.get(name)
    if function is not None:
        low, high = limits
        return wrapped(function(high - low + 1, *[x % (high - low + 1) for x in xs]), low, high)
    if name.startswith("popcnt"):
        return int(xs[0] % (1 << int(name[6:]))).bit_count()
    if name.startswith("count-leading-zeros"):
        bits = int(name[19:])
        return bits - int(xs[0] % (1 << bits)).bit_length()
    if name == "is-finite":
        return int(math.isfinite(xs[0]))
    if name.startswith("compare-"):
        a, b = xs
        return int({"EQ": a == b, "NE": a != b, "LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b}[name[8:]])
    raise NoMeaningError(f"function {name}")


def _arithmetic_shift(count: int, x: int, k: int) -> int:
    signed = x - count if x >= count // 2 else x
    return signed >> min(k, count.bit_length() - 2)


_BITWISE: dict[str, Callable[..., int]] = {
    "and": lambda _, a, b: a & b,
    "or": lambda _, a, b: a | b,
    "xor": lambda _, a, b: a ^ b,
    "shift-left": lambda count, x, k: x << k if k < count.bit_length() - 1 else 0,
    "shift-right-logical": lambda count, x, k: x >> k if k < count.bit_length() - 1 else 0,
    "shift-right-arithmetic": _arithmetic_shift,
}
