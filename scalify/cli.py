"""The command line."""

from __future__ import annotations


def main() -> int:
    """Entry point; returns the exit status of design section 6."""
    return 2
