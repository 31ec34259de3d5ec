"""Relations between modules without a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.relation.model import Mesh, Piece, Recipe, Relation

if TYPE_CHECKING:
    from scalify.hlo.module import Module, Shape


def identity(module: Module) -> Relation:
    """Every input and output equals its own number, on one device."""

    def pieces(shapes: tuple[Shape, ...]) -> dict[int, tuple[Piece, ...]]:
        found: dict[int, tuple[Piece, ...]] = {}
        for number, shape in enumerate(shapes):
            zeros = (0,) * len(shape.dims)
            if shape.is_array:
                found[number] = (Piece(Recipe(number, ()), zeros, shape.dims, region=(zeros, shape.dims)),)
        return found

    return Relation(Mesh((), (0,)), pieces(module.parameter_shapes), pieces(module.output_shapes))
