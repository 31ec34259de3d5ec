"""Exponentials that cannot overflow in the baseline and can in the distributed graph.

Over the reals ``exp(x) / sum exp(x)`` is softmax whether or not a maximum is subtracted first; in floating point it overflows. A proof over the
reals does not see that, so it is looked for apart: an exponential of something unbounded, where the baseline takes the exponential of the same thing
minus a maximum over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.lift.functions import arguments
from scalify.lift.linear import form
from scalify.lift.terms import BOUND, Number, Term, View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scalify.lift.lifter import Exponential, Lifter
    from scalify.lift.program import Operation

Key = tuple[Term, tuple[int, ...]]


def unguarded(baseline: Lifter, distributed: Lifter) -> list[Operation]:
    """Operations of the distributed program that may overflow where the baseline's counterpart is shifted by a maximum."""
    guarded = {t for e in baseline.exponentials if is_bounded(e.argument) for t in _subjects(e)}
    plain = {t for e in baseline.exponentials if not is_bounded(e.argument) for t in _subjects(e)}
    return [e.operation for e in distributed.exponentials if not is_bounded(e.argument) and _subjects(e) & (guarded - plain)]


def is_bounded(view: View) -> bool:
    """Whether the view is at most a constant: what is added is outweighed by a maximum over it, or bounded itself."""
    entries, _ = form(view)
    maxima = [(key, -c) for key, c in entries.items() if c < 0 and _is_maximum(key[0])]
    for key, c in entries.items():
        if c < 0:
            if not (key[0].positive or _below_zero(-1, key[0]) or any(key == m for m, _ in maxima)):
                return False
            continue
        if not (_bounded_above(key[0]) or any(weight == c and covers(m, key) for m, weight in maxima)):
            return False
    return not maxima or any(c > 0 for c in entries.values())


def _is_maximum(term: Term) -> bool:
    if term.kind == "red":
        return bool(term.data[0] == "max")
    return term.kind == "fn" and (term.data[0] == "max" or (term.data[0] == "clamp" and term.data[1][1] is None))


def _bounded_above(term: Term) -> bool:
    return term.high is not None or (term.kind == "fn" and term.data[0] in ("logistic", "tanh", "sine", "cosine", "erf"))


def _below_zero(coef: Number, term: Term) -> bool:
    """Whether ``coef * term <= 0`` is plain to see."""
    if coef < 0:
        return (term.low is not None and term.low >= 0) or (term.kind == "mul" and all(e % 2 == 0 for _, e, _ in term.data))
    return False


def covers(maximum: Key, subject: Key) -> bool:
    """Whether the maximum is over a set that has the subject in it."""
    term, at = maximum
    if term.kind == "red":
        _, sign, inner, labels, _ = term.data
        where = [at[i] if i < BOUND else None for i in labels]
        return sign > 0 and inner is subject[0] and all(a is None or a == b for a, b in zip(where, subject[1], strict=True))
    parts = [(v.term, v.at) for v in arguments(View(1, term, at)) if v.coef == 1]
    return subject in parts or any(_is_maximum(part[0]) and covers(part, subject) for part in parts)


def _subjects(exponential: Exponential) -> set[Term]:
    """The terms that are added up in the argument, masks looked through."""
    entries, _ = form(exponential.argument)
    found = {term for (term, _), c in entries.items() if c > 0}
    for term in list(found):
        if term.kind == "fn" and term.data[0] == "select":
            found |= _branches(term)
    return found


def _branches(term: Term) -> set[Term]:
    views: Iterable[View] = arguments(View(1, term, tuple(range(len(term.sizes)))))
    return {t for v in list(views)[1:] for t, _ in form(v)[0]}
