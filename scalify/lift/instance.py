"""Putting constants, other labels or tables of labels in place of a term's labels.

The term is rebuilt through the constructors, so the result is in normal form again: ``sum_p [p = k] x_p`` at ``p = 2`` is ``x_2``.
Exact for every kind of node, since a term is a function of its labels and the substitution is composition of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, groupby, permutations
from itertools import product as cartesian
from math import prod

import numpy as np

from scalify.lift.linear import scale
from scalify.lift.terms import BOUND, FRESH, Index, Store, Term, View

Rebuild = Callable[[Store, Term, tuple[Index, ...]], View]

#: how each kind of node is rebuilt with indices in place of its labels; filled by the modules of the kinds
REBUILD: dict[str, Rebuild] = {}


#: the operands of each kind of node, with their labels
OPERANDS: dict[str, Callable[[Term], list[tuple[Term, tuple[int, ...]]]]] = {}


def rebuilds(kind: str, operands: Callable[[Term], list[tuple[Term, tuple[int, ...]]]]) -> Callable[[Rebuild], Rebuild]:
    """Declares a kind of node: its operands, and how it is made again from changed ones."""

    def register(function: Rebuild) -> Rebuild:
        REBUILD[kind] = function
        OPERANDS[kind] = operands
        return function

    return register


def constant_index(k: int) -> int:
    """The index that is always ``k``."""
    return -1 - k


def instantiate(store: Store, term: Term, binding: tuple[Index, ...]) -> View:
    """``term`` with ``binding[i]`` in place of label ``i``."""
    if _plain(binding):
        return View(1, term, binding)  # type: ignore[arg-type]
    names: dict[int, int] = {}
    pattern = tuple([_numbered(entry, names) for entry in binding])
    key = (term, pattern)
    found = store.memo.get(key)
    if found is None:
        found = store.memo[key] = _rebuild(store, term, pattern)
    slots = list(names)
    coef, term, at = found
    return View(coef, term, tuple([slots[s] for s in at]))


def _plain(binding: tuple[Index, ...]) -> bool:
    for entry in binding:
        if type(entry) is tuple or entry < 0:  # type: ignore[operator]
            return False
    return len(set(binding)) == len(binding)


def _numbered(entry: Index, names: dict[int, int]) -> Index:
    if type(entry) is tuple:
        return (entry[0], *[names.setdefault(s, len(names)) for s in entry[1:]])
    assert isinstance(entry, int)
    return entry if entry < 0 else names.setdefault(entry, len(names))


def _rebuild(store: Store, term: Term, pattern: tuple[Index, ...]) -> View:
    """Rebuild operands first, on an explicit stack: graphs are deeper than Python's own."""
    stack = [(term, pattern)]
    while stack:
        top, binding = stack[-1]
        key = (top, binding)
        if key in store.memo:
            stack.pop()
            continue
        missing = [need for need in _operands(store, top, binding) if need not in store.memo]
        if missing:
            stack.extend(missing)
            continue
        store.spend("substitutions")
        store.memo[key] = REBUILD[top.kind](store, top, binding)
        stack.pop()
    found: View = store.memo[term, pattern]
    return found


def _operands(store: Store, term: Term, binding: tuple[Index, ...]) -> list[tuple[Term, tuple[Index, ...]]]:
    """The operand instances that rebuilding needs and that are not just the operand itself."""
    found = []
    operands = OPERANDS[term.kind](term)
    store.charge(len(operands))
    for operand, labels in operands:
        entries = tuple([FRESH + label if label >= BOUND else binding[label] for label in labels])
        if not _plain(entries):
            names: dict[int, int] = {}
            found.append((operand, tuple([_numbered(entry, names) for entry in entries])))
    return found


def substitute(store: Store, view: View, change: Mapping[int, Index]) -> View:
    """The view with the slots of ``change`` replaced."""
    coef, term, at = view
    if not any(s in change for s in at):
        return view
    return scale(store, instantiate(store, term, tuple([change.get(s, s) for s in at])), coef)


def child(store: Store, term: Term, labels: Sequence[int], binding: Mapping[int, Index] | tuple[Index, ...]) -> View:
    """An operand of a node that is rebuilt: ``labels`` are the node's, ``binding`` says what becomes of each."""
    return instantiate(store, term, tuple([binding[label] for label in labels]))


def make_index(store: Store, values: np.ndarray, slots: Sequence[int], size: int) -> Index:
    """The simplest index for a function of slots given as an array (one dimension a slot) with values below ``size``.

    A constant, a slot (values equal to the slot's own), or a table over the slots that matter.
    """
    first = int(values.flat[0])
    if (values == first).all():
        return constant_index(first)
    keep = [d for d in range(values.ndim) if not (values == values.take([0], axis=d)).all()]
    values = values[tuple([slice(None) if d in keep else 0 for d in range(values.ndim)])]
    slots = [slots[d] for d in keep]
    if len(slots) == 1 and len(values) <= size and (values == np.arange(len(values))).all():
        return slots[0] if len(values) == size else (store.table(np.ascontiguousarray(values, dtype=np.int64)), slots[0])
    values, slots = oriented(values.astype(np.int64), slots)
    return (store.table(values), *slots)


def oriented(values: np.ndarray, slots: Sequence[int]) -> tuple[np.ndarray, list[int]]:
    """Data with its axes in an order that the content alone decides: by size, and among equal sizes by the smallest bytes."""
    by_size = sorted(range(values.ndim), key=lambda d: values.shape[d])
    groups = [list(g) for _, g in groupby(by_size, key=lambda d: values.shape[d])]
    choices: Iterable[tuple[int, ...]] = [tuple(by_size)]
    if any(len(g) > 1 for g in groups) and values.ndim <= MOST_ORIENTED:
        choices = [tuple(chain(*parts)) for parts in cartesian(*[permutations(g) for g in groups])]
    best = min(((values.transpose(order).tobytes(), order) for order in choices), key=lambda found: found[0])[1]
    return np.ascontiguousarray(values.transpose(best)), [slots[d] for d in best]


MOST_ORIENTED = 5  #: axes of data whose order is decided by content; beyond, equal data may get two terms


def compose(store: Store, entry: Index, binding: tuple[Index, ...], size: int) -> Index:
    """The index ``entry`` of a node (over its labels) after ``binding``; ``size`` is how many values the index may take."""
    if type(entry) is not tuple:
        assert isinstance(entry, int)
        return entry if entry < 0 else binding[entry]
    table = store.tables[entry[0]]
    inner = [binding[label] for label in entry[1:]]
    slots: dict[int, int] = {}
    for position, index in enumerate(inner):
        for slot, length in _slots_of(store, index, table.shape[position]):
            slots.setdefault(slot, length)
    names = list(slots)
    store.charge_table(prod(slots.values()))
    grids = dict(zip(names, np.meshgrid(*[np.arange(slots[s]) for s in names], indexing="ij", sparse=True), strict=True)) if names else {}
    picked = table[tuple([_evaluate(store, index, grids) for index in inner])]
    shape = tuple(slots[s] for s in names)
    return make_index(store, np.broadcast_to(np.asarray(picked), shape), names, size)


def _slots_of(store: Store, index: Index, size: int) -> list[tuple[int, int]]:
    if type(index) is tuple:
        return list(zip(index[1:], store.tables[index[0]].shape, strict=True))
    assert isinstance(index, int)
    return [] if index < 0 else [(index, size)]


def _evaluate(store: Store, index: Index, grids: Mapping[int, np.ndarray]) -> np.ndarray | int:
    if type(index) is tuple:
        picked: np.ndarray = store.tables[index[0]][tuple([grids[s] for s in index[1:]])]
        return picked
    assert isinstance(index, int)
    return -1 - index if index < 0 else grids[index]
