"""Argument types that several commands share; each raises what argparse reports with the option's name."""

from __future__ import annotations

import argparse
import re


def assignments(text: str) -> dict[str, int]:
    """``NAME=N`` or several, separated by commas: names with positive whole numbers, in the order given."""
    found: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_][\w.-]*)\s*=\s*([0-9]{1,12})\s*", part)
        if match is None or int(match[2]) == 0:
            raise argparse.ArgumentTypeError(f"{part!r} is not NAME=N with N a positive whole number")
        if match[1] in found:
            raise argparse.ArgumentTypeError(f"{match[1]!r} is given twice")
        found[match[1]] = int(match[2])
    return found


def merged(parts: list[dict[str, int]] | None) -> dict[str, int]:
    """The assignments of an option that was given several times; the last one of a name counts."""
    return {name: number for part in parts or [] for name, number in part.items()}
