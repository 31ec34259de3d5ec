"""What a rewrite rule is: one declaration, from which the egglog text, the documentation and the checks are made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from scalify.errors import ConfigError
from scalify.prove.notation import infix
from scalify.prove.pattern import COMPARISONS, Node, parse_condition, parse_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from scalify.prove.proof.claims import Setting

#: when a rule runs: ``simplify`` replaces the left side until nothing changes, ``expand`` adds the right side once a round
PHASES = ("simplify", "expand")


@dataclass(frozen=True)
class Claim:
    """A statement that patterns cannot spell: ``state`` is a function of a :class:`scalify.prove.proof.claims.Setting`, which it asks for the
    conditions that ``when`` names.
    """

    state: Callable[[Setting], None]
    when: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """``left = right`` wherever the conditions hold.

    ``when``: conditions that the engine must derive before the rule may fire; breaking one alone makes some instance wrong. ``bounds``: conditions
    without which the rule would be true as well, but would not end or have no use. ``assumes``: conditions that are
    not derived but listed with the result; such rules run last, and only when asked for.
    ``why``: the soundness argument. ``program``: egglog text for the few rules that patterns cannot spell; ``statement`` then
    says what it states, ``claims`` what is to be proved, and ``instances`` yields pairs of numbers that must agree. Without ``program`` the
    patterns are the claim, and the instances are made from them. ``proof`` is the record of a proof, without which no rule is registered.
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
    claims: tuple[Rule | Claim, ...] = field(default=(), compare=False)
    proof: Record | None = field(default=None, compare=False)

    @cached_property
    def parts(self) -> tuple[Rule | Claim, ...]:
        """What is to be proved."""
        return self.claims if self.program else (self,)

    @cached_property
    def digest(self) -> str:
        """A name of the declaration's content; a proof on record is one of this content."""
        content = (self.left, self.right, self.when, self.bounds, self.phase, self.assumes, self.program)
        return hashlib.sha256(repr(content).encode()).hexdigest()[:16]

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


def stated(left: str, right: str, *when: str) -> Rule:
    """An equation between patterns as a claim of a law, or of a rule in egglog text."""
    return Rule("", "", left, right, "", when)


@dataclass(frozen=True)
class Law:
    """A normal form of the term constructors, declared for the catalogue: it holds by construction, not by search.

    ``claims`` are what it states, as equations to be proved; ``where`` is the file whose constructors apply it.
    """

    name: str
    family: str
    statement: str
    why: str
    where: str
    claims: tuple[Rule | Claim, ...] = field(compare=False)
    proof: Record | None = field(default=None, compare=False)

    @property
    def parts(self) -> tuple[Rule | Claim, ...]:
        return self.claims

    @cached_property
    def requirement(self) -> str:
        """The conditions as a line of text, empty when there are none."""
        said = [r for part in self.claims for r in (part.when if isinstance(part, Claim) else [part.requirement]) if r]
        return ", ".join(dict.fromkeys(said))

    @cached_property
    def digest(self) -> str:
        """A name of the declaration's content."""
        content = [(p.when if isinstance(p, Claim) else (p.left, p.right, p.when)) for p in self.claims]
        return hashlib.sha256(repr((self.statement, content)).encode()).hexdigest()[:16]


Entry = Rule | Law


class Record(NamedTuple):
    """A proof that was found: of the content with this digest, ``z3`` for all sizes or ``exhaustive`` for all small ones."""

    digest: str
    kind: str
    milliseconds: int = 0
