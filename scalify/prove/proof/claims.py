"""Statements that patterns cannot spell, over functions of indices and axes of any size.

A claim is a function that is given a :class:`Setting`, asks it for sizes, functions and numbers, names its conditions with ``when`` or ``given``, and
states equations with ``lemma`` and ``prove``. The same function is run with symbolic sizes, where sums and maxima are proved by induction; with all
small sizes, where they are written out; and with one condition dropped, where a small counterexample must show.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalify.prove.proof.smt import RLIMIT, Answer, Formula, Term, shown, solver_module

SMALL = (1, 2, 3)
ZERO = 0
Body = Callable[[Term], Term]
Statement = Callable[[], Formula]


class FailedError(Exception):
    """A statement was not proved."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__()


@dataclass(frozen=True)
class Size:
    """The number of values of an axis, at least 1: a symbol, or a number when everything is written out."""

    name: str
    length: Term


@dataclass
class Setting:
    """``sizes`` None: symbolic. ``dropped``: the condition that is left out."""

    sizes: Mapping[str, int] | None = None
    dropped: str | None = None
    z3: Any = field(default_factory=solver_module)
    asked: list[str] = field(default_factory=list)  # sizes
    named: list[str] = field(default_factory=list)  # conditions
    _hypotheses: list[Formula] = field(default_factory=list)
    _lemmas: list[Callable[[Size | None], Formula]] = field(default_factory=list)
    _sums: dict[tuple[str, ...], Any] = field(default_factory=dict)
    _over: Size | None = None
    _stage: str = ""
    _depth: int = 0

    # -- what a claim speaks of ------------------------------------------------------------------------------------------------
    def size(self, name: str, at_most: int | None = None) -> Size:
        """The size of an axis; ``at_most`` limits how far it is written out."""
        self.asked.append(name)
        if self.sizes is not None:
            length = self.z3.IntVal(min(self.sizes.get(name, 1), at_most or max(SMALL)))
        else:
            length = self.z3.Int(f"size {name}")
            self._hypotheses.append(length >= 1)
        return Size(name, length)

    def length(self, size: Size) -> Term:
        """The size; during an induction that of the step."""
        if size != self._over:
            return size.length
        last = self._last
        return {"first": self.z3.IntVal(1), "before": last, "after": last + 1}[self._stage]

    @property
    def _last(self) -> Term:
        return self.z3.Int("last")

    def index(self, name: str, size: Size) -> Term:
        """Some index along an axis."""
        v = self.z3.Int(name)
        self._hypotheses += [v >= 0, v < size.length]
        return v

    def integer(self, name: str) -> Term:
        return self.z3.Int(name)

    def real(self, name: str) -> Term:
        return self.z3.Real(name)

    def truth(self, name: str) -> Term:
        """A 0/1 value."""
        v = self.z3.Real(name)
        self._hypotheses.append(self.z3.Or(v == 0, v == 1))
        return v

    def function(self, name: str, arity: int, integer: bool = False) -> Callable[..., Term]:
        """An array: any function of so many indices."""
        z3 = self.z3
        found: Callable[..., Term] = z3.Function(name, *[z3.IntSort()] * arity, z3.IntSort() if integer else z3.RealSort())
        return found

    def extended(self, name: str) -> Extended:
        """A number that may be infinite."""
        kind = self.z3.Int(f"{name} infinite")
        self._hypotheses += [kind >= -1, kind <= 1]
        return Extended(self.z3, kind, self.z3.Real(name))

    def finite_number(self, value: int) -> Extended:
        return Extended(self.z3, self.z3.IntVal(0), self.z3.RealVal(value))

    def infinity(self) -> Extended:
        return Extended(self.z3, self.z3.IntVal(1), self.z3.RealVal(0))

    def holds(self, condition: Formula) -> Term:
        """1 where the condition holds, else 0."""
        return self.z3.If(condition, self.z3.RealVal(1), self.z3.RealVal(0))

    def larger(self, a: Term, b: Term) -> Term:
        return self.z3.If(a >= b, a, b)

    # -- conditions ------------------------------------------------------------------------------------------------------------
    def when(self, name: str, condition: Formula) -> None:
        """A condition of the statement, by the name that its declaration gives it."""
        if self.given(name):
            self._hypotheses.append(condition)

    def given(self, name: str) -> bool:
        """Whether a condition holds that says how the parts of a statement hang together."""
        self.named.append(name)
        return name != self.dropped

    def suppose(self, fact: Formula) -> None:
        """What a name stands for (a definition), not a condition."""
        self._hypotheses.append(fact)

    # -- sums and maxima -------------------------------------------------------------------------------------------------------
    def total(self, size: Size, body: Body) -> Term:
        """The sum of a body over an axis."""
        return self._reduced("sum", size, body, lambda a, b: a + b)

    def greatest(self, size: Size, body: Body) -> Term:
        """The greatest value of a body over an axis."""
        return self._reduced("max", size, body, self.larger)

    def product(self, size: Size, body: Body) -> Term:
        """The product of a body over an axis."""
        return self._reduced("product", size, body, lambda a, b: a * b)

    def over_axes(self, name: str, sizes: Sequence[Size], body: Callable[..., Term]) -> Term:
        """``total``, ``greatest`` or ``product`` over several axes: one after the other, in any order, and over none of them the body itself."""
        if not sizes:
            return body()
        reduce: Callable[[Size, Body], Term] = getattr(self, name)
        return reduce(sizes[0], lambda v: self.over_axes(name, sizes[1:], lambda *more: body(v, *more)))

    def _reduced(self, kind: str, size: Size, body: Body, join: Callable[[Term, Term], Term]) -> Term:
        z3 = self.z3
        if self.sizes is not None:
            parts = [body(z3.IntVal(k)) for k in range(size.length.as_long())]
            found = parts[0]
            for part in parts[1:]:
                found = join(found, part)
            return found
        if size == self._over and self._stage == "first":
            return body(z3.IntVal(0))
        name = kind if size != self._over else f"{kind} before the last"
        before = self._abstract(name, size, body)
        return join(before, body(self._last)) if size == self._over and self._stage == "after" else before

    def _abstract(self, kind: str, size: Size, body: Body) -> Term:
        """A reduction as a function of the indices that its body mentions: equal bodies give equal reductions."""
        z3 = self.z3
        self._depth += 1
        bound = z3.Int(f"#{self._depth}")
        inner = body(bound)
        self._depth -= 1
        free = [v for v in _integers(z3, inner) if not v.eq(bound)]
        spelled = z3.substitute(inner, *[(v, z3.Int(f"?{k}")) for k, v in enumerate(free)]) if free else inner
        key = (kind, size.name, spelled.sexpr())
        if key not in self._sums:
            sort = inner.sort()
            self._sums[key] = z3.Function(f"{kind} {len(self._sums)} over {size.name}", *[z3.IntSort()] * len(free), sort)
        return self._sums[key](*free)

    # -- statements ------------------------------------------------------------------------------------------------------------
    def lemma(self, statement: Callable[..., Formula], over: Size | None = None, along: Size | None = None) -> None:
        """A statement that later ones may use, proved first; ``along``: it speaks of any index along that axis. Small sizes need none."""
        if self.sizes is not None:
            return
        if along is None:
            self._prove(statement, over)
            self._lemmas.append(lambda _: statement())
            return
        z3, some = self.z3, self.z3.Int("some")
        self._prove(lambda: z3.Implies(some >= 0, statement(some)), over)
        self._lemmas.append(lambda now: z3.And(*[statement(i) for i in (z3.IntVal(0), self._last) if now == along]))

    def prove(self, statement: Statement, over: Size | None = None) -> None:
        """The claim itself. :raises FailedError: it is not proved."""
        self._prove(statement, over)

    def _prove(self, statement: Statement, over: Size | None) -> None:
        if over is None or self.sizes is not None:
            self._settle([], statement())
            return
        self._over = over
        self._stage = "first"
        self._settle([], statement())
        self._stage = "before"
        before = statement()
        self._stage = "after"
        self._settle([before, self._last >= 1], statement())
        self._over, self._stage = None, ""

    def _settle(self, more: Sequence[Formula], goal: Formula) -> None:
        z3 = self.z3
        over, self._over = self._over, None
        lemmas = [lemma(over) for lemma in self._lemmas]
        self._over = over
        solver = z3.Solver()
        solver.set("rlimit", RLIMIT)
        solver.add(*self._hypotheses, *more, *lemmas, z3.Not(goal))
        answer = solver.check()
        if answer != z3.unsat:
            raise FailedError(Answer(False, shown(solver.model()) if answer == z3.sat else None))


def _integers(z3: Any, tree: Term) -> list[Term]:
    """The integer constants in a term, in the order in which they occur."""
    found: list[Term] = []
    stack, seen = [tree], set()
    while stack:
        top = stack.pop()
        if top.get_id() in seen:
            continue
        seen.add(top.get_id())
        if z3.is_const(top) and top.decl().kind() == z3.Z3_OP_UNINTERPRETED and top.sort() == z3.IntSort():
            found.append(top)
        stack += reversed(top.children())
    return found


Claim = Callable[[Setting], None]


def run(claim: Claim, setting: Setting) -> Answer:
    """Whether the claim is proved in a setting."""
    try:
        claim(setting)
    except FailedError as failed:
        return failed.answer
    return Answer(True, None)


def small_settings(claim: Claim, dropped: str | None = None) -> list[Setting]:
    """Settings for all combinations of small sizes."""
    probe = Setting({}, dropped)
    run(claim, probe)
    names = list(dict.fromkeys(probe.asked))
    return [Setting(dict(zip(names, sizes, strict=True)), dropped) for sizes in itertools.product(SMALL, repeat=len(names))]


def prove_small(claim: Claim, dropped: str | None = None) -> Answer:
    """Whether the claim holds for all small sizes, its elements symbolic; with a counterexample if one shows."""
    undecided = False
    for setting in small_settings(claim, dropped):
        answer = run(claim, setting)
        if answer.model is not None:
            sizes = ", ".join(f"size({n}) = {k}" for n, k in (setting.sizes or {}).items())
            return Answer(False, ", ".join(filter(None, [sizes, answer.model])))
        undecided = undecided or not answer.proved
    return Answer(not undecided, None)


# -- numbers that may be infinite ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Extended:
    """A number of IEEE 754 read over the reals: ``kind`` 0 finite (then ``value``), 1 and -1 infinities, 2 no number."""

    z3: Any
    kind: Term
    value: Term

    def of(self, value: Term) -> Extended:
        """A finite number."""
        return Extended(self.z3, self.z3.IntVal(0), value)

    @property
    def finite(self) -> Formula:
        return self.kind == 0

    def __neg__(self) -> Extended:
        return Extended(self.z3, self.z3.If(self.kind == 2, self.kind, -self.kind), -self.value)

    def __add__(self, other: Extended) -> Extended:
        z3, a, b = self.z3, self.kind, other.kind
        kind = z3.If(z3.Or(a == 2, b == 2, a * b == -1), z3.IntVal(2), z3.If(a == 0, b, a))
        return Extended(z3, kind, self.value + other.value)

    def __mul__(self, other: Extended) -> Extended:
        z3 = self.z3
        sign = self.sign() * other.sign()
        kind = z3.If(z3.Or(self.kind == 2, other.kind == 2), z3.IntVal(2), z3.If(sign == 0, z3.IntVal(2), sign))
        return Extended(z3, z3.If(z3.And(self.finite, other.finite), z3.IntVal(0), kind), self.value * other.value)

    def sign(self) -> Term:
        z3 = self.z3
        return z3.If(self.kind == 0, z3.If(self.value > 0, 1, z3.If(self.value < 0, -1, 0)), self.kind)

    def inverse(self) -> Extended:
        """1/x; of an infinity 0, of 0 no number."""
        z3 = self.z3
        kind = z3.If(z3.Or(self.kind == 2, z3.And(self.finite, self.value == 0)), z3.IntVal(2), z3.IntVal(0))
        return Extended(z3, kind, z3.If(self.finite, 1 / self.value, z3.RealVal(0)))

    def exponential(self, function: Callable[[Term], Term]) -> Extended:
        """exp, by a function of finite numbers."""
        z3 = self.z3
        kind = z3.If(self.kind == -1, z3.IntVal(0), self.kind)
        return Extended(z3, kind, z3.If(self.kind == -1, z3.RealVal(0), function(self.value)))

    def same(self, other: Extended) -> Formula:
        z3 = self.z3
        return z3.And(self.kind == other.kind, z3.Implies(self.finite, self.value == other.value))
