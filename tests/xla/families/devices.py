"""Collectives and control flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.hlo.module import Shape
from tests.xla.generator import EXTREMES, INTEGERS, WIDE, any_array, finite

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.xla.generator import Generator


def grouping(g: Generator) -> tuple[tuple[int, ...], ...]:
    size = g.pick([k for k in (1, 2, 4, 8) if g.devices % k == 0])
    order = g.random.sample(range(g.devices), g.devices)
    return tuple(tuple(order[n : n + size]) for n in range(0, g.devices, size))


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
    started = g.b.like("all-reduce-start", x, calls=[g.b.reducer("add", dtype)], replica_groups=groups)
    g.like("all-reduce-done", started)
    g.add("all-gather", dtype, whole, [x], replica_groups=groups, dimensions=(d,))
    g.add("reduce-scatter", dtype, parts, [x], calls=[g.b.reducer(g.pick(EXTREMES), dtype)], replica_groups=groups, dimensions=(d,))
    g.add("all-to-all", dtype, dims, [x], replica_groups=groups, dimensions=(d,))


def exchanges(g: Generator) -> None:
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims()
    x = g.value(dtype, dims)
    targets = g.random.sample(range(g.devices), g.devices)
    pairs = tuple((s, t) for s, t in enumerate(targets) if g.random.random() < 0.8) or ((0, 0),)
    g.like("collective-permute", x, source_target_pairs=pairs)
    g.add("replica-id", "u32")
    g.add("partition-id", "u32")


def calls(g: Generator) -> None:
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims()
    inner = g.b.computation(g.name("callee"))
    a, c = inner.parameter(dtype, dims), inner.parameter(dtype, dims)
    opcode, more = g.pick((("call", {}), ("fusion", {"kind": "kLoop"})))
    g.add(
        opcode,
        dtype,
        dims,
        [g.value(dtype, dims), g.value(dtype, dims)],
        **more,
        calls=[inner.end(inner.like("maximum", inner.like("add", a, c), a))],
    )


def conditionals(g: Generator) -> None:
    dtype, dims = g.pick((*INTEGERS, *WIDE)), g.dims()
    names = []
    for opcode in ("add", "multiply", "subtract")[: g.size(2, 3)]:
        inner = g.b.computation(g.name("branch"))
        a = inner.parameter(dtype, dims)
        names.append(inner.end(inner.like(opcode, a, a)))
    index = g.value("pred", ()) if len(names) == 2 else g.indices(3, ())
    g.add("conditional", dtype, dims, [index, *[g.value(dtype, dims) for _ in names]], calls=names)


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


def barriers(g: Generator) -> None:
    x, y = any_array(g), any_array(g)
    g.add("add-dependency", g.b.shape(x), (), [x, g.b.add("after-all", Shape("token"))])
    g.parts(g.b.add("opt-barrier", Shape("tuple", (), (g.b.shape(x), g.b.shape(y))), (), [g.b.tuple(x, y)]))


STEPS: tuple[Callable[[Generator], None], ...] = (collectives, exchanges, calls, conditionals, loops, barriers)
