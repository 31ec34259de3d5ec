"""Obligations written as patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.prove.expression import Problem
from scalify.prove.pattern import FUNCTIONS, Node, parse_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: index variables of the leaf of each name, and the sizes of the variables
VARIABLES: Mapping[str, Sequence[str]] = {"a": ("i",), "b": ("k",), "c": ("k",), "x": ("i", "k"), "w": ("k", "j")}
SIZES = {"i": 3, "j": 4, "k": 5}


def problem(left: str, right: str, facts: Mapping[str, str] | None = None) -> Problem:
    """``left = right``; variables are leaves (``x`` over i and k, ...), others are scalars; (total k ..) sums over k. ``facts``: leaf -> property."""
    made = Problem()
    made.sizes.update(SIZES)
    roots = [_node(made, parse_pattern(side)) for side in (left, right)]
    made.goal = (roots[0], roots[1])
    for name, fact in (facts or {}).items():
        made.facts.append((_leaf(made, name), fact))
    return made


def _leaf(made: Problem, name: str) -> int:
    node = made.node("leaf", name)
    for variable in VARIABLES.get(name, ()):
        node = made.node("at-var", variable, (node,))
    return node


def _node(made: Problem, tree: Node) -> int:
    if tree.op == "var":
        return _leaf(made, tree.name)
    if tree.op == "num":
        return made.number(tree.args[0].value)
    if tree.op == "scale":
        return made.scale(tree.args[0].value, _node(made, tree.args[1]))
    if tree.op in ("total", "greatest"):
        return made.node(tree.op, tuple(tree.args[0].name), (_node(made, tree.args[1]),))
    args = [_node(made, a) for a in tree.args]
    if tree.op in FUNCTIONS:
        return made.node("fn", tree.op, args)
    names = {"+": "add", "*": "mul", "max": "max"}
    return made.many(names[tree.op], args) if tree.op in names else made.node(tree.op, None, args)
