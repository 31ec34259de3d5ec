"""One module for each device (MPMD) as one module for all: the same instructions, with constants that differ between devices."""

from __future__ import annotations

from collections.abc import Sequence

from scalify.errors import HloError
from scalify.hlo.module import Module


def collate(modules: Sequence[Module]) -> Module:
    """The module that all devices run. :raises HloError: the modules differ in more than their constants."""
    if len(modules) == 1:
        return modules[0]
    raise HloError("one module for each device is not supported yet")
