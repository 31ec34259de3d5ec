"""``python -m scalify``."""

from scalify.cli import command

command()
