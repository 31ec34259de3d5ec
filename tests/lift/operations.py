"""One random operation of each kind, added to a random program where the values that it has allow it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tests.lift.programs import MOST_ELEMENTS, MOST_MAGNITUDE, Program

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
OPERATIONS: dict[str, Callable[[Program], None]] = {}


def grow(program: Program, steps: int) -> None:
    """Up to ``steps`` operations."""
    names = sorted(OPERATIONS)
    for _ in range(steps):
        OPERATIONS[program.rnd.choice(names)](program)


def operation(function: Callable[[Program], None]) -> Callable[[Program], None]:
    OPERATIONS[function.__name__] = function
    return function


# -- movement --------------------------------------------------------------------------------------------------------------
def _factorised(rnd: Random, size: int) -> tuple[int, ...]:
    dims: list[int] = []
    while size > 1 and len(dims) < 3:
        k = rnd.choice([d for d in range(2, size + 1) if size % d == 0])
        dims.append(k)
        size //= k
    dims += [size] if size > 1 else []
    if rnd.random() < 0.2:
        dims.insert(rnd.randrange(len(dims) + 1), 1)
    rnd.shuffle(dims)
    return tuple(dims)


@operation
def reshape(p: Program) -> None:
    v = p.choose()
    assert v is not None
    p.keep(p.b.add("reshape", p.dtype(v), _factorised(p.rnd, math.prod(p.dims(v))), [v]), p.size[v])


@operation
def transpose(p: Program) -> None:
    v = p.choose(rank=2)
    if v is None:
        return
    order = list(range(len(p.dims(v))))
    p.rnd.shuffle(order)
    p.keep(p.b.add("transpose", p.dtype(v), [p.dims(v)[d] for d in order], [v], dimensions=tuple(order)), p.size[v])


@operation
def broadcast(p: Program) -> None:
    v = p.choose()
    assert v is not None
    n = p.rnd.choice([1, 2, 3])
    if math.prod(p.dims(v)) * n > MOST_ELEMENTS:
        return
    where = p.rnd.randrange(len(p.dims(v)) + 1)
    dims = (*p.dims(v)[:where], n, *p.dims(v)[where:])
    p.keep(p.b.broadcast(v, dims, [d for d in range(len(dims)) if d != where]), p.size[v])


@operation
def slice_(p: Program) -> None:
    v = p.choose(rank=1)
    if v is None:
        return
    starts, limits, strides, dims = [], [], [], []
    for n in p.dims(v):
        stride = p.rnd.choice([1, 1, 1, 2, 3])
        start = p.rnd.randrange(n) if p.rnd.random() < 0.5 else 0
        limit = p.rnd.randrange(start + 1, n + 1) if p.rnd.random() < 0.5 else n
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
        dims.append(-(-(limit - start) // stride))
    p.keep(p.b.add("slice", p.dtype(v), dims, [v], starts=tuple(starts), limits=tuple(limits), strides=tuple(strides)), p.size[v])


@operation
def pad(p: Program) -> None:
    v = p.choose("f32", "s32", "u8", rank=1)
    if v is None:
        return
    padding, dims = [], []
    for n in p.dims(v):
        interior = p.rnd.choice([0, 0, 0, 1, 2])
        low, high = p.rnd.choice([-1, 0, 0, 1, 2]), p.rnd.choice([-1, 0, 0, 1, 3])
        size = n + (n - 1) * interior + low + high
        if size < 1:
            low, high, interior, size = 0, 0, 0, n
        padding.append((low, high, interior))
        dims.append(size)
    if math.prod(dims) > MOST_ELEMENTS:
        return
    value = p.b.constant(p.dtype(v), p.rnd.choice([0, 0, 7]))
    p.keep(p.b.add("pad", p.dtype(v), dims, [v, value], padding=tuple(padding)), max(p.size[v], 7))


@operation
def reverse(p: Program) -> None:
    v = p.choose(rank=1)
    if v is None:
        return
    chosen = tuple(d for d in range(len(p.dims(v))) if p.rnd.random() < 0.6)
    p.keep(p.b.add("reverse", p.dtype(v), p.dims(v), [v], dimensions=chosen), p.size[v])


@operation
def concatenate(p: Program) -> None:
    v = p.choose(rank=1)
    if v is None:
        return
    dim = p.rnd.randrange(len(p.dims(v)))
    rest = [n for d, n in enumerate(p.dims(v)) if d != dim]
    fits = [
        w
        for w in p.values
        if p.dtype(w) == p.dtype(v) and len(p.dims(w)) == len(p.dims(v)) and [n for d, n in enumerate(p.dims(w)) if d != dim] == rest
    ]
    parts = [v] + [p.rnd.choice(fits) for _ in range(p.rnd.choice([1, 1, 2]))]
    p.rnd.shuffle(parts)
    dims = list(p.dims(v))
    dims[dim] = sum(p.dims(w)[dim] for w in parts)
    if math.prod(dims) <= MOST_ELEMENTS:
        p.keep(p.b.add("concatenate", p.dtype(v), dims, parts, dimensions=(dim,)), max(p.size[w] for w in parts))


# -- elementwise -----------------------------------------------------------------------------------------------------------
def partner(p: Program, v: int) -> int:
    """A value of the same type: another one, or a scalar constant spread out."""
    fits = [w for w in p.values if p.b.shape(w) == p.b.shape(v)]
    if p.rnd.random() < 0.3 or not fits:
        constant = p.b.constant(p.dtype(v), p.rnd.choice([0, 1] if p.dtype(v) == "pred" else [0, 1, 2, 3]))
        w = p.b.broadcast(constant, p.dims(v))
        p.size[w] = 3
        return w
    return p.rnd.choice(fits)


@operation
def arithmetic(p: Program) -> None:
    v = p.choose("f32", "s32", "u8")
    if v is None:
        return
    w = partner(p, v)
    opcode = p.rnd.choice(["add", "subtract", "multiply", "maximum", "minimum"])
    if p.dtype(v) != "f32" and p.rnd.random() < 0.4:
        opcode = p.rnd.choice(["divide", "remainder", "and", "or", "xor", "shift-left", "shift-right-logical", "shift-right-arithmetic"])
    size = p.size[v] * p.size[w] if opcode == "multiply" else p.size[v] + p.size[w]
    if size < MOST_MAGNITUDE:
        p.keep(p.b.like(opcode, v, w), size)


@operation
def unary(p: Program) -> None:
    v = p.choose()
    assert v is not None
    if p.dtype(v) == "pred":
        p.keep(p.b.like("not", v))
    else:
        p.keep(p.b.like(p.rnd.choice(["negate", "abs", "sign"]) if p.dtype(v) != "u8" else "negate", v), p.size[v])


@operation
def compare(p: Program) -> None:
    v = p.choose()
    assert v is not None
    p.keep(p.b.add("compare", "pred", p.dims(v), [v, partner(p, v)], direction=p.rnd.choice(DIRECTIONS)))


@operation
def logic(p: Program) -> None:
    v = p.choose("pred")
    if v is not None:
        p.keep(p.b.like(p.rnd.choice(["and", "or", "xor"]), v, partner(p, v)))


@operation
def select(p: Program) -> None:
    c = p.choose("pred")
    fits = [v for v in p.values if c is not None and p.dims(v) == p.dims(c)]
    if c is None or not fits:
        return
    v = p.rnd.choice(fits)
    w = partner(p, v)
    p.keep(p.b.add("select", p.dtype(v), p.dims(v), [c, v, w]), max(p.size[v], p.size[w]))


@operation
def convert(p: Program) -> None:
    v = p.choose()
    assert v is not None
    dtype = p.rnd.choice([t for t in ("f32", "s32", "u8", "pred") if t != p.dtype(v)])
    p.keep(p.b.add("convert", dtype, p.dims(v), [v]), 1 << 31 if p.dtype(v) != "f32" and dtype == "f32" else p.size[v])


@operation
def clamp(p: Program) -> None:
    v = p.choose("f32", "s32")
    if v is not None:
        low, high = (p.b.constant(p.dtype(v), p.rnd.randrange(-3, 4)) for _ in range(2))
        p.keep(p.b.add("clamp", p.dtype(v), p.dims(v), [low, v, high]), max(p.size[v], 4))


@operation
def iota(p: Program) -> None:
    dims = p.rnd.choice([(4,), (2, 3), (6,), (3, 2, 2)])
    p.keep(p.b.add("iota", p.rnd.choice(["s32", "f32", "u8"]), dims, iota_dimension=p.rnd.randrange(len(dims))), 6)


@operation
def device_number(p: Program) -> None:
    v = p.choose("s32")
    if v is not None:
        p.keep(p.b.like(p.rnd.choice(["add", "multiply"]), v, p.b.broadcast(p.index(), p.dims(v))), p.size[v] * 8)


@operation
def table(p: Program) -> None:
    dims = p.rnd.choice([(4,), (2, 3), (6,)])
    p.keep(
        p.b.constant(
            p.rnd.choice(["f32", "s32", "pred"]),
            [[p.rnd.randrange(3) for _ in range(dims[-1])]] * dims[0]
            if len(dims) > 1
            else [p.rnd.randrange(-2, 4) for _ in range(dims[0])],
        ),
        4,
    )


# -- reductions and contractions -------------------------------------------------------------------------------------------
@operation
def reduce(p: Program) -> None:
    v = p.choose("f32", "s32", "pred", rank=1)
    if v is None:
        return
    dims = tuple(d for d in range(len(p.dims(v))) if p.rnd.random() < 0.6)
    count = math.prod(p.dims(v)[d] for d in dims)
    dtype = p.dtype(v)
    opcode = p.rnd.choice(["and", "or"] if dtype == "pred" else ["add", "add", "maximum", "minimum", "multiply"])
    size = p.size[v] ** count if opcode == "multiply" else p.size[v] * (count + 1)
    if size > MOST_MAGNITUDE:
        return
    initial = p.b.constant(dtype, p.rnd.choice([0, 1] if dtype == "pred" else [0, 1, 2]))
    kept = [n for d, n in enumerate(p.dims(v)) if d not in dims]
    p.keep(p.b.add("reduce", dtype, kept, [v, initial], calls=[p.b.reducer(opcode, dtype)], dimensions=dims), size + 2)


@operation
def dot(p: Program) -> None:
    v, w = p.choose("f32", "s32", rank=1), p.choose("f32", "s32", rank=1)
    if v is None or w is None or p.dtype(v) != p.dtype(w):
        return
    pairs = [(i, j) for i, m in enumerate(p.dims(v)) for j, n in enumerate(p.dims(w)) if m == n]
    p.rnd.shuffle(pairs)
    inner: list[tuple[int, int]] = []
    batch: list[tuple[int, int]] = []
    for i, j in pairs[:3]:
        if all(i != a and j != c for a, c in inner + batch):
            p.rnd.choice([inner, inner, batch]).append((i, j))
    free = [n for d, n in enumerate(p.dims(v)) if d not in [i for i, _ in inner + batch]]
    free += [n for d, n in enumerate(p.dims(w)) if d not in [j for _, j in inner + batch]]
    dims = [p.dims(v)[i] for i, _ in batch] + free
    size = p.size[v] * p.size[w] * math.prod(p.dims(v)[i] for i, _ in inner)
    if math.prod(dims) > MOST_ELEMENTS or size > MOST_MAGNITUDE:
        return
    a: dict[str, Any] = {"lhs_contracting_dims": tuple(i for i, _ in inner), "rhs_contracting_dims": tuple(j for _, j in inner)}
    a |= {"lhs_batch_dims": tuple(i for i, _ in batch), "rhs_batch_dims": tuple(j for _, j in batch)}
    p.keep(p.b.add("dot", p.dtype(v), dims, [v, w], **a), size)


# -- indexing --------------------------------------------------------------------------------------------------------------
@operation
def dynamic_slice(p: Program) -> None:
    v = p.choose(rank=1)
    if v is None:
        return
    sizes = tuple(p.rnd.randrange(1, n + 1) for n in p.dims(v))
    p.keep(p.b.add("dynamic-slice", p.dtype(v), sizes, [v, *[p.index() for _ in sizes]], dynamic_slice_sizes=sizes), p.size[v])


@operation
def dynamic_update_slice(p: Program) -> None:
    v = p.choose(rank=1)
    fits = [
        w
        for w in p.values
        if v is not None
        and p.dtype(w) == p.dtype(v)
        and len(p.dims(w)) == len(p.dims(v))
        and all(a <= c for a, c in zip(p.dims(w), p.dims(v), strict=True))
    ]
    if v is None or not fits:
        return
    w = p.rnd.choice(fits)
    p.keep(p.b.add("dynamic-update-slice", p.dtype(v), p.dims(v), [v, w, *[p.index() for _ in p.dims(v)]]), max(p.size[v], p.size[w]))


def index_array(p: Program, count: int, width: int) -> int | None:
    """s32[count, width] made of data, constants or known device numbers."""
    if p.rnd.random() < 0.5:
        return p.b.constant("s32", [[p.rnd.randrange(-1, 5) for _ in range(width)] for _ in range(count)])
    flat = [v for v in p.values if p.dtype(v) == "s32" and math.prod(p.dims(v)) == count * width]
    return p.b.add("reshape", "s32", (count, width), [p.rnd.choice(flat)]) if flat else None


@operation
def gather(p: Program) -> None:
    v = p.choose(rank=1)
    if v is None:
        return
    dims = p.dims(v)
    width, count = p.rnd.randrange(1, len(dims) + 1), p.rnd.choice([1, 2, 4])
    indices = index_array(p, count, width)
    if indices is None:
        return
    mapped = p.rnd.sample(range(len(dims)), width)
    sizes = tuple(p.rnd.randrange(1, n + 1) if d in mapped else p.rnd.choice([n, n, 1]) for d, n in enumerate(dims))
    collapsed = tuple(d for d, n in enumerate(sizes) if n == 1 and p.rnd.random() < 0.6)
    kept = [n for d, n in enumerate(sizes) if d not in collapsed]
    offsets = tuple(sorted(p.rnd.sample(range(len(kept) + 1), len(kept))))
    rest = list(kept)
    result = [rest.pop(0) if d in offsets else count for d in range(len(kept) + 1)]
    if math.prod(result) > MOST_ELEMENTS:
        return
    a: dict[str, Any] = {"offset_dims": offsets, "collapsed_slice_dims": collapsed, "start_index_map": tuple(mapped), "index_vector_dim": 1}
    p.keep(p.b.add("gather", p.dtype(v), result, [v, indices], slice_sizes=sizes, **a), p.size[v])


@operation
def scatter(p: Program) -> None:
    v = p.choose("f32", "s32", "pred", rank=1)
    if v is None:
        return
    dims = p.dims(v)
    width, count = p.rnd.randrange(1, len(dims) + 1), p.rnd.choice([1, 2, 3])
    indices = index_array(p, count, width)
    if indices is None:
        return
    mapped = p.rnd.sample(range(len(dims)), width)
    sizes = [
        p.rnd.choice([1, 1, p.rnd.randrange(1, n + 1)]) if d in mapped else p.rnd.choice([n, n, p.rnd.randrange(1, n + 1)])
        for d, n in enumerate(dims)
    ]
    inserted = tuple(d for d, n in enumerate(sizes) if n == 1 and p.rnd.random() < 0.6)
    kept = [n for d, n in enumerate(sizes) if d not in inserted]
    windows = tuple(sorted(p.rnd.sample(range(len(kept) + 1), len(kept))))
    rest = list(kept)
    shape = [rest.pop(0) if d in windows else count for d in range(len(kept) + 1)]
    if math.prod(shape) > MOST_ELEMENTS:
        return
    fits = [w for w in p.values if p.dtype(w) == p.dtype(v) and math.prod(p.dims(w)) == math.prod(shape)]
    if not fits:
        return
    w = p.rnd.choice(fits)
    update = p.b.add("reshape", p.dtype(v), shape, [w])
    kind = p.rnd.choice(["add", "set"])
    calls = [p.b.reducer("or" if p.dtype(v) == "pred" else "add", p.dtype(v))] if kind == "add" else [second(p, p.dtype(v))]
    a: dict[str, Any] = {"update_window_dims": windows, "inserted_window_dims": inserted, "scatter_dims_to_operand_dims": tuple(mapped)}
    p.keep(p.b.add("scatter", p.dtype(v), dims, [v, indices, update], calls=calls, index_vector_dim=1, **a), p.size[v] + 4 * p.size[w])


def second(p: Program, dtype: str) -> str:
    name = f"second_{dtype}"
    if name not in p.b.computations:
        inner = p.b.computation(name)
        inner.parameter(dtype)
        inner.end(inner.parameter(dtype))
    return name


# -- collectives -----------------------------------------------------------------------------------------------------------
@operation
def all_reduce(p: Program) -> None:
    v = p.choose("f32", "s32", "pred")
    if v is None:
        return
    dtype = p.dtype(v)
    opcode = p.rnd.choice(["and", "or"] if dtype == "pred" else ["add", "add", "maximum", "minimum", "multiply"])
    size = p.size[v] ** p.devices if opcode == "multiply" else p.size[v] * p.devices
    if size < MOST_MAGNITUDE:
        p.keep(p.b.add("all-reduce", dtype, p.dims(v), [v], calls=[p.b.reducer(opcode, dtype)], replica_groups=p.groups()), size)


@operation
def all_gather(p: Program) -> None:
    v = p.choose(rank=1)
    if v is None:
        return
    groups, d = p.groups(), p.rnd.randrange(len(p.dims(v)))
    dims = list(p.dims(v))
    dims[d] *= len(groups[0]) if groups else p.devices
    if math.prod(dims) <= MOST_ELEMENTS:
        p.keep(p.b.add("all-gather", p.dtype(v), dims, [v], dimensions=(d,), replica_groups=groups), p.size[v])


@operation
def reduce_scatter(p: Program) -> None:
    v = p.choose("f32", "s32", rank=1)
    if v is None:
        return
    groups, d = p.groups(), p.rnd.randrange(len(p.dims(v)))
    count = len(groups[0]) if groups else p.devices
    dims = list(p.dims(v))
    if dims[d] % count:
        return
    dims[d] //= count
    opcode = p.rnd.choice(["add", "maximum"])
    calls = [p.b.reducer(opcode, p.dtype(v))]
    p.keep(p.b.add("reduce-scatter", p.dtype(v), dims, [v], calls=calls, dimensions=(d,), replica_groups=groups), p.size[v] * p.devices)


@operation
def all_to_all(p: Program) -> None:
    v = p.choose(rank=1)
    if v is None:
        return
    groups, d = p.groups(), p.rnd.randrange(len(p.dims(v)))
    if p.dims(v)[d] % (len(groups[0]) if groups else p.devices) == 0:
        p.keep(p.b.add("all-to-all", p.dtype(v), p.dims(v), [v], dimensions=(d,), replica_groups=groups), p.size[v])


@operation
def collective_permute(p: Program) -> None:
    v = p.choose()
    assert v is not None
    targets = list(range(p.devices))
    if p.rnd.random() < 0.5:
        p.rnd.shuffle(targets)
        pairs = tuple(enumerate(targets))
    else:
        shift = p.rnd.randrange(p.devices)
        pairs = tuple((s, (s + shift) % p.devices) for s in range(p.devices))
    if p.rnd.random() < 0.3:
        pairs = pairs[: p.rnd.randrange(len(pairs) + 1)]
    p.keep(p.b.add("collective-permute", p.dtype(v), p.dims(v), [v], source_target_pairs=pairs), p.size[v])


@operation
def collective_broadcast(p: Program) -> None:
    v = p.choose()
    assert v is not None
    groups = [g for g in p.groups() if p.rnd.random() < 0.8]
    if groups:
        p.keep(p.b.add("collective-broadcast", p.dtype(v), p.dims(v), [v], replica_groups=groups), p.size[v])
