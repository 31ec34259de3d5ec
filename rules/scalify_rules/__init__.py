"""Rewrite rules of Scalify: one module a family, one declaration a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify_rules import exponential, functions, indexing, laws, order, ring, sums

if TYPE_CHECKING:
    from scalify.prove.rule import Law, Rule


def catalogue() -> tuple[Rule | Law, ...]:
    """All rules, in the order in which families build on one another, then the laws that the term constructors apply by themselves."""
    return (*ring.RULES, *sums.RULES, *indexing.RULES, *order.RULES, *exponential.RULES, *functions.RULES, *laws.LAWS)
