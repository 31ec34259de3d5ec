"""What every reader checks when it puts a module together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scalify.errors import HloError
from scalify.hlo.order import topological_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scalify.hlo.module import Computation, Instruction


def printable(text: str, limit: int = 200) -> str:
    """``text`` from a file, safe in a message or on a terminal: on one line, no control or invisible characters, at most ``limit`` long."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return (
        cut if cut.isprintable() else "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in cut)
    )


def check_names(names: Sequence[str]) -> None:
    """No two instructions of a computation have one name."""
    if len(set(names)) != len(names):
        name, _ = Counter(names).most_common(1)[0]
        raise HloError("two instructions have this name", printable(name))


def check_parameters(instructions: Sequence[Instruction]) -> None:
    """Parameters are numbered from 0 without gaps, once each."""
    numbers = sorted(i.attributes.get("index", -1) for i in instructions if i.opcode == "parameter")
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


def checked_aliases(
    entries: Iterable[tuple[tuple[int, ...], int, tuple[int, ...]]], entry: Computation
) -> dict[tuple[int, ...], tuple[int, tuple[int, ...]]]:
    """:attr:`Module.aliases` from (output index path, parameter number, parameter index path)."""
    aliases: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = {}
    for output, parameter, path in entries:
        if not 0 <= parameter < len(entry.parameters):
            raise HloError(f"output {list(output)} is aliased with parameter {parameter}, which does not exist")
        if output in aliases:
            raise HloError(f"output {list(output)} is aliased twice")
        aliases[output] = (parameter, path)
    return aliases
