"""Lifting: HLO programs as terms over labelled axes (see ARCHITECTURE.md)."""

# Products simplify themselves under their 0/1 factors through the hook that this module fills.
from scalify.lift import guards

__all__ = ["guards"]
