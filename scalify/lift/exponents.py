"""Exponentials that all parts of a linear combination share are taken out of it.

``a exp(-m) + b exp(-m) = (a + b) exp(-m)``: with exp as a homomorphism this proves online softmax and log-sum-exp merges, as the running
maxima cancel. Before, products of exponentials with a linear combination are multiplied out, so that the order of building does not matter.
"""

from __future__ import annotations

from scalify.lift import linear
from scalify.lift.linear import Form, form, from_form
from scalify.lift.product import Factor, factors_of, is_exponential, multiply, plain
from scalify.lift.terms import Number, Store, Term, View

Key = tuple[Term, tuple[int, ...]]


def factored(store: Store, found: Form, constant: Number) -> View:
    """The linear combination in normal form."""
    found = _multiplied_out(store, {key: c for key, c in found.items() if c or key[0].taint})
    shared = {} if constant or len(found) < 2 else _shared(found)
    if not shared:
        return from_form(store, found, constant)
    rest: Form = {}
    for (term, at), c in found.items():
        left = [(t, e - shared.get((t, a), 0), a) for t, e, a in factors_of(View(1, term, at))]
        view = plain(store, 1, [f for f in left if f[1]])
        inner, k = form(view)
        constant += c * k
        for key, value in inner.items():
            rest[key] = rest.get(key, 0) + c * value
    outside = [(View(1, t, at), e) for (t, at), e in shared.items()]
    return multiply(store, [(from_form(store, rest, constant), 1), *outside])


def _multiplied_out(store: Store, found: Form) -> Form:
    """Parts ``exp(..) * (a + b)`` as ``exp(..) a + exp(..) b``."""
    result: Form = {}
    for (term, at), c in found.items():
        factors = factors_of(View(1, term, at)) if term.scaled else []
        sums = [f for f in factors if f[0].kind == "lin" and f[1] == 1]
        if len(sums) != 1 or not all(is_exponential(f[0]) for f in factors if f is not sums[0]):
            result[term, at] = result.get((term, at), 0) + c
            continue
        others = [(View(1, t, a), e) for t, e, a in factors if (t, e, a) != sums[0]]
        entries, constant = form(View(1, sums[0][0], sums[0][2]))
        parts = [(k, View(1, t, a)) for (t, a), k in entries.items()] + ([(constant, store.constant(1))] if constant else [])
        for k, part in parts:
            view = multiply(store, [(part, 1), *others])
            result[view.term, view.at] = result.get((view.term, view.at), 0) + c * k * view.coef
    return {key: c for key, c in result.items() if c or key[0].taint}


def _shared(found: Form) -> dict[Key, int]:
    """The powers of exponentials that every part has."""
    shared: dict[Key, int] | None = None
    for term, at in found:
        own = {(t, a): e for t, e, a in _exponentials(View(1, term, at))}
        if shared is None:
            shared = own
            continue
        common = {}
        for key, e in shared.items():
            other = own.get(key, 0)
            if e * other > 0:
                common[key] = min(e, other) if e > 0 else max(e, other)
        shared = common
        if not shared:
            return {}
    return shared or {}


def _exponentials(view: View) -> list[Factor]:
    return [f for f in factors_of(view) if is_exponential(f[0])]


linear.factor_exponentials.append(factored)
