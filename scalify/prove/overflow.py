"""Exponentials that cannot overflow in the baseline and can in the distributed graph.

Over the reals ``exp(x) / sum exp(x)`` is softmax whether or not a maximum is subtracted first; in floating point it overflows. A proof over the
reals does not see that, so it is looked for apart: an exponential of something unbounded, where the baseline takes the exponential of the same thing
minus a maximum over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.lift.functions import arguments
from scalify.lift.linear import Form, form
from scalify.lift.terms import BOUND, Number, Term, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scalify.lift.lifter import Exponential, Lifter
    from scalify.lift.program import Operation

Key = tuple[Term, tuple[int, ...]]

DEPTH = 8  #: maxima inside each other that are replaced by what they are taken over
STEPS = 2000  #: replacements, all together
_TAME = frozenset({"logistic", "tanh", "sine", "cosine", "erf", "log"})  #: functions whose exponential does not overflow by itself
_FREE = -1  #: bound slots while they are looked for are below this


def unguarded(baseline: Lifter, distributed: Lifter) -> list[Operation]:
    """Operations of the distributed program that may overflow where the baseline's counterpart is shifted by a maximum.

    Blocks of one softmax (ring attention) are not values of the baseline: there it counts that a maximum takes part and does not outweigh, or
    that the baseline shifts all its exponentials.
    """
    guarded = {t for e in baseline.exponentials if is_bounded(e.argument) for t in _subjects(e)}
    plain = {t for e in baseline.exponentials if not is_bounded(e.argument) for t in _subjects(e)}
    if not guarded:
        return []
    risky = [e for e in distributed.exponentials if not is_bounded(e.argument)]
    if all(is_bounded(e.argument) for e in baseline.exponentials):
        return [e.operation for e in risky]
    return [e.operation for e in risky if _subjects(e) & (guarded - plain) or (_has_maximum(e.argument) and not _subjects(e) <= plain)]


def _has_maximum(view: View) -> bool:
    return any(_is_maximum(term) for term, _ in form(view)[0])


def is_bounded(view: View) -> bool:
    """Whether the view is at most a constant: what is added is outweighed by a maximum over it, or bounded itself."""
    entries = form(view)[0]
    if any(t.kind == "infinity" and c < 0 for (t, _), c in entries.items()):
        return True  # 0, or undefined
    return _Search().bounded(entries, DEPTH)


class _Search:
    """Replaces maxima by what they are taken over, a bounded number of times."""

    def __init__(self) -> None:
        self.left = STEPS

    def bounded(self, entries: Form, depth: int) -> bool:
        """``- c max(S)`` is at most ``- c x`` for each x in S; ``c max(S)`` is bounded if ``c x`` is for every x in S."""
        if all(_bounded_above(term) if c > 0 else _below_zero(term) for (term, _), c in entries.items()):
            return True
        self.left -= 1
        if not depth or self.left <= 0:
            return False
        kept = {key: c for key, c in entries.items() if not (c < 0 and _has_low_end(key[0]))}
        if len(kept) < len(entries) and self.bounded(kept, depth - 1):
            return True
        for key, c in entries.items():
            if c < 0 and _is_maximum(key[0]):
                others = {k: v for k, v in entries.items() if k != key}
                if any(self.bounded(_sum(others, part, -c), depth - 1) for part in _members(key, others)):
                    return True
        for key, c in entries.items():
            if c > 0 and _is_maximum(key[0]):
                others = {k: v for k, v in entries.items() if k != key}
                return all(self.bounded(_sum(others, part, -c), depth - 1) for part in _parts(key))
        return False


def _sum(entries: Form, view: View, weight: Number) -> Form:
    """``entries - weight * view``, constants apart."""
    found = dict(entries)
    for key, c in form(view)[0].items():
        found[key] = found.get(key, 0) - weight * c
    return {key: c for key, c in found.items() if c}


def _is_maximum(term: Term) -> bool:
    if term.kind == "red":
        return bool(term.data[0] == "max")
    if _is_log_of_sum(term):
        return True
    return term.kind == "fn" and (term.data[0] == "max" or (term.data[0] == "clamp" and term.data[1][1] is None))


def _is_log_of_sum(term: Term) -> bool:
    """``log(sum exp(x))``: at least every x, and more than the greatest by no more than the logarithm of their number."""
    if term.kind != "fn" or term.data[0] != "log":
        return False
    coef, inner, _ = term.data[2][0]
    return bool(coef > 0 and inner.kind == "sum" and len(inner.data[0]) == 1 and _is_exponential(*inner.data[0][0][:2]))


def _is_exponential(term: Term, exponent: int) -> bool:
    return exponent > 0 and term.kind == "fn" and term.data[0] == "exp"


def _has_low_end(term: Term) -> bool:
    """Whether the term is never below a constant: a maximum with one."""
    return term.kind == "fn" and term.data[0] == "clamp" and term.data[1][0] is not None


def _bounded_above(term: Term) -> bool:
    return term.high is not None or (term.kind == "fn" and term.data[0] in _TAME)


def _below_zero(term: Term) -> bool:
    """Whether ``- term <= 0`` is plain to see."""
    if term.kind == "fn" and term.data[0] in _TAME:
        return True
    return term.positive or (term.low is not None and term.low >= 0) or (term.kind == "mul" and all(e % 2 == 0 for _, e, _ in term.data))


def _parts(maximum: Key) -> list[View]:
    """Values that a maximum is taken over; of an axis one in a place that is written as a negative slot."""
    term, at = maximum
    if _is_log_of_sum(term):
        return [_summand(term, at)]
    if term.kind == "fn":
        return arguments(View(1, term, at))
    _, sign, inner, labels, _ = term.data
    return [View(sign, inner, tuple([at[i] if i < BOUND else _FREE - i for i in labels]))]


def _summand(term: Term, at: tuple[int, ...]) -> View:
    """The x of a ``log(sum exp(x))``, its bound slots negative."""
    _, summed, outer = term.data[2][0]
    exponential, exponent, labels = summed.data[0][0]
    slots = tuple([at[outer[i]] if i < BOUND else _FREE - i for i in labels])
    view = arguments(View(1, exponential, slots))[0]
    return View(view.coef * exponent, view.term, view.at)


def _bound_count(term: Term) -> int:
    """How many axes a maximum is taken over."""
    return len(term.data[2][0][1].data[1]) if _is_log_of_sum(term) else len(term.data[4])


def _members(maximum: Key, entries: Form) -> Iterator[View]:
    """Values that a maximum is taken over; of those along an axis the ones that ``entries`` speak of."""
    term, _ = maximum
    if term.kind == "fn" and not _is_log_of_sum(term):
        yield from _parts(maximum)
        return
    [(sign, inner, slots)] = _parts(maximum)
    seen = []
    for part, where in form(View(sign, inner, slots))[0]:
        for other, there in entries:
            binding = _unified(where, there) if part is other else None
            if binding is not None and len(binding) == _bound_count(term) and binding not in seen:
                seen.append(binding)
                member = tuple([binding.get(s, s) for s in slots])
                if len(set(member)) == len(member):
                    yield View(sign, inner, member)


def _unified(where: Iterable[int], there: Iterable[int]) -> dict[int, int] | None:
    """What bound slots stand for if the slots ``where`` are ``there``; None if they cannot be."""
    binding: dict[int, int] = {}
    for a, b in zip(where, there, strict=True):
        if (binding.setdefault(a, b) if a < 0 else a) != b:
            return None
    return binding


def _subjects(exponential: Exponential) -> set[Term]:
    """The terms that are added up in the argument, masks looked through."""
    entries, _ = form(exponential.argument)
    found = {term for (term, _), c in entries.items() if c > 0 and not _bounded_above(term)}
    for term in list(found):
        if term.kind == "fn" and term.data[0] == "select":
            found |= _branches(term)
    return found


def _branches(term: Term) -> set[Term]:
    views: Iterable[View] = arguments(View(1, term, tuple(range(len(term.sizes)))))
    return {t for v in list(views)[1:] for t, _ in form(v)[0]}
