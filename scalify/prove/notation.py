"""Patterns in the notation of algebra, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.prove.pattern import COMMUTATIVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from scalify.prove.pattern import Node

_SIGNS = {"+": (" + ", 1), "*": (" ", 2)}  # how operands are joined, and how tightly
_ALONE = {"+": "sum", "*": "product", "max": "max"}
_CALCULATIONS = ("<", "<=", "!=", "/", "-")


def infix(tree: Node, outer: int = 0) -> str:
    """The pattern as one line; ``outer`` is how tightly the context binds (0 loosest, 1 sums, 2 products, 3 powers)."""
    shown = _SHOWN.get(tree.op)
    if shown is not None:
        return shown(tree, outer)
    if tree.op in COMMUTATIVE and len(tree.args) < 2:
        return f"{_ALONE[tree.op]}({', '.join(map(infix, tree.args))})"
    if tree.op in _SIGNS:
        sign, level = _SIGNS[tree.op]
        text = sign.join(infix(a, level) for a in tree.args).replace("+ -", "- ")
        return f"({text})" if outer >= level else text
    if tree.op in _CALCULATIONS:
        return f"-{infix(tree.args[0], 3)}" if len(tree.args) == 1 else f" {tree.op} ".join(infix(a, 2) for a in tree.args)
    return f"{tree.op}({', '.join(map(infix, tree.args))})"


def _scale(tree: Node, outer: int) -> str:
    factor, x = tree.args
    by = infix(factor, 2) if len(factor.args) < 2 else f"({infix(factor)})"
    text = f"-{infix(x, 2)}" if by == "-1" else f"{by} {infix(x, 2)}"
    return f"({text})" if outer >= 2 else text


def _inverse(tree: Node, outer: int) -> str:
    (x,) = tree.args
    return f"1/({infix(x)})" if x.op == "inv" else f"1/{infix(x, 3)}"


_SHOWN: dict[str, Callable[[Node, int], str]] = {
    "var": lambda tree, outer: tree.name,
    "rest": lambda tree, outer: f"{tree.name}..",
    "const": lambda tree, outer: str(tree.value),
    "num": lambda tree, outer: infix(tree.args[0]),
    "scale": _scale,
    "inv": _inverse,
    "ge0": lambda tree, outer: f"[{infix(tree.args[0])} >= 0]",
    "eq0": lambda tree, outer: f"[{infix(tree.args[0])} = 0]",
    "total": lambda tree, outer: f"sum_{infix(tree.args[0])} {infix(tree.args[1], 2)}",
    "greatest": lambda tree, outer: f"max_{infix(tree.args[0])} {infix(tree.args[1], 2)}",
}
