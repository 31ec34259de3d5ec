"""Random programs on one device and on meshes: every value lifted is the value executed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lift.expressions import random_of
from tests.lift.operations import OPERATIONS, grow
from tests.lift.programs import MESHES, Program
from tests.lift.support import check


def run(program: Program) -> None:
    check(program.b, program.inputs, program.mesh, program.specs, device_ids=program.ids, ranges=program.ranges, opaque=True)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 32), st.sampled_from(MESHES), st.integers(5, 30))
def test_random_programs(seed: int, mesh: dict[str, int], steps: int) -> None:
    program = Program(random_of(seed), mesh)
    program.start()
    grow(program, steps)
    run(program)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_each_operation(name: str) -> None:
    """Each operation on fresh parameters, on values that were cut and moved, and on its own results."""
    for seed, mesh in enumerate(MESHES * 2):
        program = Program(random_of(seed), mesh)
        program.start()
        for before in ("reshape", "transpose", "concatenate", name, "slice_", name, name):
            OPERATIONS[before](program)
        run(program)
