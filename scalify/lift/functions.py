"""Element functions that are neither linear nor products: max, clamp, select, division of integers, and uninterpreted ones.

A ``fn`` node is ``(name, attribute, arguments)`` with arguments ``(coefficient, term, labels)``. Equal nodes are equal values whatever the
function is, so an unknown function needs no law; the laws here are those of the field of reals, with their conditions beside them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from scalify.lift import product
from scalify.lift.compare import at_least_zero
from scalify.lift.instance import child, rebuilds
from scalify.lift.linear import combine, content, form, negate, scale, subtract
from scalify.lift.terms import Index, Labels, Number, Store, Term, View, absolute, bounds, is_boolean, is_integer, number, quotient

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

End = Number | None


def function(store: Store, name: str, arguments: Sequence[View], attribute: Hashable = None) -> View:
    """``name(arguments)`` as it stands."""
    labels = Labels()
    data = tuple([(v.coef, v.term, labels.labels(v.at)) for v in arguments])
    sizes = {slot: n for v in arguments for slot, n in zip(v.at, v.term.sizes, strict=True)}
    term = store.node("fn", (name, attribute, data), tuple([sizes[s] for s in labels.slots]), _facts)
    return View(1, term, tuple(labels.slots))


_DEFINITE = frozenset({"bits", "trunc"})  #: integers, whatever their operands are


# -- facts ------------------------------------------------------------------------------------------------------------
def _facts(term: Term) -> None:
    name, attribute, arguments = term.data
    views = [View(c, t, ()) for c, t, _ in arguments]
    term.taint = _improper(name, views) or (name not in _DEFINITE and any(t.taint for _, t, _ in arguments))
    term.positive = (name in ("exp", "logistic") and (not term.taint or is_maximum(views[0].term))) or (
        name in ("sqrt", "select", "max") and all(c > 0 and t.positive for c, t, _ in arguments[1 if name == "select" else 0 :])
    )
    fill = _RANGES.get(name)
    if fill is not None:
        term.integer, term.low, term.high = fill(attribute, views)


def _improper(name: str, views: Sequence[View]) -> bool:
    """Whether a function of constants is infinite or undefined."""
    first = views[0] if views else None
    if first is None or name == "divide-by-zero":
        return name == "divide-by-zero"
    constant = first.term.kind == "one"
    return constant and (first.coef < 0 if name == "sqrt" else first.coef <= 0 and name in ("log", "power"))


def is_maximum(term: Term) -> bool:
    """A greatest value over masked ones is taken to be finite: somewhere the mask lets one through."""
    return term.kind == "red" or (term.kind == "fn" and term.data[0] == "max")


Facts = tuple[bool, int | None, int | None]


def _ends(view: View) -> tuple[int | None, int | None]:
    found = bounds(view)
    return (None, None) if found is None else (int(found[0]), int(found[1]))


def _clamp_range(attribute: tuple[End, End], views: list[View]) -> Facts:
    low, high = attribute
    if not is_integer(views[0]) or type(low) is Fraction or type(high) is Fraction:
        return False, None, None
    a, b = _ends(views[0])
    ends = [int(e) for e in (a, low) if e is not None], [int(e) for e in (b, high) if e is not None]
    return True, max(ends[0], default=None), min(ends[1], default=None)


def _union_range(_: object, views: list[View]) -> Facts:
    ends = [_ends(v) for v in views]
    lows, highs = [a for a, _ in ends], [b for _, b in ends]
    low = None if None in lows else min(x for x in lows if x is not None)
    high = None if None in highs else max(x for x in highs if x is not None)
    return all(is_integer(v) for v in views), low, high


def _max_range(_: object, views: list[View]) -> Facts:
    whole, _low, high = _union_range(None, views)
    lows = [a for a, _ in map(_ends, views) if a is not None]
    return whole, max(lows) if lows and whole else None, high


def _quotient_range(divisor: int, views: list[View]) -> Facts:
    low, high = _ends(views[0])
    return True, None if low is None else low // divisor, None if high is None else high // divisor


_RANGES: dict[str, Callable[..., Facts]] = {
    "clamp": _clamp_range,
    "select": lambda attribute, views: _union_range(attribute, views[1:]),
    "max": _max_range,
    "rem": lambda divisor, _: (True, 0, divisor - 1),
    "quotient": _quotient_range,
    "wrap": lambda limits, _: (True, *limits),
    "trunc": lambda limits, _: (True, *limits),
    "bits": lambda attribute, _: (True, *attribute[1]),
    "sign": lambda _a, _v: (True, -1, 1),
}


# -- maximum and clamp -------------------------------------------------------------------------------------------------
def maximum(store: Store, a: View, b: View) -> View:
    """Greatest of two values: flat, sorted, without repetitions; a constant operand makes it a clamp."""
    if is_boolean(a) and is_boolean(b):
        return either(store, a, b)
    if a.term is store.one and b.term is store.one:
        return a if a.coef >= b.coef else b
    for x, y in ((a, b), (b, a)):
        if x.term.kind == "infinity" and (x.coef < 0 or not y.term.taint):
            return y if x.coef < 0 else x
        if x.term is store.one:
            return clamp(store, y, x.coef, None)
    return largest(store, [a, b])


def minimum(store: Store, a: View, b: View) -> View:
    """Least of two values."""
    if is_boolean(a) and is_boolean(b):
        return product.times(store, a, b)
    return negate(store, maximum(store, negate(store, a), negate(store, b)))


def either(store: Store, a: View, b: View) -> View:
    """Logical or of 0/1 values."""
    return product.complement(store, product.times(store, product.complement(store, a), product.complement(store, b)))


def largest(store: Store, views: Sequence[View]) -> View:
    """Greatest of at least one value, none of them constant."""
    flat: dict[View, None] = {}
    for view in views:
        for part in _max_parts(store, view):
            flat[part] = None
    if len(flat) == 1:
        return next(iter(flat))
    store.charge(2 * len(flat))
    common = content([absolute(v.coef) for v in flat])
    parts = [scale(store, v, quotient(1, common)) for v in flat]
    parts.sort(key=lambda v: (v.term.id, v.coef, v.at))
    return scale(store, function(store, "max", parts), common)


def _max_parts(store: Store, view: View) -> list[View]:
    coef, term, at = view
    if term.kind != "fn" or term.data[0] != "max" or coef <= 0:
        return [view]
    return [scale(store, View(c, t, tuple([at[i] for i in labels])), coef) for c, t, labels in term.data[2]]


def clamp(store: Store, view: View, low: End, high: End) -> View:
    """``min(max(view, low), high)``; an end of None is open. Moves shifts and scales outward and drops ends that the range makes idle."""
    if low is not None and high is not None and low >= high:
        return store.constant(high)
    if view.term is store.one or view.coef == 0:
        value = view.coef if low is None else max(view.coef, low)
        return store.constant(value if high is None else min(value, high))
    entries, constant = form(view)
    if constant and entries:
        moved = clamp(store, combine(store, ((1, view),), -constant), _less(low, constant), _less(high, constant))
        return combine(store, ((1, moved),), constant)
    coef, term, at = view
    if coef != 1 and (absolute(coef) == 1 or not term.integer):
        ends = [None if e is None else quotient(e, coef) for e in (low, high)]
        inner = clamp(store, View(1, term, at), *(ends if coef > 0 else ends[::-1]))
        return scale(store, inner, coef)
    return _clamp_node(store, view, low, high)


def _less(end: End, by: Number) -> End:
    return None if end is None else number(end - by)


def _clamp_node(store: Store, view: View, low: End, high: End) -> View:
    found = bounds(view)
    if found is not None:
        low = None if low is not None and found[0] >= low else low
        high = None if high is not None and found[1] <= high else high
        if low is not None and found[1] <= low:
            return store.constant(low)
        if high is not None and found[0] >= high:
            return store.constant(high)
    elif low is not None and low <= 0 and view.term.positive and view.coef > 0:
        low = None
    if view.term.kind == "mul" and is_integer(view):  # a value behind conditions that keep it within the ends
        one = store.constant(1)
        low = None if low is not None and at_least_zero(store, combine(store, ((1, view),), -low)) == one else low
        high = None if high is not None and at_least_zero(store, combine(store, ((-1, view),), high)) == one else high
    if low is None and high is None:
        return view
    coef, term, at = view
    if term.kind == "fn" and term.data[0] == "clamp" and coef == 1:
        inner_low, inner_high = term.data[1]
        c, t, labels = term.data[2][0]
        inner = View(c, t, tuple([at[i] for i in labels]))
        new_low = low if inner_low is None else _clip(inner_low, low, high)
        new_high = high if inner_high is None else _clip(inner_high, low, high)
        return clamp(store, inner, new_low, new_high)
    return function(store, "clamp", [view], (low, high))


def _clip(value: Number, low: End, high: End) -> Number:
    value = value if low is None else max(value, low)
    return value if high is None else min(value, high)


# -- select ------------------------------------------------------------------------------------------------------------
#: set by scalify.lift.guards: a value where a condition holds, in simpler form
assuming: list[Callable[[Store, View, View], View]] = []


def select(store: Store, condition: View, yes: View, no: View) -> View:
    """``yes`` where the 0/1 condition holds, else ``no``.

    ``select(p, x, 0) = p x`` needs a finite x, so values that may hold infinities stay behind the select.
    """
    if condition.term is store.one or condition.coef == 0:
        return yes if condition.coef else no
    if yes == no:
        return yes
    positive = _unnegated(store, condition)
    if positive is not None:
        return select(store, positive, no, yes)
    if not store.laws.select:
        return function(store, "select", [condition, yes, no])
    if not yes.term.taint and not no.term.taint:
        if no.coef == 0:
            return product.times(store, condition, yes)
        if yes.coef == 0:
            return product.times(store, product.complement(store, condition), no)
        if (yes.term is store.one and no.term is store.one) or (is_boolean(yes) and is_boolean(no)):
            return _linear_select(store, condition, yes, no)
        changed = _change(store, condition, yes, no)
        if changed is not None:
            return changed
    merged = _nested_select(store, condition, yes, no) or _common_factors(store, condition, yes, no)
    return merged if merged is not None else function(store, "select", [condition, yes, no])


def _common_factors(store: Store, condition: View, yes: View, no: View) -> View | None:
    """``select(p, f a, f b) = f select(p, a, b)`` for the 0/1 factors that both branches share."""
    left, right = product.factors_of(yes), product.factors_of(no)
    shared = [f for f in left if f[0].boolean and f in right]
    if not shared:
        return None
    rest_yes = product.from_factors(store, yes.coef, [f for f in left if f not in shared])
    rest_no = product.from_factors(store, no.coef, [f for f in right if f not in shared])
    return product.multiply(store, [(select(store, condition, rest_yes, rest_no), 1), *[(View(1, t, at), e) for t, e, at in shared]])


def _linear_select(store: Store, condition: View, yes: View, no: View) -> View:
    if no.term is store.one:
        return combine(store, ((1, product.times(store, condition, subtract(store, yes, no))),), no.coef)
    first = product.times(store, condition, yes)
    return combine(store, ((1, first), (1, product.times(store, product.complement(store, condition), no))))


def _change(store: Store, condition: View, yes: View, no: View) -> View | None:
    """``select(p, x + d, x) = x + p d`` where all of x cancels, under p: an element that is overwritten by itself plus something."""
    if not assuming or not store.laws.guards:
        return None
    difference = subtract(store, assuming[0](store, yes, condition), no)
    kept, _ = form(no)
    if not kept or not kept.keys().isdisjoint(form(difference)[0]):
        return None
    return combine(store, ((1, no), (1, product.times(store, condition, difference))))


def _unnegated(store: Store, condition: View) -> View | None:
    """``p`` when the condition is ``1 - p``."""
    if condition.term.kind == "lin" and len(condition.term.data[0]) == 1:
        entries, constant = form(condition)
        if constant == 1 and next(iter(entries.values())) == -1:
            return product.complement(store, condition)
    return None


def _nested_select(store: Store, condition: View, yes: View, no: View) -> View | None:
    """``select(p, select(q, a, b), b) = select(p and q, a, b)`` and the same on the other side; ``select(p, select(p, a, b), c)``."""
    for inner, other in ((yes, no), (no, yes)):
        if inner.term.kind != "fn" or inner.term.data[0] != "select":
            continue
        q, a, b = [scale(store, v, inner.coef if i else 1) for i, v in enumerate(arguments(inner))]
        if q == condition:
            return select(store, condition, a, no) if inner is yes else select(store, condition, yes, b)
        if inner is yes and b == other:
            return select(store, product.times(store, condition, q), a, b)
        if inner is yes and a == other:
            return select(store, product.times(store, condition, product.complement(store, q)), b, a)
        if inner is no and b == other:
            return select(store, product.times(store, product.complement(store, condition), q), a, b)
        if inner is no and a == other:
            return select(store, product.times(store, product.complement(store, condition), product.complement(store, q)), b, a)
    return None


def arguments(view: View) -> list[View]:
    """The arguments of a ``fn`` term over the slots of the view."""
    _, term, at = view
    return [View(c, t, tuple([at[i] for i in labels])) for c, t, labels in term.data[2]]


# -- integers ------------------------------------------------------------------------------------------------------------
def wrap(store: Store, view: View, low: int, high: int) -> View:
    """The view as an integer of a type with this range: itself when it fits, else an explicit wrap-around."""
    found = bounds(view)
    if found is not None and found[0] >= low and found[1] <= high:
        return view
    if view.term is store.one:
        return store.constant((int(view.coef) - low) % (high - low + 1) + low)
    return function(store, "wrap", [view], (low, high))


def remainder(store: Store, view: View, divisor: int) -> View | None:
    """``view rem divisor`` for ``view >= 0`` and ``divisor > 0``; None when the view may be negative."""
    found = bounds(view)
    if found is None or found[0] < 0 or divisor <= 0:
        return None
    rest = _low_part(store, view, divisor)
    if rest is not None:
        return rest
    return function(store, "rem", [view], divisor)


def integer_quotient(store: Store, view: View, divisor: int) -> View | None:
    """``view div divisor`` (truncating) for ``view >= 0`` and ``divisor > 0``; None when the view may be negative."""
    found = bounds(view)
    if found is None or found[0] < 0 or divisor <= 0:
        return None
    if divisor == 1:
        return view
    rest = _low_part(store, view, divisor)
    if rest is not None:
        high = subtract(store, view, rest)
        return scale(store, high, Fraction(1, divisor)) if high.coef else high
    return function(store, "quotient", [view], divisor)


def _low_part(store: Store, view: View, divisor: int) -> View | None:
    """The part of a form that is left when multiples of the divisor are taken out, if it lies in ``0 .. divisor - 1``."""
    entries, constant = form(view)
    kept = [(c, View(1, t, at)) for (t, at), c in entries.items() if c % divisor]
    rest = combine(store, kept, constant % divisor)
    found = bounds(rest)
    return rest if found is not None and found[0] >= 0 and found[1] < divisor else None


def sign(store: Store, view: View) -> View:
    """-1, 0 or 1."""
    if view.coef == 0:
        return view
    flipped = 1 if view.coef > 0 else -1
    if view.term.positive:
        return store.constant(flipped)
    inner = View(1, view.term, view.at)
    found = bounds(inner)
    if found is not None and found[0] >= 0:
        return scale(store, at_least_zero(store, combine(store, ((1, inner),), -1)), flipped)
    return scale(store, function(store, "sign", [inner]), flipped)


def magnitude(store: Store, view: View) -> View:
    """Absolute value."""
    found = bounds(view)
    if view.coef == 0 or (found is not None and found[0] >= 0) or (view.term.positive and view.coef > 0):
        return view
    return scale(store, function(store, "abs", [View(1, view.term, view.at)]), absolute(view.coef))


# -- rebuilding ----------------------------------------------------------------------------------------------------------
@rebuilds("fn", lambda term: [(t, labels) for _, t, labels in term.data[2]])
def _rebuild(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    name, attribute, inner = term.data
    views = [scale(store, child(store, t, labels, binding), c) for c, t, labels in inner]
    return make(store, name, attribute, views)


def make(store: Store, name: str, attribute: Hashable, views: Sequence[View]) -> View:
    """``name(views)`` in normal form: the one constructor by name."""
    law = LAWS.get(name)
    if law is not None:
        found = law(store, attribute, views)
        if found is not None:
            return found
    return function(store, name, views, attribute)


def _make_largest(store: Store, _: Hashable, views: Sequence[View]) -> View:
    result = views[0]
    for view in views[1:]:
        result = maximum(store, result, view)
    return result


#: how functions by name are made in normal form; scalify.lift.elementary adds its own
LAWS: dict[str, Callable[[Store, object, Sequence[View]], View | None]] = {
    "max": _make_largest,
    "clamp": lambda s, ends, v: clamp(s, v[0], *ends),  # type: ignore[misc]
    "select": lambda s, _, v: select(s, *v),
    "rem": lambda s, k, v: remainder(s, v[0], k),  # type: ignore[arg-type]
    "quotient": lambda s, k, v: integer_quotient(s, v[0], k),  # type: ignore[arg-type]
    "wrap": lambda s, ends, v: wrap(s, v[0], *ends),  # type: ignore[misc]
    "sign": lambda s, _, v: sign(s, v[0]),
    "abs": lambda s, _, v: magnitude(s, v[0]),
}
