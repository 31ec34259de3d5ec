"""What every reader checks when it puts a module together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scalify.errors import HloError
from scalify.hlo.order import topological_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Computation, Instruction


def check_names(names: Sequence[str]) -> None:
    """No two instructions of a computation have one name."""
    if len(set(names)) != len(names):
        name, _ = Counter(names).most_common(1)[0]
        raise HloError("two instructions have this name", name[:200])


def check_parameters(instructions: Sequence[Instruction]) -> None:
    """Parameters are numbered from 0 without gaps, once each."""
    numbers = sorted(i.attributes["index"] for i in instructions if i.opcode == "parameter")
    if numbers != list(range(len(numbers))):
        raise HloError(f"parameters must be numbered 0 to {len(numbers) - 1}, once each, not {numbers[:8]}")


def callees_first(computations: Sequence[Computation]) -> dict[str, Computation]:
    """The computations by name, each after those that it calls. HloError if they call each other in a cycle."""
    place = {c.name: k for k, c in enumerate(computations)}
    calls = [tuple({place[name] for i in c.instructions for name in i.calls}) for c in computations]
    sequence = topological_order(calls)
    if sequence is None:
        raise HloError("computations call each other in a cycle")
    return {computations[k].name: computations[k] for k in sequence}
