"""Elementwise opcodes and conversions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.hlo.dtypes import COMPLEX_OF, DTYPES
from tests.xla.generator import COMPLEX, FLOATS, INTEGERS, WIDE, finite

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.xla.generator import Generator


def float_unary(g: Generator) -> None:
    opcodes = (
        "abs cbrt ceil cosine erf exponential exponential-minus-one floor log log-plus-one logistic negate"
        " round-nearest-afz round-nearest-even rsqrt sign sine sqrt tan tanh"
    )
    x = g.value(g.pick(FLOATS), g.dims())
    for _ in range(3):
        g.like(g.pick(opcodes.split()), x)


def is_finite(g: Generator) -> None:
    x = g.value(g.pick(FLOATS), g.dims())
    g.add("is-finite", "pred", g.b.shape(x).dims, [x])


def integer_unary(g: Generator) -> None:
    x = g.value(g.pick(INTEGERS), g.dims())
    signed = ("abs", "sign") if DTYPES[g.b.shape(x).dtype].kind == "s" else ()
    for opcode in g.random.sample(("negate", "not", "popcnt", "count-leading-zeros", *signed), 3):
        g.like(opcode, x)


def float_binary(g: Generator) -> None:
    dtype, dims = g.pick(FLOATS), g.dims()
    for _ in range(3):
        opcode = g.pick(("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract"))
        g.like(opcode, g.value(dtype, dims), g.value(dtype, dims))


def integer_binary(g: Generator) -> None:
    dtype, dims = g.pick(INTEGERS), g.dims()
    opcodes = (
        "add and divide maximum minimum multiply or power remainder shift-left shift-right-arithmetic shift-right-logical subtract xor"
    )
    for _ in range(4):
        opcode = g.pick(opcodes.split())
        # XLA reads exponents as signed numbers and only six bits of them.
        least = -2 if DTYPES[dtype].kind == "s" else 0
        right = g.parameter(g.numbers.integers(least, 64, (g.devices, *dims)), dtype) if opcode == "power" else g.value(dtype, dims)
        g.like(opcode, g.value(dtype, dims), right)


def logic(g: Generator) -> None:
    dims = g.dims()
    for opcode in ("and", "or", "xor"):
        g.like(opcode, g.value("pred", dims), g.value("pred", dims))
    g.like("not", g.value("pred", dims))
    g.like(g.pick(("add", "multiply", "maximum", "minimum")), g.value("pred", dims), g.value("pred", dims))


def narrow(g: Generator) -> None:
    """Integers of four bits, each computed from parameters: in longer chains XLA keeps eight bits in between."""
    dtype, dims = g.pick(("s4", "u4")), g.dims()

    def fresh(kind: str) -> int:
        return g.parameter(g.data(kind, dims), kind)

    for opcode in g.random.sample(("add", "subtract", "multiply", "maximum", "minimum", "and", "xor"), 3):
        g.like(opcode, fresh(dtype), fresh(dtype))
    g.add("convert", g.pick((*INTEGERS, *WIDE)), dims, [fresh(dtype)])
    g.add("convert", dtype, dims, [fresh(g.pick(INTEGERS))])


def complex_numbers(g: Generator) -> None:
    part, dims = g.pick(WIDE), g.dims()
    x = g.add("complex", COMPLEX_OF[part], dims, [g.value(part, dims), g.value(part, dims)])
    y = g.value(COMPLEX_OF[part], dims)
    g.like(g.pick(("add", "subtract", "multiply", "divide")), x, y)
    g.like("exponential", x)
    g.like("negate", x)
    for opcode in ("real", "imag", "abs"):
        g.add(opcode, part, dims, [y])


def comparison(g: Generator) -> None:
    dtype = g.pick((*INTEGERS, *FLOATS, "pred"))
    dims = g.dims()
    more = {"type": "TOTALORDER"} if DTYPES[dtype].is_float and g.random.random() < 0.3 else {}
    for direction in g.random.sample(("EQ", "NE", "GE", "GT", "LE", "LT"), 3):
        g.add("compare", "pred", dims, [g.value(dtype, dims), g.value(dtype, dims)], direction=direction, **more)


def selection(g: Generator) -> None:
    dtype, dims = g.pick((*INTEGERS, *FLOATS, *COMPLEX, "pred")), g.dims()
    g.like("select", g.value("pred", g.pick((dims, ()))), g.value(dtype, dims), g.value(dtype, dims))
    dtype = g.pick((*INTEGERS, *FLOATS))
    x = g.value(dtype, dims)
    shape = g.pick((dims, ()))
    g.add("clamp", dtype, dims, [g.value(dtype, shape), x, g.value(dtype, shape)])


def conversion(g: Generator) -> None:
    dims = g.dims()
    for _ in range(3):
        source, target = (g.pick((*INTEGERS, *FLOATS, "pred")) for _ in range(2))
        g.add("convert", target, dims, [g.value(source, dims)])
    x = g.value("f32", dims)
    noise = g.parameter(g.data("u32", dims), "u32")
    g.add("stochastic-convert", "s32", dims, [g.parameter(finite(g.data("f32", dims)), "f32"), noise])
    g.add("reduce-precision", "f32", dims, [x], exponent_bits=g.pick((5, 8)), mantissa_bits=g.pick((3, 7, 10)))


def bits(g: Generator) -> None:
    dims = g.dims()
    one, other = g.random.sample(("s16", "u16", "f16", "bf16"), 2) if g.random.random() < 0.5 else g.random.sample(("s32", "u32", "f32"), 2)
    g.add("bitcast-convert", other, dims, [g.parameter(g.data(one, dims), one)])
    wide, narrow, ratio = g.pick((("s32", "u8", 4), ("s64", "s32", 2), ("f32", "u16", 2), ("u16", "s8", 2)))
    x = g.parameter(g.data(wide, dims), wide)
    y = g.add("bitcast-convert", narrow, (*dims, ratio), [x])
    g.add("bitcast-convert", wide, dims, [y])


STEPS: tuple[Callable[[Generator], None], ...] = (
    float_unary,
    is_finite,
    integer_unary,
    float_binary,
    integer_binary,
    logic,
    narrow,
    complex_numbers,
    comparison,
    selection,
    conversion,
    bits,
)
