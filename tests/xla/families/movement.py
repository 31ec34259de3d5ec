"""Data movement, by fixed and by computed indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.hlo.module import Shape
from tests.xla.generator import COMPLEX, FLOATS, INTEGERS, WIDE, any_array, finite, reducer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.xla.generator import Generator


def broadcasts(g: Generator) -> None:
    x = any_array(g, 0, 2)
    shape = g.b.shape(x)
    rank = shape.rank + g.size(0, 2)
    dimensions = tuple(sorted(g.random.sample(range(rank), shape.rank)))
    target = [g.size() for _ in range(rank)]
    for d, n in zip(dimensions, shape.dims, strict=True):
        target[d] = n
    g.add("broadcast", shape.dtype, target, [x], dimensions=dimensions)


def reshapes(g: Generator) -> None:
    x = any_array(g)
    shape = g.b.shape(x)
    g.add("reshape", shape.dtype, (shape.size,), [x])
    order = g.random.sample(range(shape.rank), shape.rank)
    g.add("transpose", shape.dtype, [shape.dims[d] for d in order], [x], dimensions=tuple(order))
    g.like("reverse", x, dimensions=tuple(sorted(g.random.sample(range(shape.rank), g.size(0, shape.rank)))))
    g.like("copy", x)


def joins(g: Generator) -> None:
    x = any_array(g, 1)
    shape = g.b.shape(x)
    d = g.random.randrange(shape.rank)
    other = tuple(g.size() if k == d else n for k, n in enumerate(shape.dims))
    joined = tuple(n + other[k] if k == d else n for k, n in enumerate(shape.dims))
    g.add("concatenate", shape.dtype, joined, [x, g.value(shape.dtype, other)], dimensions=(d,))


def slices(g: Generator) -> None:
    x = any_array(g, 1)
    shape = g.b.shape(x)
    starts = tuple(g.random.randrange(n) for n in shape.dims)
    limits = tuple(g.random.randint(s, n) for s, n in zip(starts, shape.dims, strict=True))
    strides = tuple(g.size(1, 2) for _ in shape.dims)
    dims = [-((s - e) // k) for s, e, k in zip(starts, limits, strides, strict=True)]
    g.add("slice", shape.dtype, dims, [x], starts=starts, limits=limits, strides=strides)


def pads(g: Generator) -> None:
    x = any_array(g, 1, 2)
    shape = g.b.shape(x)
    padding = tuple((g.size(-1, 2), g.size(-1, 2), g.size(0, 1)) for _ in shape.dims)
    dims = [max(0, n + low + high + (n - 1) * inner) for n, (low, high, inner) in zip(shape.dims, padding, strict=True)]
    g.add("pad", shape.dtype, dims, [x, g.value(shape.dtype, ())], padding=padding)


def iotas(g: Generator) -> None:
    dims = g.dims(1)
    g.add("iota", g.pick((*INTEGERS, *FLOATS, *COMPLEX)), dims, (), iota_dimension=g.random.randrange(len(dims)))


def dynamic_slices(g: Generator) -> None:
    x = any_array(g, 1)
    shape = g.b.shape(x)
    sizes = tuple(g.random.randint(1, n) for n in shape.dims)
    starts = [g.indices(n, ()) for n in shape.dims]
    cut = g.add("dynamic-slice", shape.dtype, sizes, [x, *starts], dynamic_slice_sizes=sizes)
    g.add("dynamic-update-slice", shape.dtype, shape.dims, [x, cut, *[g.indices(n, ()) for n in shape.dims]])


def index_numbers(g: Generator, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which dimensions are indexed, and which have a window of one."""
    mapped = tuple(g.random.sample(range(rank), g.size(1, rank)))
    return mapped, tuple(sorted(d for d in mapped if g.random.random() < 0.6))


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


def tops(g: Generator) -> None:
    """The greatest or least of each row, in XLA's own opcode and as its custom call."""
    dtype, dims = g.pick(("s32", *WIDE)), g.dims(1, 2)
    k = g.size(1, dims[-1])
    shape = Shape("tuple", (), (Shape(dtype, (*dims[:-1], k)), Shape("s32", (*dims[:-1], k))))
    x = g.parameter(finite(g.data(dtype, dims)) if dtype in WIDE else g.data(dtype, dims), dtype)
    g.parts(g.add("topk", shape, (), [x], k=k, largest=True))
    g.add("get-dimension-size", "s32", (), [x], dimensions=(len(dims) - 1,))


STEPS: tuple[Callable[[Generator], None], ...] = (
    broadcasts,
    reshapes,
    joins,
    slices,
    pads,
    iotas,
    dynamic_slices,
    gathers,
    scatters,
    sorts,
    tops,
)
