"""Proofs of rules that patterns spell, for any number of operands and axes of any size.

Operands that a rest stands for enter as one number, their sum, product or maximum; ``each`` is replaced by the function of that number, after proving
that the function is a homomorphism. Sums and maxima over index variables are proved by induction on the number of index values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scalify.prove.pattern import COMMUTATIVE, COMPARISONS, PROPERTIES, Node, constant
from scalify.prove.proof.smt import Algebra, Answer, Formula, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scalify.prove.rule import Rule

REDUCTIONS = ("total", "greatest")
STAGES = ("first", "before", "after")
UNIT = {"+": 0, "*": 1}


class OutOfReachError(Exception):
    """A statement that this kind of proof does not cover."""


@dataclass
class Equation:
    """``left = right`` under conditions. ``held`` are the stated conditions, those of the bounds left out: a rule must be true without them."""

    left: Node
    right: Node
    held: tuple[Node, ...]


def prove(rule: Rule) -> Answer:
    """Whether the rule is proved for all numbers of operands and all sizes."""
    try:
        equation = without_each(Equation(rule.lhs, rule.rhs, stated(rule)))
        if equation is None:
            return Answer(False, None)
        return _prove_cases(equation)
    except OutOfReachError:
        return Answer(False, None)


def stated(rule: Rule) -> tuple[Node, ...]:
    """The conditions of a rule that its truth needs."""
    bounds = rule.conditions[len(rule.when) : len(rule.when) + len(rule.bounds)]
    return tuple([c for c in rule.conditions if c not in bounds])


# -- operands that a rest stands for -----------------------------------------------------------------------------------------------
def without_each(equation: Equation) -> Equation | None:
    """The equation with ``each`` replaced by the function of all operands together; None if it is no homomorphism."""
    for side in (equation.left, equation.right):
        for node in side:
            for a in node.args if node.op in COMMUTATIVE else ():
                if a.op == "each" and not _is_homomorphism(equation, node.op, a):
                    return None
    return Equation(_replaced(equation.left, equation), _replaced(equation.right, equation), equation.held)


def _replaced(tree: Node, equation: Equation) -> Node:
    if tree.op == "each":
        function, rest = tree.args
        return _filled(_replaced(function, equation), Node(_container(equation, rest.name), (rest,)))
    if not tree.args:
        return tree
    return Node(tree.op, tuple([_replaced(a, equation) for a in tree.args]), tree.name, tree.value)


def _filled(function: Node, argument: Node) -> Node:
    if function.op == "var" and function.name == "_":
        return argument
    if not function.args:
        return function
    return Node(function.op, tuple([_filled(a, argument) for a in function.args]), function.name, function.value)


def _container(equation: Equation, rest: str) -> str:
    """The one operator that has the rest among its operands. :raises OutOfReachError: there are several."""
    found = {
        n.op
        for side in (equation.left, equation.right)
        for n in side
        for a in n.args
        if a.op == "rest" and a.name == rest and n.op != "each"
    }
    if len(found) != 1:
        raise OutOfReachError(f"operands of {sorted(found)}")
    return found.pop()


def _is_homomorphism(equation: Equation, outer: str, each: Node) -> bool:
    """``f(a op b) = f(a) op' f(b)`` for two lists of operands, and the same for no operands; conditions on operands pass on to the lists."""
    function, rest = each.args
    inner = _container(equation, rest.name)
    a, b = Node("var", name=f"{rest.name}'"), Node("var", name=f"{rest.name}''")
    about = [c for c in equation.held if c.args[-1].op == "rest" and c.args[-1].name == rest.name]
    if not all(_passes_on(c, inner) for c in about if c.op in PROPERTIES):
        return False
    held = tuple([c for c in equation.held if c not in about])
    held += tuple([Node(c.op, (*c.args[:-1], side)) for c in about for side in (a, b)])
    step = Equation(_filled(function, Node(inner, (a, b))), Node(outer, (_filled(function, a), _filled(function, b))), held)
    if not _prove_cases(step).proved:
        return False
    if (inner == "max") != (outer == "max"):
        return False
    if inner == "max":
        return True  # max is never of no operands
    none = Equation(_filled(function, _number(UNIT[inner])), _number(UNIT[outer]), equation.held)
    return _prove_cases(none).proved


def _number(value: int) -> Node:
    return Node("num", (constant(value),))


def _passes_on(condition: Node, op: str) -> bool:
    """Whether a property of two numbers is one of their sum, product or maximum."""
    algebra = Algebra()
    a, b = algebra.real("a"), algebra.real("b")
    joined = {"+": algebra.add, "*": algebra.multiply, "max": algebra.greatest}[op]([a, b])
    hypotheses = [holds(algebra, condition.op, v) for v in (a, b)]
    return algebra.prove(hypotheses, holds(algebra, condition.op, joined)).proved


def holds(algebra: Algebra, prop: str, value: Value) -> Formula:
    """A property of a number as a formula."""
    z3, x = algebra.z3, value.term
    return {
        "positive": x > 0,
        "negative": x < 0,
        "nonneg": x >= 0,
        "nonzero": x != 0,
        "boolean": z3.Or(x == 0, x == 1),
        "integer": z3.IsInt(x),
    }[prop]


# -- index variables ---------------------------------------------------------------------------------------------------------------
@dataclass
class Reading:
    """Turns patterns into values. ``stage`` says how far a reduction over ``index`` has come; ``absent``: rests of maxima without operands."""

    algebra: Algebra
    held: tuple[Node, ...]
    absent: frozenset[str] = frozenset()
    stage: str = ""
    hypotheses: list[Formula] = field(default_factory=list)
    _met: dict[str, Value] = field(default_factory=dict)

    def value(self, node: Node, inside: frozenset[str] = frozenset()) -> Value:
        """The value of a pattern; ``inside``: index variables that stand for the last element."""
        algebra = self.algebra
        if node.op in ("var", "rest"):
            return self._name(node, node.name, inside)
        if node.op in COMMUTATIVE:
            return self._operator(node, inside)
        if node.op == "num":
            return self.calculation(node.args[0])
        if node.op == "scale":
            return algebra.multiply([self.calculation(node.args[0]), self.value(node.args[1], inside)])
        if node.op in REDUCTIONS:
            return self._reduction(node, inside)
        return algebra.apply(node.op, [self.value(a, inside) for a in node.args])

    def _operator(self, node: Node, inside: frozenset[str]) -> Value:
        parts = []
        for a in node.args:
            if a.op != "rest":
                parts.append(self.value(a, inside))
            elif node.op != "max" or a.name not in self.absent:
                parts.append(self._name(a, f"{a.name}..{node.op}", inside))
        return {"+": self.algebra.add, "*": self.algebra.multiply, "max": self.algebra.greatest}[node.op](parts)

    def _name(self, node: Node, name: str, inside: frozenset[str]) -> Value:
        """What a name stands for at an index: the same where it does not depend on that."""
        mine = [c for c in self.held if c.args[-1].op == node.op and c.args[-1].name == node.name]
        varying = sorted(inside - {c.args[0].name for c in mine if c.op == "free"})
        full = "@".join([name, *varying])
        if full not in self._met:
            self._met[full] = self.algebra.real(full)
            self.hypotheses += [holds(self.algebra, c.op, self._met[full]) for c in mine if c.op in PROPERTIES]
        return self._met[full]

    def _reduction(self, node: Node, inside: frozenset[str]) -> Value:
        index, body = node.args
        last = self.value(body, inside | {index.name})
        if self.stage == "first":
            return last
        z3, key = self.algebra.z3, f"{node}@{'@'.join(sorted(inside))}"
        before = Value(z3.Real(key), z3.Bool(f"defined {key}"))
        if self.stage == "before":
            return before
        return self.algebra.add([before, last]) if node.op == "total" else self.algebra.greatest([before, last])

    def calculation(self, node: Node) -> Value:
        """A calculation with constants."""
        algebra = self.algebra
        if node.op == "const":
            return algebra.number(node.value)
        if node.op == "var":
            return algebra.real(f"constant {node.name}")
        args = [self.calculation(a) for a in node.args]
        if node.op == "/":
            return algebra.multiply([args[0], algebra.apply("inv", args[1:])])
        if node.op == "*":
            return algebra.multiply(args)
        minus = algebra.number(-1)
        signed = [algebra.multiply([minus, a]) if node.op == "-" and (k or len(args) == 1) else a for k, a in enumerate(args)]
        return algebra.add(signed)

    def condition(self, node: Node) -> Formula | None:
        """A condition that is not of one name alone."""
        if node.op in COMPARISONS:
            a, b = (self.calculation(x).term for x in node.args)
            return a < b if node.op == "<" else a <= b if node.op == "<=" else a != b
        if node.op in PROPERTIES and node.args[0].op not in ("var", "rest"):
            return holds(self.algebra, node.op, self.value(node.args[0]))
        return None


def _prove_cases(equation: Equation) -> Answer:
    """Once for every choice of rests of maxima that stand for no operands."""
    answer = Answer(False, None)
    for absent in _absences(equation):
        answer = _prove_by_induction(equation, absent)
        if not answer.proved:
            return answer
    return answer


def _absences(equation: Equation) -> Iterator[frozenset[str]]:
    maxima = [n for side in (equation.left, equation.right) for n in side if n.op == "max"]
    rests = sorted({a.name for n in maxima for a in n.args if a.op == "rest"})
    for choice in range(1 << len(rests)):
        absent = frozenset([r for k, r in enumerate(rests) if choice >> k & 1])
        if all(any(a.op != "rest" or a.name not in absent for a in n.args) for n in maxima):
            yield absent


def _prove_by_induction(equation: Equation, absent: frozenset[str]) -> Answer:
    reductions = [n for side in (equation.left, equation.right) for n in side if n.op in REDUCTIONS]
    if len({n.args[0].name for n in reductions}) > 1 or any(m.op in REDUCTIONS for n in reductions for m in n.args[1]):
        raise OutOfReachError("reductions inside each other")
    answer = Answer(False, None)
    for stages in (("first",), ("before", "after")) if reductions else (("first",),):
        algebra = Algebra()
        statements: list[Formula] = []
        hypotheses: list[Formula] = []
        for stage in stages:
            reading = Reading(algebra, equation.held, absent, stage)
            statements.append(algebra.same(reading.value(equation.left), reading.value(equation.right)))
            conditions = [reading.condition(c) for c in equation.held]
            hypotheses += [*reading.hypotheses, *[c for c in conditions if c is not None]]
        answer = algebra.prove([*hypotheses, *statements[:-1]], statements[-1])
        if not answer.proved:
            return answer
    return answer


# -- small sizes -------------------------------------------------------------------------------------------------------------------
SIZES = (1, 2, 3)
COUNTS = (0, 1, 2)
_OPERAND = "operand"  #: one of the operands that a rest stands for; ``value`` is its number


def _operand(rest: Node, number: int) -> Node:
    return Node(_OPERAND, name=rest.name, value=constant(number).value)


@dataclass
class Written(Reading):
    """Everything written out: each operand of a rest, each value of an index variable."""

    counts: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    at: Mapping[str, int] = field(default_factory=dict)

    def value(self, node: Node, inside: frozenset[str] = frozenset()) -> Value:
        if node.op in REDUCTIONS:
            parts = []
            for k in range(self.sizes[node.args[0].name]):
                outer, self.at = self.at, {**self.at, node.args[0].name: k}
                parts.append(self.value(node.args[1]))
                self.at = outer
            return self.algebra.add(parts) if node.op == "total" else self.algebra.greatest(parts)
        if node.op in COMMUTATIVE:
            return self._written(node)
        if node.op == _OPERAND:
            return self._name(node, f"{node.name}{node.value}", inside)
        return super().value(node)

    def _written(self, node: Node) -> Value:
        parts: list[Value] = []
        for a in node.args:
            if a.op == "rest":
                parts += [self.value(_operand(a, k)) for k in range(self.counts[a.name])]
            elif a.op == "each":
                function, rest = a.args
                parts += [self.value(_filled(function, _operand(rest, k))) for k in range(self.counts[rest.name])]
            else:
                parts.append(self.value(a))
        if node.op == "max" and not parts:
            raise OutOfReachError("the maximum of nothing")
        return {"+": self.algebra.add, "*": self.algebra.multiply, "max": self.algebra.greatest}[node.op](parts)

    def _name(self, node: Node, name: str, inside: frozenset[str]) -> Value:  # noqa: ARG002 - the index is written out: at
        kind = "rest" if node.op == _OPERAND else node.op
        mine = [c for c in self.held if c.args[-1].op == kind and c.args[-1].name == node.name]
        free = {c.args[0].name for c in mine if c.op == "free"}
        where = [f"{v}={self.at.get(v, 0)}" for v in sorted(self.sizes) if v not in free]
        full = "@".join([name, *where])
        if full not in self._met:
            self._met[full] = self.algebra.real(full)
            self.hypotheses += [holds(self.algebra, c.op, self._met[full]) for c in mine if c.op in PROPERTIES]
        return self._met[full]


def small_cases(rule: Rule) -> Iterator[Written]:
    """Readings of the rule for all small numbers of operands and sizes."""
    nodes = [n for side in (rule.lhs, rule.rhs) for n in side]
    rests = sorted({n.name for n in nodes if n.op == "rest"})
    indices = sorted({n.args[0].name for n in nodes if n.op in REDUCTIONS})
    for numbers in _tuples([COUNTS] * len(rests) + [SIZES] * len(indices)):
        counts = dict(zip(rests, numbers[: len(rests)], strict=True))
        sizes = dict(zip(indices, numbers[len(rests) :], strict=True))
        yield Written(Algebra(), stated(rule), counts=counts, sizes=sizes)


def _tuples(choices: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for options in choices:
        found = [(*t, o) for t in found for o in options]
    yield from found


def prove_small(rule: Rule) -> Answer:
    """Whether the rule holds for all small numbers of operands and sizes, its elements symbolic; with a counterexample if one shows."""
    for reading in small_cases(rule):
        try:
            left, right = reading.value(rule.lhs), reading.value(rule.rhs)
        except OutOfReachError:
            continue
        conditions = [reading.condition(c) for c in stated(rule)]
        hypotheses = [*reading.hypotheses, *[c for c in conditions if c is not None]]
        answer = reading.algebra.prove(hypotheses, reading.algebra.same(left, right))
        if not answer.proved:
            return answer
    return Answer(True, None)
