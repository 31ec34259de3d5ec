"""What a rewrite rule is: one declaration, from which the egglog text, the documentation and the checks are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from scalify.errors import ConfigError
from scalify.prove.notation import infix
from scalify.prove.pattern import COMPARISONS, Node, parse_condition, parse_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

#: when a rule runs: ``simplify`` replaces the left side until nothing changes, ``expand`` adds the right side once a round
PHASES = ("simplify", "expand")


@dataclass(frozen=True)
class Rule:
    """``left = right`` wherever the conditions hold.

    ``when``: conditions that the engine must derive before the rule may fire; breaking one alone makes some instance wrong. ``bounds``: conditions
    without which the rule would be true as well, but would not end or have no use. ``assumes``: conditions that are
    not derived but listed with the result; such rules run last, and only when asked for.
    ``why``: the soundness argument. ``program``: egglog text for the few rules that patterns cannot spell; ``statement`` then
    says what it states, and ``instances`` yields pairs of numbers that must agree. Without ``program`` the instances are made from the patterns.
    """

    name: str
    family: str
    left: str
    right: str
    why: str
    when: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    phase: str = "expand"
    assumes: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    instances: Callable[[], Sequence[tuple[Fraction | float, Fraction | float]]] | None = field(default=None, compare=False)
    user: bool = False

    @cached_property
    def lhs(self) -> Node:
        return parse_pattern(self.left)

    @cached_property
    def rhs(self) -> Node:
        return parse_pattern(self.right)

    @cached_property
    def conditions(self) -> tuple[Node, ...]:
        return tuple([parse_condition(c) for c in (*self.when, *self.bounds, *self.assumes)])

    @cached_property
    def derived(self) -> tuple[Node, ...]:
        """The conditions that the engine derives."""
        return self.conditions[: len(self.when) + len(self.bounds)]

    @cached_property
    def statement(self) -> str:
        """The rule as a line of algebra."""
        if self.program:
            return f"{self.left} = {self.right}"
        return f"{infix(self.lhs)} = {infix(self.rhs)}"

    @cached_property
    def requirement(self) -> str:
        """The conditions as a line of text, empty when there are none."""
        if self.program:
            return ", ".join(self.when)
        assumed = [f"{_said(c)} (assumed)" for c in self.conditions[len(self.when) + len(self.bounds) :]]
        return ", ".join([*map(_said, self.conditions[: len(self.when)]), *assumed])

    def validate(self) -> None:
        """:raises ConfigError: a right side or condition that speaks of what the left side does not bind."""
        if self.program:
            return
        if self.lhs.op in ("var", "rest"):
            raise ConfigError(f"rule {self.name}: the left side must not be a lone variable")
        bound = _names(self.lhs)
        if "_" in bound:
            raise ConfigError(f"rule {self.name}: _ is for each on the right side")
        for tree in (self.rhs, *self.conditions):
            loose = sorted(_names(tree) - bound)
            if loose:
                raise ConfigError(f"rule {self.name}: {', '.join(loose)} does not occur on the left")
        if any(node.op == "each" for node in self.lhs):
            raise ConfigError(f"rule {self.name}: each is for right sides")


def _said(condition: Node) -> str:
    if condition.op == "free":
        return f"{infix(condition.args[1])} independent of {infix(condition.args[0])}"
    if condition.op in ("<", "<=", "!="):
        return infix(condition)
    return f"{infix(condition.args[0])} {condition.op}"


def _names(tree: Node) -> set[str]:
    """The names that a pattern uses, each with what it stands for."""
    found: set[str] = set()
    stack = [tree]
    while stack:
        node = stack.pop()
        if node.op in ("var", "rest"):
            found.add(f"{'the rest *' if node.op == 'rest' else ''}{node.name}")
        elif node.op in ("num", "scale", *COMPARISONS):
            calculations = node.args[:1] if node.op in ("num", "scale") else node.args
            found |= {f"the constant {n.name}" for c in calculations for n in c if n.op == "var"}
            stack += node.args[len(calculations) :]
        elif node.op in ("total", "greatest", "free"):
            found.add(f"the index {node.args[0].name}")
            stack.append(node.args[1])
        elif node.op == "each":
            found |= {name for name in _names(node.args[0]) if name != "_"}
            stack.append(node.args[1])
        else:
            stack += node.args
    return found


@dataclass(frozen=True)
class Law:
    """A normal form of the term constructors, declared for the catalogue: it holds by construction, not by search."""

    name: str
    family: str
    statement: str
    when: str
    why: str
    where: str
    checked: str
