"""Modules that have nothing but parameters and results, for tests of relations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from scalify.hlo.module import Location, Module, Shape, Sharding
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from tests.support.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.relation.model import Relation


def shape(text: str) -> Shape:
    found = re.fullmatch(r"(\w+)\[([\d,]*)\]", text)
    assert found
    return Shape(found[1], tuple(int(d) for d in found[2].split(",") if d))


def module(parameters: str, outputs: str = "f32[]", names: Sequence[str] = (), **more: Any) -> Module:
    """A module with the given shapes, such as ``module("f32[4,8] s32[2]", "f32[4]")``; ``names`` are op_names of the parameters."""
    builder = Builder("main")
    for i, text in enumerate(parameters.split()):
        builder.parameter(shape(text), name=f"p{i}", location=Location(names[i]) if names else None)
    roots = [builder.add("custom-call", shape(text), name=f"r{i}", custom_call_target="any") for i, text in enumerate(outputs.split())]
    return builder.build(roots, **more)


def relation(text: str, baseline: Module, *distributed: Module) -> Relation:
    return resolve(parse(text, "r.yaml"), baseline, distributed)


def tiled(tile: Sequence[int], devices: Sequence[int], trailing: int = 0) -> Sharding:
    return Sharding("tiled", tuple(tile), tuple(devices), trailing)
