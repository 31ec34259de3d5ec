"""Opcodes that are kept as functions of which nothing else is known: what makes two of them equal.

Two applications may be one term only if they agree in everything that the result depends on, and must be one if they are written alike. Each variant
below differs from another in one respect, is written alike, or says the same in another way (through a transposition).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.module import Computation, Instruction, Module, Shape
from scalify.lift.custom_calls import Opaque, Registry
from scalify.lift.pair import lift_pair
from scalify.prove.proof.opcodes.checks import Tally
from scalify.relation.model import Mesh, Piece, Recipe, Relation

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from scalify.lift.layout import Value

DIMS = (2, 3)


@dataclass
class Variants:
    """One module with many applications; ``meant`` says what each result is, and ``turned`` which are written in another way."""

    instructions: list[Instruction] = field(default_factory=list)
    computations: dict[str, Computation] = field(default_factory=dict)
    meant: dict[int, Hashable] = field(default_factory=dict)
    turned: set[int] = field(default_factory=set)

    def add(self, opcode: str, shape: Shape, operands: tuple[int, ...] = (), calls: tuple[str, ...] = (), **attributes: Any) -> int:
        self.instructions.append(Instruction(f"v{len(self.instructions)}", opcode, shape, operands, attributes, calls))
        return len(self.instructions) - 1

    def parameters(self) -> tuple[int, int]:
        """Two operands of one shape."""
        found = [self.add("parameter", Shape("f32", DIMS), index=k) for k in range(2)]
        return found[0], found[1]

    def transposed(self, value: int) -> int:
        dims = self.instructions[value].shape.dims
        return self.add("transpose", Shape("f32", dims[::-1]), (value,), dimensions=(1, 0))

    def comparator(self, direction: str) -> str:
        body = [Instruction(f"a{k}", "parameter", Shape("f32"), (), {"index": k}) for k in range(2)]
        body.append(Instruction("c", "compare", Shape("pred"), (0, 1), {"direction": direction}))
        self.computations[direction] = Computation(direction, tuple(body), 2)
        return direction


def check_variants(variants: Variants) -> Tally:
    """Every pair of results: one value only if they mean the same, and surely if they are also written alike."""
    values = _lifted(variants)
    tally = Tally()
    for (a, one), (b, other) in itertools.combinations(values.items(), 2):
        same = _spelled(one) == _spelled(other)
        alike = (a in variants.turned) == (b in variants.turned)
        if same != (variants.meant[a] == variants.meant[b]) and (same or alike):
            what = "are one value" if same else "are two values"
            tally.wrong = f"{variants.meant[a]} and {variants.meant[b]} {what}"
            return tally
        tally.checked += 1
    return tally


def _spelled(value: Value) -> Hashable:
    """The views with what their slots are; the axes of two results need not be the same objects."""
    layout = value.layout
    return tuple([
        (view, repr([layout.alternative((d,), block) for d in range(len(layout.dims))]))
        for block, view in zip(layout.blocks, value.views, strict=True)
    ])  # fmt: skip


def _lifted(variants: Variants) -> dict[int, Value]:
    roots = list(variants.meant)
    shapes = tuple([variants.instructions[r].shape for r in roots])
    instructions = [*variants.instructions, Instruction("root", "tuple", Shape("tuple", (), shapes), tuple(roots))]
    parameters = [i for i in instructions if i.opcode == "parameter"]
    zero = Instruction("zero", "constant", Shape("f32"), (), {"literal": np.float32(0)})
    baseline = _module([*[Instruction(p.name, p.opcode, Shape("f32", (1, *p.shape.dims)), (), p.attributes) for p in parameters], zero], {})
    inputs = {k: (Piece(Recipe(k, ()), (0,) * p.shape.rank, p.shape.dims),) for k, p in enumerate(parameters)}
    relation = Relation(Mesh((("d", 1),), (0,)), inputs, {})
    registry = Registry(
        {"f": Opaque(lambda call: [((0, 0),)] * len(call.operands)), "g": Opaque(lambda call: [((0, 0),)] * len(call.operands))}
    )
    pair = lift_pair(baseline, [_module(instructions, variants.computations)], relation, registry=registry)
    return {r: pair.distributed.values[v] for r, v in zip(roots, pair.distributed.program.outputs, strict=True)}


def _module(instructions: list[Instruction], computations: dict[str, Computation]) -> Module:
    return Module("main", {**computations, "main": Computation("main", tuple(instructions), len(instructions) - 1)}, "main")


def sort() -> Variants:
    """Operand, dimension, direction and stability; each line along the dimension is sorted by itself."""
    v = Variants()
    operands = v.parameters()
    for k, d, direction, stable in itertools.product(range(2), range(2), ("LT", "GT"), (False, True)):
        calls = (v.comparator(direction),)
        for _ in range(2):
            plain = v.add("sort", Shape("f32", DIMS), (operands[k],), calls, dimensions=(d,), is_stable=stable)
            v.meant[plain] = ("sort", k, d, direction, stable)
        turned = v.add("sort", Shape("f32", DIMS[::-1]), (v.transposed(operands[k]),), calls, dimensions=(1 - d,), is_stable=stable)
        back = v.transposed(turned)
        v.meant[back] = ("sort", k, d, direction, stable)
        v.turned.add(back)
    return v


def topk() -> Variants:
    """Operand, number, direction; values and indices are results of their own."""
    v = Variants()
    operands = v.parameters()
    for k, count, largest in itertools.product(range(2), (1, 2), (False, True)):
        for _ in range(2):
            shapes = (Shape("f32", (2, count)), Shape("s32", (2, count)))
            both = v.add("topk", Shape("tuple", (), shapes), (operands[k],), k=count, largest=largest)
            for number, shape in enumerate(shapes):
                v.meant[v.add("get-tuple-element", shape, (both,), index=number)] = ("topk", k, count, largest, number)
    return v


def custom_call() -> Variants:
    """Target, operands in their order, and configuration; the registry says that dimension 0 is a batch."""
    v = Variants()
    operands = v.parameters()
    for target, order, config in itertools.product(("f", "g"), ((0, 1), (1, 0), (0, 0)), ("", "c")):
        for _ in range(2):
            places = tuple([operands[k] for k in order])
            call = v.add("custom-call", Shape("f32", DIMS), places, custom_call_target=target, backend_config=config)
            v.meant[call] = (target, order, config)
    return v


VARIANTS: dict[str, Callable[[], Variants]] = {"sort": sort, "topk": topk, "custom-call": custom_call}
