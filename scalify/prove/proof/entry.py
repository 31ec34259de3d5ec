"""The proof of a catalogue entry: of each of its claims, and that each of its conditions is needed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalify.prove import check
from scalify.prove.proof import claims, patterns
from scalify.prove.rule import Claim, Entry, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

UNDECIDED = "neither a proof for all sizes, nor one for all small sizes, nor a counterexample was found"
#: kinds of proof, the strongest first
KINDS = ("z3", "exhaustive")


@dataclass(frozen=True)
class Proof:
    """``kind`` is empty when there is no proof; ``wrong`` then says why. ``needed``: the conditions, each with an instance that is wrong without it."""

    kind: str
    wrong: str = ""
    needed: tuple[tuple[str, str], ...] = ()


def prove(entry: Entry) -> Proof:
    """The proof of an entry, with a counterexample for each condition dropped. :raises UsageError: z3 is not installed."""
    found = prove_only(entry)
    if not found.kind:
        return found
    needed = []
    for part in entry.parts:
        for condition, answer in without_each_condition(part):
            if answer is None:
                return Proof("", f"the condition {condition} makes no difference")
            needed.append((condition, answer))
    return Proof(found.kind, "", tuple(needed))


def prove_only(entry: Entry) -> Proof:
    """The proof without the test of the conditions."""
    if not entry.parts:
        return Proof("", "nothing is stated that could be proved")
    if isinstance(entry, Rule):
        wrong = check.check(entry)
        if wrong is not None:
            return Proof("", wrong)
    kinds = []
    for part in entry.parts:
        kind, wrong = prove_part(part)
        if not kind:
            return Proof("", wrong or UNDECIDED)
        kinds.append(kind)
    return Proof(max(kinds, key=KINDS.index))


def prove_part(part: Rule | Claim) -> tuple[str, str]:
    """The kind of proof of one claim, and what is wrong where there is none."""
    if isinstance(part, Claim):
        wrong = _misnamed(part)
        if wrong:
            return "", wrong
        general, small = claims.run(part.state, claims.Setting()), claims.prove_small
        if general.proved:
            return "z3", ""
        answer = small(part.state)
    else:
        if patterns.prove(part).proved:
            return "z3", ""
        answer = patterns.prove_small(part)
    if answer.proved:
        return "exhaustive", ""
    return "", f"the sides differ for {answer.model}" if answer.model is not None else ""


def _misnamed(claim: Claim) -> str:
    """Whether the claim asks for other conditions than it declares."""
    probe = claims.Setting({})
    claims.run(claim.state, probe)
    asked = tuple(dict.fromkeys(probe.named))
    return "" if asked == claim.when else f"the claim has the conditions {asked}, declared are {claim.when}"


def without_each_condition(part: Rule | Claim) -> Iterator[tuple[str, str | None]]:
    """Each condition of a claim, with a counterexample to the claim without it; None when there is none."""
    if isinstance(part, Claim):
        for condition in part.when:
            yield condition, claims.prove_small(part.state, condition).model
        return
    for name in ("when", "assumes"):
        stated = getattr(part, name)
        for number, condition in enumerate(stated):
            weaker = dataclasses.replace(part, **{name: stated[:number] + stated[number + 1 :]})
            yield condition, counterexample(weaker)


def counterexample(rule: Rule) -> str | None:
    """An instance on which the sides of a rule differ, by evaluation of random instances or by z3 on small ones."""
    return check.check(rule) or patterns.prove_small(rule).model
