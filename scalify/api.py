"""The library's entry point: modules and their relation in, a report out."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scalify.errors import UsageError
from scalify.lift.known_calls import BUILT_IN
from scalify.lift.pair import Pair, lift_pair
from scalify.lift.terms import LimitReached
from scalify.localise.findings import find
from scalify.prove.overflow import unguarded
from scalify.prove.verify import DEFAULT_LIMITS, How, Outcome, Proof, prove
from scalify.report.model import Counterexample, Finding, Output, Report, Stats, Stopped, StopReason, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from scalify.hlo.module import Module
    from scalify.lift.custom_calls import Registry
    from scalify.lift.program import Operation
    from scalify.prove.rule import Rule
    from scalify.relation.model import Relation


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of one verification.

    ``precision`` is ``real`` (numbers are reals, narrowing is reported) or ``exact`` (each rounding is kept as an uninterpreted function).
    ``rules`` are the user's own, beside the installed ones. ``limits`` overrides counted limits by name (:data:`scalify.prove.verify.DEFAULT_LIMITS`). ``source_root`` is the folder of the user's own
    sources: findings name the innermost frame below it. ``registry`` says what custom calls mean
    (:func:`scalify.lift.registry_file.read_registry`).
    """

    precision: str = "real"
    limits: Mapping[str, int] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    source_root: Path | None = None
    registry: Registry = BUILT_IN


def verify(baseline: Module, distributed: Sequence[Module], relation: Relation, options: Options | None = None) -> Report:
    """Whether the distributed module computes what the baseline computes, as a report.

    ``distributed`` is one module for all devices, or one for each device. The modules are taken as checked
    (:func:`scalify.hlo.shapes.check`) and the relation as resolved against them.

    :raises InputError: modules that cannot be inlined, a relation that contradicts them, an unknown limit.
    """
    with no_collection():
        return _verify(baseline, distributed, relation, options or Options())


@contextmanager
def no_collection() -> Iterator[None]:
    """No cyclic garbage collection: instructions and terms live as long as the run and have no cycles, but the collector walks them over and
    over.
    """
    active = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if active:
            gc.enable()


def _verify(baseline: Module, distributed: Sequence[Module], relation: Relation, options: Options) -> Report:
    limits = _limits(options.limits)
    start = time.perf_counter()
    try:
        pair = lift_pair(
            baseline,
            distributed,
            relation,
            limit=limits["terms"],
            operations=limits["operations"],
            registry=options.registry,
            exact=options.precision == "exact",
        )
        lifted = time.perf_counter()
        refuter = _Refuter(baseline, distributed, relation, options, limits["refutation"])
        proof = prove(pair, limits, lambda: _rules(options), refuter.first)
        pair = proof.pair
        risky = unguarded(pair.baseline, pair.distributed)
    except LimitReached as reached:
        why = Stopped(StopReason.LIMIT, "", reached.name, limits.get(reached.name))
        return _stopped(baseline, distributed, relation, why, time.perf_counter() - start)
    proved = time.perf_counter()
    failing = [o.claim.actual for o in proof.outcomes if o.how is How.OPEN]
    findings = _findings(pair, failing, options, risky)
    seconds = {"lift": lifted - start, "prove": proved - lifted - refuter.seconds, "localise": time.perf_counter() - proved}
    if failing:
        refuter.others({o.claim.output for o in proof.outcomes if o.how is How.OPEN})
    if refuter.seconds:
        seconds["refute"] = refuter.seconds
    counterexample = refuter.found
    stopped = _reason(pair, proof, limits) if failing else Stopped(StopReason.SATURATED, _REALS_ONLY) if risky else None
    return Report(
        verdict=Verdict.REFUTED if counterexample else Verdict.UNVERIFIED if failing or risky else Verdict.VERIFIED,
        outputs=_outputs(proof.outcomes, dependents(pair, risky), counterexample),
        findings=findings,
        counterexample=counterexample,
        assumptions=_assumptions(pair, proof),
        stopped=None if counterexample else stopped,
        stats=Stats(_count(baseline, distributed), len(pair.store.terms), proof.obligations, proof.memo_hits, seconds),
    )


def _findings(pair: Pair, failing: Sequence[int], options: Options, risky: Sequence[Operation]) -> tuple[Finding, ...]:
    try:
        return find(pair, failing, options.source_root, risky)
    except LimitReached:
        return ()  # the verdict stands; the report has the limit that the proof itself reached, if any


def _rules(options: Options) -> tuple[Rule, ...]:
    from scalify.prove.catalogue import installed, rules  # noqa: PLC0415 - a proof by normal forms needs no rules

    return rules(installed(), options.rules)


def _limits(given: Mapping[str, int]) -> dict[str, int]:
    unknown = sorted(set(given) - set(DEFAULT_LIMITS))
    if unknown:
        raise UsageError(f"there is no limit {unknown[0]!r}; the limits are {', '.join(sorted(DEFAULT_LIMITS))}")
    return {**DEFAULT_LIMITS, **given}


def _count(baseline: Module, distributed: Sequence[Module]) -> int:
    return baseline.instruction_count + sum(m.instruction_count for m in distributed)


@dataclass
class _Refuter:
    """The search for a counterexample: first a single attempt, before a proof is searched for, and where none is found the other ones."""

    baseline: Module
    distributed: Sequence[Module]
    relation: Relation
    options: Options
    operations: int
    found: Counterexample | None = None
    seconds: float = 0.0

    def first(self, outputs: set[int]) -> set[int]:
        """Those of the outputs that the first inputs show to differ."""
        self._try(outputs, slice(1))
        return {d.output for d in self.found.outputs} if self.found else set()

    def others(self, outputs: set[int]) -> None:
        if self.found is None:
            self._try(outputs, slice(1, None))

    def _try(self, outputs: set[int], attempts: slice) -> None:
        from scalify.refute.search import ATTEMPTS, refute  # noqa: PLC0415 - only where normal forms do not prove

        start = time.perf_counter()
        registry = self.options.registry
        self.found = refute(self.baseline, self.distributed, self.relation, registry, outputs, self.operations, ATTEMPTS[attempts])
        self.seconds += time.perf_counter() - start


def _outputs(outcomes: Sequence[Outcome], risky: set[int], counterexample: Counterexample | None) -> tuple[Output, ...]:
    verdicts = {o.claim.output: Verdict.VERIFIED for o in outcomes}
    verdicts |= {o.claim.output: Verdict.UNVERIFIED for o in outcomes if o.how is How.OPEN or o.claim.actual in risky}
    verdicts |= {d.output: Verdict.REFUTED for d in counterexample.outputs} if counterexample else {}
    return tuple([Output(n, verdicts[n]) for n in sorted(verdicts)])


def dependents(pair: Pair, operations: Sequence[Operation]) -> set[int]:
    """The distributed values that depend on one of the operations."""
    found = {r for o in operations for r in o.results}
    for operation in pair.distributed.program.operations if found else ():
        if any(o in found for o in operation.operands):
            found.update(operation.results)
    return found


def _reason(pair: Pair, proof: Proof, limits: Mapping[str, int]) -> Stopped:
    found = [*pair.distributed.unsupported, *pair.baseline.unsupported]
    if found:
        operation, reason = found[0]
        return Stopped(StopReason.UNSUPPORTED, f"{operation.instruction.name}: {reason}")
    if proof.limit is not None:
        return Stopped(StopReason.LIMIT, "the search for a proof was cut short", proof.limit, limits.get(proof.limit))
    return Stopped(StopReason.SATURATED, "every known rule was applied; the two sides stayed different")


def _stopped(baseline: Module, distributed: Sequence[Module], relation: Relation, why: Stopped, seconds: float) -> Report:
    return Report(
        verdict=Verdict.UNVERIFIED,
        outputs=tuple([Output(n, Verdict.UNVERIFIED) for n in sorted(relation.outputs)]),
        assumptions=relation.notes,
        stopped=why,
        stats=Stats(_count(baseline, distributed), seconds={"prove": seconds}),
    )


_REALS_ONLY = "equal over the reals, but the distributed graph can overflow where the baseline cannot"
_REALS = "numbers are real numbers: all inputs and intermediate values are finite"
_LAWS = {
    "exp-homomorphism": "exp(a + b) = exp(a) exp(b), without overflow",
    "finite-maximum": "the greatest of masked values is finite: no row is masked altogether",
    "log-exp": "log(exp(a) b) = a + log(b), for b > 0 and without overflow",
    "is-finite": "all values that is-finite looks at are finite",
    "lowest-finite-is-identity": "no value is below the lowest finite number that a maximum starts from",
}


def _assumptions(pair: Pair, proof: Proof) -> tuple[str, ...]:
    ranges = [f"{a.low} <= {a.side} parameter {a.parameter} < {a.high}" for a in pair.relation.assumptions]
    laws = [text for name, text in _LAWS.items() if name in pair.store.used]
    other = sorted(pair.store.used - set(_LAWS))
    laws += [f"the conditions of the rule {name}" if " " not in name else name for name in other]
    laws += [f"the rule {name} of the user's own" for name in proof.user_rules]
    return (_REALS, *laws, *ranges, *pair.relation.notes)
