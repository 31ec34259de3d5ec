"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# Deadlines fail on busy machines without saying anything about the code. The same examples in each run: a failure is never a matter of luck.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")
