"""``python -m scalify``."""

import sys

from scalify.cli import main

sys.exit(main())
