"""One transfer function for each opcode: from the lifted operands to the lifted results. ``TRANSFERS`` is the whole table."""

from scalify.lift.transfer import argmax, collective, contraction, custom_call, elementwise, indexing, movement, opaque, windows
from scalify.lift.transfer.base import TRANSFERS

__all__ = ["TRANSFERS", "argmax", "collective", "contraction", "custom_call", "elementwise", "indexing", "movement", "opaque", "windows"]
