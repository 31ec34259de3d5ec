"""What custom calls mean: a registry from targets to semantics, and the pass that puts the semantics into a module.

A custom call is an identity, a decomposition into ordinary operations, or an opaque function of its operands whose batch dimensions are
declared. A target that is not registered stays as it is, so that its result is unknown and equal to nothing but itself: a call may
communicate, draw random numbers or keep state, and only somebody who knows it can say that it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING

from scalify.hlo.module import Computation, Instruction, Module, Shape
from scalify.hlo.semantics.custom_calls import BATCH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Call:
    """One custom call: its target, its ``backend_config`` (empty when absent), the shapes of its result and operands."""

    target: str
    config: str
    shape: Shape
    operands: tuple[Shape, ...]


class Refused(Exception):
    """The registered semantics does not fit this call; the call stays unknown."""


Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Body:
    """A decomposition for one call: a computation of the call's operands, and the computations that it calls, callees first."""

    computation: Computation
    helpers: tuple[Computation, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """Each result is the operand at its place."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A function of its operands and its ``backend_config`` alone, applied separately at every index of the batch dimensions.

    ``batch(call)`` gives for each operand pairs of (dimension of the operand, dimension of every result). :raises Refused: it does not fit.
    """

    batch: Callable[[Call], Sequence[Pairs]]


@dataclass(frozen=True, slots=True)
class Decomposition:
    """``body(call)`` computes what the call computes. :raises Refused: it does not fit."""

    body: Callable[[Call], Body]


Single = Identity | Opaque | Decomposition


@dataclass(frozen=True, slots=True)
class Choice:
    """The first option that fits; one with a ``backend_config`` is for calls with exactly this one."""

    options: tuple[tuple[str | None, Single], ...]


Semantics = Single | Choice


Writing = Callable[[Instruction, tuple[Shape, ...]], Body]


@dataclass(frozen=True)
class Registry:
    """Semantics by target; an entry of ``more`` replaces one of the same target.

    ``opcodes`` are HLO's own composite operations, each with the function that writes it out for an instruction and the shapes of its operands
    (:raises Refused: it stays as it is).
    """

    entries: Mapping[str, Semantics] = field(default_factory=dict)
    opcodes: Mapping[str, Writing] = field(default_factory=dict)

    def extended(self, more: Mapping[str, Semantics]) -> Registry:
        return replace(self, entries=MappingProxyType({**self.entries, **more}))


def batch_of(instruction: Instruction) -> Sequence[Pairs] | None:
    """The batch dimensions that :func:`expand` has given to an opaque call; None for a call that is not registered."""
    found: Sequence[Pairs] | None = instruction.attributes.get(BATCH)
    return found


def refusal(instruction: Instruction) -> str:
    """Why a custom call has no semantics, and what to do."""
    target = str(instruction.attributes.get("custom_call_target", ""))
    reason = instruction.attributes.get(_REFUSED)
    if reason is not None:
        return f"custom call {target}: {reason}"
    return f"custom call {target} is not registered; declare what it means in a file given with --custom-calls"


# no reader gives attributes with such names
_REFUSED = "custom call: refused"


def expand(module: Module, registry: Registry) -> Module:
    """The module with identities and decompositions in place of custom calls and composite operations. Positions, names and locations stay.

    Instructions of a decomposition carry the name and the location of the call that they stand for.
    """
    written = {"custom-call", *registry.opcodes}
    if not any(i.opcode in written for c in module.computations.values() for i in c.instructions):
        return module
    return _Expansion(module, registry).result()


class _Expansion:
    def __init__(self, module: Module, registry: Registry) -> None:
        self.module = module
        self.registry = registry
        self.added: dict[str, Computation] = {}

    def result(self) -> Module:
        computations = {name: self._computation(c) for name, c in self.module.computations.items()}
        return replace(self.module, computations={**self.added, **computations})

    def _computation(self, computation: Computation) -> Computation:
        rows = computation.instructions
        changed = tuple([self._instruction(i, rows) for i in rows])
        return computation if all(map(is_, changed, rows)) else replace(computation, instructions=changed)

    def _instruction(self, instruction: Instruction, rows: Sequence[Instruction]) -> Instruction:
        writing = self.registry.opcodes.get(instruction.opcode)
        if instruction.opcode != "custom-call" and writing is None:
            return instruction
        operands = tuple([rows[o].shape for o in instruction.operands])
        if writing is None:
            return self._call(instruction, operands)
        try:
            return self._inlined(instruction, writing(instruction, operands))
        except Refused:
            return instruction

    def _call(self, instruction: Instruction, operands: tuple[Shape, ...]) -> Instruction:
        a = instruction.attributes
        call = Call(str(a.get("custom_call_target", "")), str(a.get("backend_config", "")), instruction.shape, operands)
        semantics = self.registry.entries.get(call.target)
        if semantics is None:
            return instruction
        reason = "no entry is for its backend_config"
        for config, option in semantics.options if isinstance(semantics, Choice) else ((None, semantics),):
            if config is None or config == call.config:
                try:
                    return self._replaced(instruction, call, option)
                except Refused as refused:
                    reason = str(refused)
        return replace(instruction, attributes={**a, _REFUSED: reason})

    def _replaced(self, instruction: Instruction, call: Call, semantics: Single) -> Instruction:
        if isinstance(semantics, Identity):
            return _identity(instruction, call)
        if isinstance(semantics, Opaque):
            return replace(instruction, attributes={**instruction.attributes, BATCH: _checked(call, semantics.batch(call))})
        return self._inlined(instruction, semantics.body(call))

    def _inlined(self, instruction: Instruction, body: Body) -> Instruction:
        prefix = f"custom call {len(self.added)}: "
        names: dict[str, str] = {}
        for computation in (*body.helpers, body.computation):
            name = names[computation.name] = self._unused(prefix + computation.name)
            self.added[name] = _renamed(computation, names, instruction if computation is body.computation else None)
        return replace(instruction, opcode="call", attributes={}, calls=(names[body.computation.name],))

    def _unused(self, name: str) -> str:
        while name in self.module.computations:
            name += "'"
        return name


def _renamed(computation: Computation, names: Mapping[str, str], call: Instruction | None) -> Computation:
    rows = []
    for row in computation.instructions:
        calls = tuple([names[c] for c in row.calls])
        rows.append(replace(row, calls=calls) if call is None else replace(row, calls=calls, name=call.name, location=call.location))
    return Computation(names[computation.name], tuple(rows), computation.root)


def _identity(instruction: Instruction, call: Call) -> Instruction:
    if call.operands == (call.shape,):
        return replace(instruction, opcode="copy", attributes={})
    if call.shape.is_tuple and call.operands == call.shape.elements:
        return replace(instruction, opcode="tuple", attributes={})
    raise Refused("an identity needs a result of the operands' shapes")


def _checked(call: Call, batch: Sequence[Pairs]) -> tuple[Pairs, ...]:
    """The pairs for every operand, each naming dimensions of one size in the operand and in all results."""
    if len(batch) > len(call.operands):
        raise Refused(f"batch dimensions of operand {len(batch) - 1}, but it has {len(call.operands)} operands")
    results = call.shape.elements if call.shape.is_tuple else (call.shape,)
    for number, pairs in enumerate(batch):
        for d, r in pairs:
            sizes = {s.dims[k] if k < s.rank else None for s, k in ((call.operands[number], d), *[(s, r) for s in results])}
            if len(sizes) > 1 or None in sizes:
                raise Refused(f"dimension {d} of operand {number} is no batch dimension: dimension {r} of a result has another size")
        if len({d for d, _ in pairs}) < len(pairs) or len({r for _, r in pairs}) < len(pairs):
            raise Refused(f"batch dimensions of operand {number} are given twice")
    return (*[tuple(sorted(p)) for p in batch], *[()] * (len(call.operands) - len(batch)))
