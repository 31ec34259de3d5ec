"""Comparison of modules that hold arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scalify.hlo.module import Instruction, Module


def assert_same_module(left: Module, right: Module) -> None:
    """Equal in every field, source locations and the bits of constants included."""
    for field in fields(left):
        if field.name != "computations":
            assert getattr(left, field.name) == getattr(right, field.name), field.name
    assert list(left.computations) == list(right.computations)
    for a, b in zip(left.computations.values(), right.computations.values(), strict=True):
        assert (a.name, a.root, len(a.instructions)) == (b.name, b.root, len(b.instructions))
        for i, j in zip(a.instructions, b.instructions, strict=True):
            assert_same_instruction(i, j)


def assert_same_instruction(left: Instruction, right: Instruction) -> None:
    for field in fields(left):
        if field.name != "attributes":
            assert getattr(left, field.name) == getattr(right, field.name), (left.name, field.name)
    a, b = dict(left.attributes), dict(right.attributes)
    x, y = a.pop("literal", None), b.pop("literal", None)
    assert a == b, left.name
    assert (x is None) == (y is None)
    if x is not None:
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(x, y)
        if x.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(x), np.signbit(y))
