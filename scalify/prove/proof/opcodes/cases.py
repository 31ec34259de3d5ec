"""The operations that each opcode is checked on: all small shapes and attributes. Elementwise opcodes and data movement."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.prove.proof.opcodes.operation import Operand, Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from scalify.prove.proof.opcodes.operation import Dims

SIZES = (1, 2, 3)
DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
CUTS = (0, 1)
UNARY = (
    "negate", "sqrt", "rsqrt", "exponential", "exponential-minus-one", "log", "log-plus-one", "abs", "sign", "floor", "ceil", "is-finite",
    "round-nearest-even", "round-nearest-afz", "logistic", "tanh", "tan", "sine", "cosine", "erf", "cbrt", "reduce-precision",
)  # fmt: skip
BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power", "atan2")
INTEGER_UNARY = ("negate", "abs", "sign", "not", "popcnt", "count-leading-zeros")
INTEGER_BINARY = (
    "add", "subtract", "multiply", "divide", "remainder", "power", "maximum", "minimum", "and", "or", "xor",
    "shift-left", "shift-right-logical", "shift-right-arithmetic",
)  # fmt: skip
RANGES = {"s4": range(-8, 8), "u4": range(16)}  #: types small enough for all pairs of values
FRACTIONS = tuple([Fraction(n, 4) for n in range(-11, 12)])


def real(*dims: int, literal: Any = None) -> Operand:
    """An operand of real numbers."""
    return Operand("f32", dims, literal)


def dims_up_to(rank: int, sizes: Sequence[int] = SIZES) -> Iterator[Dims]:
    """All dims of at most that rank."""
    for r in range(rank + 1):
        yield from itertools.product(sizes, repeat=r)


# -- elementwise -------------------------------------------------------------------------------------------------------------------
def elementwise(opcode: str) -> Iterator[Operation]:
    """Symbols on real types; all values, all constants and all ranges on the small integer types."""
    attributes = [{"direction": d} for d in DIRECTIONS] if opcode == "compare" else [{}]
    for a in attributes:
        yield from _on_reals(opcode, a)
        for dtype in RANGES:
            yield from _on_integers(opcode, dtype, a)
        yield from _on_truths(opcode, a)


def _on_reals(opcode: str, a: dict[str, Any]) -> Iterator[Operation]:
    result = ("pred", ()) if opcode in ("compare", "is-finite") else ("f32", ())
    if opcode in UNARY:
        precision = {"exponent_bits": 8, "mantissa_bits": 7} if opcode == "reduce-precision" else a
        yield Operation(opcode, (real(),), (result,), precision)
        yield Operation(opcode, (real(2, 3),), ((result[0], (2, 3)),), precision, devices=2, cut=1)
        if opcode in ("floor", "ceil", "round-nearest-even", "round-nearest-afz"):
            yield Operation(opcode, (Operand("f32", (), values=FRACTIONS),), (result,))
    if opcode in (*BINARY, "compare"):
        yield Operation(opcode, (real(), real()), (result,), a)
        yield Operation(opcode, (real(2, 3), real(2, 3)), ((result[0], (2, 3)),), a, devices=2, cut=1)
        for constant in (-3, -1, -0.5, 0, 0.5, 1, 2, 3):
            if not (opcode == "power" and constant < 0):
                yield Operation(opcode, (real(literal=constant), real()), (result,), a)
            yield Operation(opcode, (real(), real(literal=constant)), (result,), a)


def _on_integers(opcode: str, dtype: str, a: dict[str, Any]) -> Iterator[Operation]:
    values = tuple(RANGES[dtype])
    result = ("pred" if opcode == "compare" else dtype, ())
    free = Operand(dtype, (), values=values)
    if opcode in INTEGER_UNARY and not (opcode in ("abs", "sign") and dtype == "u4"):
        yield Operation(opcode, (free,), (result,))
    if opcode in (*INTEGER_BINARY, "compare"):
        yield Operation(opcode, (free, free), (result,), a)
        for low, high in ((values[0], values[-1]), (0, 7), (2, 5), (0, 1)):
            ranged = Operand(dtype, (), values=tuple(range(low, high + 1)), limits=(low, high))
            for constant in values:
                yield Operation(opcode, (ranged, Operand(dtype, (), constant)), (result,), a)
                yield Operation(opcode, (Operand(dtype, (), constant), ranged), (result,), a)


def _on_truths(opcode: str, a: dict[str, Any]) -> Iterator[Operation]:
    truth = Operand("pred", (), values=(0, 1))
    if opcode == "not":
        yield Operation(opcode, (truth,), (("pred", ()),))
    if opcode in ("and", "or", "xor", "compare", "maximum", "minimum"):
        for other in (truth, Operand("pred", (), 0), Operand("pred", (), 1)):
            yield Operation(opcode, (truth, other), (("pred", ()),), a)


def select() -> Iterator[Operation]:
    """Symbols, 0/1 values and constants in each place."""
    constants = (real(), real(literal=0), real(literal=1), real(literal=-2))
    for p in (Operand("pred", ()), Operand("pred", (), 0), Operand("pred", (), 1)):
        for x, y in itertools.product(constants, repeat=2):
            yield Operation("select", (p, x, y), (("f32", ()),))
    yield Operation("select", (Operand("pred", (2, 3)), real(2, 3), real(2, 3)), (("f32", (2, 3)),), devices=2, cut=1)
    for dtype, values in RANGES.items():
        free = Operand(dtype, (), values=tuple(values))
        yield Operation("select", (Operand("pred", (), values=(0, 1)), free, Operand(dtype, (), 3)), ((dtype, ()),))


def clamp() -> Iterator[Operation]:
    """Symbols and constants as ends, also ends the wrong way round."""
    ends = (real(), *[real(literal=c) for c in (-1, 0, 0.5, 2)])
    for low, high in itertools.product(ends, repeat=2):
        yield Operation("clamp", (low, real(), high), (("f32", ()),))
        yield Operation("clamp", (low, real(2), high), (("f32", (2,)),), devices=2)
    for dtype, values in RANGES.items():
        x = Operand(dtype, (), values=tuple(values))
        for least, most in itertools.product(values, repeat=2):
            yield Operation("clamp", (Operand(dtype, (), least), x, Operand(dtype, (), most)), ((dtype, ()),))


def convert() -> Iterator[Operation]:
    """Between all kinds of types, integers also with known ranges."""
    for before, after in itertools.product(("f32", "bf16", "pred", *RANGES, "s8", "u8"), repeat=2):
        if before in ("f32", "bf16"):
            values = FRACTIONS if after in (*RANGES, "s8", "u8") else ()
            yield Operation("convert", (Operand(before, (), values=values),), ((after, ()),))
            continue
        span = tuple(RANGES.get(before, range(2) if before == "pred" else range(-128, 128) if before == "s8" else range(256)))
        yield Operation("convert", (Operand(before, (), values=span),), ((after, ()),))
        if before != "pred":
            yield Operation("convert", (Operand(before, (), values=tuple(range(8)), limits=(0, 7)),), ((after, ()),))


def complex_parts(opcode: str) -> Iterator[Operation]:
    """Complex numbers are functions of their parts of which nothing is known."""
    if opcode == "complex":
        yield Operation("complex", (real(), real()), (("c64", ()),))
    else:
        yield Operation(opcode, (Operand("c64", ()),), (("f32", ()),))


# -- data movement -----------------------------------------------------------------------------------------------------------------
def constant() -> Iterator[Operation]:
    arrays = [np.float32(0), np.float32(2.5), np.arange(6, dtype="float32").reshape(2, 3), np.array([[0, 1], [1, 0]], dtype="bool")]
    arrays += [np.array([3, -1, 4, 1], dtype="int32"), np.ones((2, 3), dtype="float32"), np.array([[7, 7], [8, 8]], dtype="int32")]
    names = {"float32": "f32", "bool": "pred", "int32": "s32"}
    for array in map(np.asarray, arrays):
        yield Operation("constant", (), ((names[array.dtype.name], array.shape),), {"literal": array})


def iota() -> Iterator[Operation]:
    for dims in dims_up_to(3, (1, 2, 4)):
        for d in range(len(dims)):
            for dtype in ("s32", "f32", "u8"):
                yield Operation("iota", (), ((dtype, dims),), {"iota_dimension": d})


def device_id(opcode: str) -> Iterator[Operation]:
    for devices in (1, 2, 3, 4, 6):
        yield Operation(opcode, (), (("u32", ()),), devices=devices)


def broadcast() -> Iterator[Operation]:
    for dims in dims_up_to(3):
        for count in range(len(dims) + 1):
            for where in itertools.combinations(range(len(dims)), count):
                operand = real(*[dims[d] for d in where])
                for cut in CUTS:
                    yield Operation("broadcast", (operand,), (("f32", dims),), {"dimensions": where}, cut=cut)


def transpose() -> Iterator[Operation]:
    for dims in dims_up_to(3):
        for order in itertools.permutations(range(len(dims))):
            for cut, devices in ((0, 1), (1, 1), (0, 2)):
                result = tuple([dims[d] for d in order])
                yield Operation("transpose", (real(*dims),), (("f32", result),), {"dimensions": order}, devices=devices, cut=cut)


def shapes_of(count: int) -> list[Dims]:
    """All dims of rank 3 or less with so many elements, a size of 1 at most once."""
    factors = [n for n in range(1, count + 1) if count % n == 0]
    found = [d for r in range(1, 4) for d in itertools.product(factors, repeat=r) if _elements(d) == count and d.count(1) < 2]
    return found if count > 1 else [(), (1,), (1, 1)]


def _elements(dims: Iterable[int]) -> int:
    found = 1
    for n in dims:
        found *= n
    return found


def reshape(opcode: str) -> Iterator[Operation]:
    for count in (1, 2, 4, 6, 8, 12):
        shapes = shapes_of(count)
        for before, after in itertools.product(shapes, repeat=2):
            if opcode == "copy" and before != after:
                continue
            for cut in CUTS:
                yield Operation(opcode, (real(*before),), (("f32", after),), cut=cut)


def slices() -> Iterator[Operation]:
    for n in range(1, 7):
        for start, limit, stride in itertools.product(range(n), range(1, n + 1), (1, 2, 3)):
            if start < limit:
                yield _slice((n,), (start,), (limit,), (stride,), 0)
                yield _slice((n,), (start,), (limit,), (stride,), 2)
    for n, m in itertools.product((2, 3, 4), repeat=2):
        for a, b in itertools.product(range(2), repeat=2):
            yield _slice((n, m), (a, b), (n, m - (1 - b)), (1, 2), 1)


def _slice(dims: Dims, starts: Dims, limits: Dims, strides: Dims, cut: int) -> Operation:
    result = tuple([-(-(b - a) // t) for a, b, t in zip(starts, limits, strides, strict=True)])
    return Operation("slice", (real(*dims),), (("f32", result),), {"starts": starts, "limits": limits, "strides": strides}, cut=cut)


def reverse() -> Iterator[Operation]:
    for dims in dims_up_to(3):
        for chosen in itertools.product((False, True), repeat=len(dims)):
            where = tuple([d for d, c in enumerate(chosen) if c])
            for cut in CUTS:
                yield Operation("reverse", (real(*dims),), (("f32", dims),), {"dimensions": where}, cut=cut)


def concatenate() -> Iterator[Operation]:
    for count in (1, 2, 3):
        for sizes in itertools.product(SIZES, repeat=count):
            for cut in CUTS:
                yield Operation("concatenate", tuple([real(n) for n in sizes]), (("f32", (sum(sizes),)),), {"dimensions": (0,)}, cut=cut)
            for d, other in itertools.product((0, 1), (1, 2, 3)):
                parts = tuple([real(*((n, other) if d == 0 else (other, n))) for n in sizes])
                dims = (sum(sizes), other) if d == 0 else (other, sum(sizes))
                yield Operation("concatenate", parts, (("f32", dims),), {"dimensions": (d,)}, devices=2)


def pad() -> Iterator[Operation]:
    values = (real(literal=0), real(literal=7), real())
    ends = (-1, 0, 1, 2)
    for n, low, high, interior, value in itertools.product((1, 2, 3, 4), ends, ends, (0, 1, 2), values):
        size = n + (n - 1) * interior + low + high
        if size >= 1:
            yield Operation("pad", (real(n), value), (("f32", (size,)),), {"padding": ((low, high, interior),)}, cut=(n + low) % 2)
    for low, high, inner, value in itertools.product((-1, 0, 1), (0, 2), (0, 1), values):
        padding = ((low, high, inner), (1, -1, 0))
        dims = tuple([3 + 2 * c + a + b for a, b, c in padding])
        yield Operation("pad", (real(3, 3), value), (("f32", dims),), {"padding": padding}, devices=2)
