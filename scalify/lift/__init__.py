"""Lifting: HLO programs as terms over labelled axes (see ARCHITECTURE.md)."""

# Products and linear combinations call laws that are built on them through hooks, which these modules fill.
from scalify.lift import elementary, exponents, guards

__all__ = ["elementary", "exponents", "guards"]
