"""Reductions other than sums: greatest value (least is its negative), product.

A ``red`` node is ``(name, sign, term, labels, bound sizes)``. Directly nested reductions of one kind merge, labels that the operand does
not use vanish (max is idempotent), positive coefficients move out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.lift.functions import arguments, maximum
from scalify.lift.instance import child, rebuilds
from scalify.lift.linear import negate, scale
from scalify.lift.product import multiply
from scalify.lift.terms import BOUND, Index, Labels, Store, Term, View, absolute

if TYPE_CHECKING:
    from collections.abc import Mapping


def greatest(store: Store, view: View, slots: Mapping[int, int]) -> View:
    """Maximum of the view over ``slots`` (slot -> size)."""
    coef, term, at = view
    inside = {s: n for s, n in slots.items() if s in at}
    if not inside:
        return view
    if term.kind == "fn" and term.data[0] == "max" and coef > 0:
        parts = [greatest(store, v, inside) for v in arguments(View(1, term, at))]
        result = parts[0]
        for part in parts[1:]:
            result = maximum(store, result, part)
        return scale(store, result, coef)
    if term.kind == "red" and term.data[0] == "max" and coef > 0:
        sign, inner, labels, bounds = term.data[1:]
        fresh = [store.fresh() for _ in bounds]
        inside.update(zip(fresh, bounds, strict=True))
        slots_of = tuple([fresh[i - BOUND] if i >= BOUND else at[i] for i in labels])
        return scale(store, _node(store, "max", sign, inner, slots_of, inside), coef)
    return scale(store, _node(store, "max", 1 if coef > 0 else -1, term, at, inside), absolute(coef))


def least(store: Store, view: View, slots: Mapping[int, int]) -> View:
    """Minimum of the view over ``slots``."""
    return negate(store, greatest(store, negate(store, view), slots))


def product_over(store: Store, view: View, slots: Mapping[int, int]) -> View:
    """Product of the view over ``slots``; slots that it does not use raise it to their size."""
    inside = {s: n for s, n in slots.items() if s in view.at}
    power = 1
    for s, n in slots.items():
        if s not in inside:
            power *= n
    if inside:
        size = 1
        for n in inside.values():
            size *= n
        node = _node(store, "product", 1, view.term, view.at, inside)
        view = scale(store, node, view.coef**size)
    return multiply(store, ((view, power),)) if power != 1 else view


def _node(store: Store, name: str, sign: int, term: Term, at: tuple[int, ...], inside: Mapping[int, int]) -> View:
    free, inner = Labels(), Labels()
    sizes = dict(zip(at, term.sizes, strict=True))
    labels = tuple([BOUND + inner.label(s) if s in inside else free.label(s) for s in at])

    def fill(node: Term) -> None:
        node.taint = term.taint
        node.positive = term.positive and sign > 0
        if name == "max" and term.integer:
            node.integer = True
            node.low, node.high = (term.low, term.high) if sign > 0 else (_minus(term.high), _minus(term.low))

    data = (name, sign, term, labels, tuple([inside[s] for s in inner.slots]))
    node = store.node("red", data, tuple([sizes[s] for s in free.slots]), fill)
    return View(1, node, tuple(free.slots))


def _minus(value: int | None) -> int | None:
    return None if value is None else -value


@rebuilds("red", lambda term: [(term.data[2], term.data[3])])
def _rebuild(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    name, sign, inner, labels, sizes = term.data
    slots = [store.fresh() for _ in sizes]
    indices: dict[int, Index] = dict(enumerate(binding)) | {BOUND + j: s for j, s in enumerate(slots)}
    view = scale(store, child(store, inner, labels, indices), sign)
    bound = dict(zip(slots, sizes, strict=True))
    return greatest(store, view, bound) if name == "max" else product_over(store, view, bound)
