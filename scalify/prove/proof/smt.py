"""Real expressions in z3, with the inputs for which they have a value, and the axioms of the functions in them.

Applications of functions are replaced by constants, for every pair of which congruence is stated, and for every pair or triple the instances of
:data:`scalify.prove.proof.axioms.AXIOMS`: what is left is arithmetic of reals, which z3 decides. Resources are counted, not timed, so that runs agree.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from scalify.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

RLIMIT = 20_000_000  #: z3's resource units for each query
Formula = Any
Term = Any


def solver_module() -> Any:
    """z3. :raises UsageError: it is not installed."""
    try:
        import z3  # noqa: PLC0415 - an extra: proofs only
    except ImportError:
        raise UsageError("rules are proved with z3, which is not installed; pip install 'scalify-verify[prove]'") from None
    return z3


class Value(NamedTuple):
    """A real number, where ``defined`` holds."""

    term: Term
    defined: Formula


class Answer(NamedTuple):
    """What z3 says of a statement: ``proved``, or with a counterexample ``model``, or neither."""

    proved: bool
    model: str | None


@dataclass
class Algebra:
    """Builds values and collects the function applications in them."""

    z3: Any = field(default_factory=solver_module)
    applications: dict[str, list[tuple[Term, Term]]] = field(default_factory=dict)  # of each function: argument and result
    _count: int = 0

    # -- values --------------------------------------------------------------------------------------------------------------
    def number(self, value: object) -> Value:
        return Value(self.z3.RealVal(str(value)), self.z3.BoolVal(True))

    def real(self, name: str) -> Value:
        return Value(self.z3.Real(name), self.z3.BoolVal(True))

    def fresh(self) -> Term:
        self._count += 1
        return self.z3.Real(f"${self._count}")

    def both(self, *values: Value) -> Formula:
        return self.z3.And(*[v.defined for v in values])

    def add(self, values: Sequence[Value]) -> Value:
        return Value(self.z3.Sum([v.term for v in values]) if values else self.z3.RealVal(0), self.both(*values))

    def multiply(self, values: Sequence[Value]) -> Value:
        return Value(self.z3.Product([v.term for v in values]) if values else self.z3.RealVal(1), self.both(*values))

    def greatest(self, values: Sequence[Value]) -> Value:
        found = values[0].term
        for v in values[1:]:
            found = self.z3.If(found >= v.term, found, v.term)
        return Value(found, self.both(*values))

    def apply(self, name: str, args: Sequence[Value]) -> Value:
        """An operator or function by its name in patterns. :raises NotImplementedError: a function that is not known."""
        simple = _SIMPLE.get(name)
        if simple is not None:
            return Value(simple(self.z3, *[a.term for a in args]), self.both(*args))
        if name == "select":
            p, x, y = args
            return Value(self.z3.If(p.term == 1, x.term, y.term), self.z3.And(self.both(*args), self.z3.Or(p.term == 0, p.term == 1)))
        (x,) = args
        result = self._application(name, x.term)
        domain = _DOMAINS.get(name)
        if name == "tan":
            return Value(result, self.z3.And(x.defined, self._application("cosine", x.term) != 0))
        return Value(result, x.defined if domain is None else self.z3.And(x.defined, domain(x.term)))

    def _application(self, name: str, argument: Term) -> Term:
        argument = self.z3.simplify(argument, som=True)
        known = self.applications.setdefault(name, [])
        for other, result in known:
            if other.eq(argument):
                return result
        result = self.fresh()
        known.append((argument, result))
        for companion, of in _COMPANIONS.get(name, ()):
            self._application(companion, of(argument))
        return result

    # -- statements ------------------------------------------------------------------------------------------------------------
    def same(self, left: Value, right: Value) -> Formula:
        """Defined for the same inputs, and equal there."""
        z3 = self.z3
        return z3.And(left.defined == right.defined, z3.Implies(left.defined, left.term == right.term))

    def prove(self, hypotheses: Sequence[Formula], goal: Formula, rlimit: int = RLIMIT) -> Answer:
        """Whether the goal follows from the hypotheses and the axioms."""
        z3 = self.z3
        statements = [*hypotheses, *self.axioms(), z3.Not(goal)]
        for solver in (z3.SolverFor("QF_NRA"), z3.Solver()):
            solver.set("rlimit", rlimit)
            solver.add(*statements)
            try:
                answer = solver.check()
            except z3.Z3Exception:
                continue  # this solver does not take such formulas
            if answer == z3.unsat:
                return Answer(True, None)
            if answer == z3.sat:
                return Answer(False, None if self.applications.keys() & _PARTLY_KNOWN else shown(solver.model()))
        return Answer(False, None)

    def axioms(self) -> Iterator[Formula]:
        """All instances of the axioms for the applications there are."""
        z3 = self.z3
        for known in self.applications.values():
            for (a, x), (b, y) in itertools.combinations(known, 2):
                yield z3.Implies(a == b, x == y)
        for name, of_one in _AXIOMS_OF_ONE.items():
            for a, x in self.applications.get(name, ()):
                yield of_one(z3, a, x)
        for name, of_two in _AXIOMS_OF_TWO.items():
            for (a, x), (b, y) in itertools.combinations_with_replacement(self.applications.get(name, ()), 2):
                yield of_two(z3, a, x, b, y)
        for name, of_three in _AXIOMS_OF_THREE.items():
            for (a, x), (b, y) in itertools.combinations_with_replacement(self.applications.get(name, ()), 2):
                for c, r in self.applications[name]:
                    yield of_three(z3, (a, x), (b, y), (c, r))
        yield from self._related()

    def _related(self) -> Iterator[Formula]:
        """Axioms that relate applications of two functions."""
        z3 = self.z3
        for (one, two), axiom in _AXIOMS_OF_PAIRS.items():
            for (a, x), (b, y) in itertools.product(self.applications.get(one, ()), self.applications.get(two, ())):
                yield axiom(z3, a, x, b, y)
        for a, x in self.applications.get("tan", ()):
            for (b, y), (c, w) in itertools.product(self.applications["sine"], self.applications["cosine"]):
                yield z3.Implies(z3.And(a == b, a == c, w != 0), x * w == y)


def shown(model: Any) -> str:
    """A counterexample in a line; constants of the encoding are left out."""
    rows = sorted(f"{d.name()} = {str(model[d])[:80]}" for d in model.decls() if not d.name().startswith(("$", "/")))
    return ", ".join(rows[:12])


#: functions whose axioms leave others possible: a model of them is no counterexample
_PARTLY_KNOWN = frozenset({"exp", "log", "logistic", "tanh", "tan", "sine", "cosine", "erf"})
_SIMPLE: dict[str, Callable[..., Term]] = {
    "ge0": lambda z3, x: z3.If(x >= 0, z3.RealVal(1), z3.RealVal(0)),
    "eq0": lambda z3, x: z3.If(x == 0, z3.RealVal(1), z3.RealVal(0)),
    "abs": lambda z3, x: z3.If(x >= 0, x, -x),
    "sign": lambda z3, x: z3.If(x > 0, z3.RealVal(1), z3.If(x < 0, z3.RealVal(-1), z3.RealVal(0))),
    "floor": lambda z3, x: z3.ToReal(z3.ToInt(x)),
}
_DOMAINS: dict[str, Callable[[Term], Formula]] = {"inv": lambda x: x != 0, "log": lambda x: x > 0, "sqrt": lambda x: x >= 0}
#: applications that the axioms of another one speak of
_COMPANIONS: dict[str, tuple[tuple[str, Callable[[Term], Term]], ...]] = {
    "logistic": (("exp", lambda a: -a),),
    "tanh": (("exp", lambda a: 2 * a),),
    "tan": (("sine", lambda a: a), ("cosine", lambda a: a)),
    "sine": (("cosine", lambda a: a),),
    "cosine": (("sine", lambda a: a),),
}
_AXIOMS_OF_ONE: dict[str, Callable[..., Formula]] = {
    "inv": lambda z3, a, x: z3.Implies(a != 0, a * x == 1),
    "sqrt": lambda z3, a, x: z3.Implies(a >= 0, z3.And(x >= 0, x * x == a)),
    "cbrt": lambda z3, a, x: x * x * x == a,
    "exp": lambda z3, a, x: z3.And(x > 0, z3.Implies(a == 0, x == 1)),
    "log": lambda z3, a, x: z3.Implies(a == 1, x == 0),
}
_AXIOMS_OF_TWO: dict[str, Callable[..., Formula]] = {
    "exp": lambda z3, a, x, b, y: z3.Implies(a + b == 0, x * y == 1),
    "log": lambda z3, a, x, b, y: z3.Implies(z3.And(a > 0, b > 0, a * b == 1), x + y == 0),
    "sine": lambda z3, a, x, b, y: z3.Implies(a + b == 0, x == -y),
    "cosine": lambda z3, a, x, b, y: z3.Implies(a + b == 0, x == y),
    "erf": lambda z3, a, x, b, y: z3.Implies(a + b == 0, x == -y),
}
_AXIOMS_OF_THREE: dict[str, Callable[..., Formula]] = {
    "exp": lambda z3, p, q, r: z3.Implies(p[0] + q[0] == r[0], p[1] * q[1] == r[1]),
    "log": lambda z3, p, q, r: z3.Implies(z3.And(p[0] > 0, q[0] > 0, p[0] * q[0] == r[0]), p[1] + q[1] == r[1]),
}
_AXIOMS_OF_PAIRS: dict[tuple[str, str], Callable[..., Formula]] = {
    ("exp", "log"): lambda z3, a, x, b, y: z3.And(z3.Implies(b == x, y == a), z3.Implies(z3.And(b > 0, a == y), x == b)),
    ("logistic", "exp"): lambda z3, a, x, b, y: z3.Implies(a + b == 0, x * (1 + y) == 1),
    ("tanh", "exp"): lambda z3, a, x, b, y: z3.Implies(2 * a == b, x * (y + 1) == y - 1),
    ("sine", "cosine"): lambda z3, a, x, b, y: z3.Implies(a == b, x * x + y * y == 1),
}
