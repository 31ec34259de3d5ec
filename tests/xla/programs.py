"""Random HLO programs over all opcodes that XLA executes on CPU: one function of :data:`STEPS` for each family, which adds instructions.

Every array that a step makes is a result of the program, so that a difference shows where it arises.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.dtypes import COMPLEX_OF, DTYPES
from scalify.hlo.module import Module, Shape
from scalify.hlo.window import ConvDims, WindowDimension
from tests.support.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[Any]

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
FLOATS = ("f32", "f64", "f32", "f64", "f16", "bf16")
WIDE = ("f32", "f64")
COMPLEX = ("c64", "c128")
MOST_DEVICES = 4
EXTREMES = ("add", "multiply", "maximum", "minimum")


@dataclass(frozen=True)
class Program:
    """A module, the data of its parameters ``[devices, *dims]``, and the families that it has instructions of."""

    module: Module
    inputs: tuple[Array, ...]
    devices: int
    families: tuple[str, ...]


class Generator:
    """A program in the making."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.devices = self.random.choice((1, 1, 2, MOST_DEVICES))
        self.b = Builder()
        self.inputs: list[Array] = []
        self.results: list[int] = []
        self.helpers = 0

    # -- choices ---------------------------------------------------------------------------------------------------------
    def pick(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def size(self, low: int = 1, high: int = 4) -> int:
        return self.random.randint(low, high)

    def dims(self, low: int = 0, high: int = 3) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.size(low, high)))

    def name(self, what: str) -> str:
        self.helpers += 1
        return f"{what}_{self.helpers}"

    # -- values ----------------------------------------------------------------------------------------------------------
    def value(self, dtype: str, dims: Sequence[int]) -> int:
        """A result of this shape, or a new parameter."""
        found = [v for v in self.results if self.b.shape(v) == Shape(dtype, tuple(dims))]
        if found and self.random.random() < 0.7:
            return int(self.pick(found))
        return self.parameter(self.data(dtype, dims), dtype)

    def parameter(self, data: Array, dtype: str) -> int:
        self.inputs.append(data)
        return self.b.parameter(dtype, data.shape[1:])

    def data(self, dtype: str, dims: Sequence[int]) -> Array:
        shape = (self.devices, *dims)
        kind = DTYPES[dtype]
        if dtype == "pred":
            return self.numbers.integers(0, 2, shape).astype(np.bool_)
        if kind.is_integer:
            return self._integers(dtype, shape)
        if kind.is_complex:
            return self.numbers.integers(-64, 64, shape) / 16 + 1j * self.numbers.integers(-64, 64, shape) / 16
        return self._floats(shape)

    def _integers(self, dtype: str, shape: tuple[int, ...]) -> Array:
        kind = DTYPES[dtype]
        low, high = kind.minimum or 0, kind.maximum or 0
        if self.random.random() < 0.5:
            low, high = max(low, -9), min(high, 9)
        held = np.int64 if kind.kind == "s" else np.uint64
        drawn = self.numbers.integers(low, high, shape, dtype=held, endpoint=True)
        return np.asarray(np.where(self.numbers.random(shape) < 0.1, held(kind.minimum or 0), drawn))

    def _floats(self, shape: tuple[int, ...]) -> Array:
        """Multiples of 2^-4 (which every type holds), sometimes with values that are no numbers."""
        drawn = self.numbers.integers(-64, 64, shape) / 16
        if self.random.random() < 0.1:
            odd = self.numbers.choice(np.array([np.inf, -np.inf, np.nan, 0.0]), shape)
            drawn = np.where(self.numbers.random(shape) < 0.3, odd, drawn)
        return np.asarray(drawn)

    def indices(self, high: int, dims: Sequence[int], dtype: str = "s32") -> int:
        """Positions, some of them outside."""
        return self.parameter(self.numbers.integers(-1, high + 2, (self.devices, *dims)), dtype)

    def add(self, opcode: str, dtype: str | Shape, dims: Sequence[int] = (), operands: Sequence[int] = (), **more: Any) -> int:
        value = self.b.add(opcode, dtype, dims, operands, **more)
        if self.b.shape(value).is_array:
            self.results.append(value)
        return value

    def like(self, opcode: str, *operands: int, **more: Any) -> int:
        return self.add(opcode, self.b.shape(operands[-1]), (), operands, **more)

    def parts(self, value: int) -> None:
        """The elements of a tuple as results."""
        for n in range(len(self.b.shape(value).elements)):
            self.results.append(self.b.get(value, n))

    def zero(self, dtype: str, value: float = 0) -> int:
        return self.b.constant(dtype, value)


STEPS: dict[str, Callable[[Generator], None]] = {}


def step(function: Callable[[Generator], None]) -> Callable[[Generator], None]:
    """Registers a family under the function's name."""
    STEPS[function.__name__] = function
    return function


def program(seed: int, steps: int = 4) -> Program:
    """The program of a seed."""
    g = Generator(seed)
    names = [g.pick(list(STEPS)) for _ in range(steps)]
    for name in names:
        STEPS[name](g)
    module = g.b.build(g.results, num_replicas=g.devices)
    return Program(module, tuple(g.inputs), g.devices, tuple(names))


# -- elementwise -----------------------------------------------------------------------------------------------------------
@step
def float_unary(g: Generator) -> None:
    opcodes = (
        "abs cbrt ceil cosine erf exponential exponential-minus-one floor log log-plus-one logistic negate"
        " round-nearest-afz round-nearest-even rsqrt sign sine sqrt tan tanh"
    )
    x = g.value(g.pick(FLOATS), g.dims())
    for _ in range(3):
        g.like(g.pick(opcodes.split()), x)


@step
def is_finite(g: Generator) -> None:
    x = g.value(g.pick(FLOATS), g.dims())
    g.add("is-finite", "pred", g.b.shape(x).dims, [x])


@step
def integer_unary(g: Generator) -> None:
    x = g.value(g.pick(INTEGERS), g.dims())
    signed = ("abs", "sign") if DTYPES[g.b.shape(x).dtype].kind == "s" else ()
    for opcode in g.random.sample(("negate", "not", "popcnt", "count-leading-zeros", *signed), 3):
        g.like(opcode, x)


@step
def float_binary(g: Generator) -> None:
    dtype, dims = g.pick(FLOATS), g.dims()
    for _ in range(3):
        opcode = g.pick(("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract"))
        g.like(opcode, g.value(dtype, dims), g.value(dtype, dims))


@step
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


@step
def logic(g: Generator) -> None:
    dims = g.dims()
    for opcode in ("and", "or", "xor"):
        g.like(opcode, g.value("pred", dims), g.value("pred", dims))
    g.like("not", g.value("pred", dims))


@step
def complex_numbers(g: Generator) -> None:
    part, dims = g.pick(WIDE), g.dims()
    x = g.add("complex", COMPLEX_OF[part], dims, [g.value(part, dims), g.value(part, dims)])
    y = g.value(COMPLEX_OF[part], dims)
    g.like(g.pick(("add", "subtract", "multiply")), x, y)
    g.like("negate", x)
    for opcode in ("real", "imag", "abs"):
        g.add(opcode, part, dims, [y])


@step
def comparison(g: Generator) -> None:
    dtype = g.pick((*INTEGERS, *FLOATS, "pred"))
    dims = g.dims()
    more = {"type": "TOTALORDER"} if DTYPES[dtype].is_float and g.random.random() < 0.3 else {}
    for direction in g.random.sample(("EQ", "NE", "GE", "GT", "LE", "LT"), 3):
        g.add("compare", "pred", dims, [g.value(dtype, dims), g.value(dtype, dims)], direction=direction, **more)


@step
def selection(g: Generator) -> None:
    dtype, dims = g.pick((*INTEGERS, *FLOATS, *COMPLEX, "pred")), g.dims()
    g.like("select", g.value("pred", g.pick((dims, ()))), g.value(dtype, dims), g.value(dtype, dims))
    dtype = g.pick((*INTEGERS, *FLOATS))
    x = g.value(dtype, dims)
    shape = g.pick((dims, ()))
    g.add("clamp", dtype, dims, [g.value(dtype, shape), x, g.value(dtype, shape)])


@step
def conversion(g: Generator) -> None:
    dims = g.dims()
    for _ in range(3):
        source, target = (g.pick((*INTEGERS, *FLOATS, "pred")) for _ in range(2))
        g.add("convert", target, dims, [g.value(source, dims)])
    x = g.value("f32", dims)
    g.add("reduce-precision", "f32", dims, [x], exponent_bits=g.pick((5, 8)), mantissa_bits=g.pick((3, 7, 10)))


@step
def bits(g: Generator) -> None:
    dims = g.dims()
    one, other = g.random.sample(("s16", "u16", "f16", "bf16"), 2) if g.random.random() < 0.5 else g.random.sample(("s32", "u32", "f32"), 2)
    g.add("bitcast-convert", other, dims, [g.parameter(g.data(one, dims), one)])
    wide, narrow, ratio = g.pick((("s32", "u8", 4), ("s64", "s32", 2), ("f32", "u16", 2), ("u16", "s8", 2)))
    x = g.parameter(g.data(wide, dims), wide)
    y = g.add("bitcast-convert", narrow, (*dims, ratio), [x])
    g.add("bitcast-convert", wide, dims, [y])


# -- movement --------------------------------------------------------------------------------------------------------------
def any_array(g: Generator, low: int = 0, high: int = 3) -> int:
    return g.value(g.pick((*INTEGERS, *FLOATS, *COMPLEX, "pred")), g.dims(low, high))


@step
def broadcasts(g: Generator) -> None:
    x = any_array(g, 0, 2)
    shape = g.b.shape(x)
    rank = shape.rank + g.size(0, 2)
    dimensions = tuple(sorted(g.random.sample(range(rank), shape.rank)))
    target = [g.size() for _ in range(rank)]
    for d, n in zip(dimensions, shape.dims, strict=True):
        target[d] = n
    g.add("broadcast", shape.dtype, target, [x], dimensions=dimensions)


@step
def reshapes(g: Generator) -> None:
    x = any_array(g)
    shape = g.b.shape(x)
    g.add("reshape", shape.dtype, (shape.size,), [x])
    order = g.random.sample(range(shape.rank), shape.rank)
    g.add("transpose", shape.dtype, [shape.dims[d] for d in order], [x], dimensions=tuple(order))
    g.like("reverse", x, dimensions=tuple(sorted(g.random.sample(range(shape.rank), g.size(0, shape.rank)))))
    g.like("copy", x)


@step
def joins(g: Generator) -> None:
    x = any_array(g, 1)
    shape = g.b.shape(x)
    d = g.random.randrange(shape.rank)
    other = tuple(g.size() if k == d else n for k, n in enumerate(shape.dims))
    joined = tuple(n + other[k] if k == d else n for k, n in enumerate(shape.dims))
    g.add("concatenate", shape.dtype, joined, [x, g.value(shape.dtype, other)], dimensions=(d,))


@step
def slices(g: Generator) -> None:
    x = any_array(g, 1)
    shape = g.b.shape(x)
    starts = tuple(g.random.randrange(n) for n in shape.dims)
    limits = tuple(g.random.randint(s, n) for s, n in zip(starts, shape.dims, strict=True))
    strides = tuple(g.size(1, 2) for _ in shape.dims)
    dims = [-((s - e) // k) for s, e, k in zip(starts, limits, strides, strict=True)]
    g.add("slice", shape.dtype, dims, [x], starts=starts, limits=limits, strides=strides)


@step
def pads(g: Generator) -> None:
    x = any_array(g, 1, 2)
    shape = g.b.shape(x)
    padding = tuple((g.size(-1, 2), g.size(-1, 2), g.size(0, 1)) for _ in shape.dims)
    dims = [max(0, n + low + high + (n - 1) * inner) for n, (low, high, inner) in zip(shape.dims, padding, strict=True)]
    g.add("pad", shape.dtype, dims, [x, g.value(shape.dtype, ())], padding=padding)


@step
def iotas(g: Generator) -> None:
    dims = g.dims(1)
    g.add("iota", g.pick((*INTEGERS, *FLOATS, *COMPLEX)), dims, (), iota_dimension=g.random.randrange(len(dims)))


@step
def dynamic_slices(g: Generator) -> None:
    x = any_array(g, 1)
    shape = g.b.shape(x)
    sizes = tuple(g.random.randint(1, n) for n in shape.dims)
    starts = [g.indices(n, ()) for n in shape.dims]
    cut = g.add("dynamic-slice", shape.dtype, sizes, [x, *starts], dynamic_slice_sizes=sizes)
    g.add("dynamic-update-slice", shape.dtype, shape.dims, [x, cut, *[g.indices(n, ()) for n in shape.dims]])


# -- indexing --------------------------------------------------------------------------------------------------------------
def index_numbers(g: Generator, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which dimensions are indexed, and which have a window of one."""
    mapped = tuple(g.random.sample(range(rank), g.size(1, rank)))
    return mapped, tuple(sorted(d for d in mapped if g.random.random() < 0.6))


@step
def gathers(g: Generator) -> None:
    x = any_array(g, 1)
    shape = g.b.shape(x)
    mapped, collapsed = index_numbers(g, shape.rank)
    sizes = tuple(1 if d in collapsed else g.random.randint(1, n) for d, n in enumerate(shape.dims))
    batch, window = g.dims(0, 2), [n for d, n in enumerate(sizes) if d not in collapsed]
    rank = len(batch) + len(window)
    offsets = tuple(sorted(g.random.sample(range(rank), len(window))))
    outer, inner = iter(batch), iter(window)
    g.add(
        "gather", shape.dtype, [next(inner) if d in offsets else next(outer) for d in range(rank)],
        [x, g.indices(max(shape.dims), (*batch, len(mapped)))], offset_dims=offsets, collapsed_slice_dims=collapsed,
        start_index_map=mapped, index_vector_dim=len(batch), slice_sizes=sizes,
    )  # fmt: skip


@step
def scatters(g: Generator) -> None:
    x = g.value(g.pick((*INTEGERS, *WIDE)), g.dims(1))
    shape = g.b.shape(x)
    mapped, inserted = index_numbers(g, shape.rank)
    batch = g.dims(0, 2)
    window = [g.random.randint(1, n) for d, n in enumerate(shape.dims) if d not in inserted]
    rank = len(batch) + len(window)
    places = tuple(sorted(g.random.sample(range(rank), len(window))))
    outer, inner = iter(batch), iter(window)
    updates = g.value(shape.dtype, [next(inner) if d in places else next(outer) for d in range(rank)])
    g.add(
        "scatter", shape.dtype, shape.dims, [x, g.indices(max(shape.dims), (*batch, len(mapped))), updates],
        calls=[reducer(g, shape.dtype)], update_window_dims=places, inserted_window_dims=inserted,
        scatter_dims_to_operand_dims=mapped, index_vector_dim=len(batch),
    )  # fmt: skip


def comparator(g: Generator, dtypes: Sequence[str], direction: str) -> str:
    inner = g.b.computation(g.name("comparator"))
    first = [inner.parameter(d) for d in dtypes for _ in range(2)][:2]
    return inner.end(inner.add("compare", "pred", (), first, direction=direction))


@step
def sorts(g: Generator) -> None:
    dims = g.dims(1)
    dtypes = [g.pick((*INTEGERS, *WIDE)) for _ in range(g.size(1, 2))]
    # With NaN the comparison is no order.
    keys = [g.parameter(finite(g.data(d, dims)) if d in WIDE else g.data(d, dims), d) for d in dtypes]
    shape = Shape("tuple", (), tuple(Shape(d, dims) for d in dtypes)) if len(keys) > 1 else Shape(dtypes[0], dims)
    calls = [comparator(g, dtypes, g.pick(("LT", "GT")))]
    result = g.add("sort", shape, (), keys, calls=calls, dimensions=(g.random.randrange(len(dims)),), is_stable=True)
    if len(keys) > 1:
        g.parts(result)


# -- reductions ------------------------------------------------------------------------------------------------------------
def reducer(g: Generator, dtype: str) -> str:
    opcodes = ["add", "multiply", "maximum", "minimum"] + ["and", "or", "xor"] * DTYPES[dtype].is_integer
    return g.b.reducer(g.pick(["and", "or", "xor"] if dtype == "pred" else opcodes), dtype)


@step
def reductions(g: Generator) -> None:
    x = g.value(g.pick((*INTEGERS, *FLOATS, "pred")), g.dims(1))
    shape = g.b.shape(x)
    axes = tuple(sorted(g.random.sample(range(shape.rank), g.size(1, shape.rank))))
    dims = [n for d, n in enumerate(shape.dims) if d not in axes]
    g.add("reduce", shape.dtype, dims, [x, g.value(shape.dtype, ())], calls=[reducer(g, shape.dtype)], dimensions=axes)


@step
def arg_extremes(g: Generator) -> None:
    """The usual reducer of two operands: the greatest value and its first position."""
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims(1, 2)
    inner = g.b.computation(g.name("arg"))
    a, i, c, j = inner.parameter(dtype), inner.parameter("s32"), inner.parameter(dtype), inner.parameter("s32")
    greater = inner.add("compare", "pred", (), [a, c], direction="GT")
    first = inner.add(
        "and",
        "pred",
        (),
        [inner.add("compare", "pred", (), [a, c], direction="EQ"), inner.add("compare", "pred", (), [i, j], direction="LT")],
    )
    keep = inner.like("or", greater, first)
    calls = [inner.end(inner.tuple(inner.like("select", keep, a, c), inner.like("select", keep, i, j)))]
    places = g.b.add("iota", "s32", dims, (), iota_dimension=0)
    low = DTYPES[dtype].minimum if DTYPES[dtype].is_integer else -math.inf
    shape = Shape("tuple", (), (Shape(dtype, dims[1:]), Shape("s32", dims[1:])))
    x = g.value(dtype, dims)
    g.parts(g.add("reduce", shape, (), [x, places, g.zero(dtype, low or 0), g.zero("s32")], calls=calls, dimensions=(0,)))


def positions(w: WindowDimension, size: int) -> int:
    dilated = (size - 1) * w.lhs_dilate + 1 + w.pad_low + w.pad_high
    return max(0, (dilated - (w.size - 1) * w.rhs_dilate - 1) // w.stride + 1)


@step
def windows(g: Generator) -> None:
    x = g.value(g.pick((*INTEGERS, *WIDE)), g.dims(1, 2))
    shape = g.b.shape(x)
    window = tuple(WindowDimension(g.size(1, 3), g.size(1, 2), g.size(0, 2), g.size(0, 2), g.size(1, 2), g.size(1, 2)) for _ in shape.dims)
    dims = [positions(w, n) for w, n in zip(window, shape.dims, strict=True)]
    g.add("reduce-window", shape.dtype, dims, [x, g.value(shape.dtype, ())], calls=[reducer(g, shape.dtype)], window=window)


@step
def select_and_scatter(g: Generator) -> None:
    dtype, dims = g.pick(("s32", "f32", "f64")), g.dims(1, 2)
    window = tuple(WindowDimension(g.size(1, 3), g.size(1, 2), g.size(0, 1), g.size(0, 1)) for _ in dims)
    source = g.value(dtype, [positions(w, n) for w, n in zip(window, dims, strict=True)])
    inner = g.b.computation(g.name("select"))
    a, c = inner.parameter(dtype), inner.parameter(dtype)
    calls = [inner.end(inner.add("compare", "pred", (), [a, c], direction="GE")), g.b.reducer("add", dtype)]
    g.add("select-and-scatter", dtype, dims, [g.value(dtype, dims), source, g.zero(dtype)], calls=calls, window=window)


@step
def maps(g: Generator) -> None:
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims()
    inner = g.b.computation(g.name("map"))
    a, c = inner.parameter(dtype), inner.parameter(dtype)
    calls = [inner.end(inner.like("add", inner.like("multiply", a, c), a))]
    g.add("map", dtype, dims, [g.value(dtype, dims), g.value(dtype, dims)], calls=calls, dimensions=tuple(range(len(dims))))


# -- contractions ----------------------------------------------------------------------------------------------------------
@step
def dots(g: Generator) -> None:
    dtype = g.pick((*INTEGERS, *FLOATS, *COMPLEX))
    names = [[f"{k}{n}" for n in range(g.size(0, top))] for k, top in (("b", 1), ("c", 2), ("m", 1), ("n", 1))]
    sizes = {n: g.size() for group in names for n in group}
    batch, contracted, left_free, right_free = names
    left, right = (
        g.random.sample([*batch, *contracted, *free], len(batch) + len(contracted) + len(free)) for free in (left_free, right_free)
    )
    out = [sizes[n] for n in (*batch, *left_free, *right_free)]
    g.add(
        "dot", dtype, out, [g.value(dtype, [sizes[n] for n in left]), g.value(dtype, [sizes[n] for n in right])],
        lhs_batch_dims=tuple(map(left.index, batch)), rhs_batch_dims=tuple(map(right.index, batch)),
        lhs_contracting_dims=tuple(map(left.index, contracted)), rhs_contracting_dims=tuple(map(right.index, contracted)),
    )  # fmt: skip


@step
def convolutions(g: Generator) -> None:
    dtype, rank = g.pick(("f32", "f64", "s32", "f32")), g.size(1, 2)
    groups, batches = g.pick(((1, 1), (2, 1), (1, 2)))
    window = tuple(
        WindowDimension(g.size(1, 3), g.size(1, 2), g.size(0, 2), g.size(0, 2), g.size(1, 2), g.size(1, 2), g.pick((True, False)))
        for _ in range(rank)
    )
    spatial = [g.size(2, 4) for _ in window]
    batch, inputs, outputs = 2 * batches, 2 * groups, 2 * groups * batches
    out = [positions(w, n) for w, n in zip(window, spatial, strict=True)]
    axes = tuple(range(2, rank + 2))
    dims = ConvDims(0, 1, axes, 1, 0, axes, 0, 1, axes)
    # XLA leaves padding out, which shows beside infinities.
    x, kernel = (
        g.parameter(finite(g.data(dtype, n)), dtype)
        for n in ((batch, inputs, *spatial), (outputs, inputs // groups, *(w.size for w in window)))
    )
    g.add(
        "convolution", dtype, (batch // batches, outputs, *out), [x, kernel],
        window=window, dim_labels=dims, feature_group_count=groups, batch_group_count=batches,
    )  # fmt: skip


@step
def transforms(g: Generator) -> None:
    part = g.pick(WIDE)
    whole, dims = COMPLEX_OF[part], (*g.dims(0, 1), g.size(2, 5), g.size(2, 5))
    length = dims[-g.size(1, 2) :]
    half = (*dims[:-1], dims[-1] // 2 + 1)
    g.add("fft", whole, dims, [g.parameter(g.data(whole, dims), whole)], fft_type=g.pick(("FFT", "IFFT")), fft_length=length)
    spectrum = g.add("fft", whole, half, [g.parameter(finite(g.data(part, dims)), part)], fft_type="RFFT", fft_length=length)
    g.add("fft", part, dims, [spectrum], fft_type="IRFFT", fft_length=length)


@step
def solvers(g: Generator) -> None:
    dtype, n, m = g.pick(WIDE), g.size(1, 3), g.size(1, 3)
    base = g.numbers.integers(-2, 3, (g.devices, n, n))
    spread = base @ base.swapaxes(1, 2) + 4 * np.eye(n)
    lower = g.pick((True, False))
    # XLA leaves the other triangle open.
    factor = g.b.add("cholesky", dtype, (n, n), [g.parameter(spread, dtype)], lower=lower)
    mask = g.b.add(
        "compare", "pred", (n, n), [g.b.add("iota", "s32", (n, n), (), iota_dimension=d) for d in (0, 1)], direction="GE" if lower else "LE"
    )
    g.like("select", mask, factor, g.b.broadcast(g.zero(dtype), (n, n)))
    left = g.pick((True, False))
    a = g.parameter(g.numbers.integers(-2, 3, (g.devices, n, n)) + 5 * np.eye(n), dtype)
    g.add(
        "triangular-solve", dtype, (n, m) if left else (m, n), [a, g.parameter(finite(g.data("f32", (n, m) if left else (m, n))), dtype)], left_side=left,
        lower=g.pick((True, False)), unit_diagonal=g.pick((True, False)), transpose_a=g.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")),
    )  # fmt: skip


@step
def normalisations(g: Generator) -> None:
    # XLA computes the variance as E[x^2] - E[x]^2 and multiplies out, which loses digits unless means and deviations are exact.
    dtype, dims = g.pick(WIDE), tuple(g.pick((1, 2, 4)) for _ in range(g.size(2, 3)))
    f = g.random.randrange(len(dims))
    x, n = g.parameter(g.numbers.integers(-64, 64, (g.devices, *dims)) / 16, dtype), (dims[f],)
    scale, offset, mean = (g.parameter(g.numbers.integers(-64, 64, (g.devices, *n)) / 16, dtype) for _ in range(3))
    variance = g.parameter(4.0 ** g.numbers.integers(0, 3, (g.devices, *n)) - 0.125, dtype)
    more = {"epsilon": 0.125, "feature_index": f}
    g.add("batch-norm-inference", dtype, dims, [x, scale, offset, mean, variance], **more)
    shape = Shape("tuple", (), (Shape(dtype, dims), Shape(dtype, n), Shape(dtype, n)))
    g.parts(g.add("batch-norm-training", shape, (), [x, scale, offset], **more))
    y = g.parameter(g.numbers.integers(-64, 64, (g.devices, *dims)) / 16, dtype)
    g.parts(g.add("batch-norm-grad", shape, (), [x, scale, mean, variance, y], **more))


def finite(x: Array) -> Array:
    """Small numbers in place of those that are none."""
    return np.nan_to_num(x, nan=0.5, posinf=1.0, neginf=-1.0)


# -- devices ---------------------------------------------------------------------------------------------------------------
def grouping(g: Generator) -> tuple[tuple[int, ...], ...]:
    size = g.pick([k for k in (1, 2, 4) if g.devices % k == 0])
    order = g.random.sample(range(g.devices), g.devices)
    return tuple(tuple(order[n : n + size]) for n in range(0, g.devices, size))


@step
def collectives(g: Generator) -> None:
    dtype, groups = g.pick((*INTEGERS, *WIDE)), grouping(g)
    size = len(groups[0])
    d, dims = g.random.randrange(2), [g.size(), g.size()]
    dims[d] *= size
    # XLA's extremes over devices do not keep NaN as those of one device do.
    x = g.parameter(finite(g.data(dtype, dims)) if dtype in WIDE else g.data(dtype, dims), dtype)
    parts, whole = list(dims), list(dims)
    parts[d] //= size
    whole[d] *= size
    g.like("all-reduce", x, calls=[g.b.reducer(g.pick(EXTREMES), dtype)], replica_groups=groups)
    g.add("all-gather", dtype, whole, [x], replica_groups=groups, dimensions=(d,))
    g.add("reduce-scatter", dtype, parts, [x], calls=[g.b.reducer(g.pick(EXTREMES), dtype)], replica_groups=groups, dimensions=(d,))
    g.add("all-to-all", dtype, dims, [x], replica_groups=groups, dimensions=(d,))


@step
def exchanges(g: Generator) -> None:
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims()
    x = g.value(dtype, dims)
    targets = g.random.sample(range(g.devices), g.devices)
    pairs = tuple((s, t) for s, t in enumerate(targets) if g.random.random() < 0.8) or ((0, 0),)
    g.like("collective-permute", x, source_target_pairs=pairs)
    g.add("replica-id", "u32")
    g.add("partition-id", "u32")


# -- control ---------------------------------------------------------------------------------------------------------------
@step
def calls(g: Generator) -> None:
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims()
    inner = g.b.computation(g.name("callee"))
    a, c = inner.parameter(dtype, dims), inner.parameter(dtype, dims)
    g.add(
        "call",
        dtype,
        dims,
        [g.value(dtype, dims), g.value(dtype, dims)],
        calls=[inner.end(inner.like("maximum", inner.like("add", a, c), a))],
    )


@step
def conditionals(g: Generator) -> None:
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims()
    names = []
    for opcode in ("add", "multiply", "subtract")[: g.size(2, 3)]:
        inner = g.b.computation(g.name("branch"))
        a = inner.parameter(dtype, dims)
        names.append(inner.end(inner.like(opcode, a, a)))
    index = g.value("pred", ()) if len(names) == 2 else g.indices(3, ())
    g.add("conditional", dtype, dims, [index, *[g.value(dtype, dims) for _ in names]], calls=names)


@step
def loops(g: Generator) -> None:
    """Devices may differ in the number of trips."""
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims(0, 2)
    shape = Shape("tuple", (), (Shape("s32"), Shape(dtype, dims)))
    condition, body = g.b.computation(g.name("condition")), g.b.computation(g.name("body"))
    count = condition.get(condition.parameter(shape), 0)
    head = condition.end(condition.add("compare", "pred", (), [count, condition.constant("s32", 0)], direction="GT"))
    state = body.parameter(shape)
    count, value = body.get(state, 0), body.get(state, 1)
    tail = body.end(
        body.tuple(body.like("subtract", count, body.constant("s32", 1)), body.like(g.pick(("add", "maximum", "multiply")), value, value))
    )
    start = g.b.tuple(g.indices(3, ()), g.value(dtype, dims))
    g.parts(g.add("while", shape, (), [start], calls=[head, tail]))


@step
def barriers(g: Generator) -> None:
    x, y = any_array(g), any_array(g)
    g.parts(g.b.add("opt-barrier", Shape("tuple", (), (g.b.shape(x), g.b.shape(y))), (), [g.b.tuple(x, y)]))
