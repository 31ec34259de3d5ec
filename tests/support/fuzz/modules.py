"""Random modules that pass the shape check: every opcode, every type, dimensions of size 0 and 1, attributes at the edge of what is allowed.

An instruction is drawn, its shape inferred by the opcode's own shape rule; what the rule refuses is dropped. So whatever comes out
is what a reader would hand on, however odd.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from scalify.errors import HloError
from scalify.hlo.dtypes import DTYPES
from scalify.hlo.module import Computation, Module, Shape
from scalify.hlo.opcodes import OPCODES
from scalify.hlo.shapes import infer
from tests.support.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from numpy.typing import NDArray

COMMON = "f32 f32 f32 s32 s32 pred bf16 u8 u32 s4 s64 u64 c64 c128 f8e4m3fn f16 f64 s8 s16 u16".split()  # noqa: SIM905
SIZES = (0, 1, 1, 2, 2, 3, 4, 4, 6, 8)
MOST_ELEMENTS = 1 << 20
FLOATS = (0.0, 1.0, -1.0, 2.0, 0.5, 1e30, -1e30, math.inf, -math.inf, math.nan)
TOKEN = Shape("token")

Draw: TypeAlias = Callable[["Anything", str], None]
DRAWS: dict[str, Draw] = {}


def draws(*opcodes: str) -> Callable[[Draw], Draw]:
    """Declares how instructions of some opcodes are drawn."""

    def register(draw: Draw) -> Draw:
        DRAWS.update(dict.fromkeys(opcodes, draw))
        return draw

    return register


def tuple_of(*shapes: Shape) -> Shape:
    return Shape("tuple", (), shapes)


class Anything:
    """One computation in the making. ``values`` are those that operands are taken from."""

    def __init__(self, rnd: Random, devices: int, builder: Builder | None = None, depth: int = 0) -> None:
        self.rnd = rnd
        self.devices = devices
        self.b = builder or Builder()
        self.depth = depth
        self.values: list[int] = []

    def step(self) -> None:
        """One more instruction, if what is drawn is allowed."""
        opcode = self.rnd.choice(sorted(OPCODES))
        with suppress(IndexError):  # nothing to choose from
            DRAWS.get(opcode, elementwise)(self, opcode)

    # -- values ----------------------------------------------------------------------------------------------------------
    def shape(self, value: int) -> Shape:
        return self.b.shape(value)

    def keep(self, value: int) -> int:
        self.values.append(value)
        return value

    def pick(self, wanted: Callable[[Shape], bool]) -> int | None:
        """One of the values so far."""
        found = [v for v in self.values if wanted(self.shape(v))]
        return self.rnd.choice(found) if found else None

    def array(self, dtypes: Sequence[str] = (), dims: Sequence[int] | None = None, rank: int | None = None) -> int:
        """An array of one of some types: one that there is, or a new one."""
        if dims is None and rank is not None:
            dims = [self.rnd.choice(SIZES) for _ in range(rank)]
        found = self.pick(lambda s: s.is_array and (not dtypes or s.dtype in dtypes) and (dims is None or s.dims == tuple(dims)))
        if found is not None and self.rnd.random() < 0.8:
            return found
        return self.new(self.rnd.choice(dtypes or COMMON), self.dims() if dims is None else tuple(dims))

    def dims(self) -> tuple[int, ...]:
        return tuple(self.rnd.choice(SIZES) for _ in range(self.rnd.choice([0, 1, 2, 2, 3])))

    def new(self, dtype: str, dims: tuple[int, ...]) -> int:
        """A parameter, a constant, an iota or a constant spread out."""
        way = self.rnd.random()
        if way < 0.4 and not self.depth:
            return self.keep(self.b.parameter(dtype, dims))
        if way < 0.6 and math.prod(dims) < MOST_ELEMENTS >> 8:
            return self.constant(dtype, dims)
        if way < 0.7 and dims and dtype != "pred":
            return self.keep(self.b.add("iota", dtype, dims, iota_dimension=self.rnd.randrange(len(dims))))
        return self.keep(self.b.broadcast(self.constant(dtype, ()), dims))

    def constant(self, dtype: str, dims: tuple[int, ...]) -> int:
        """A literal, now and then one that the file has left out."""
        if self.rnd.random() < 0.03:
            return self.keep(self.b.add("constant", dtype, dims))
        with np.errstate(all="ignore"):
            return self.keep(self.b.constant(dtype, self._data(dtype, dims)))

    def _data(self, dtype: str, dims: tuple[int, ...]) -> NDArray[Any]:
        known, count = DTYPES[dtype], math.prod(dims)
        if dtype == "pred":
            row: list[Any] = [self.rnd.random() < 0.5 for _ in range(count)]
        elif known.minimum is not None and known.maximum is not None:
            ends = (known.minimum, known.maximum) if self.rnd.random() < 0.1 else (max(-3, known.minimum), 5)
            row = [self.rnd.randint(*ends) for _ in range(count)]
        else:
            row = [self.rnd.choice(FLOATS) for _ in range(count)]
        return np.array(row, dtype=object if known.minimum is not None and count else None).reshape(dims)

    def index(self) -> int:
        """A scalar index: known, known for each device, or data."""
        way, dtype = self.rnd.random(), self.rnd.choice(["s32", "s32", "u32", "s64", "s8"])
        if way < 0.4:
            return self.b.constant(dtype, self.rnd.choice([0, 0, 1, 2, 100]))
        if way < 0.6:
            return self.b.add("convert", dtype, (), [self.b.add(self.rnd.choice(["partition-id", "replica-id"]), "u32")])
        return self.array(["s32", "u32", "s64", "s8"], ())

    def some(self, count: int) -> tuple[int, ...]:
        """Some of the first numbers, in any order."""
        return tuple(self.rnd.sample(range(count), self.rnd.randint(0, count)))

    def order(self, count: int) -> tuple[int, ...]:
        return tuple(self.rnd.sample(range(count), count))

    # -- computations ------------------------------------------------------------------------------------------------------
    def reducer(self, dtypes: Sequence[str]) -> str:
        """One opcode for a single value; else something made of comparisons and choices."""
        if len(dtypes) == 1 and self.rnd.random() < 0.8:
            return self.b.reducer(self.rnd.choice(["add", "maximum", "minimum", "multiply", "and", "or", "xor", "subtract"]), dtypes[0])
        c = self.b.computation(f"reducer.{len(self.b.computations)}")
        left, right = ([c.parameter(t) for t in dtypes] for _ in range(2))
        first = c.add("compare", "pred", (), [left[0], right[0]], direction=self.rnd.choice(["GT", "LE", "EQ"]))
        found = []
        for t, x, y in zip(dtypes, left, right, strict=True):
            found.append(self.rnd.choice([x, y, c.add("select", t, (), [first, x, y]), c.constant(t, 1)]))
        return c.end(found[0] if len(found) == 1 else c.tuple(*found))

    def comparator(self, dtypes: Sequence[str]) -> str:
        c = self.b.computation(f"comparator.{len(self.b.computations)}")
        pairs = [(c.parameter(t), c.parameter(t)) for t in dtypes]
        return c.end(c.add("compare", "pred", (), self.rnd.choice(pairs), direction=self.rnd.choice(["GT", "LT"])))

    def function(self, parameters: Sequence[Shape], result: Shape | None = None) -> str:
        """Any computation of these parameters."""
        name = f"function.{len(self.b.computations)}.{self.rnd.randrange(1 << 30)}"
        inner = Anything(self.rnd, self.devices, self.b.computation(name), self.depth + 1)
        for shape in parameters:
            value = inner.keep(inner.b.parameter(shape))
            inner.values += [inner.b.get(value, n) for n in range(len(shape.elements))]
        for _ in range(self.rnd.randrange(4)):
            inner.step()
        root = (self.rnd.choice(inner.values) if inner.values else inner.constant("f32", ())) if result is None else inner.like(result)
        return inner.b.end(root)

    def like(self, shape: Shape) -> int:
        """A value of this shape."""
        if shape.is_tuple:
            return self.b.tuple(*[self.like(s) for s in shape.elements])
        if not shape.is_array:
            return self.b.add("after-all", TOKEN)
        found = self.pick(lambda s: s.dtype == shape.dtype and s.dims == shape.dims)
        return self.b.broadcast(self.b.constant(shape.dtype, 0), shape.dims) if found is None else found

    # -- instructions ------------------------------------------------------------------------------------------------------
    def add(self, opcode: str, shape: Shape, operands: Sequence[int], *, calls: Sequence[str] = (), **attributes: Any) -> int | None:
        """The instruction, with the shape that its rule infers (``shape`` where the rule leaves it free); None when it is refused."""
        position = self.b.add(opcode, shape, (), operands, calls=calls, **attributes)
        instruction = self.b.instructions[position]
        module = Module("m", dict(self.b.computations), "main", self.devices)
        try:
            found = infer(instruction, [self.shape(o) for o in operands], module, OPCODES[opcode])
        except HloError:
            found = None
            refused = True
        else:
            refused = (found or shape).size > MOST_ELEMENTS
        if refused:
            del self.b.instructions[position:]
            return None
        self.b.instructions[position] = replace(instruction, shape=found or shape)
        return self.keep(position)

    def bundle(self, operands: Sequence[int]) -> Shape:
        return self.shape(operands[0]) if len(operands) == 1 else tuple_of(*[self.shape(o) for o in operands])


def elementwise(g: Anything, opcode: str) -> None:
    """As many operands of one shape as the opcode takes at least, seldom of other shapes."""
    first = g.array()
    shape = g.shape(first)
    operands = [first]
    while len(operands) < OPCODES[opcode].arity[0]:
        operands.append(g.array([shape.dtype], shape.dims) if g.rnd.random() < 0.9 else g.array())
    g.add(opcode, shape, operands[: OPCODES[opcode].arity[0]])


def random_module(rnd: Random, devices: int) -> Module:
    """A module of up to a dozen instructions, with whatever results."""
    from tests.support.fuzz import opcodes  # noqa: F401, PLC0415 - registers itself

    g = Anything(rnd, devices)
    for _ in range(rnd.choice([1, 2, 3, 5, 10])):
        g.step()
    way = rnd.random()
    if way < 0.1 and g.values:
        roots: int | list[int] = rnd.choice(g.values)
    elif way < 0.15:
        roots = []
    elif way < 0.2 and g.values:
        roots = [rnd.choice(g.values) for _ in range(3)]
    else:
        roots = [v for v in dict.fromkeys(g.values) if g.shape(v).is_array][-12:] or [g.constant("f32", ())]
    return g.b.build(roots, num_partitions=devices)


def changed(rnd: Random, module: Module) -> Module:
    """The module with another opcode in one place, if it has an arithmetic operation."""
    entry = module.entry
    rows = list(entry.instructions)
    places = [n for n, i in enumerate(rows) if i.opcode in ("add", "multiply", "subtract", "maximum", "minimum")]
    if places:
        n = rnd.choice(places)
        rows[n] = replace(rows[n], opcode=rnd.choice(["add", "multiply", "maximum", "minimum"]))
    found = Computation(entry.name, tuple(rows), entry.root)
    return replace(module, computations={**module.computations, module.entry_name: found})
