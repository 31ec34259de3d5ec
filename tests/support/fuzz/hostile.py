"""Small inputs that ask for more work or memory than there is. Each must end within the limits, with a verdict or a message."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.module import Shape
from tests.support.builder import Builder
from tests.support.fuzz.outcome import Input, same

if TYPE_CHECKING:
    from collections.abc import Callable

HUGE = 1 << 31
HOSTILE: dict[str, Callable[[], Input]] = {}


def hostile(make: Callable[[], Input]) -> Callable[[], Input]:
    HOSTILE[make.__name__] = make
    return make


def chain(step: Callable[[Builder, int, int], int], length: int, dtype: str = "f32") -> Input:
    """``v = step(v, x)``, many times."""
    b = Builder()
    x, v = b.parameter(dtype, (4,)), b.parameter(dtype, (4,))
    for _ in range(length):
        v = step(b, v, x)
    return same(b.build(v))


def folded(opcode: str, count: int, dtype: str = "f32") -> Input:
    """One opcode over many parameters."""
    b = Builder()
    v, *rest = [b.parameter(dtype, (4,)) for _ in range(count)]
    for x in rest:
        v = b.like(opcode, v, x)
    return same(b.build(v))


HOSTILE |= {
    "adds": lambda: chain(lambda b, v, x: b.like("add", v, x), 100_000),
    "doublings": lambda: chain(lambda b, v, x: b.like("add", v, v), 30_000),
    "squares": lambda: chain(lambda b, v, x: b.like("multiply", v, v), 5_000),
    "integer squares": lambda: chain(lambda b, v, x: b.like("multiply", v, v), 3_000, "s32"),
    "tiny factors": lambda: chain(lambda b, v, x: b.like("multiply", v, b.broadcast(b.constant("f32", 1e-38), (4,))), 2_000),
    "nested exponentials": lambda: chain(lambda b, v, x: b.like("exponential", b.like("multiply", v, x)), 500),
    "choices of exponentials": lambda: chain(_choice, 300),
    "shifted sums": lambda: chain(_shifted, 300),
    "long sum": lambda: folded("add", 2_000),
    "long product": lambda: folded("multiply", 2_000),
    "long maximum": lambda: folded("maximum", 1_000),
    "exclusive or": lambda: folded("xor", 60, "pred"),
}


def _choice(b: Builder, v: int, x: int) -> int:
    p = b.add("compare", "pred", (4,), [x, b.broadcast(b.constant("f32", float(len(b.instructions))), (4,))], direction="LT")
    return b.add("select", "f32", (4,), [p, b.like("exponential", v), v])


def _shifted(b: Builder, v: int, x: int) -> int:
    tail = b.add("slice", "f32", (3,), [v], starts=(1,), limits=(4,), strides=(1,))
    head = b.add("slice", "f32", (1,), [v], starts=(0,), limits=(1,), strides=(1,))
    return b.like("add", v, b.add("concatenate", "f32", (4,), [tail, head], dimensions=(0,)))


# -- sizes -----------------------------------------------------------------------------------------------------------------
@hostile
def huge_arrays() -> Input:
    b = Builder()
    x = b.parameter("f32", (HUGE, HUGE))
    y = b.add("transpose", "f32", (HUGE, HUGE), [x], dimensions=(1, 0))
    z = b.add("dot", "f32", (HUGE, HUGE), [x, y], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
    return same(b.build([z, b.add("iota", "s32", (HUGE, HUGE), iota_dimension=0)]))


def moved(opcode: str, before: tuple[int, ...], after: tuple[int, ...], **attributes: Any) -> Input:
    b = Builder()
    return same(b.build(b.add(opcode, "f32", after, [b.parameter("f32", before)], **attributes)))


HOSTILE |= {
    "huge slice": lambda: moved("slice", (HUGE,), (HUGE // 3,), starts=(1,), limits=(HUGE - 1,), strides=(3,)),
    "huge reverse": lambda: moved("reverse", (HUGE, HUGE), (HUGE, HUGE), dimensions=(0, 1)),
    "huge reshape": lambda: moved("reshape", (3**19, 1 << 30), (1 << 15, 3**19, 1 << 15)),
    "rank 30": lambda: moved("reverse", (2,) * 30, (2,) * 30, dimensions=tuple(range(30))),
}


@hostile
def huge_padding() -> Input:
    b = Builder()
    x, c = b.parameter("f32", (3,)), b.constant("f32", 1.0)
    return same(
        b.build(
            [
                b.add("pad", "f32", (3 + HUGE,), [x, c], padding=((HUGE, 0, 0),)),
                b.add("pad", "f32", (3 + 2 * HUGE,), [x, c], padding=((0, 0, HUGE),)),
            ]
        )
    )


@hostile
def reshapes_without_common_factors() -> Input:
    rnd, b = Random(1), Builder()  # noqa: S311 - reproducible, not secret
    v = b.parameter("f32", (720720,))
    for _ in range(150):
        left, dims = 720720, []
        while left > 1:
            k = rnd.choice([d for d in range(2, min(left, 50) + 1) if left % d == 0])
            dims.append(k)
            left //= k
        v = b.add("reshape", "f32", dims, [v])
        order = rnd.sample(range(len(dims)), len(dims))
        v = b.add("transpose", "f32", [dims[d] for d in order], [v], dimensions=tuple(order))
    return same(b.build(v))


@hostile
def many_blocks() -> Input:
    b = Builder()
    parts = [b.parameter("f32", (1 + k % 7,)) for k in range(3000)]
    v = b.add("concatenate", "f32", (sum(b.shape(p).size for p in parts),), parts, dimensions=(0,))
    return same(b.build(b.like("exponential", v)))


@hostile
def blocks_of_blocks() -> Input:
    b = Builder()
    x, y = b.parameter("f32", (64, 64)), b.parameter("f32", (64, 64))
    for _ in range(6):
        x, y = (_shuffled(b, _shuffled(b, v, 0), 1) for v in (x, y))
        x = b.add("dot", "f32", (64, 64), [x, y], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
    return same(b.build(x))


def _shuffled(b: Builder, v: int, d: int) -> int:
    """Cut into parts of different sizes, and put together in the reverse order."""
    ends = [n * (n + 1) // 2 for n in range(11)] + [64]
    parts = []
    for start, limit in pairwise(ends):
        starts, limits, dims = [0, 0], [64, 64], [64, 64]
        starts[d], limits[d], dims[d] = start, limit, limit - start
        parts.append(b.add("slice", "f32", dims, [v], starts=tuple(starts), limits=tuple(limits), strides=(1, 1)))
    return b.add("concatenate", "f32", (64, 64), parts[::-1], dimensions=(d,))


@hostile
def large_data() -> Input:
    b, rnd = Builder(), np.random.default_rng(1)
    return same(b.build([b.constant("f32", rnd.normal(size=1_000_000)), b.constant("s32", rnd.integers(-9, 9, 1_000_000))]))


# -- loops and calls -------------------------------------------------------------------------------------------------------
STATE = Shape("tuple", (), (Shape("s32"), Shape("f32", (4,))))


def _loop(b: Builder, bound: int, step: int = 1, inner: str | None = None) -> tuple[str, str]:
    """A counted loop whose body doubles, or runs another loop."""
    c = b.computation(f"condition.{len(b.computations)}")
    condition = c.end(c.add("compare", "pred", (), [c.get(c.parameter(STATE), 0), c.constant("s32", bound)], direction="LT"))
    c = b.computation(f"body.{len(b.computations)}")
    p = c.parameter(STATE)
    count, v = c.like("add", c.get(p, 0), c.constant("s32", step)), c.get(p, 1)
    again = c.add("while", STATE, (), [c.tuple(c.constant("s32", 0), v)], calls=[condition, inner]) if inner else None
    return condition, c.end(c.tuple(count, c.like("add", v, v) if again is None else c.get(again, 1)))


def loop(bound: int, step: int, nested: int) -> Input:
    b = Builder()
    condition, body = _loop(b, bound, step)
    for _ in range(nested):
        condition, body = _loop(b, bound, step, body)
    state = b.tuple(b.constant("s32", 0), b.parameter("f32", (4,)))
    return same(b.build(b.get(b.add("while", STATE, (), [state], calls=[condition, body]), 1)))


def calls(opcode: str, depth: int, each: int) -> Input:
    """Every computation calls the next one ``each`` times."""
    b = Builder()
    inner = b.computation("f0")
    name = inner.end(inner.like("negate", inner.parameter("f32", (4,))))
    for k in range(depth):
        inner = b.computation(f"f{k + 1}")
        v = inner.parameter("f32", (4,))
        for _ in range(each):
            v = inner.add(opcode, "f32", (4,), [v], calls=[name])
        name = inner.end(v)
    return same(b.build(b.add(opcode, "f32", (4,), [b.parameter("f32", (4,))], calls=[name])))


HOSTILE |= {
    "endless loop": lambda: loop(5, 0, 0),
    "long loop": lambda: loop(10**9, 1, 0),
    "loops in loops": lambda: loop(4000, 1, 5),
    "doubling calls": lambda: calls("call", 50, 2),
    "deep calls": lambda: calls("fusion", 3000, 1),
}


@hostile
def unknown_loops_in_loops() -> Input:
    """Loops that stay, whose bodies hold two such loops each."""
    b, shape = Builder(), Shape("pred")
    c = b.computation("condition")
    condition = c.end(c.parameter(shape))
    c = b.computation("body.0")
    name = c.end(c.like("not", c.parameter(shape)))
    for k in range(40):
        c = b.computation(f"body.{k + 1}")
        v = c.parameter(shape)
        for _ in range(2):
            v = c.add("while", shape, (), [v], calls=[condition, name])
        name = c.end(v)
    return same(b.build(b.add("while", shape, (), [b.parameter(shape)], calls=[condition, name])))


# -- devices ---------------------------------------------------------------------------------------------------------------
def devices(count: int, step: Callable[[Builder, int, Random], int], length: int = 1) -> Input:
    rnd, b = Random(1), Builder()  # noqa: S311 - reproducible, not secret
    v = b.parameter("f32", (8,))
    for _ in range(length):
        v = step(b, v, rnd)
    module = b.build(v, num_partitions=count)
    return same(module, f"{{x: {count}}}", baseline=replace(module, num_partitions=1))


def _maximum(b: Builder, v: int, rnd: Random) -> int:
    return b.add("all-reduce", "f32", (8,), [v], calls=[b.reducer("maximum", "f32")], replica_groups=())


def _any_groups(b: Builder, v: int, rnd: Random) -> int:
    ids = rnd.sample(range(2000), 2000)
    groups = tuple(tuple(ids[k : k + 10]) for k in range(0, 2000, 10))
    return b.add("all-reduce", "f32", (8,), [v], calls=[b.reducer("add", "f32")], replica_groups=groups)


def _any_permutation(b: Builder, v: int, rnd: Random) -> int:
    pairs = tuple(enumerate(rnd.sample(range(2000), 2000)))
    return b.like("exponential", b.add("collective-permute", "f32", (8,), [v], source_target_pairs=pairs))


def _masked(b: Builder, v: int, rnd: Random) -> int:
    device = b.add("convert", "s32", (), [b.add("partition-id", "u32")])
    own = b.broadcast(b.add("compare", "pred", (), [device, b.constant("s32", rnd.randrange(64))], direction="EQ"), (8,))
    return b.add(
        "all-reduce", "f32", (8,), [b.add("select", "f32", (8,), [own, b.like("exponential", v), v])], calls=[b.reducer("add", "f32")]
    )


HOSTILE |= {
    "a million devices": lambda: devices(10**6, _maximum),
    "100,000 devices": lambda: devices(10**5, _maximum),
    "groups without structure": lambda: devices(2000, _any_groups, 10),
    "permutations without structure": lambda: devices(2000, _any_permutation, 10),
    "masks by device": lambda: devices(64, _masked, 20),
}
