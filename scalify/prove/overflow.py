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

DEPTH = 4  #: maxima that are replaced by what they are taken over
_FREE = -1  #: bound slots while they are looked for are below this


def unguarded(baseline: Lifter, distributed: Lifter) -> list[Operation]:
    """Operations of the distributed program that may overflow where the baseline's counterpart is shifted by a maximum."""
    guarded = {t for e in baseline.exponentials if is_bounded(e.argument) for t in _subjects(e)}
    plain = {t for e in baseline.exponentials if not is_bounded(e.argument) for t in _subjects(e)}
    return [e.operation for e in distributed.exponentials if not is_bounded(e.argument) and _subjects(e) & (guarded - plain)]


def is_bounded(view: View) -> bool:
    """Whether the view is at most a constant: what is added is outweighed by a maximum over it, or bounded itself."""
    return _bounded(form(view)[0], DEPTH)


def _bounded(entries: Form, depth: int) -> bool:
    """As :func:`is_bounded`: ``- c max(S)`` is at most ``- c x`` for each x in S, so that the maximum may be replaced by any of them."""
    if all(_bounded_above(term) if c > 0 else _below_zero(term) for (term, _), c in entries.items()):
        return True
    for key, c in entries.items() if depth else ():
        if c < 0 and _is_maximum(key[0]):
            others = {k: v for k, v in entries.items() if k != key}
            if any(_bounded(_sum(others, member, -c), depth - 1) for member in _members(key, others)):
                return True
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
    return term.kind == "fn" and (term.data[0] == "max" or (term.data[0] == "clamp" and term.data[1][1] is None))


def _bounded_above(term: Term) -> bool:
    return term.high is not None or (term.kind == "fn" and term.data[0] in ("logistic", "tanh", "sine", "cosine", "erf"))


def _below_zero(term: Term) -> bool:
    """Whether ``- term <= 0`` is plain to see."""
    return term.positive or (term.low is not None and term.low >= 0) or (term.kind == "mul" and all(e % 2 == 0 for _, e, _ in term.data))


def _members(maximum: Key, entries: Form) -> Iterator[View]:
    """Values that a maximum is taken over; of those along an axis the ones that ``entries`` speak of."""
    term, at = maximum
    if term.kind == "fn":
        yield from arguments(View(1, term, at))
        return
    _, sign, inner, labels, sizes = term.data
    slots = tuple([at[i] if i < BOUND else _FREE - i for i in labels])
    view = View(sign, inner, slots)
    seen = []
    for part, where in form(view)[0]:
        for other, there in entries:
            binding = _unified(where, there) if part is other else None
            if binding is not None and len(binding) == len(sizes) and binding not in seen:
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
