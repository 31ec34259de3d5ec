"""From a rule's declaration to egglog text.

Operands of ``+``, ``*`` and ``max`` are multisets, so a pattern with two operands and a rest matches in any order without
associativity or commutativity ever being saturated.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from scalify.prove.pattern import FUNCTIONS, PROPERTIES, Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from scalify.prove.rule import Rule

LARGEST = 1 << 200  #: of numerators and denominators that rules calculate with
CONTAINERS = {"+": "Add", "*": "Mul", "max": "Max"}
CONSTRUCTORS = {"inv": "Inv", "ge0": "Ge0", "eq0": "Eq0", "select": "Select", "total": "Total", "greatest": "Greatest"}


def rational(value: Fraction) -> str:
    """A constant in egglog text."""
    return f'(bigrat (from-string "{value.numerator}") (from-string "{value.denominator}"))'


def to_egglog(rule: Rule) -> list[str]:
    """The egglog commands of a rule, one a string."""
    if rule.program:
        return list(rule.program)
    left = _Left()
    root = left.match(rule.lhs, root=True)
    matched = list(left.facts)
    matched += _small(rule)
    conditions, demands = _conditions(rule, left)
    actions = f"(union {root} {build(rule.rhs)})"
    if rule.phase == "simplify":
        actions += f" (subsume {left.made[root]})"
        if rule.lhs.op in CONTAINERS:
            actions += f" (stale-{left.made[root].strip('(')}"
    ruleset = rule.phase if not rule.assumes else "assume"
    commands = [f'(rule ({" ".join(matched + conditions)}) ({actions}) :ruleset {ruleset} :name "{rule.name}")']
    if demands:
        commands.insert(0, f'(rule ({" ".join(matched)}) ({" ".join(demands)}) :ruleset demand :name "{rule.name}?")')
    return commands


def _small(rule: Rule) -> list[str]:
    """Constants that a rule calculates with must be small: a loop of rules would double their digits each time round."""
    if not any(node.op in ("scale", "num") and node.args[0].args for node in rule.rhs):
        return []
    names = sorted({n.name for node in rule.lhs if node.op in ("scale", "num") for n in node.args[0] if n.op == "var"})
    most = f'(from-string "{LARGEST}")'
    least = f'(from-string "-{LARGEST}")'
    return [f"(< (numer q_{n}) {most}) (> (numer q_{n}) {least}) (< (denom q_{n}) {most})" for n in names]


class _Left:
    """The facts that a left side stands for."""

    def __init__(self) -> None:
        self.facts: list[str] = []
        self.made: dict[str, str] = {}  # variable of a node -> the constructor call that it is
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def match(self, node: Node, *, root: bool = False) -> str:
        """The variable that holds the node's e-class. Operands of a commutative operator below the root are those of its one form."""
        if node.op == "var":
            return f"e_{node.name}"
        here = self.fresh()
        if node.op in CONTAINERS and not root and _lone(node):
            self.facts.append(f"(form-{CONTAINERS[node.op]} {here} m_{node.args[0].name})")
            return here
        call = self._container(node) if node.op in CONTAINERS else self._call(node)
        self.made[here] = call
        self.facts.append(f"(= {here} {call})")
        if node.op in CONTAINERS:
            self._members(node, call.split()[1].rstrip(")"))
        return here

    def _container(self, node: Node) -> str:
        return f"({CONTAINERS[node.op]} {'m_' + node.args[0].name if _lone(node) else self.fresh()})"

    def _members(self, node: Node, operands: str) -> None:
        rests = [a for a in node.args if a.op == "rest"]
        singles = [a for a in node.args if a.op != "rest"]
        if not singles:
            if not rests:
                self.facts.append(f"(= 0 (multiset-length {operands}))")
            return
        found = []
        for a in singles:
            member = self.match(a)
            self.facts.append(f"(= {self.fresh()} (member {operands} {member}))")
            found.append(member)
        listed = f"(multiset-of {' '.join(found)})"
        self.facts.append(f"(= m_{rests[0].name} (multiset-subtract {operands} {listed}))" if rests else f"(= {operands} {listed})")

    def _call(self, node: Node) -> str:
        if node.op in FUNCTIONS:
            return f'(Fn "{node.op}" {self.match(node.args[0])})'
        if node.op in ("num", "scale"):
            rest = "".join([f" {self.match(a)}" for a in node.args[1:]])
            return f"({node.op.title()} {self._constant(node.args[0])}{rest})"
        if node.op in ("total", "greatest"):
            return f"({CONSTRUCTORS[node.op]} v_{node.args[0].name} {self.match(node.args[1])})"
        return f"({CONSTRUCTORS[node.op]} {' '.join([self.match(a) for a in node.args])})"

    def _constant(self, node: Node) -> str:
        if node.op == "var":
            return f"q_{node.name}"
        here = self.fresh()
        self.facts.append(f"(= {here} {calculation(node)})")
        return here


def _lone(node: Node) -> bool:
    """All operands are one rest."""
    return len(node.args) == 1 and node.args[0].op == "rest"


def calculation(node: Node) -> str:
    """A calculation with constants in egglog text."""
    if node.op == "var":
        return f"q_{node.name}"
    if node.op == "const":
        return rational(node.value)
    args = [calculation(a) for a in node.args]
    return f"({node.op} {' '.join(args if len(args) == 2 else [rational(Fraction(0)), *args])})"


def build(node: Node) -> str:
    """The egglog expression of a right side."""
    if node.op == "var":
        return f"e_{node.name}"
    if node.op in CONTAINERS:
        return f"({CONTAINERS[node.op]} {_operands(node)})"
    if node.op in FUNCTIONS:
        return f'(Fn "{node.op}" {build(node.args[0])})'
    if node.op in ("num", "scale"):
        return f"({node.op.title()} {calculation(node.args[0])}{''.join(' ' + build(a) for a in node.args[1:])})"
    if node.op in ("total", "greatest"):
        return f"({CONSTRUCTORS[node.op]} v_{node.args[0].name} {build(node.args[1])})"
    return f"({CONSTRUCTORS[node.op]} {' '.join(map(build, node.args))})"


def _operands(node: Node) -> str:
    singles = [a for a in node.args if a.op not in ("rest", "each")]
    parts = [f"m_{a.name}" if a.op == "rest" else _mapped(a) for a in node.args if a.op in ("rest", "each")]
    if singles or not parts:
        parts.insert(0, f"(multiset-of {' '.join(map(build, singles))})")
    found = parts[0]
    for part in parts[1:]:
        found = f"(multiset-sum {found} {part})"
    return found


def _mapped(node: Node) -> str:
    function, rest = node.args
    return f"(unstable-multiset-map {_function(function)} m_{rest.name})"


def _function(node: Node) -> str:
    if node.op in FUNCTIONS:
        return f'(unstable-fn "Fn" "{node.op}")'
    if node.op == "scale":
        return f'(unstable-fn "Scale" {calculation(node.args[0])})'
    if node.op in ("total", "greatest"):
        return f'(unstable-fn "{CONSTRUCTORS[node.op]}" v_{node.args[0].name})'
    if node.op == "*":
        others = Node("*", tuple([a for a in node.args if a.name != "_"]))
        return f'(unstable-fn "Times" {_operands(others)})'
    return f'(unstable-fn "{CONSTRUCTORS[node.op]}")'


# -- conditions --------------------------------------------------------------------------------------------------------------
def _conditions(rule: Rule, left: _Left) -> tuple[list[str], list[str]]:
    """The facts of the conditions, and what must be asked for so that they can be derived."""
    facts: list[str] = []
    demands: list[str] = []
    for condition in rule.derived:
        if condition.op in PROPERTIES:
            fact, demand = _property(condition)
        elif condition.op == "free":
            fact, demand = _free(condition, left.fresh)
        else:
            fact, demand = [f"({condition.op} {' '.join(map(calculation, condition.args))})"], []
        facts += fact
        demands += demand
    return facts, demands


def _property(condition: Node) -> tuple[list[str], list[str]]:
    (subject,) = condition.args
    if subject.op == "var":
        return [f"({condition.op} e_{subject.name})"], []
    if subject.op == "rest":
        return [f"(all-{condition.op} m_{subject.name})"], [f"(need m_{subject.name})"]
    a, b = subject.args
    asked = f"(Diff {build(a)} {build(b.args[1])})"
    return [f"(= asked {asked})", f"({condition.op} asked)"], [asked]


def _free(condition: Node, fresh: Callable[[], str]) -> tuple[list[str], list[str]]:
    variables, subject = condition.args
    here = fresh()
    found = f"(fv e_{subject.name})" if subject.op == "var" else f"(fvm m_{subject.name})"
    demand = [] if subject.op == "var" else [f"(need m_{subject.name})"]
    return [f"(= {here} {found})", f"(= 0 (set-length (set-intersect {here} v_{variables.name})))"], demand
