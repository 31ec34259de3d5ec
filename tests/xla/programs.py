"""Random HLO programs over all opcodes that XLA executes on CPU: some steps of :mod:`tests.xla.families`, each of which adds instructions.

Every array that a step makes is a result of the program, so that a difference shows where it arises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.xla.families import contractions, devices, elementwise, movement, reductions
from tests.xla.generator import Generator

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from scalify.hlo.module import Module

    Array = npt.NDArray[Any]

STEPS: dict[str, Callable[[Generator], None]] = {
    step.__name__: step for family in (elementwise, movement, reductions, contractions, devices) for step in family.STEPS
}


@dataclass(frozen=True)
class Program:
    """A module, the data of its parameters ``[devices, *dims]``, and the families that it has instructions of."""

    module: Module
    inputs: tuple[Array, ...]
    devices: int
    families: tuple[str, ...]


def program(seed: int, steps: int = 4) -> Program:
    """The program of a seed."""
    g = Generator(seed)
    names = [g.pick(list(STEPS)) for _ in range(steps)]
    for name in names:
        STEPS[name](g)
    module = g.b.build(g.results, num_replicas=g.devices)
    return Program(module, tuple(g.inputs), g.devices, tuple(names))
