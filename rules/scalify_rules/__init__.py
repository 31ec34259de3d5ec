"""Rewrite rules of Scalify: one module a family, one declaration a rule."""

from __future__ import annotations

from scalify.prove.rule import Law, Rule
from scalify_rules import exponential, functions, indexing, laws, order, ring, sums


def catalogue() -> tuple[Rule, ...]:
    """All rules, in the order in which families build on one another."""
    return (*ring.RULES, *sums.RULES, *indexing.RULES, *order.RULES, *exponential.RULES, *functions.RULES)


def normal_forms() -> tuple[Law, ...]:
    """The laws that the term constructors apply by themselves."""
    return laws.LAWS
