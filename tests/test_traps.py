"""Pairs of small graphs at semantic corners: what must not be verified, and what must.

Each trap is a pair that some prover or compiler took for equal. A wrong ``verified`` here is a defect, whatever else is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scalify.api import verify
from scalify.hlo.module import Shape
from scalify.hlo.window import ConvDims, WindowDimension
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from scalify.report.model import Kind, Report, Verdict
from tests.support.builder import Builder

Graph = Callable[[Builder], int]
N = (4,)


def report(baseline: Graph, distributed: Graph, *, mesh: str = "{d: 1}", inputs: str = "", outputs: str = "", more: str = "") -> Report:
    """The report on two graphs with as many parameters as ``inputs`` has relations (``;`` between them; a shape is the same on both sides)."""
    size = math.prod(int(part.split(":")[1]) for part in mesh.strip("{}").split(","))
    b, d = Builder("baseline"), Builder("distributed")
    left, right = b.build(baseline(b)), None
    right = d.build(distributed(d), num_partitions=size)
    specs = inputs.split(";") if inputs else [""] * len(left.parameter_shapes)
    lines = ["version: 1", f"mesh: {mesh}", "inputs:" if specs else "inputs: []"]
    lines += [f"  - {{baseline: {p}, distributed: {p}{', spec: [' + s.strip() + ']' if s.strip() else ''}}}" for p, s in enumerate(specs)]
    lines += ["outputs:", f"  - {{baseline: 0, distributed: 0{', spec: [' + outputs + ']' if outputs else ''}}}", *([more] if more else [])]
    return verify(left, [right], resolve(parse("\n".join(lines), "trap.yaml"), left, [right]))


def equal(baseline: Graph, distributed: Graph, **more: str) -> bool:
    return report(baseline, distributed, **more).verdict is Verdict.VERIFIED


def filled(b: Builder, value: float, dtype: str = "f32", dims: tuple[int, ...] = N) -> int:
    return b.broadcast(b.constant(dtype, value), dims)


def unary(*opcodes: str, dtype: str = "f32") -> Graph:
    def graph(b: Builder) -> int:
        x = b.parameter(dtype, N)
        for opcode in opcodes:
            x = b.like(opcode, x)
        return x

    return graph


def with_constant(opcode: str, value: float, dtype: str = "f32", then: str | None = None) -> Graph:
    def graph(b: Builder) -> int:
        x = b.parameter(dtype, N)
        y = b.like(opcode, x, filled(b, value, dtype))
        return b.like(then, y) if then else y

    return graph


def of(function: Callable[[Builder, int], int], dtype: str = "f32", dims: tuple[int, ...] = N) -> Graph:
    """A graph of one parameter."""
    return lambda b: function(b, b.parameter(dtype, dims))


def of_two(function: Callable[[Builder, int, int], int], dtype: str = "f32", dims: tuple[int, ...] = N) -> Graph:
    return lambda b: function(b, b.parameter(dtype, dims), b.parameter(dtype, dims))


def compared(b: Builder, x: int, y: int, direction: str) -> int:
    return b.add("compare", "pred", b.shape(x).dims, [x, y], direction=direction)


def reduced(b: Builder, x: int, opcode: str, dims: tuple[int, ...], initial: float) -> int:
    shape = b.shape(x)
    kept = [n for d, n in enumerate(shape.dims) if d not in dims]
    return b.add(
        "reduce", shape.dtype, kept, [x, b.constant(shape.dtype, initial)], calls=[b.reducer(opcode, shape.dtype)], dimensions=dims
    )


def converted(b: Builder, x: int, *dtypes: str) -> int:
    for dtype in dtypes:
        x = b.add("convert", dtype, b.shape(x).dims, [x])
    return x


def softmax(b: Builder, x: int, *, shifted: bool) -> int:
    if shifted:
        x = b.like("subtract", x, b.broadcast(reduced(b, x, "maximum", (0,), -math.inf), N))
    e = b.like("exponential", x)
    return b.like("divide", e, b.broadcast(reduced(b, e, "add", (0,), 0.0), N))


# -- numbers -----------------------------------------------------------------------------------------------------------------
DIFFERENT: dict[str, tuple[Graph, Graph]] = {
    "zero times an infinite constant": (
        of(lambda b, x: b.like("multiply", filled(b, 0.0), filled(b, math.inf))),
        of(lambda b, x: filled(b, 0.0)),
    ),
    "an infinity minus itself": (
        of(lambda b, x: b.like("subtract", filled(b, math.inf), filled(b, math.inf))),
        of(lambda b, x: filled(b, 0.0)),
    ),
    "zero times a quotient by zero": (
        of(lambda b, x: b.like("multiply", filled(b, 0.0), b.like("divide", x, filled(b, 0.0)))),
        of(lambda b, x: filled(b, 0.0)),
    ),
    "zero times the logarithm of zero": (
        of(lambda b, x: b.like("multiply", filled(b, 0.0), b.like("log", filled(b, 0.0)))),
        of(lambda b, x: filled(b, 0.0)),
    ),
    "x / x is 1": (of(lambda b, x: b.like("divide", x, x)), of(lambda b, x: filled(b, 1.0))),
    "x + 1 > y for integers that wrap around": (
        of_two(lambda b, x, y: compared(b, b.like("add", x, filled(b, 1, "s32")), y, "GT"), "s32"),
        of_two(lambda b, x, y: compared(b, x, y, "GE"), "s32"),
    ),
    "x - 1 >= 0 for unsigned integers": (
        of(lambda b, x: compared(b, b.like("subtract", x, filled(b, 1, "u32")), filled(b, 0, "u32"), "GE"), "u32"),
        of(lambda b, x: compared(b, x, filled(b, 1, "u32"), "GE"), "u32"),
    ),
    "a narrow integer keeps a wide one": (of(lambda b, x: converted(b, x, "s8", "s32"), "s32"), unary(dtype="s32")),
    "the square of an integer before conversion": (
        of(lambda b, x: converted(b, b.like("multiply", x, x), "f32"), "s32"),
        of(lambda b, x: b.like("multiply", converted(b, x, "f32"), converted(b, x, "f32")), "s32"),
    ),
    "truncated and rounded down": (of(lambda b, x: converted(b, x, "s32")), of(lambda b, x: converted(b, b.like("floor", x), "s32"))),
    "integer division truncates": (
        with_constant("divide", 2, "s32"),
        of(lambda b, x: converted(b, b.like("floor", b.like("divide", converted(b, x, "f32"), filled(b, 2.0))), "s32"), "s32"),
    ),
    "remainder has the sign of the dividend": (with_constant("remainder", 4, "s32"), with_constant("and", 3, "s32")),
    "arithmetic and logical shift": (with_constant("shift-right-arithmetic", 1, "s32"), with_constant("shift-right-logical", 1, "s32")),
    "arithmetic shift of unsigned integers": (
        with_constant("shift-right-arithmetic", 1, "u32"),
        with_constant("shift-right-logical", 1, "u32"),
    ),
    "sign of a scaled integer": (
        of(lambda b, x: b.like("sign", b.like("multiply", converted(b, x, "f32"), filled(b, 0.25))), "u8"),
        of(lambda b, x: converted(b, compared(b, x, filled(b, 4, "u8"), "GE"), "f32"), "u8"),
    ),
    "greatest value with initial value 0": (
        of(lambda b, x: reduced(b, x, "maximum", (0,), 0.0)),
        of(lambda b, x: reduced(b, x, "maximum", (0,), -math.inf)),
    ),
    "sum and greatest value": (of(lambda b, x: reduced(b, x, "add", (0,), 0.0)), of(lambda b, x: reduced(b, x, "maximum", (0,), 0.0))),
    "sum of predicates": (
        of(lambda b, x: converted(b, reduced(b, x, "add", (0,), 0), "s32"), "pred"),
        of(lambda b, x: reduced(b, converted(b, x, "s32"), "add", (0,), 0), "pred"),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_numbers(name: str) -> None:
    assert not equal(*DIFFERENT[name])
    assert equal(DIFFERENT[name][0], DIFFERENT[name][0])


def test_equal_over_the_reals_is_said_to_be() -> None:
    """Laws that hold for finite numbers only are listed with the verdict."""
    lowest = -3.4028234663852886e38
    pairs: list[tuple[Graph, Graph]] = [
        (of(lambda b, x: softmax(b, x, shifted=False)), of(lambda b, x: softmax(b, x, shifted=True))),
        (unary("exponential", "log"), unary()),
        (of(lambda b, x: b.add("is-finite", "pred", N, [x])), of(lambda b, x: filled(b, 1, "pred"))),
        (of(lambda b, x: reduced(b, x, "maximum", (0,), -math.inf)), of(lambda b, x: reduced(b, x, "maximum", (0,), lowest))),
    ]
    for baseline, distributed in pairs:
        found = report(baseline, distributed)
        assert found.verdict is Verdict.VERIFIED
        assert found.assumptions


def test_a_removed_max_subtraction_is_a_finding() -> None:
    """Equal over the reals, and a real bug: only the distributed graph overflows."""
    found = report(of(lambda b, x: softmax(b, x, shifted=True)), of(lambda b, x: softmax(b, x, shifted=False)))
    assert found.verdict is Verdict.UNVERIFIED
    assert [f.kind for f in found.findings] == [Kind.OVERFLOW]
    assert found.findings[0].distributed.opcode == "exponential"
    same = of(lambda b, x: softmax(b, x, shifted=False))
    assert report(same, same).verdict is Verdict.VERIFIED


def scaled_softmax(*, shifted: bool) -> Graph:
    """Of half a difference: the maximum is over a sum of terms, and is scaled."""

    def graph(b: Builder) -> int:
        difference = b.like("subtract", b.parameter("f32", N), b.parameter("f32", N))
        return softmax(b, b.like("multiply", filled(b, 0.5), difference), shifted=shifted)

    return graph


def test_a_removed_maximum_over_a_sum_is_a_finding() -> None:
    found = report(scaled_softmax(shifted=True), scaled_softmax(shifted=False))
    assert [f.kind for f in found.findings] == [Kind.OVERFLOW]
    for shifted in (False, True):
        assert report(scaled_softmax(shifted=shifted), scaled_softmax(shifted=shifted)).verdict is Verdict.VERIFIED
    assert report(scaled_softmax(shifted=False), scaled_softmax(shifted=True)).verdict is Verdict.VERIFIED


def halved_softmax(b: Builder, x: int, *, running: bool) -> int:
    """The first half shifted by its own maximum and then scaled to the whole one's; or everything shifted by the first half's."""
    halves = [b.add("slice", "f32", (2,), [x], starts=(k,), limits=(k + 2,), strides=(1,)) for k in (0, 2)]
    first, second = [reduced(b, h, "maximum", (0,), -math.inf) for h in halves]
    whole = b.like("maximum", first, second) if running else first
    shifted = [b.like("subtract", h, b.broadcast(m, (2,))) for h, m in zip(halves, (first, whole), strict=True)]
    left, right = [b.like("exponential", s) for s in shifted]
    left = b.like("multiply", left, b.broadcast(b.like("exponential", b.like("subtract", first, whole)), (2,)))
    e = b.add("concatenate", "f32", N, [left, right], dimensions=(0,))
    return b.like("divide", e, b.broadcast(reduced(b, e, "add", (0,), 0.0), N))


def test_a_maximum_over_a_part_is_a_finding() -> None:
    whole = of(lambda b, x: softmax(b, x, shifted=True))
    found = report(whole, of(lambda b, x: halved_softmax(b, x, running=False)))
    assert [f.kind for f in found.findings] == [Kind.OVERFLOW]
    assert found.findings[0].distributed.opcode == "exponential"
    assert report(whole, of(lambda b, x: halved_softmax(b, x, running=True))).verdict is Verdict.VERIFIED


def test_a_constant_shift_is_a_finding() -> None:
    """Shifting by any constant is right over the reals."""

    def shifted(b: Builder, x: int) -> int:
        e = b.like("exponential", b.like("subtract", x, filled(b, -1e30)))
        return b.like("divide", e, b.broadcast(reduced(b, e, "add", (0,), 0.0), N))

    found = report(of(lambda b, x: softmax(b, x, shifted=True)), of(shifted))
    assert found.verdict is Verdict.UNVERIFIED
    assert Kind.OVERFLOW in {f.kind for f in found.findings}


def test_ranges_make_integers_exact() -> None:
    narrow = DIFFERENT["a narrow integer keeps a wide one"]
    assert equal(*narrow, more="assume:\n  - {baseline: 0, range: [0, 100]}")
    assert not equal(*narrow, more="assume:\n  - {baseline: 0, range: [0, 129]}")
    below = DIFFERENT["x - 1 >= 0 for unsigned integers"]
    assert not equal(*below, more="assume:\n  - {baseline: 0, range: [0, 100]}")
    assert equal(*below, more="assume:\n  - {baseline: 0, range: [1, 100]}")


def test_not_a_number_differs_from_itself() -> None:
    assert not equal(of(lambda b, x: compared(b, filled(b, math.nan), filled(b, math.nan), "NE")), of(lambda b, x: filled(b, 0, "pred")))


# -- axes --------------------------------------------------------------------------------------------------------------------
ROWS = (4, 6)


def window_sum(b: Builder, x: int, dim: int) -> int:
    from scalify.hlo.window import WindowDimension  # noqa: PLC0415

    window = tuple(
        WindowDimension(n, 1, n - 1, 0, 1, 1, False) if d == dim else WindowDimension(1, 1, 0, 0, 1, 1, False)
        for d, n in enumerate(b.shape(x).dims)
    )
    shape = b.shape(x)
    return b.add("reduce-window", shape.dtype, shape.dims, [x, b.constant("f32", 0.0)], calls=[b.reducer("add", "f32")], window=window)


def sorted_along(b: Builder, x: int, dim: int, direction: str = "LT") -> int:
    c = b.computation(f"order_{direction}")
    c.end(c.add("compare", "pred", (), [c.parameter("f32"), c.parameter("f32")], direction=direction))
    return b.add("sort", "f32", b.shape(x).dims, [x], calls=[f"order_{direction}"], dimensions=(dim,), is_stable=True)


def transposed(b: Builder, x: int, order: tuple[int, ...]) -> int:
    shape = b.shape(x)
    return b.add("transpose", shape.dtype, [shape.dims[d] for d in order], [x], dimensions=order)


def square(function: Callable[[Builder, int], int]) -> Graph:
    return of(function, "f32", (4, 4))


def taken(order: tuple[int, int, int]) -> Graph:
    """A row of a table whose rows are laid out in two ways."""

    def graph(b: Builder) -> int:
        w = transposed(b, b.parameter("f32", (2, 4, 3)), order)
        dims = [b.shape(w).dims[0] * b.shape(w).dims[1], b.shape(w).dims[2]]
        i = b.parameter("s32", ())
        return b.add(
            "dynamic-slice", "f32", (1, 3), [b.add("reshape", "f32", dims, [w]), i, b.constant("s32", 0)], dynamic_slice_sizes=(1, 3)
        )

    return graph


def diagonal(b: Builder, x: int) -> int:
    rows = b.add("iota", "s32", (4, 4), iota_dimension=0)
    mask = compared(b, rows, b.add("iota", "s32", (4, 4), iota_dimension=1), "EQ")
    return reduced(b, b.add("select", "f32", (4, 4), [mask, x, filled(b, 0.0, dims=(4, 4))]), "add", (0, 1), 0.0)


TABLE = np.arange(16.0).reshape(4, 4) ** 2

AXES: dict[str, tuple[Graph, Graph]] = {
    "sort along another dimension": (square(lambda b, x: sorted_along(b, x, 0)), square(lambda b, x: sorted_along(b, x, 1))),
    "sort in another order": (square(lambda b, x: sorted_along(b, x, 0)), square(lambda b, x: sorted_along(b, x, 0, "GT"))),
    "running sum along another dimension": (square(lambda b, x: window_sum(b, x, 0)), square(lambda b, x: window_sum(b, x, 1))),
    "diagonal and total": (square(diagonal), square(lambda b, x: reduced(b, x, "add", (0, 1), 0.0))),
    "transposed": (square(lambda b, x: x), square(lambda b, x: transposed(b, x, (1, 0)))),
    "a transposed constant": (
        square(lambda b, x: b.like("add", x, b.constant("f32", TABLE))),
        square(lambda b, x: b.like("add", x, b.constant("f32", TABLE.T))),
    ),
    "rows of a table in another order": (taken((0, 1, 2)), taken((1, 0, 2))),
    "reshape is no transpose": (
        of(lambda b, x: b.add("reshape", "f32", (6, 4), [x]), "f32", ROWS),
        of(lambda b, x: transposed(b, x, (1, 0)), "f32", ROWS),
    ),
    "factors in another order": (
        of(lambda b, x: b.add("reshape", "f32", (24,), [transposed(b, b.add("reshape", "f32", (2, 3, 4), [x]), (1, 0, 2))]), "f32", (24,)),
        of(lambda b, x: x, "f32", (24,)),
    ),
    "the product with the transposed": (
        square(lambda b, x: b.add("dot", "f32", (4, 4), [x, x], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))),
        square(lambda b, x: b.add("dot", "f32", (4, 4), [x, x], lhs_contracting_dims=(1,), rhs_contracting_dims=(1,))),
    ),
    "reversed": (of(lambda b, x: b.add("reverse", "f32", N, [x], dimensions=(0,))), unary()),
}


@pytest.mark.parametrize("name", AXES)
def test_different_axes(name: str) -> None:
    assert not equal(*AXES[name])
    assert equal(AXES[name][0], AXES[name][0])
    assert equal(AXES[name][1], AXES[name][1])


# -- indices -----------------------------------------------------------------------------------------------------------------
def sliced(b: Builder, x: int, start: int, size: int) -> int:
    return b.add("dynamic-slice", "f32", (size,), [x, start], dynamic_slice_sizes=(size,))


def clamped_twice(b: Builder) -> int:
    """A slice of a slice: each start is clamped by itself."""
    x, i, j = b.parameter("f32", (8,)), b.parameter("s32"), b.parameter("s32")
    return sliced(b, sliced(b, x, i, 4), j, 2)


def clamped_once(b: Builder) -> int:
    x, i, j = b.parameter("f32", (8,)), b.parameter("s32"), b.parameter("s32")
    return sliced(b, x, b.like("add", i, j), 2)


def scattered(kind: str, *, clamp: bool = False, count: int = 2) -> Graph:
    def graph(b: Builder) -> int:
        x, i, u = b.parameter("f32", N), b.parameter("s32", (count, 1)), b.parameter("f32", (count,))
        if clamp:
            i = b.add("clamp", "s32", (count, 1), [b.constant("s32", 0), i, b.constant("s32", 3)])
        c = b.computation("combine")
        p, q = c.parameter("f32"), c.parameter("f32")
        c.end(c.add("add", "f32", (), [p, q]) if kind == "add" else q)
        return b.add(
            "scatter",
            "f32",
            N,
            [x, i, u],
            calls=["combine"],
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
        )

    return graph


def one_by_one(order: tuple[int, int]) -> Graph:
    """Two elements written one after the other."""

    def graph(b: Builder) -> int:
        x, i, u = b.parameter("f32", N), b.parameter("s32", (2, 1)), b.parameter("f32", (2,))
        for k in order:
            at = b.add("reshape", "s32", (), [b.add("slice", "s32", (1, 1), [i], starts=(k, 0), limits=(k + 1, 1), strides=(1, 1))])
            x = b.add(
                "dynamic-update-slice", "f32", N, [x, b.add("slice", "f32", (1,), [u], starts=(k,), limits=(k + 1,), strides=(1,)), at]
            )
        return x

    return graph


def updated(b: Builder, *, inside: bool) -> int:
    """A window written at a start that may be out of range; ``inside`` masks by the start as it is."""
    x, u, i = b.parameter("f32", (8,)), b.parameter("f32", (2,)), b.parameter("s32")
    if not inside:
        return b.add("dynamic-update-slice", "f32", (8,), [x, u, i])
    at = b.add("iota", "s32", (8,), iota_dimension=0)
    start = b.broadcast(i, (8,))
    low = compared(b, at, start, "GE")
    high = compared(b, at, b.like("add", start, filled(b, 2, "s32", (8,))), "LT")
    written = b.add("dynamic-update-slice", "f32", (8,), [filled(b, 0.0, dims=(8,)), u, i])
    return b.add("select", "f32", (8,), [b.like("and", low, high), written, x])


INDICES: dict[str, tuple[Graph, Graph]] = {
    "slices of slices merge": (clamped_twice, clamped_once),
    "scatter-add drops what is outside": (scattered("add"), scattered("add", clamp=True)),
    "which of two writes wins": (one_by_one((0, 1)), one_by_one((1, 0))),
    "a scatter that may write twice": (scattered("set"), one_by_one((0, 1))),
    "the start of an update is clamped": (lambda b: updated(b, inside=False), lambda b: updated(b, inside=True)),
}


@pytest.mark.parametrize("name", INDICES)
def test_different_indices(name: str) -> None:
    assert not equal(*INDICES[name])
    assert equal(INDICES[name][0], INDICES[name][0])


# -- devices -----------------------------------------------------------------------------------------------------------------
WEIGHT = (4, 8)


def product(b: Builder) -> int:
    x, w = b.parameter("f32", (2, 8)), b.parameter("f32", (8, 4))
    return b.add("dot", "f32", (2, 4), [x, w], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))


def partial(reductions: int, groups: tuple[tuple[int, ...], ...] = ()) -> Graph:
    def graph(b: Builder) -> int:
        x, w = b.parameter("f32", (2, 4)), b.parameter("f32", (4, 4))
        y = b.add("dot", "f32", (2, 4), [x, w], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
        for _ in range(reductions):
            y = b.add("all-reduce", "f32", (2, 4), [y], calls=[b.reducer("add", "f32")], replica_groups=groups)
        return y

    return graph


@pytest.mark.parametrize(
    ("reductions", "groups", "verified"),
    [
        (1, ((0, 1), (2, 3)), True),
        (0, (), False),
        (2, ((0, 1), (2, 3)), False),
        (1, (), False),  # also over the replicas: twice too much
        (1, ((0, 2), (1, 3)), False),
        (1, ((0,), (1,), (2,), (3,)), False),
    ],
)
def test_reductions_over_devices(reductions: int, groups: tuple[tuple[int, ...], ...], verified: bool) -> None:
    found = equal(product, partial(reductions, groups), mesh="{dp: 2, tp: 2}", inputs="null, tp; tp, null")
    assert found is verified


def shifted_by_device(b: Builder, *, axis: str) -> int:
    """``x + index of the device along an axis`` of the mesh {a: 2, b: 2}."""
    x = b.parameter("f32", (2,))
    device = b.add("convert", "s32", (), [b.add("partition-id", "u32")])
    index = b.like("divide" if axis == "a" else "remainder", device, b.constant("s32", 2))
    start = b.like("multiply", index, b.constant("s32", 2))
    position = b.like("add", b.add("iota", "s32", (2,), iota_dimension=0), b.broadcast(start, (2,)))
    return b.like("add", x, converted(b, position, "f32"))


@pytest.mark.parametrize(("axis", "verified"), [("a", True), ("b", False)])
def test_positions_of_a_sharded_dimension(axis: str, verified: bool) -> None:
    whole = of(lambda b, x: b.like("add", x, b.add("iota", "f32", N, iota_dimension=0)))
    assert equal(whole, lambda b: shifted_by_device(b, axis=axis), mesh="{a: 2, b: 2}", inputs="a", outputs="a") is verified


def gathered_after(b: Builder, *, order: bool) -> int:
    """A replicated and a sharded part joined, before or after the sharded one is gathered."""
    x, y = b.parameter("f32", (2,)), b.parameter("f32", (1,))
    if order:
        return b.add("concatenate", "f32", N, [x, b.add("all-gather", "f32", (2,), [y], dimensions=(0,))], dimensions=(0,))
    half = b.add("slice", "f32", (1,), [x], starts=(0,), limits=(1,), strides=(1,))
    return b.add("all-gather", "f32", N, [b.add("concatenate", "f32", (2,), [half, y], dimensions=(0,))], dimensions=(0,))


@pytest.mark.parametrize("order", [True, False])
def test_joining_replicated_and_sharded_parts(order: bool) -> None:
    def whole(b: Builder) -> int:
        return b.add("concatenate", "f32", N, [b.parameter("f32", (2,)), b.parameter("f32", (2,))], dimensions=(0,))

    assert equal(whole, lambda b: gathered_after(b, order=order), mesh="{d: 2}", inputs="null; d") is order


@pytest.mark.parametrize("opcode", ["rng", "custom-call"])
def test_effects_are_never_shared(opcode: str) -> None:
    """A random number is equal to no other, and need not be the same on all devices."""
    attributes: dict[str, Any] = {"distribution": "rng_uniform"} if opcode == "rng" else {"custom_call_target": "reads_the_device"}

    def graph(b: Builder) -> int:
        x = b.parameter("f32", N)
        operands = [b.constant("f32", 0.0), b.constant("f32", 1.0)] if opcode == "rng" else [x]
        return b.like("add", x, b.add(opcode, "f32", N, operands, **attributes))

    assert not equal(graph, graph)
    assert not equal(graph, graph, mesh="{d: 2}")


def test_asynchronous_permutes_hand_on_what_was_received() -> None:
    def graph(b: Builder, *, moves: bool) -> int:
        x = b.parameter("f32", (2,))
        row = b.shape(x)
        if not moves:
            return x
        from scalify.hlo.module import Shape  # noqa: PLC0415

        start = b.add("collective-permute-start", Shape("tuple", (), (row, row)), (), [x], source_target_pairs=((0, 1), (1, 0)))
        return b.add("collective-permute-done", row, (), [start])

    assert not equal(unary(), lambda b: graph(b, moves=True), mesh="{d: 2}", inputs="d", outputs="d")
    assert equal(unary(), lambda b: graph(b, moves=False), mesh="{d: 2}", inputs="d", outputs="d")


@pytest.mark.parametrize("copied", [False, True])
def test_bitcast_reads_the_memory_of_its_operand(*, copied: bool) -> None:
    """A copy into another memory layout changes nothing but what a bitcast of it is."""
    rows, columns = (1, 0), (0, 1)

    def flat(layout: tuple[int, int], *, copy: bool) -> Graph:
        def graph(b: Builder) -> int:
            x = b.add("transpose", Shape("f32", (3, 2), layout=columns), (), [b.parameter("f32", (2, 3))], dimensions=(1, 0))
            y = b.add("copy", Shape("f32", (3, 2), layout=layout), (), [x]) if copy else x
            return b.add("bitcast", Shape("f32", (6,), layout=(0,)), (), [y])

        return graph

    def reshaped(b: Builder) -> int:
        x = b.parameter("f32", (2, 3))
        y = b.add("transpose", "f32", (3, 2), [x], dimensions=(1, 0)) if copied else x
        return b.add("reshape", "f32", (6,), [y])

    assert equal(reshaped, flat(rows, copy=copied))
    assert not equal(flat(rows, copy=True), flat(columns, copy=False))
    assert equal(flat(columns, copy=True), flat(columns, copy=False))


@pytest.mark.parametrize(("direction", "right"), [("GE", True), ("LE", True), ("GT", False), ("LT", False)])
def test_infinite_start_of_a_running_maximum(direction: str, *, right: bool) -> None:
    """``exp(-inf - max)`` is 0 where each row has an element that the mask lets through, and undefined in a row without one."""

    def rescaled(b: Builder) -> int:
        x = b.parameter("f32", (4, 4))
        rows, columns = (b.add("iota", "s32", (4, 4), iota_dimension=d) for d in (0, 1))
        low = filled(b, -math.inf, dims=(4, 4))
        kept = b.add("select", "f32", (4, 4), [compared(b, rows, columns, direction), x, low])
        greatest = reduced(b, kept, "maximum", (1,), -math.inf)
        return b.like("exponential", b.like("subtract", filled(b, -math.inf), greatest))

    def zero(b: Builder) -> int:
        b.parameter("f32", (4, 4))
        return filled(b, 0.0)

    assert equal(zero, rescaled) == right


@pytest.mark.parametrize(("least", "right"), [(0, True), (1, True), (-1, False)])
def test_masked_index_is_not_negative(least: int, *, right: bool) -> None:
    """``i`` where ``i >= least``, else 0, is not below 0: counting from the end, as array libraries do for negative indices, changes nothing."""

    def masked(b: Builder, x: int) -> int:
        return b.like("select", compared(b, x, filled(b, least, "s32"), "GE"), x, filled(b, 0, "s32"))

    def wrapped(b: Builder, x: int) -> int:
        y = masked(b, x)
        return b.add("select", "s32", N, [compared(b, y, filled(b, 0, "s32"), "LT"), b.like("add", y, filled(b, 7, "s32")), y])

    more = "assume:\n  - {baseline: 0, range: [-9, 9]}"
    assert equal(of(masked, "s32"), of(wrapped, "s32"), more=more) == right


def test_shifts_by_log_sum_exp_do_not_overflow() -> None:
    """``exp(x - log sum exp(x))`` is at most 1; without the maximum inside the sum that overflows by itself."""

    def softmax(b: Builder, x: int) -> int:
        e = b.like("exponential", b.like("subtract", x, along(b, reduced(b, x, "maximum", (1,), -math.inf))))
        return b.like("divide", e, along(b, reduced(b, e, "add", (1,), 0.0)))

    def shifted(b: Builder, x: int) -> int:
        top = reduced(b, x, "maximum", (1,), -math.inf)
        inside = reduced(b, b.like("exponential", b.like("subtract", x, along(b, top))), "add", (1,), 0.0)
        return b.like("exponential", b.like("subtract", x, along(b, b.like("add", top, b.like("log", inside)))))

    def bare(b: Builder, x: int) -> int:
        inside = reduced(b, b.like("exponential", x), "add", (1,), 0.0)
        return b.like("exponential", b.like("subtract", x, along(b, b.like("log", inside))))

    def along(b: Builder, x: int) -> int:
        return b.add("broadcast", "f32", (3, 4), [x], dimensions=(0,))

    assert equal(of(softmax, dims=(3, 4)), of(shifted, dims=(3, 4)))
    assert not equal(of(softmax, dims=(3, 4)), of(bare, dims=(3, 4)))


@pytest.mark.parametrize(("low", "high", "right"), [(0, 8, True), (0, 9, False), (-1, 8, False)])
def test_log_softmax_looked_up(low: int, high: int, *, right: bool) -> None:
    """``sum_v [v = t] (x_v - c)`` is ``x_t - c`` where t is surely one of the v."""

    def looked_up(*, shifted_first: bool) -> Graph:
        def graph(b: Builder) -> int:
            x, c = b.parameter("f32", (3, 8)), b.parameter("f32", (3,))
            t = b.add("broadcast", "s32", (3, 8), [b.parameter("s32", (3,))], dimensions=(0,))
            hit = compared(b, b.add("iota", "s32", (3, 8), iota_dimension=1), t, "EQ")
            y = b.like("subtract", x, b.add("broadcast", "f32", (3, 8), [c], dimensions=(0,))) if shifted_first else x
            found = reduced(b, b.add("select", "f32", (3, 8), [hit, y, filled(b, 0.0, dims=(3, 8))]), "add", (1,), 0.0)
            return found if shifted_first else b.like("subtract", found, c)

        return graph

    more = f"assume:\n  - {{baseline: 2, range: [{low}, {high}]}}"
    assert equal(looked_up(shifted_first=True), looked_up(shifted_first=False), inputs=";;", more=more) == right


@pytest.mark.parametrize(("high", "right"), [(8, True), (9, False)])
def test_each_position_belongs_to_one_device(high: int, *, right: bool) -> None:
    """``[4 r <= t][t <= 4 r + 3]`` holds on exactly one of two devices where ``0 <= t < 8``."""

    def one(b: Builder) -> int:
        b.parameter("s32", N)
        return filled(b, 1, "s32")

    def counted(b: Builder) -> int:
        t = b.parameter("s32", N)
        r = b.add("convert", "s32", (), [b.add("partition-id", "u32", (), [])])
        start = b.broadcast(b.like("multiply", r, b.constant("s32", 4)), N)
        own = b.like("and", compared(b, t, start, "GE"), compared(b, t, b.like("add", start, filled(b, 3, "s32")), "LE"))
        mine = b.add("convert", "s32", N, [own])
        return b.add("all-reduce", "s32", N, [mine], calls=[b.reducer("add", "s32")], replica_groups=((0, 1),))

    more = f"assume:\n  - {{baseline: 0, range: [0, {high}]}}"
    assert equal(one, counted, mesh="{d: 2}", more=more) == right


@pytest.mark.parametrize("chooses", [True, False])
def test_argmax_is_a_position(*, chooses: bool) -> None:
    """A reduction that chooses among positions gives one of them; one that adds to them need not."""

    def graph(b: Builder, *, wrap: bool) -> int:
        x = b.parameter("f32", (3, 8))
        places = b.add("iota", "s32", (3, 8), iota_dimension=1)
        inner = b.computation("pick")
        a, i, c, j = (inner.parameter(t) for t in ("f32", "s32", "f32", "s32"))
        first = inner.add("compare", "pred", (), [a, c], direction="GE")
        second = j if chooses else inner.add("subtract", "s32", (), [i, j])
        inner.end(inner.tuple(inner.add("select", "f32", (), [first, a, c]), inner.add("select", "s32", (), [first, i, second])))
        shape = Shape("tuple", elements=(Shape("f32", (3,)), Shape("s32", (3,))))
        both = b.add("reduce", shape, (), [x, places, b.constant("f32", -math.inf), b.constant("s32", 0)], calls=["pick"], dimensions=(1,))
        found = b.add("get-tuple-element", "s32", (3,), [both], index=1)
        below = compared(b, found, filled(b, 0, "s32", (3,)), "LT")
        return b.like("select", below, b.like("add", found, filled(b, 8, "s32", (3,))), found) if wrap else found

    assert equal(lambda b: graph(b, wrap=False), lambda b: graph(b, wrap=True)) == chooses


@pytest.mark.parametrize("weights", [(0, 1), (0, 2), (1, 0)])
def test_weight_of_one_element(weights: tuple[int, int]) -> None:
    """``sum_v v x_v`` over two elements is the second."""

    def weighted(b: Builder) -> int:
        x = b.parameter("f32", (3, 2))
        w = b.add("convert", "f32", (3, 2), [b.add("iota", "s32", (3, 2), iota_dimension=1)])
        return reduced(b, b.like("multiply", x, w), "add", (1,), 0.0)

    def taken(b: Builder) -> int:
        x = b.parameter("f32", (3, 2))
        w = b.add("convert", "f32", (2,), [b.constant("s32", np.array(weights, dtype=np.int32))])
        return reduced(b, b.like("multiply", x, b.add("broadcast", "f32", (3, 2), [w], dimensions=(1,))), "add", (1,), 0.0)

    assert equal(weighted, taken) == (weights == (0, 1))


@pytest.mark.parametrize(("total", "right"), [(0, True), (1, False), (6, True)])
def test_sum_of_positions_at_its_end(total: int, *, right: bool) -> None:
    """``[i + j = 0]`` is ``[i = 0][j = 0]``, and so it is at the greatest value that the sum can have; between them it is not."""

    def positions(b: Builder) -> list[int]:
        return [b.add("iota", "s32", (4, 4), iota_dimension=d) for d in (0, 1)]

    def together(b: Builder) -> int:
        return compared(b, b.like("add", *positions(b)), filled(b, total, "s32", (4, 4)), "EQ")

    def apart(b: Builder) -> int:
        ends = [compared(b, p, filled(b, total // 2, "s32", (4, 4)), "EQ") for p in positions(b)]
        return b.like("and", *ends)

    assert equal(together, apart) == right


@pytest.mark.parametrize("start", [1, 0])
def test_halo_of_a_convolution(start: int) -> None:
    """Rows cut over two devices: each gets the neighbours' nearest rows, zeros at the ends; the same rows from the wrong end are another thing."""
    line = ConvDims(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))

    def whole(b: Builder) -> int:
        x, k = b.parameter("f32", (2, 8, 3)), b.parameter("f32", (3, 3, 3))
        return b.add("convolution", "f32", (2, 8, 3), [x, k], window=(WindowDimension(3, 1, 1, 1),), dim_labels=line)

    def cut(b: Builder) -> int:
        x, k = b.parameter("f32", (2, 4, 3)), b.parameter("f32", (3, 3, 3))
        edges = [b.add("slice", "f32", (2, 1, 3), [x], starts=(0, s, 0), limits=(2, s + 1, 3), strides=(1, 1, 1)) for s in (3 * start, 0)]
        left = b.add("collective-permute", "f32", (2, 1, 3), [edges[0]], source_target_pairs=((0, 1),))
        right = b.add("collective-permute", "f32", (2, 1, 3), [edges[1]], source_target_pairs=((1, 0),))
        rows = b.add("concatenate", "f32", (2, 6, 3), [left, x, right], dimensions=(1,))
        return b.add("convolution", "f32", (2, 4, 3), [rows, k], window=(WindowDimension(3),), dim_labels=line)

    assert equal(whole, cut, mesh="{d: 2}", inputs="null, d;", outputs="null, d") == bool(start)


@pytest.mark.parametrize(("base", "right"), [(7.0, True), (-7.0, False)])
def test_falling_powers(base: float, *, right: bool) -> None:
    """``1 / a ** x`` is ``a ** -x`` for a constant a above 0."""

    def divided(b: Builder, x: int) -> int:
        return b.like("divide", filled(b, 1.0), b.like("power", filled(b, base), x))

    def negated(b: Builder, x: int) -> int:
        return b.like("power", filled(b, base), b.like("negate", x))

    assert equal(of(divided), of(negated)) == right
    assert not equal(of(divided), of(lambda b, x: b.like("power", filled(b, base), x)))
