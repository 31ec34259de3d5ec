"""``python -m scalify``."""

import sys

from scalify.cli import command

sys.exit(command())
