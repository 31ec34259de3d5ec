"""What relations say of concrete arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scalify.errors import RelationError
from scalify.hlo.module import Shape
from scalify.relation.execute import apply, compare, distribute, relative_difference
from scalify.relation.model import Broadcast, Mesh, Pad, Piece, Recipe, Relation, Reshape, Slice, Transpose

MESH = Mesh((("dp", 2), ("tp", 2)), (0, 2, 1, 3))


def cut_over_tp(source: int = 0) -> Recipe:
    """[3, 4] cut along its last dimension over tp and replicated over dp: shape [2, 2, 3, 2]."""
    return Recipe(source, (Reshape((3, 2, 2)), Transpose((1, 0, 2)), Broadcast((2, 2, 3, 2), (1, 2, 3))))


def test_apply() -> None:
    x = np.arange(12).reshape(3, 4)
    result = apply(cut_over_tp(), x)
    for dp in range(2):
        for tp in range(2):
            assert result[dp, tp].tolist() == x[:, 2 * tp : 2 * tp + 2].tolist()
    padded = apply(Recipe(0, (Slice((1, 0), (3, 4)), Pad(((1, 0), (0, 2))))), x)
    assert padded.tolist() == np.pad(x[1:3], ((1, 0), (0, 2))).tolist()


def test_distribute_is_in_device_order() -> None:
    x = np.arange(12.0).reshape(1, 3, 4)
    relation = Relation(MESH, {0: (Piece(cut_over_tp(), (0, 0), (3, 2)),)}, {})
    result = distribute(relation, [x], [Shape("f32", (3, 2))])[0]
    # Device 1 stands at position 2 = (dp 1, tp 0), device 2 at position 1 = (dp 0, tp 1).
    assert [r[0, 0] for r in result] == [0.0, 0.0, 2.0, 2.0]


def test_pieces_and_known_data_tile_a_parameter() -> None:
    ranks = np.arange(4, dtype=np.int32).reshape(2, 2, 1)
    pieces = (
        Piece(Recipe(0, (Broadcast((2, 2, 2), (2,)),)), (1,), (3,)),
        Piece(Recipe(ranks, ()), (0,), (1,)),
    )
    result = distribute(Relation(MESH, {0: pieces}, {}), {0: np.array([[7, 8]])}, [Shape("s32", (3,))])[0]
    assert result.tolist() == [[0, 7, 8], [2, 7, 8], [1, 7, 8], [3, 7, 8]]


def test_parameter_without_entry() -> None:
    with pytest.raises(RelationError, match="no entry speaks of distributed parameter 0"):
        distribute(Relation(MESH, {}, {}), [], [Shape("f32")])


def test_compare_sums_partial_axes() -> None:
    whole = np.array([[1.0, 2.0]])
    relation = Relation(MESH, {}, {0: (Piece(Recipe(0, (Broadcast((2, 2, 2), (2,)),)), (0,), (2,), partial=(1,)),)})
    parts = np.array([[0.25, 0.5], [0.25, 0.5], [0.75, 1.5], [0.75, 1.5]])
    assert compare(relation, [whole], [parts]) == {0: 0.0}
    parts[3] = 0
    assert compare(relation, [whole], [parts])[0] == pytest.approx(0.75)


def test_same_mesh() -> None:
    x = np.arange(4.0).reshape(4, 1)
    relation = Relation(MESH, {0: (Piece(Recipe(0, ()), (0,), (1,)),)}, {0: (Piece(Recipe(0, ()), (0,), (1,)),)}, same_mesh=True)
    assert distribute(relation, [x], [Shape("f32", (1,))])[0].tolist() == x.tolist()
    assert compare(relation, [x], [x]) == {0: 0.0}


def test_relative_difference() -> None:
    one = np.array([1.0, 100.0, math.inf, math.nan])
    assert relative_difference(one, one) == 0.0
    assert relative_difference(one, one + np.array([1.0, 0, 0, 0])) == pytest.approx(0.01)
    assert relative_difference(one, np.array([1.0, 100.0, 0.0, math.nan])) == math.inf
    assert relative_difference(one, np.array([1.0, math.nan, math.inf, math.nan])) == math.inf
    large = np.array([2**62], np.int64)
    assert relative_difference(large, large + 1) > 0.0
    assert relative_difference(np.zeros(1), np.full(1, 1e-18)) < 1e-9
