"""One operation on parameters of its own: what is lifted, and what its definition is asked about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.dtypes import DTYPES
from scalify.hlo.module import Computation, Instruction, Module, Shape
from scalify.lift.pair import Pair, lift_pair
from scalify.relation.model import Assumption, Mesh, Piece, Recipe, Relation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Operand:
    """An array that the operation takes.

    ``literal``: a constant, nested tuples of numbers. ``values``: a parameter whose elements each take all of these numbers in turn; without, it is a
    parameter of symbols. ``limits``: the range that the relation assumes of it, ends included. ``alike``: the same on every device.
    """

    dtype: str
    dims: Dims
    literal: Any = None
    values: tuple[int | Fraction, ...] = ()
    limits: tuple[int, int] | None = None
    alike: bool = False


@dataclass(frozen=True)
class Operation:
    """An opcode with its operands and attributes on a number of devices; ``results`` are (type, dims). ``reducer``: the opcode of its computation;
    ``second`` hands its second parameter on, ``argmax`` and ``argmin`` take the greater (less) of two values with its index, the first of equal ones. ``cut``: where every dimension of the symbolic operands is cut in two by other operations, 0 for nowhere.
    """

    opcode: str
    operands: tuple[Operand, ...]
    results: tuple[tuple[str, Dims], ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    reducer: str = ""
    devices: int = 1
    cut: int = 0

    @property
    def dims(self) -> Dims:
        return self.results[0][1]

    @property
    def dtype(self) -> str:
        return self.results[0][0]

    def __str__(self) -> str:
        operands = ", ".join([f"{o.dtype}{list(o.dims)}" + (f"={o.literal}" if o.literal is not None else "") for o in self.operands])
        shown = ", ".join([f"{k}={getattr(v, 'groups', v)}" for k, v in self.attributes.items()] + ([self.reducer] if self.reducer else []))
        more = (f" on {self.devices} devices" if self.devices > 1 else "") + (f", cut at {self.cut}" if self.cut else "")
        return f"{self.opcode}({operands}) {{{shown}}} -> {list(self.dims)}{more}"


def lift(operation: Operation) -> Pair:
    """The operation lifted: results first among the outputs."""
    distributed, baseline = _module(operation), _baseline(operation)
    n = operation.devices
    inputs, assumptions = {}, []
    for number, operand in enumerate(_parameters(operation)):
        recipe = Recipe(number, ())
        inputs[number] = (Piece(recipe, (0,) * len(operand.dims), operand.dims),)
        if operand.limits is not None:
            assumptions.append(Assumption("baseline", number, operand.limits[0], operand.limits[1] + 1))
    relation = Relation(Mesh((("d", n),), tuple(range(n))), inputs, {}, assumptions=tuple(assumptions))
    return lift_pair(baseline, [distributed], relation)


def _parameters(operation: Operation) -> list[Operand]:
    return [o for o in operation.operands if o.literal is None]


def _baseline(operation: Operation) -> Module:
    """A module that has each parameter on all devices in one array."""
    dims = [(operation.devices, *o.dims) for o in _parameters(operation)]
    instructions = [
        Instruction(f"p{k}", "parameter", Shape(o.dtype, d), (), {"index": k})
        for k, (o, d) in enumerate(zip(_parameters(operation), dims, strict=True))
    ]
    root = Instruction("zero", "constant", Shape("f32"), (), {"literal": np.float32(0)})
    return _entry([*instructions, root], {}, 1)


def _module(operation: Operation) -> Module:
    instructions: list[Instruction] = []
    number = 0
    for k, o in enumerate(operation.operands):
        if o.literal is None:
            instructions.append(Instruction(f"x{k}", "parameter", Shape(o.dtype, o.dims), (), {"index": number}))
            number += 1
        else:
            literal = np.asarray(o.literal).astype(_STORED.get(o.dtype, "float32")).reshape(o.dims)
            instructions.append(Instruction(f"x{k}", "constant", Shape(o.dtype, o.dims), (), {"literal": literal}))
    computations: dict[str, Computation] = {}
    calls = (_reducer(operation, computations),) if operation.reducer else ()
    shapes = tuple([Shape(t, d) for t, d in operation.results])
    shape = shapes[0] if len(shapes) == 1 else Shape("tuple", (), shapes)
    places = tuple(range(len(operation.operands)))
    instructions.append(Instruction("result", operation.opcode, shape, places, operation.attributes, calls))
    roots = [len(places)]
    if len(shapes) > 1:
        roots = []
        for k, s in enumerate(shapes):
            roots.append(len(instructions))
            instructions.append(Instruction(f"element{k}", "get-tuple-element", s, (len(places),), {"index": k}))
    roots += _cuts(operation, instructions)
    elements = tuple([instructions[r].shape for r in roots])
    instructions.append(Instruction("root", "tuple", Shape("tuple", (), elements), tuple(roots)))
    return _entry(instructions, computations, operation.devices)


def _cuts(operation: Operation, instructions: list[Instruction]) -> list[int]:
    """Slices of the operands that cut their dimensions into two segments."""
    found = []
    for k, o in enumerate(operation.operands if operation.cut else ()):
        starts = [min(operation.cut, n - 1) for n in o.dims]
        if o.literal is None and not o.values and any(starts):
            shape = Shape(o.dtype, tuple([n - s for n, s in zip(o.dims, starts, strict=True)]))
            attributes = {"starts": tuple(starts), "limits": o.dims, "strides": (1,) * len(starts)}
            found.append(len(instructions))
            instructions.append(Instruction(f"cut{k}", "slice", shape, (k,), attributes))
    return found


def _reducer(operation: Operation, computations: dict[str, Computation]) -> str:
    if operation.reducer in ("argmax", "argmin"):
        computations["reducer"] = _with_index("GT" if operation.reducer == "argmax" else "LT")
        return "reducer"
    dtype = operation.dtype
    shape = Shape(dtype)
    body = [Instruction(f"a{k}", "parameter", shape, (), {"index": k}) for k in range(2)]
    if operation.reducer != "second":
        body.append(Instruction("r", operation.reducer, shape, (0, 1)))
    computations["reducer"] = Computation("reducer", tuple(body), len(body) - 1)
    return "reducer"


def _with_index(direction: str) -> Computation:
    """``(a, i, b, j)`` to ``(a, i)`` where a wins, or is equal to b and i < j; else ``(b, j)``."""
    value, index, truth = Shape("f32"), Shape("s32"), Shape("pred")
    rows: list[tuple[str, Shape, tuple[int, ...], dict[str, Any]]] = [
        ("parameter", s, (), {"index": k}) for k, s in enumerate((value, index, value, index))
    ]
    rows += [("compare", truth, (0, 2), {"direction": direction}), ("compare", truth, (0, 2), {"direction": "EQ"})]
    rows += [("compare", truth, (1, 3), {"direction": "LT"}), ("and", truth, (5, 6), {}), ("or", truth, (4, 7), {})]
    rows += [("select", value, (8, 0, 2), {}), ("select", index, (8, 1, 3), {}), ("tuple", Shape("tuple", (), (value, index)), (9, 10), {})]
    body = [Instruction(f"r{k}", opcode, shape, places, given) for k, (opcode, shape, places, given) in enumerate(rows)]
    return Computation("reducer", tuple(body), len(body) - 1)


def _entry(instructions: Sequence[Instruction], computations: Mapping[str, Computation], devices: int) -> Module:
    entry = Computation("main", tuple(instructions), len(instructions) - 1)
    return Module("main", {**computations, "main": entry}, "main", num_partitions=devices)


_STORED = {
    name: {"pred": "bool", "s": "int64", "u": "uint64"}[t.kind]
    if t.bits == 64 or t.kind == "pred"
    else f"{'u' * (t.kind == 'u')}int{max(8, t.bits)}"
    for name, t in DTYPES.items()
    if t.kind in ("pred", "s", "u")
}
