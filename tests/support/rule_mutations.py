"""Mutations of the rule declarations: every side condition is deleted in turn, and some check must fail.

    python -m tests.support.rule_mutations [quick]

Three kinds. A condition deleted from a declaration must let the statement be refuted. A condition deleted from a rule's pattern must let the engine prove a
false goal that it does not prove with it. A fact deleted from egglog text must make the text invalid or let the engine prove a false goal. ``quick`` takes every
eighth of the last two. What is listed under ``HARMLESS`` changes no value: it ends loops, or saves work.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from egglog.bindings import EggSmolError

from scalify.errors import InternalError
from scalify.prove.catalogue import installed
from scalify.prove.engine import Engine, Limits
from scalify.prove.expression import Problem
from scalify.prove.pattern import COMPARISONS, FUNCTIONS, PROPERTIES, Node, parse_pattern
from scalify.prove.proof.entry import prove_only, without_each_condition
from scalify.prove.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scalify.prove.expression import Expr
    from scalify.prove.rule import Entry

LIMITS = Limits(rounds=4, rows=2000)


class Mutation(NamedTuple):
    """What was deleted where, and how it was noticed; empty when it was not."""

    kind: str
    entry: str
    deleted: str
    noticed: str


# -- statements ----------------------------------------------------------------------------------------------------------------
def statements(entries: Sequence[Entry]) -> Iterator[Mutation]:
    """Every condition of every claim: without it there is a counterexample, and no proof."""
    for entry in entries:
        for part in entry.parts:
            for condition, counterexample in without_each_condition(part):
                yield Mutation("statement", entry.name, condition, counterexample or "")
        if isinstance(entry, Rule) and not entry.program:
            for field in ("when", "assumes"):
                for number in range(len(getattr(entry, field))):
                    weaker = _without(entry, field, number)
                    yield Mutation("proof", entry.name, getattr(entry, field)[number], "" if prove_only(weaker).kind else "no proof")


def _without(rule: Rule, field: str, number: int) -> Rule:
    found = getattr(rule, field)
    return dataclasses.replace(rule, **{field: found[:number] + found[number + 1 :]})


# -- patterns in the engine ----------------------------------------------------------------------------------------------------
SIZE = 3  #: of the one index variable


@dataclasses.dataclass
class Instance:
    """The sides of a rule over leaves, with what is known of them: all conditions but the broken one."""

    rule: Rule
    broken: Node | None
    problem: Problem = dataclasses.field(default_factory=Problem)

    def build(self) -> Problem:
        p = self.problem
        p.sizes["k"] = SIZE
        self.constants = self._constants()
        p.goal = (self.node(self.rule.lhs, frozenset()), self.node(self.rule.rhs, frozenset()))
        return p

    def _constants(self) -> dict[str, Fraction]:
        names = sorted({n.name for side in (self.rule.lhs, *self.rule.conditions) for m in side for n in _calculated(m)})
        for values in _assignments(len(names)):
            found = dict(zip(names, values, strict=True))
            comparisons = [c for c in self.rule.conditions if c.op in COMPARISONS]
            if all(_true(c, found) == (c is not self.broken) for c in comparisons):
                return found
        raise AssertionError(self.rule.name)

    def node(self, tree: Node, bound: frozenset[str]) -> int:
        p = self.problem
        if tree.op == "var":
            return self._leaf("var", tree.name, 0)
        if tree.op == "num":
            return p.number(_calculate(tree.args[0], self.constants))
        if tree.op == "scale":
            return p.scale(_calculate(tree.args[0], self.constants), self.node(tree.args[1], bound))
        if tree.op in ("total", "greatest"):
            return p.node(tree.op, ("k",), (self.node(tree.args[1], bound),))
        args = [n for a in tree.args for n in self._operands(a, bound)]
        if tree.op in FUNCTIONS:
            return p.node("fn", tree.op, args)
        names = {"+": "add", "*": "mul", "max": "max"}
        return p.many(names[tree.op], args) if tree.op in names else p.node(tree.op, None, args)

    def _operands(self, a: Node, bound: frozenset[str]) -> list[int]:
        if a.op == "rest":
            return [self._leaf("rest", a.name, k) for k in range(2)]
        if a.op == "each":
            return [self._each(a.args[0], self._leaf("rest", a.args[1].name, k), bound) for k in range(2)]
        return [self.node(a, bound)]

    def _each(self, function: Node, operand: int, bound: frozenset[str]) -> int:
        p = self.problem
        if function.op == "var" and function.name == "_":
            return operand
        if function.op == "scale":
            return p.scale(_calculate(function.args[0], self.constants), operand)
        if function.op in ("total", "greatest"):
            return p.node(function.op, ("k",), (operand,))
        args = [n for a in function.args for n in ([operand] if a.name == "_" else self._operands(a, bound))]
        if function.op in FUNCTIONS:
            return p.node("fn", function.op, args)
        return p.many("mul", args) if function.op == "*" else p.node(function.op, None, args)

    def _leaf(self, kind: str, name: str, number: int) -> int:
        """A leaf along k, unless a condition says that it does not depend on that; with the other conditions as facts."""
        p = self.problem
        mine = [c for c in self.rule.conditions if c is not self.broken and c.args[-1].op == kind and c.args[-1].name == name]
        node = p.node("leaf", f"{name}{number}{kind}")
        if not any(c.op == "free" for c in mine) and any(n.op in ("total", "greatest") for n in self.rule.lhs):
            node = p.node("at-var", "k", (node,))
        for c in mine:
            self._fact(node, c.op)
        differences = [c for c in self.rule.conditions if c.op in PROPERTIES and c.args[0].op == "+" and c is not self.broken]
        for c in differences:
            if c.args[0].args[0].name == name:
                p.ranges.append((node, "low", Fraction(3)))
            if c.args[0].args[1].args[1].name == name:
                p.ranges.append((node, "high", Fraction(1)))
        return node

    def _fact(self, node: int, prop: str) -> None:
        if prop in ("positive", "integer", "boolean"):
            self.problem.facts.append((node, prop))
        elif prop == "negative":
            self.problem.ranges.append((node, "high", Fraction(-1)))
        elif prop in ("nonneg", "nonzero"):
            self.problem.ranges.append((node, "low", Fraction(0 if prop == "nonneg" else 1)))


def _calculated(node: Node) -> Iterator[Node]:
    if node.op in ("num", "scale"):
        yield from (n for n in node.args[0] if n.op == "var")
    elif node.op in COMPARISONS:
        yield from (n for a in node.args for n in a if n.op == "var")


def _assignments(count: int) -> Iterator[tuple[Fraction, ...]]:
    values = [Fraction(v) for v in (2, 3, -2, 0)]
    found: list[tuple[Fraction, ...]] = [()]
    for _ in range(count):
        found = [(*f, v) for f in found for v in values]
    yield from found


def _calculate(node: Node, known: Mapping[str, Fraction]) -> Fraction:
    if node.op == "const":
        return node.value
    if node.op == "var":
        return known[node.name]
    args = [_calculate(a, known) for a in node.args]
    if len(args) == 1:
        return -args[0]
    a, b = args
    return {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else Fraction(0)}[node.op]


def _true(condition: Node, known: Mapping[str, Fraction]) -> bool:
    a, b = (_calculate(x, known) for x in condition.args)
    return a < b if condition.op == "<" else a <= b if condition.op == "<=" else a != b


def _fires(rule: Rule, weaker: Rule, others: Sequence[Rule], broken: Instance) -> str:
    """Whether the weaker rule proves a false goal, or fires where the rule itself does not (what it gives may have no value)."""
    more = Engine([*others, weaker])
    if more.prove(broken.problem, LIMITS).proved:
        return "proves a false goal"
    left = broken.problem
    left.goal = (left.goal[0], left.node("leaf", "another"))
    left.nodes[:] = _below(left)
    for rules in (others, []):
        if (
            rule.name in Engine([*rules, weaker]).prove(left, LIMITS).rules
            and rule.name not in Engine([*rules, rule]).prove(left, LIMITS).rules
        ):
            return "fires"
    return ""


def _below(problem: Problem) -> list[Expr]:
    """The nodes up to the goal's left side, then its right side: what the other side is made of is left out."""
    left, right = problem.goal
    problem.goal = (left, left + 1)
    kept = [*problem.nodes[: left + 1], problem.nodes[right]]
    problem.facts[:] = [f for f in problem.facts if f[0] <= left]
    problem.ranges[:] = [r for r in problem.ranges if r[0] <= left]
    return kept


def patterns(entries: Sequence[Entry], every: int = 1) -> Iterator[Mutation]:
    """Every condition of every pattern, in the engine: with all of them the rule fires, without one it does not, unless that is deleted."""
    plain = [e for e in entries if isinstance(e, Rule) and e.phase == "simplify" and not e.when and not e.program]
    for rule in [e for e in entries if isinstance(e, Rule) and e.when and not e.program][::every]:
        others = [r for r in plain if r.name != rule.name]
        engine = Engine([*others, rule])
        if not engine.prove(Instance(rule, None).build(), LIMITS).proved:
            yield Mutation("pattern", rule.name, "nothing", "")
        for number, condition in enumerate(rule.when):
            broken = Instance(rule, rule.conditions[number])
            if engine.prove(broken.build(), LIMITS).proved:
                yield Mutation("pattern", rule.name, f"{condition} is not looked at", "")
                continue
            yield Mutation("pattern", rule.name, condition, _fires(rule, _without(rule, "when", number), others, broken))


# -- egglog text -----------------------------------------------------------------------------------------------------------------
#: false goals in the notation of patterns; ``a`` depends on i (3 values), ``b`` and ``c`` on k (5), ``x`` on i and k; ``ii``, ``ik``, ``il`` are the indices i, k
#: and l (5) themselves, ``it`` one of two values, ``b9`` is b at 9, ``b1`` b at 1, ``bl`` b at l; ``n`` is an integer, ``u`` is one over 0..4
FALSE = (
    ("(total k p)", "0"), ("(total k b)", "0"), ("(total i x)", "0"), ("(scale 1 p)", "0"), ("p", "0"), ("(+ p (scale 0 p))", "0"), ("p", "(scale 2 p)"), ("(+ p q)", "p"), ("(scale 2 p)", "0"),
    ("(* (exp p) (exp q))", "1"), ("(exp p)", "(inv (exp q))"), ("(exp (+ p q))", "(inv (exp (+ p r)))"), ("(exp (scale 3 p))", "(exp (scale 2 p))"),
    ("(exp (scale 2 p))", "(* (exp q) (exp q))"), ("(* (exp (+ p q)) (exp (- r q)))", "1"), ("(* (exp p) (exp (scale 2 q)))", "(exp (scale 3 p))"),
    ("(* (exp (scale -2 p)) (exp p))", "(* (exp p) (exp p))"), ("(+ (exp (scale 3 p)) (exp (scale 2 q)))", "(+ (exp (scale 3 p)) (exp (scale 2 p)))"),
    ("(max p q)", "p"), ("(max p q r)", "(max p q)"), ("(max p 0)", "p"), ("(max p q r)", "(+ p (max 0 (- q p)))"), ("(max p q)", "(max p r)"),
    ("(ge0 (- p))", "(- 1 (ge0 p))"), ("(ge0 (- q))", "(+ 1 (- (ge0 p)) (eq0 p))"), ("(ge0 (- -1 p))", "(- 1 (ge0 p))"),
    ("(ge0 (- -1 n))", "(ge0 n)"), ("(ge0 (- -1 n))", "(- 1 (ge0 u))"), ("(+ (ge0 p) (ge0 (- -1 p)))", "1"), ("(+ (ge0 (- -1 n)) (ge0 n))", "(+ 1 (eq0 n))"), ("(eq0 n)", "0"), ("(+ (ge0 p) (ge0 (- p)))", "(+ 1 (eq0 q))"),
    ("(total k b)", "(scale 5 b)"), ("(total k b)", "(scale 3 p)"), ("(total k a)", "(scale 3 a)"), ("(total k p)", "p"), ("(total k b)", "b"),
    ("(total k (* a b))", "(* a b)"), ("(total k (total k b))", "(total k b)"), ("(total i (total k x))", "(total k x)"),
    ("(total k (* b (total k c)))", "(total k (* b c))"), ("(total i (* a (total k x)))", "(* a (total i (total k x)))"),
    ("(* b (total k c))", "(total k (* b c))"), ("(total i (* (total k x) c))", "(total i (total k (* x c)))"), ("(total k (* b c))", "(* (total k b) c)"),
    ("(total ik (* x b))", "(* (total k b) (total i x))"), ("(total ik (* x b))", "(* b (total ik x))"), ("(total ik (* a b))", "(* b (total i a))"),
    ("(total i (* a (total i a)))", "(total i (* a a))"), ("(total k (* c (total k b) p))", "(total k (* c b p))"),
    ("(total ik (* a b))", "(* (total i a) b)"), ("(total ik (* x a p))", "(* a (total ik (* x p)))"),
    ("(greatest k b)", "b"), ("(greatest i (greatest k x))", "(greatest k x)"), ("(greatest k b)", "p"), ("(greatest ik x)", "(greatest i x)"),
    ("(greatest k x)", "(greatest i x)"), ("(greatest ik x)", "x"), ("(greatest k x)", "x"),
    ("(total k (* (eq0 (- ik 9)) b))", "b9"), ("(total k (* (eq0 (- ik 1)) b))", "b"), ("(total k (* (eq0 (- ik n)) b))", "b1"),
    ("(total k (* (eq0 ik) b))", "b1"), ("(total k (* ik b))", "b1"), ("(total k (* (eq0 (- ik 1)) b c))", "(* b1 c)"), ("(* (eq0 (- ik 1)) b)", "b1"),
    ("(total k (* (eq0 (- ik ii)) b))", "bi"), ("(total k (* (eq0 (- ik il)) b c))", "(* bl c)"), ("(total k (* (ge0 (- ik il)) b))", "bl"),
    ("(total k (* (eq0 (- ik 1)) (total k b)))", "b1"), ("(total k (* (eq0 (- ik il)) b))", "b"), ("(total i (* (eq0 (- ik 1)) b))", "b1"),
    ("(total i (* (eq0 (- ik il)) b))", "bl"), ("(total l (* (eq0 (- ik il)) b))", "bl"), ("(total kl (* (eq0 (- ik il)) b))", "bl"),
    ("(total i (* (eq0 (- ik 1)) b))", "(scale 3 b1)"), ("(total i (* (eq0 (- ik il)) b))", "(scale 3 bl)"), ("(total i (* (eq0 (- ik il)) c b))", "(total i (* c bl))"),
    ("(total k (* (eq0 (- ik 1)) a))", "(total k a)"), ("(total k (* (eq0 (- ik 1)) (eq0 (- ik 2)) b))", "b1"), ("(total k (* (eq0 (- ik 1)) (exp b)))", "(exp b)"),
    ("(total k (* (eq0 (- ik 1)) (total i x)))", "(total i x)"), ("(total k (* (eq0 (- ik 1)) (greatest i x)))", "(greatest i x)"),
    ("(total k (* (eq0 (- ik il)) (total l w)))", "(total l wll)"), ("(total k (* (eq0 (- ik il)) (greatest l w)))", "(greatest l wll)"),
    ("(total k (* (eq0 (- ik 1)) (total k b) b))", "(* b1 (scale 5 b1))"), ("(total k (* (eq0 (- ik 1)) (greatest k b) b))", "(* b1 b1)"),
    ("(total k (* (eq0 (- ik il)) (total k b) b))", "(* bl (scale 5 bl))"), ("(total k (* (eq0 (- ik il)) (greatest k b) b))", "(* bl bl)"),
    ("(* (eq0 (- ik 1)) b)", "(* (eq0 (- ik 2)) b1)"), ("(* (ge0 (- ik 1)) b)", "(* (ge0 (- ik 1)) b1)"), ("(* p b)", "(* p b1)"), ("b", "b1"),
    ("(* (eq0 (- ik 2)) b)", "(* (eq0 (- ik 2)) b1)"), ("(* (eq0 (- ii 1)) b)", "(* (eq0 (- ii 1)) b1)"), ("(* (eq0 (- ik 1)) b p)", "(* (eq0 (- ik 1)) b1)"),
    ("(eq0 ik)", "(- 1 ik)"), ("(eq0 (- ik 1))", "(- 1 ik)"), ("(eq0 (- it 1))", "(- 1 it)"), ("(eq0 p)", "(- 1 ik)"), ("(eq0 it)", "it"),
    ("(total k (* (eq0 (- ik 1)) ik))", "2"), ("(total k (* (eq0 (- ik 1)) x))", "x"), ("(total k (* (eq0 (- ik 1)) x))", "(* x p)"),
)  # fmt: skip
SIZES = {"i": 3, "k": 5, "l": 5, "t": 2}
LEAVES = {"a": "i", "b": "k", "c": "k", "x": "ik", "w": "lk"}


def false_goal(left: str, right: str) -> Problem:
    """A pair of expressions with different values."""
    p = Problem()
    p.sizes.update(SIZES)
    sides = [_read(p, parse_pattern(s)) for s in (left, right)]
    p.goal = (sides[0], sides[1])
    for node, name in _instances(p):
        p.instances.append((node, "k", 1, name))
    return p


def _instances(p: Problem) -> list[tuple[int, int]]:
    b = p.node("leaf", "b")
    return [(p.node("at-var", "k", (b,)), p.node("at-const", 1, (b,)))]


def _read(p: Problem, tree: Node) -> int:
    if tree.op == "var":
        return _named(p, tree.name)
    if tree.op == "num":
        return p.number(tree.args[0].value)
    if tree.op == "scale":
        return p.scale(tree.args[0].value, _read(p, tree.args[1]))
    if tree.op in ("total", "greatest"):
        return p.node(tree.op, tuple(tree.args[0].name), (_read(p, tree.args[1]),))
    args = [_read(p, a) for a in tree.args]
    if tree.op in FUNCTIONS:
        return p.node("fn", tree.op, args)
    names = {"+": "add", "*": "mul", "max": "max"}
    return p.many(names[tree.op], args) if tree.op in names else p.node(tree.op, None, args)


def _named(p: Problem, name: str) -> int:
    if len(name) == 2 and name[0] == "i":
        return p.node("iota", name[1])
    if name in ("b9", "b1"):
        return p.node("at-const", int(name[1]), (p.node("leaf", "b"),))
    if name in ("bl", "bi"):
        return p.node("at-var", name[1], (p.node("leaf", "b"),))
    if name == "wll":
        return p.node("at-var", "l", (p.node("at-var", "l", (p.node("leaf", "w"),)),))
    node = p.node("leaf", name)
    for v in LEAVES.get(name, ""):
        node = p.node("at-var", v, (node,))
    if name in ("n", "u"):
        p.facts.append((node, "integer"))
    if name == "u":
        p.ranges += [(node, "low", Fraction(0)), (node, "high", Fraction(4))]
    return node


def facts_of(command: str) -> list[str]:
    """The facts in the body of an egglog rule."""
    body = _balanced(command, command.index("(", 1))
    found, at = [], 1
    while (start := body.find("(", at)) >= 0:
        fact = _balanced(body, start)
        found.append(fact)
        at = start + len(fact)
    return found


def _balanced(text: str, start: int) -> str:
    depth = 0
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start : end + 1]
    raise AssertionError(text)


#: facts that no value depends on: (rule, fact) -> why
HARMLESS: dict[tuple[str, str], str] = {
    ("scale-fixed", "(!= q (bigrat (bigint 1) (bigint 1)))"): "scale-one takes 1 x away before this could fire on it",
    ("exp-multiple", "(< (bigrat (bigint 0) (bigint 1)) p)"): "a bound: true for all p and q",
    ("exp-multiple", "(< p q)"): "a bound: true for all p and q",
    ("exp-multiple", "(<= q (* p (bigrat (bigint 16) (bigint 1))))"): "a bound: true for all p and q",
    ("max-shift", "(!= x z)"): "a bound: true for 0, too",
    ("max-shift", "(!= y z)"): "a bound: true for 0, too",
    ("total-part", "(> (set-length w) 0)"): "a sum over no axis is its body",
    ("total-part", "(> (set-length vs) (set-length w))"): "a sum over no axis is its body",
    ("greatest-unused", "(set-contains vs v)"): "taking away an axis that is not there changes nothing",
}


def _looks_up(fact: str, command: str) -> bool:
    """A fact ``(= k (member ms x))`` of a rule that takes x out of ms, which fails by itself where x is not in it: an index, for speed."""
    found = re.fullmatch(r"\(= \w+ \(member (\w+) (\w+)\)\)", fact)
    return found is not None and f"(multiset-remove {found[1]} {found[2]})" in command


def programs(entries: Sequence[Entry], every: int = 1) -> Iterator[Mutation]:
    """Every fact of every rule in egglog text."""
    rules = [e for e in entries if isinstance(e, Rule) and not e.assumes]
    mutants = [(r, n, fact) for r in rules for n, command in enumerate(r.program) for fact in facts_of(command)]
    for rule, number, fact in mutants[::every]:
        command = rule.program[number]
        if (rule.name, fact) in HARMLESS or _looks_up(fact, command):
            continue
        weaker = command.replace(f"{fact} ", "", 1) if f"{fact} " in command else command.replace(fact, "", 1)
        program = (*rule.program[:number], weaker, *rule.program[number + 1 :])
        mutant = dataclasses.replace(rule, program=program)
        yield Mutation("program", rule.name, f"{fact} of {command[:60]}", _noticed([mutant if r is rule else r for r in rules]))


def _noticed(rules: Sequence[Rule]) -> str:
    try:
        engine = Engine(rules)
        for left, right in FALSE:
            if engine.prove(false_goal(left, right), LIMITS).proved:
                return f"proves {left} = {right}"
    except (InternalError, EggSmolError) as error:
        return f"egglog refuses: {str(error)[:60]}"
    return ""


def sound(every: int = 1) -> list[str]:
    """The false goals that the rules as they are prove."""
    engine = Engine([e for e in installed() if isinstance(e, Rule) and not e.assumes])
    return [f"{left} = {right}" for left, right in FALSE[::every] if engine.prove(false_goal(left, right), LIMITS).proved]


def main(every: int) -> int:
    """All mutations; 1 when one is not noticed."""
    entries = installed()
    counts: Counter[tuple[str, bool]] = Counter()
    for found in (*statements(entries), *patterns(entries, every), *programs(entries, every)):
        counts[found.kind, bool(found.noticed)] += 1
        if not found.noticed:
            sys.stdout.write(f"NOT NOTICED: {found.kind} {found.entry}: {found.deleted}\n")
    for (kind, noticed), count in sorted(counts.items()):
        sys.stdout.write(f"{kind}: {count} {'noticed' if noticed else 'not noticed'}\n")
    return int(any(not noticed for _, noticed in counts))


if __name__ == "__main__":
    sys.exit(main(8 if "quick" in sys.argv[1:] else 1))
