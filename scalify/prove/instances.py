"""Equality instance by instance: every device (and every block index) on its own."""

from __future__ import annotations

from itertools import product as combinations

from scalify.lift.instance import OPERANDS, substitute
from scalify.lift.terms import LimitReached, Store, Term, View
from scalify.lift.unroll import Unroller, cone

MOST_INSTANCES = 64
SMALL = 16  #: longest axis other than a device axis that is taken apart


def equal_by_instances(store: Store, expected: View, actual: View, device_slots: dict[int, int], known: int, budget: int) -> bool:
    """Whether the views are equal at every combination of constants for the device slots, and, should that not do, for those other slots
    that the actual value compares with constants. Sums over axes as long as one of these are written out on both sides.

    ``known`` is the number of the first term that the baseline does not have. Sound: the instances cover all values of the slots. The
    answer depends on counts only, so that it is the same in every run.
    """
    found = list(_slot_sets(expected, actual, device_slots, known))
    start = len(store.terms)
    for slots in found:
        lengths = set(device_slots.values()) | set(slots.values())
        left = budget - (len(store.terms) - start)
        if left <= 0:
            return False
        try:
            if _all_equal(store, expected, actual, slots, lengths, left):
                return True
        except LimitReached:
            return False
    return False


def _slot_sets(expected: View, actual: View, device_slots: dict[int, int], known: int) -> list[dict[int, int]]:
    """Sets of slots to fix, the smaller first."""
    sizes = dict(zip(actual.at, actual.term.sizes, strict=True)) | dict(zip(expected.at, expected.term.sizes, strict=True))
    devices = {s: n for s, n in device_slots.items() if s in sizes}
    chosen = {actual.at[label] for label in _compared_labels(actual.term, known)}
    more = devices | {s: n for s, n in sizes.items() if s in chosen and n <= SMALL}
    found = [devices] if devices == more else [devices, more]
    return [slots for slots in found if _count(slots) <= MOST_INSTANCES]


def _count(slots: dict[int, int]) -> int:
    total = 1
    for n in slots.values():
        total *= n
    return total


def _compared_labels(term: Term, known: int) -> set[int]:
    """Labels of the term that reach, through terms that the baseline does not have, an equation: ``[label = constant]``, or of short
    labels with each other (``[block = device + 1]``), which each device compares with a constant of its own; or a table.
    """
    found: set[int] = set()
    pending: list[tuple[Term, tuple[int, ...]]] = [(term, tuple(range(len(term.sizes))))]
    seen: set[tuple[Term, tuple[int, ...]]] = set()
    while pending and len(seen) < 2000:
        top, names = pending.pop()
        if (top, names) in seen:
            continue
        seen.add((top, names))
        if top.kind == "eq0" and (len(top.sizes) == 1 or max(top.sizes, default=1) <= SMALL):
            found.update(n for n in names if n >= 0)
        elif top.kind == "at":
            found.update(n for n in _tabled(top, names) if n >= 0)
        if top.id < known and top.kind not in ("eq0", "ge0"):
            continue
        for operand, labels in OPERANDS[top.kind](top):
            pending.append((operand, tuple([names[i] if i < len(names) else -1 for i in labels])))
    return found


def _tabled(term: Term, names: tuple[int, ...]) -> tuple[int, ...]:
    """The labels of known 0/1 data, and those that a table turns into an index."""
    if term.data[0][0] == "dense":
        return names if term.boolean else ()
    return tuple([names[i] for entry in term.data[2] if type(entry) is tuple for i in entry[1:]])


def _all_equal(store: Store, expected: View, actual: View, slots: dict[int, int], lengths: set[int], budget: int) -> bool:
    for pick in combinations(*[range(n) for n in slots.values()]):
        change = {s: -1 - k for s, k in zip(slots, pick, strict=True)}
        if not _equal(store, substitute(store, expected, change), substitute(store, actual, change), lengths, budget):
            return False
    return True


def _written_out(expected: set[Term], actual: set[Term]) -> set[int]:
    """Lengths of short axes that some expected sum has more often than any actual one, which may have them one after the other."""
    most, others = _most_often(expected), _most_often(actual)
    return {n for n, count in most.items() if n <= SMALL and count > others.get(n, 0)}


def _most_often(terms: set[Term]) -> dict[int, int]:
    """How often a sum has axes of each length, at most."""
    found: dict[int, int] = {}
    for term in terms:
        sizes = term.data[1] if term.kind == "sum" else ()
        for n in sizes:
            found[n] = max(found.get(n, 0), sizes.count(n))
    return found


def _equal(store: Store, expected: View, actual: View, lengths: set[int], budget: int) -> bool:
    if expected == actual:
        return True
    left, right = cone(expected.term, budget), cone(actual.term, budget)
    keep = {t for t in left & right if t is not expected.term and t is not actual.term}
    attempts = [(keep, lengths), (set(), lengths)]
    longer = _written_out(left, right) - lengths
    if longer:
        attempts.append((keep, lengths | longer))
    for kept, sizes in attempts:
        unroller = Unroller(store, sizes, kept, budget)
        if unroller.view(expected) == unroller.view(actual):
            return True
    return False
