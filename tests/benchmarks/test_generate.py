"""The generated pairs are right: executed on a simulated mesh, the distributed program gives the baseline's outputs."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from benchmarks.generate import Config, generate
from benchmarks.serialize import serialize
from scalify.hlo.interpret import run
from scalify.hlo.load import load_bytes
from scalify.hlo.shapes import check
from scalify.relation.execute import compare, distribute
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve

if TYPE_CHECKING:
    import numpy.typing as npt

    from scalify.hlo.module import Shape

SMALL = Config(layers=2, hidden=40, intermediate=48, heads=8, kv_heads=2, head_dim=6, vocabulary=56, batch=3, sequence=5)


def draw(number: int, shape: Shape) -> npt.NDArray[Any]:
    """A baseline input ``[1, *dims]``: token ids for the first parameter, small weights for the others."""
    random = np.random.default_rng(number)
    if shape.dtype == "s32":
        return random.integers(0, SMALL.vocabulary, (1, *shape.dims), np.int32)
    return random.normal(0, 0.3, (1, *shape.dims))


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_generated_pairs_agree_in_execution(tp: int) -> None:
    baseline, distributed, text = generate(SMALL, tp)
    relation = resolve(parse(text), baseline, [distributed])
    inputs = list(starmap(draw, enumerate(baseline.parameter_shapes)))
    expected = run(baseline, inputs)
    found = run(distributed, distribute(relation, inputs, distributed.parameter_shapes), tp)
    assert max(compare(relation, expected, found).values()) < 1e-9


@pytest.mark.parametrize("tp", [1, 8])
def test_serialized_modules_are_read_back(tp: int) -> None:
    for module in generate(SMALL, tp)[:2]:
        read = load_bytes(serialize(module), "generated")
        check(read)
        assert [(i.opcode, i.shape, i.operands, i.calls, i.location) for i in read.entry.instructions] == [
            (i.opcode, i.shape, i.operands, i.calls, i.location) for i in module.entry.instructions
        ]
        assert read.num_partitions == module.num_partitions


@pytest.mark.parametrize("tp", [3, 16])
def test_impossible_meshes_are_refused(tp: int) -> None:
    with pytest.raises(ValueError, match=f"tp {tp}"):
        generate(SMALL, tp)
