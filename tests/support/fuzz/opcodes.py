"""How instructions of each opcode are drawn that are not elementwise."""

from __future__ import annotations

from typing import Any

from scalify.hlo.module import Shape
from scalify.hlo.shape_rules.reduction import window_result
from scalify.hlo.window import ConvDims, WindowDimension
from scalify.lift.known_calls import BUILT_IN
from tests.support.fuzz.modules import COMMON, SIZES, TOKEN, Anything, draws, tuple_of

CONFIGS = ("", "{}", "0", "-1", "1e999", "0.5", '{"axis": 1}', "null", "\x00", "[1,2]", "9" * 30)


# -- elementwise with attributes -------------------------------------------------------------------------------------------
@draws("compare")
def _compare(g: Anything, opcode: str) -> None:
    v = g.array()
    kind = {"type": g.rnd.choice(["FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"])} if g.rnd.random() < 0.3 else {}
    operands = [v, g.array([g.shape(v).dtype], g.shape(v).dims)]
    g.add(opcode, g.shape(v), operands, direction=g.rnd.choice(["EQ", "NE", "GE", "GT", "LE", "LT"]), **kind)


@draws("select")
def _select(g: Anything, opcode: str) -> None:
    v = g.array()
    s = g.shape(v)
    g.add(opcode, s, [g.array(["pred"], g.rnd.choice([s.dims, ()])), v, g.array([s.dtype], s.dims)])


@draws("clamp")
def _clamp(g: Anything, opcode: str) -> None:
    v = g.array()
    s = g.shape(v)
    low, high = (g.array([s.dtype], g.rnd.choice([s.dims, ()])) for _ in range(2))
    g.add(opcode, s, [low, v, high])


@draws("convert", "bitcast-convert", "stochastic-convert")
def _convert(g: Anything, opcode: str) -> None:
    v = g.array()
    more = [g.array(["u32", "u16"], g.shape(v).dims)] if opcode == "stochastic-convert" else []
    g.add(opcode, Shape(g.rnd.choice(COMMON), g.shape(v).dims), [v, *more])


@draws("reduce-precision")
def _reduce_precision(g: Anything, opcode: str) -> None:
    v = g.array()
    g.add(opcode, g.shape(v), [v], exponent_bits=g.rnd.choice([0, 1, 5, 8, 100, -3]), mantissa_bits=g.rnd.choice([0, 7, 23, -1, 1000]))


# -- movement --------------------------------------------------------------------------------------------------------------
@draws("broadcast")
def _broadcast(g: Anything, opcode: str) -> None:
    v = g.array()
    dims, at = list(g.shape(v).dims), list(range(g.shape(v).rank))
    for _ in range(g.rnd.choice([0, 1, 1, 2])):
        k = g.rnd.randrange(len(dims) + 1)
        dims.insert(k, g.rnd.choice(SIZES))
        at = [d + (d >= k) for d in at]
    g.add(opcode, Shape(g.shape(v).dtype, tuple(dims)), [v], dimensions=tuple(at))


@draws("reshape", "bitcast", "dynamic-reshape")
def _reshape(g: Anything, opcode: str) -> None:
    v = g.array()
    left, dims = g.shape(v).size, [1] * g.rnd.randrange(3)
    while left > 1:
        k = g.rnd.choice([d for d in range(2, left + 1) if left % d == 0])
        dims.append(k)
        left //= k
    if not left:
        dims += [0, g.rnd.choice(SIZES)]
    g.rnd.shuffle(dims)
    dtype = g.rnd.choice([g.shape(v).dtype, g.shape(v).dtype, g.rnd.choice(COMMON) if opcode == "bitcast" else g.shape(v).dtype])
    layout = g.order(len(dims)) if g.rnd.random() < 0.3 else None
    more = [g.array(["s32"], ()) for _ in dims] if opcode == "dynamic-reshape" else []
    g.add(opcode, Shape(dtype, tuple(dims), layout=layout), [v, *more])


@draws("transpose", "reverse", "get-dimension-size", "set-dimension-size", "sort", "topk")
def _by_dimensions(g: Anything, opcode: str) -> None:
    v = g.array()
    s = g.shape(v)
    one = (g.rnd.randrange(max(s.rank, 1)),)
    if opcode == "topk":
        g.add(opcode, s, [v], k=g.rnd.randint(0, s.dims[-1]), largest=True)
    elif opcode == "sort":
        values = [v] + [g.array(dims=s.dims) for _ in range(g.rnd.choice([0, 0, 1]))]
        g.add(opcode, g.bundle(values), values, calls=[g.comparator([g.shape(x).dtype for x in values])], dimensions=one, is_stable=True)
    elif opcode == "set-dimension-size":
        g.add(opcode, s, [v, g.array(["s32"], ())], dimensions=one)
    else:
        dims = {"transpose": g.order(s.rank), "reverse": g.some(s.rank), "get-dimension-size": one}[opcode]
        g.add(opcode, s, [v], dimensions=dims)


@draws("concatenate")
def _concatenate(g: Anything, opcode: str) -> None:
    v = g.array()
    s = g.shape(v)
    d = g.rnd.randrange(s.rank or 1)
    others = [[g.rnd.choice(SIZES) if k == d else n for k, n in enumerate(s.dims)] for _ in range(g.rnd.choice([0, 1, 1, 2, 3]))]
    parts = [v, *[g.array([s.dtype], dims) for dims in others]]
    g.rnd.shuffle(parts)
    g.add(opcode, s, parts, dimensions=(d,))


@draws("slice")
def _slice(g: Anything, opcode: str) -> None:
    v = g.array()
    bounds = [g.rnd.choice([(0, n), tuple(sorted((g.rnd.randint(0, n), g.rnd.randint(0, n))))]) for n in g.shape(v).dims]
    starts, limits = tuple(a for a, _ in bounds), tuple(b for _, b in bounds)
    g.add(opcode, g.shape(v), [v], starts=starts, limits=limits, strides=tuple(g.rnd.choice([1, 1, 1, 2, 3, 7]) for _ in bounds))


@draws("pad")
def _pad(g: Anything, opcode: str) -> None:
    v = g.array()
    padding = tuple(
        (g.rnd.choice([0, 0, 1, 2, -1]), g.rnd.choice([0, 0, 1, 3, -1]), g.rnd.choice([0, 0, 0, 1, 2])) for _ in g.shape(v).dims
    )
    g.add(opcode, g.shape(v), [v, g.array([g.shape(v).dtype], ())], padding=padding)


@draws("iota", "partition-id", "replica-id", "rng-get-and-update-state", "constant", "parameter", "after-all", "tuple", "get-tuple-element")
def _structure(g: Anything, opcode: str) -> None:
    dims = g.dims()
    if opcode == "iota":
        g.add(opcode, Shape(g.rnd.choice(COMMON), dims), [], iota_dimension=g.rnd.randrange(len(dims) or 1))
    elif opcode == "constant":
        g.constant(g.rnd.choice(COMMON), dims)
    elif opcode == "parameter" and not g.depth:
        shape = g.rnd.choice([Shape(g.rnd.choice(COMMON), dims), TOKEN, tuple_of(), tuple_of(Shape("f32"))])
        g.keep(g.b.parameter(shape))
    elif opcode == "tuple":
        g.add(opcode, tuple_of(), [g.rnd.choice(g.values) for _ in range(g.rnd.randrange(3))])
    elif opcode == "get-tuple-element":
        v = g.pick(lambda s: bool(s.elements))
        if v is not None:
            g.add(opcode, TOKEN, [v], index=g.rnd.randrange(len(g.shape(v).elements)))
    elif opcode != "parameter":
        g.add(opcode, Shape("u64", (2,)), [])


# -- indexing --------------------------------------------------------------------------------------------------------------
@draws("dynamic-slice", "dynamic-update-slice")
def _dynamic_slice(g: Anything, opcode: str) -> None:
    v = g.array()
    s = g.shape(v)
    sizes = tuple(g.rnd.choice([n, g.rnd.randint(0, n)]) for n in s.dims)
    starts = [g.index() for _ in sizes] if g.rnd.random() < 0.9 else [g.array(["s32"], (s.rank,))]
    if opcode == "dynamic-slice":
        g.add(opcode, s, [v, *starts], dynamic_slice_sizes=sizes)
    else:
        g.add(opcode, s, [v, g.array([s.dtype], sizes), *starts])


@draws("gather", "scatter")
def _gather(g: Anything, opcode: str) -> None:
    """Indices of shape ``batch`` with the index vector somewhere; dimensions that are indexed, batching, collapsed or whole."""
    v = g.array()
    s = g.shape(v)
    batch = [g.rnd.choice(SIZES) for _ in range(g.rnd.choice([0, 1, 1, 2]))]
    order = g.order(s.rank)
    mapped = order[: g.rnd.randint(0, s.rank)]
    rest = [d for d in order if d not in mapped]
    batching: tuple[int, ...] = ()
    partners: tuple[int, ...] = ()
    if rest and batch and g.rnd.random() < 0.3:
        batching, partners = (rest[0],), (g.rnd.randrange(len(batch)),)
    for d, k in zip(batching, partners, strict=True):
        batch[k] = s.dims[d]
    vector = g.rnd.randint(0, len(batch))
    dims = list(batch)
    if len(mapped) == 1 and g.rnd.random() < 0.3:
        vector = len(batch)
    else:
        dims.insert(vector, len(mapped))
        partners = tuple(k + (k >= vector) for k in partners)
    indices = g.array(["s32", "u32", "s64", "u8"], dims)
    sizes = tuple(min(1, n) if d in batching else g.rnd.choice([n, g.rnd.randint(0, n), min(1, n)]) for d, n in enumerate(s.dims))
    dropped = tuple(d for d, n in enumerate(sizes) if n <= 1 and d not in batching and g.rnd.random() < 0.6)
    kept = [d for d in range(s.rank) if d not in dropped and d not in batching]
    offsets = tuple(sorted(g.rnd.sample(range(len(kept) + len(batch)), len(kept))))
    shared: dict[str, Any] = {"index_vector_dim": vector, "indices_are_sorted": False}
    if opcode == "gather":
        names: dict[str, Any] = {"offset_dims": offsets, "collapsed_slice_dims": dropped, "start_index_map": mapped, "slice_sizes": sizes}
        g.add(opcode, s, [v, indices], operand_batching_dims=batching, start_indices_batching_dims=partners, **names, **shared)
        return
    inner, outer = iter([sizes[d] for d in kept]), iter(batch)
    update = g.array([s.dtype], [next(inner) if d in offsets else next(outer) for d in range(len(kept) + len(batch))])
    names = {"update_window_dims": offsets, "inserted_window_dims": dropped, "scatter_dims_to_operand_dims": mapped}
    shared |= {"input_batching_dims": batching, "scatter_indices_batching_dims": partners, "unique_indices": g.rnd.random() < 0.5}
    g.add(opcode, s, [v, indices, update], calls=[g.reducer([s.dtype])], **names, **shared)


# -- reductions and contractions -------------------------------------------------------------------------------------------
def _window(g: Anything, rank: int) -> tuple[WindowDimension, ...]:
    c = g.rnd.choice
    return tuple(
        WindowDimension(c([1, 1, 2, 3]), c([1, 1, 2, 3]), c([0, 0, 1, -1]), c([0, 0, 1, 3]), c([1, 1, 2]), c([1, 1, 2]), c([False, True]))
        for _ in range(rank)
    )


@draws("reduce", "reduce-window")
def _reduce(g: Anything, opcode: str) -> None:
    v = g.array()
    values = [v] + [g.array(dims=g.shape(v).dims) for _ in range(g.rnd.choice([0, 0, 0, 1, 2]))]
    dtypes = [g.shape(x).dtype for x in values]
    how = {"dimensions": g.some(g.shape(v).rank)} if opcode == "reduce" else {"window": _window(g, g.shape(v).rank)}
    g.add(opcode, g.bundle(values), [*values, *[g.array([t], ()) for t in dtypes]], calls=[g.reducer(dtypes)], **how)


@draws("select-and-scatter")
def _select_and_scatter(g: Anything, opcode: str) -> None:
    v = g.array()
    s, window = g.shape(v), _window(g, g.shape(v).rank)
    source = g.array([s.dtype], window_result(s, window))
    g.add(opcode, s, [v, source, g.array([s.dtype], ())], calls=[g.comparator([s.dtype]), g.reducer([s.dtype])], window=window)


@draws("dot", "ragged-dot", "scaled-dot")
def _dot(g: Anything, opcode: str) -> None:
    v = g.array()
    s = g.shape(v)
    order = g.order(s.rank)
    batch = order[: g.rnd.choice([0, 0, 1, 2])]
    inner = tuple(d for d in order if d not in batch and g.rnd.random() < 0.5)
    right = [*batch, *inner, *[-1] * g.rnd.choice([0, 1, 1])]
    g.rnd.shuffle(right)
    free = [g.rnd.choice(SIZES) for _ in right]
    sizes = [s.dims[d] if d >= 0 else n for d, n in zip(right, free, strict=True)]
    dims = [s.dims[d] for d in batch] + [n for d, n in enumerate(s.dims) if d not in batch + inner]
    dims += [n for d, n in zip(right, sizes, strict=True) if d < 0]
    names: dict[str, Any] = {"lhs_batch_dims": batch, "lhs_contracting_dims": inner}
    names |= {f"rhs_{k}_dims": tuple(right.index(d) for d in found) for k, found in (("batch", batch), ("contracting", inner))}
    more = [g.array(["s32"], rank=1)] if opcode == "ragged-dot" else [g.array()] if g.rnd.random() < 0.03 else []
    result = Shape(g.rnd.choice([s.dtype, s.dtype, "f32", "s32"]), tuple(dims))
    g.add(opcode, result, [v, g.array([s.dtype], sizes), *more], **names)


@draws("convolution")
def _convolution(g: Anything, opcode: str) -> None:
    window = _window(g, g.rnd.choice([0, 1, 1, 2]))
    rank = len(window) + 2
    places = [g.order(rank) for _ in range(3)]
    groups, features = g.rnd.choice([1, 1, 2, 3]), g.rnd.choice([0, 1, 2])
    left, right = [0] * rank, [0] * rank
    spatial = [g.rnd.choice([0, 1, 3, 5]) for _ in window]
    for at, n in zip(places[0], [g.rnd.choice([0, 1, 2]), features * groups, *spatial], strict=True):
        left[at] = n
    for at, n in zip(places[1], [features, g.rnd.choice([0, 1, 6]), *[w.size for w in window]], strict=True):
        right[at] = n
    a, b, c = places
    labels = ConvDims(a[0], a[1], a[2:], b[0], b[1], b[2:], c[0], c[1], c[2:])
    dtype = g.rnd.choice(["f32", "bf16", "s32"])
    operands = [g.array([dtype], left), g.array([dtype], right)]
    g.add(opcode, Shape(dtype), operands, window=window, dim_labels=labels, feature_group_count=groups, batch_group_count=1)


@draws("fft", "cholesky", "triangular-solve", "batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def _opaque(g: Anything, opcode: str) -> None:
    if opcode == "fft":
        v = g.array(["c64", "f32"])
        length = g.shape(v).dims[-1:]
        g.add(opcode, g.shape(v), [v], fft_type=g.rnd.choice(["FFT", "IFFT", "RFFT"]), fft_length=length)
    elif opcode in {"cholesky", "triangular-solve"}:
        n = g.rnd.choice(SIZES)
        operands = [g.array(["f32"], (n, n))] + ([g.array(["f32"], (n, 2))] if opcode != "cholesky" else [])
        g.add(opcode, g.shape(operands[-1]), operands, lower=True, left_side=True)
    else:
        v = g.array(["f32"])
        d = g.rnd.randrange(g.shape(v).rank or 1)
        features = [g.array(["f32"], g.shape(v).dims[d : d + 1]) for _ in range(4)]
        more = {"training": features[:2], "inference": features, "grad": [*features[:3], g.array(["f32"], g.shape(v).dims)]}
        g.add(opcode, g.shape(v), [v, *more[opcode.rpartition("-")[2]]], feature_index=d, epsilon=1e-5)


# -- collectives -----------------------------------------------------------------------------------------------------------
def _groups(g: Anything) -> tuple[tuple[int, ...], ...]:
    """Mostly groups that cut the devices into equal parts; else incomplete, overlapping, or of devices that do not exist."""
    ids, way = g.order(g.devices), g.rnd.random()
    if way < 0.2:
        return ()
    if way < 0.8:
        size = g.rnd.choice([n for n in range(1, g.devices + 1) if g.devices % n == 0])
        return tuple(ids[k : k + size] for k in range(0, g.devices, size))
    odd = ((ids[: max(1, g.devices // 2)],), (ids, ids[::-1]), ((0, 0),), ((0, 99), (-1, 1 << 40)))
    return g.rnd.choice(odd)


def _channel(g: Anything) -> dict[str, Any]:
    found: dict[str, Any] = {"channel_id": g.rnd.choice([0, 1, 5])} if g.rnd.random() < 0.5 else {}
    return {**found, "use_global_device_ids": True} if found and g.rnd.random() < 0.7 else found


@draws("all-reduce", "all-reduce-start", "collective-broadcast")
def _all_reduce(g: Anything, opcode: str) -> None:
    v = g.array()
    values = [v] + [g.array([g.shape(v).dtype]) for _ in range(g.rnd.choice([0, 0, 1]))]
    calls = [] if opcode == "collective-broadcast" else [g.reducer([g.shape(v).dtype])]
    found = g.add(opcode, g.bundle(values), values, calls=calls, replica_groups=_groups(g), **_channel(g))
    if found is not None and opcode.endswith("start"):
        g.add("all-reduce-done", g.shape(found), [found])


@draws("all-gather", "all-gather-start", "reduce-scatter", "all-to-all")
def _regroup(g: Anything, opcode: str) -> None:
    small = g.array()
    s, groups = g.shape(small), _groups(g)
    count = len(groups[0]) if groups else g.devices
    d = g.rnd.randrange(s.rank or 1)
    large = Shape(s.dtype, tuple(n * count if k == d else n for k, n in enumerate(s.dims)))
    where: dict[str, Any] = {"replica_groups": groups, "dimensions": (d,), **_channel(g)}
    if opcode == "all-gather":
        g.add(opcode, large, [small], **where)
    elif opcode == "all-gather-start":
        found = g.add(opcode, tuple_of(s, large), [small], **where)
        if found is not None:
            g.add("all-gather-done", large, [found])
    elif opcode == "reduce-scatter":
        g.add(opcode, s, [g.array([s.dtype], large.dims)], calls=[g.reducer([s.dtype])], **where)
    elif g.rnd.random() < 0.5:
        g.add(opcode, large, [g.array([s.dtype], large.dims)], **where)
    else:
        values = [g.array([s.dtype], s.dims) for _ in range(count)]
        g.add(opcode, g.bundle(values), values, replica_groups=groups, **_channel(g))


@draws("collective-permute", "collective-permute-start", "ragged-all-to-all")
def _permute(g: Anything, opcode: str) -> None:
    v = g.array()
    s = g.shape(v)
    if opcode == "ragged-all-to-all":
        g.add(opcode, s, [v, g.array([s.dtype]), *[g.array(["s32"], rank=1) for _ in range(4)]], replica_groups=_groups(g))
        return
    pairs = [(a, b) for a, b in enumerate(g.order(g.devices)) if g.rnd.random() < 0.8]
    pairs += [(g.devices + 5, 3 * g.devices)] if g.rnd.random() < 0.1 else []
    if opcode == "collective-permute":
        more = g.rnd.choice([[], [], [], [g.array(dims=s.dims)], [g.array(), g.array(["s32"], ()), g.array(["s32"], ())]])
        g.add(opcode, g.bundle([v, *more]), [v, *more], source_target_pairs=tuple(pairs), **_channel(g))
        return
    found = g.add(opcode, tuple_of(s, s), [v], source_target_pairs=tuple(pairs), **_channel(g))
    if found is not None:
        g.add("collective-permute-done", s, [found])


# -- calls, loops, effects -------------------------------------------------------------------------------------------------
MOST_NESTED = 2


@draws("call", "fusion", "async-start", "map")
def _call(g: Anything, opcode: str) -> None:
    if g.depth > MOST_NESTED:
        return
    v = g.array()
    values = [v, g.array(dims=g.shape(v).dims)][: g.rnd.choice([1, 2]) if opcode == "map" else g.rnd.randrange(3)]
    shapes = [Shape(g.shape(o).dtype) if opcode == "map" else g.shape(o) for o in values]
    name = g.function(shapes, Shape(g.rnd.choice(COMMON)) if opcode == "map" else None)
    if opcode != "async-start":
        g.add(opcode, TOKEN, values, calls=[name])
        return
    inner = g.b.computations[name]
    result = inner.instructions[inner.root].shape
    found = g.add(opcode, tuple_of(tuple_of(*shapes), result, Shape("u32")), values, calls=[name])
    if found is not None:
        g.add("async-done", result, [found])


@draws("while")
def _while(g: Anything, opcode: str) -> None:
    """A loop with a counter, or any body and condition."""
    if g.depth > MOST_NESTED:
        return
    state = g.b.tuple(g.b.constant("s32", 0), *[g.array() for _ in range(g.rnd.choice([0, 1, 2]))])
    shape = g.shape(state)
    if g.rnd.random() < 0.3:
        condition, body = g.function([shape], Shape("pred")), g.function([shape], shape)
    else:
        condition, body = _counted(g, shape)
    found = g.add(opcode, shape, [state], calls=[condition, body])
    if found is not None:
        g.values += [g.b.get(found, n) for n in range(len(shape.elements))]


def _counted(g: Anything, shape: Shape) -> tuple[str, str]:
    c = g.b.computation(f"condition.{len(g.b.computations)}")
    bound = g.rnd.choice([0, 1, 2, 5, 100])
    condition = c.end(
        c.add("compare", "pred", (), [c.get(c.parameter(shape), 0), c.constant("s32", bound)], direction=g.rnd.choice(["LT", "NE", "GT"]))
    )
    c = g.b.computation(f"body.{len(g.b.computations)}")
    p = c.parameter(shape)
    parts = [c.like("add", c.get(p, 0), c.constant("s32", g.rnd.choice([1, 1, 2, 0])))]
    for n in range(1, len(shape.elements)):
        x = c.get(p, n)
        parts.append(c.like(g.rnd.choice(["add", "multiply", "maximum"]), x, x))
    return condition, c.end(c.tuple(*parts))


@draws("conditional")
def _conditional(g: Anything, opcode: str) -> None:
    if g.depth > MOST_NESTED:
        return
    selector = g.array(["pred"], ()) if g.rnd.random() < 0.5 else g.index()
    result = g.rnd.choice([g.shape(g.array()), tuple_of(Shape("f32", (2,)), TOKEN)])
    values = [g.array() for _ in range(2 if g.shape(selector).dtype == "pred" else g.rnd.choice([1, 3]))]
    g.add(opcode, result, [selector, *values], calls=[g.function([g.shape(o)], result) for o in values])


@draws("custom-call")
def _custom_call(g: Anything, opcode: str) -> None:
    operands = [g.rnd.choice(g.values) for _ in range(g.rnd.choice([0, 1, 1, 2, 3]))]
    result = g.rnd.choice([g.shape(g.array()), g.bundle(operands or [g.array()]), tuple_of(Shape("f32", g.dims()), Shape("s32", g.dims()))])
    config = {"backend_config": g.rnd.choice(CONFIGS)} if g.rnd.random() < 0.6 else {}
    g.add(opcode, result, operands, custom_call_target=g.rnd.choice(["", "unknown", *sorted(BUILT_IN.entries)]), **config)


@draws("copy-start", "opt-barrier", "domain", "add-dependency")
def _pass_on(g: Anything, opcode: str) -> None:
    v = g.rnd.choice(g.values)
    s = g.shape(v)
    if opcode == "copy-start":
        found = g.add(opcode, tuple_of(s, s, Shape("u32")), [v])
        if found is not None and g.rnd.random() < 0.7:
            g.add("copy-done", s, [found])
    elif opcode == "opt-barrier":
        values = [v] + [g.rnd.choice(g.values) for _ in range(g.rnd.choice([0, 0, 1]))]
        g.add(opcode, g.bundle(values), values)
    else:
        g.add(opcode, s, [v, g.b.add("after-all", TOKEN)][: 1 + (opcode == "add-dependency")])


@draws("rng", "rng-bit-generator", "infeed", "outfeed", "send", "recv")
def _effects(g: Anything, opcode: str) -> None:
    v, token = g.array(), g.b.add("after-all", TOKEN)
    s, flight = g.shape(v), tuple_of(g.shape(v), Shape("u32"), TOKEN)
    if opcode == "rng":
        g.add(opcode, Shape("f32", g.dims()), [g.array(["f32"], ()), g.array(["f32"], ())], distribution="rng_uniform")
    elif opcode == "rng-bit-generator":
        state = g.array(["u64"], (2,))
        g.add(opcode, tuple_of(g.shape(state), Shape("u32", g.dims())), [state], algorithm="rng_default")
    elif opcode in {"infeed", "outfeed"}:
        g.add(opcode, tuple_of(s, TOKEN), [token] if opcode == "infeed" else [v, token])
    else:
        found = g.add(opcode, flight, [v, token] if opcode == "send" else [token], channel_id=1)
        if found is not None:
            g.add(f"{opcode}-done", TOKEN, [found], channel_id=1)
