"""Evaluation of modules in any domain: what is kept, unknown values, several modules together, opaque calls, budgets."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scalify.errors import HloError, OverBudget, Undecidable, UsageError
from scalify.hlo.interpret import DOMAINS, EVERYTHING, Budget, evaluate
from scalify.hlo.module import Module, Shape
from scalify.hlo.semantics.custom_calls import BATCH
from scalify.hlo.semantics.effects import PAIRS
from tests.support.builder import Builder

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

ALL = ("f64", "declared", "rational", "field")
TOKEN = Shape("token")


def floats(*values: float) -> Array:
    return np.array([values])


def decoded(domain: str, array: Array) -> list[Any]:
    """Results that are multiples of 1/64, as floats."""
    if domain != "field":
        found: list[Any] = array.astype(np.float64).tolist()
        return found
    whole = DOMAINS["field"]().convert(
        DOMAINS["field"]().apply("multiply", [array, DOMAINS["field"]().number(64, "f32")], "f32"), "f32", "s64"
    )
    scaled: list[Any] = (whole / 64).tolist()
    return scaled


# -- one module ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("domain", ALL)
def test_a_module_on_a_mesh_in_every_domain(domain: str) -> None:
    b = Builder()
    x, w = b.parameter("f32", (2, 3)), b.parameter("f32", (3, 2))
    dot = b.add("dot", "f32", (2, 2), [x, w], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
    total = b.add("all-reduce", "f32", (2, 2), [dot], calls=[b.reducer("add", "f32")], replica_groups=((0, 2), (1, 3)))
    index = b.add("convert", "f32", (), [b.add("partition-id", "u32")])
    shifted = b.like("add", b.broadcast(index, (2, 2)), b.like("maximum", total, b.broadcast(b.constant("f32", 0.0), (2, 2))))
    module = b.build(
        [shifted, b.add("reduce", "f32", (2,), [shifted, b.constant("f32", 0.5)], calls=[b.reducer("add", "f32")], dimensions=(0,))]
    )
    rng = np.random.default_rng(0)
    left, right = rng.integers(-8, 8, (4, 2, 3)) / 4, rng.integers(-8, 8, (4, 3, 2)) / 2
    products = left @ right
    expected = np.maximum(products + products[[2, 3, 0, 1]], 0) + np.arange(4)[:, None, None]
    found = evaluate(module, [left, right], 4, domain=domain)
    assert decoded(domain, found.outputs[0][0]) == expected.tolist()
    assert decoded(domain, found.outputs[0][1]) == (expected.sum(1) + 0.5).tolist()
    assert not found.arbitrary


def test_a_domain_of_ones_own_and_wrong_names() -> None:
    b = Builder()
    module = b.build(b.parameter("f32", (1,)))
    assert evaluate(module, [floats(1.0)], domain=DOMAINS["rational"]).outputs[0][0].tolist() == [[1]]
    with pytest.raises(UsageError, match="the domain is one of"):
        evaluate(module, [floats(1.0)], domain="complex")


def test_given_fractions_stay_exact() -> None:
    b = Builder()
    x = b.parameter("f32", (1,))
    third = np.array([[Fraction(1, 3)]], object)
    assert evaluate(b.build(b.like("add", x, x)), [third], domain="rational").outputs[0][0].tolist() == [[Fraction(2, 3)]]


def loop() -> Module:
    b = Builder()
    state = Shape("tuple", (), (Shape("s32"), Shape("f32")))
    condition, body = b.computation("condition"), b.computation("body")
    count = condition.get(condition.parameter(state), 0)
    condition.end(condition.add("compare", "pred", (), [count, condition.constant("s32", 0)], direction="GT"))
    inner = body.parameter(state)
    count, value = body.get(inner, 0), body.get(inner, 1)
    body.end(body.tuple(body.like("subtract", count, body.constant("s32", 1)), body.like("multiply", value, body.constant("f32", 0.5))))
    start = b.tuple(b.parameter("s32"), b.parameter("f32"))
    return b.build(b.get(b.add("while", state, (), [start], calls=["condition", "body"]), 1))


@pytest.mark.parametrize("domain", ALL)
def test_loops_with_different_trip_counts(domain: str) -> None:
    found = evaluate(loop(), [np.array([0, 1, 3]), np.array([1.0, 2.0, 4.0])], 3, domain=domain)
    assert decoded(domain, found.outputs[0][0]) == [1.0, 1.0, 0.5]


def test_kept_values() -> None:
    """One for each execution, on the devices that took part."""
    module = loop()
    multiply = next(n for n, i in enumerate(module.computations["body"].instructions) if i.opcode == "multiply")
    place = (0, "body", multiply)
    kept = evaluate(module, [np.array([0, 1, 2]), np.array([1.0, 2.0, 4.0])], 3, keep={place}).kept
    assert list(kept) == [place]
    assert [(k.devices.tolist(), k.value.tolist()) for k in kept[place]] == [([1, 2], [1.0, 2.0]), ([2], [1.0])]
    every = evaluate(module, [np.array([0, 1, 2]), np.array([1.0, 2.0, 4.0])], 3, keep=EVERYTHING).kept
    assert {(0, "main", n) for n in range(len(module.entry.instructions))} < set(every)


def test_values_held_at_once_are_bounded() -> None:
    b = Builder()
    x = b.parameter("f32", (64,))
    values = [b.like("add", x, x) for _ in range(20)]
    module = b.build(values)
    evaluate(module, [np.zeros((1, 64))], budget=Budget(live=64 * 21))
    with pytest.raises(OverBudget, match="held at once"):
        evaluate(module, [np.zeros((1, 64))], budget=Budget(live=64 * 10))
    with pytest.raises(OverBudget, match="operations"):
        evaluate(module, [np.zeros((1, 64))], domain="rational", budget=Budget(operations=1 << 16))


def test_values_are_let_go_after_their_last_use() -> None:
    b = Builder()
    x = b.parameter("f32", (64,))
    for _ in range(100):
        x = b.like("add", x, x)
    assert evaluate(b.build(x), [np.zeros((1, 64))], budget=Budget(live=64 * 4)).outputs


# -- unknown values --------------------------------------------------------------------------------------------------------
def test_random_numbers_are_unknown_and_never_shared() -> None:
    b = Builder()
    zero, one = b.constant("f32", 0.0), b.constant("f32", 1.0)
    draws = [b.add("rng", "f32", (8,), [zero, one], distribution="rng_uniform") for _ in range(2)]
    whole = b.add("rng", "s32", (8,), [b.constant("s32", -2), b.constant("s32", 3)], distribution="rng_uniform")
    normal = b.add("rng", "f32", (8,), [zero, one], distribution="rng_normal")
    state = b.add("rng-get-and-update-state", "u64", (2,))
    module = b.build([*draws, whole, normal, state])
    first, again, other, label = (
        evaluate(module, [], 2, seed=seed, label=name).outputs[0] for seed, name in ((0, ""), (0, ""), (1, ""), (0, "distributed"))
    )
    assert all((x == y).all() for x, y in zip(first, again, strict=True))
    assert all((x != y).any() for x, y in (*zip(first, other, strict=True), *zip(first, label, strict=True)))
    assert all((x[0] != x[1]).any() for x in first)
    assert (first[0] != first[1]).all()
    assert ((first[0] >= 0) & (first[0] < 1)).all()
    assert set(first[2].reshape(-1).tolist()) <= {-2, -1, 0, 1, 2}
    exact = evaluate(module, [], 2, domain="rational")
    assert exact.arbitrary == {"unknown values"}
    assert exact.outputs[0][0].astype(np.float64).tolist() == first[0].tolist()


def test_random_bits_are_a_function_of_the_state() -> None:
    b = Builder()
    shape = Shape("tuple", (), (Shape("u64", (2,)), Shape("u32", (3,))))
    state = b.parameter("u64", (2,))
    found = [b.add("rng-bit-generator", shape, (), [state], algorithm="rng_default") for _ in range(2)]
    module = b.build([b.get(v, n) for v in found for n in range(2)])
    outputs = evaluate(module, [np.array([[1, 2], [1, 2], [2, 1]], np.uint64)], 3).outputs[0]
    assert (outputs[0] == outputs[2]).all()
    assert (outputs[1] == outputs[3]).all()
    assert (outputs[1][0] == outputs[1][1]).all()
    assert (outputs[1][0] != outputs[1][2]).all()


def test_host_transfers() -> None:
    b = Builder()
    token = b.add("after-all", TOKEN)
    fed = b.add("infeed", Shape("tuple", (), (Shape("f32", (4,)), TOKEN)), (), [token], infeed_config="")
    value = b.get(fed, 0)
    done = b.add("outfeed", TOKEN, (), [value, token], outfeed_config="")
    shape = Shape("tuple", (), (Shape("f32", (4,)), Shape("u32"), TOKEN))
    sent = b.add("send-done", TOKEN, (), [b.add("send", shape, (), [value, done], channel_id=1, is_host_transfer=True)], channel_id=1)
    received = b.add("recv", shape, (), [sent], channel_id=2, is_host_transfer=True)
    result = b.get(b.add("recv-done", Shape("tuple", (), (Shape("f32", (4,)), TOKEN)), (), [received], channel_id=2), 0)
    outputs = evaluate(b.build([value, result]), [], 2).outputs[0]
    assert len({v for x in outputs for v in x.reshape(-1).tolist()}) == 16


# -- opaque calls ----------------------------------------------------------------------------------------------------------
def opaque(batch: tuple[tuple[tuple[int, int], ...], ...] | None, target: str = "Attention") -> Module:
    b = Builder()
    x, y = b.parameter("f32", (2, 3)), b.parameter("f32", (2,))
    more: dict[str, Any] = {} if batch is None else {BATCH: batch}
    shape = Shape("tuple", (), (Shape("f32", (2, 4)), Shape("s32", (2,))))
    call = b.add("custom-call", shape, (), [x, y], custom_call_target=target, **more)
    return b.build([b.get(call, n) for n in range(2)])


@pytest.mark.parametrize("domain", ALL)
def test_opaque_calls_act_on_each_row_of_their_batch_dimensions(domain: str) -> None:
    x = np.array([[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]])
    y = np.array([[5.0, 5.0], [5.0, 7.0]])
    found = evaluate(opaque((((0, 0),), ((0, 0),))), [x, y], 2, domain=domain)
    assert "custom call" in found.arbitrary
    rows = [(found.outputs[0][0][d, r].tolist(), int(found.outputs[0][1][d, r])) for d in range(2) for r in range(2)]
    assert rows[0] == rows[1]
    assert len({str(r) for r in rows}) == 3
    whole = evaluate(opaque((((0, 0),), ())), [x, y], 2, domain=domain)
    assert (whole.outputs[0][0][0, 0] == whole.outputs[0][0][0, 1]).all()
    assert (whole.outputs[0][0][1, 1] != whole.outputs[0][0][0, 1]).all()


def test_unregistered_calls_are_undecidable() -> None:
    with pytest.raises(Undecidable, match="'Attention' has no reference semantics"):
        evaluate(opaque(None), [np.zeros((1, 2, 3)), np.zeros((1, 2))])


# -- several modules -------------------------------------------------------------------------------------------------------
def rank(scale: float, groups: tuple[tuple[int, ...], ...] = (), opcode: str = "all-reduce") -> Module:
    b = Builder(f"scale{scale}")
    x = b.parameter("f32", (2,))
    y = b.like("multiply", x, b.broadcast(b.constant("f32", scale), (2,)))
    calls = [b.reducer("add", "f32")] if opcode == "all-reduce" else []
    more: dict[str, Any] = {"replica_groups": groups} if opcode == "all-reduce" else {"source_target_pairs": groups}
    return b.build(b.add(opcode, "f32", (2,), [y], calls=calls, **more))


@pytest.mark.parametrize("domain", ALL)
def test_modules_meet_in_collectives(domain: str) -> None:
    modules = [rank(float(n)) for n in range(1, 4)]
    inputs = [[np.array([[1.0, 10.0]])] for _ in modules]
    found = evaluate(modules, inputs, [[0], [1], [2]], domain=domain)
    assert [decoded(domain, o[0]) for o in found.outputs] == [[[6.0, 60.0]]] * 3


def test_modules_of_several_devices() -> None:
    modules = [rank(1.0, ((0, 3), (1, 2))), rank(2.0, ((0, 3), (1, 2)))]
    inputs = [[np.array([[1.0, 1.0], [2.0, 2.0]])], [np.array([[3.0, 3.0], [4.0, 4.0]])]]
    found = evaluate(modules, inputs, [[1, 0], [2, 3]])
    assert found.outputs[0][0].tolist() == [[7.0, 7.0], [10.0, 10.0]]
    assert found.outputs[1][0].tolist() == [[7.0, 7.0], [10.0, 10.0]]


def test_stages_permute() -> None:
    modules = [rank(float(n + 1), ((0, 1), (1, 2)), "collective-permute") for n in range(3)]
    found = evaluate(modules, [[np.ones((1, 2))]] * 3, [[0], [1], [2]])
    assert [o[0][0, 0] for o in found.outputs] == [0.0, 1.0, 2.0]


def test_modules_that_never_meet() -> None:
    for modules in ([rank(1.0), rank(1.0, (), "collective-permute")], [rank(1.0), rank(2.0, ((0,), (1,)))]):
        with pytest.raises(HloError, match="waits for other devices for ever"):
            evaluate(modules, [[np.ones((1, 2))]] * 2, [[0], [1]])


def test_wrong_devices() -> None:
    for devices in ([[0], [0]], [[0], [2]], [[0]], [[0], []]):
        with pytest.raises(UsageError, match="device"):
            evaluate([rank(1.0), rank(2.0)], [[np.ones((1, 2))]] * 2, devices)
    with pytest.raises(UsageError, match="inputs of 1 modules"):
        evaluate([rank(1.0), rank(2.0)], [[np.ones((1, 2))]], [[0], [1]])


TRANSFER = Shape("tuple", (), (Shape("f32", (2,)), Shape("u32"), TOKEN))
RECEIVED = Shape("tuple", (), (Shape("f32", (2,)), TOKEN))


def stage(sends: bool, receives: bool, attributes: dict[str, Any] | None = None) -> Module:
    """Adds 1 to what comes (or to the parameter) and hands it on. The message is awaited before the other one is sent."""
    b = Builder()
    x, token, more = b.parameter("f32", (2,)), b.add("after-all", TOKEN), {"channel_id": 1, **(attributes or {})}
    if receives:
        started = b.add("recv", TRANSFER, (), [token], **more)
        x = b.get(b.add("recv-done", RECEIVED, (), [started], channel_id=1), 0)
    result = b.like("add", x, b.broadcast(b.constant("f32", 1.0), (2,)))
    if sends:
        source = result if not receives else 0
        b.add("send-done", TOKEN, (), [b.add("send", TRANSFER, (), [source, token], **more)], channel_id=1)
    return b.build(result)


@pytest.mark.parametrize("domain", ALL)
def test_messages_between_modules(domain: str) -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = evaluate(
        [stage(sends=False, receives=True), stage(sends=True, receives=False)], [[x * 0], [x]], [[0, 1], [2, 3]], domain=domain
    )
    assert decoded(domain, found.outputs[0][0]) == (x + 2).tolist()


def test_messages_between_devices_of_one_module() -> None:
    module = stage(sends=True, receives=True, attributes={"frontend_attributes": {PAIRS: "{{0,1},{1,2}}"}})
    found = evaluate(module, [np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])], 3)
    assert found.outputs[0][0][:, 0].tolist() == [1.0, 2.0, 3.0]


def test_messages_that_never_come() -> None:
    with pytest.raises(HloError, match="waits for other devices for ever"):
        evaluate(stage(sends=False, receives=True, attributes={"frontend_attributes": {PAIRS: "{{0,1}}"}}), [np.zeros((2, 2))], 2)
    with pytest.raises(Undecidable, match="which device sends"):
        evaluate(stage(sends=True, receives=True), [np.zeros((2, 2))], 2)


# -- opcodes without another home ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("domain", ALL)
def test_ragged_dot(domain: str) -> None:
    rng = np.random.default_rng(0)
    x, w, sizes = rng.integers(-4, 4, (5, 3)), rng.integers(-4, 4, (2, 3, 2)), np.array([2, 2])
    dims: dict[str, Any] = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (1,), "lhs_batch_dims": (), "rhs_batch_dims": ()}
    b = Builder()
    operands = [b.parameter("f32", (5, 3)), b.parameter("f32", (2, 3, 2)), b.parameter("s32", (2,))]
    free = b.add("ragged-dot", "f32", (5, 2), operands, lhs_ragged_dims=(0,), rhs_group_dims=(0,), **dims)
    found = evaluate(b.build(free), [x[None], w[None], sizes[None]], domain=domain).outputs[0][0]
    assert decoded(domain, found) == [[*(x[:2] @ w[0]).tolist(), *(x[2:4] @ w[1]).tolist(), [0, 0]]]
    b = Builder()
    operands = [b.parameter("f32", (5, 3)), b.parameter("f32", (5, 4)), b.parameter("s32", (2,))]
    inner = {**dims, "lhs_contracting_dims": (0,), "rhs_contracting_dims": (0,)}
    grouped = b.add("ragged-dot", "f32", (2, 3, 4), operands, lhs_ragged_dims=(0,), rhs_group_dims=(), **inner)
    y = rng.integers(-4, 4, (5, 4))
    found = evaluate(b.build(grouped), [x[None], y[None], sizes[None]], domain=domain).outputs[0][0]
    assert decoded(domain, found) == [[(x[:2].T @ y[:2]).tolist(), (x[2:4].T @ y[2:4]).tolist()]]


@pytest.mark.parametrize("domain", ALL)
def test_scaled_dot(domain: str) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(-4, 4, (2, 4)), rng.integers(-4, 4, (4, 3))
    scale = np.array([[1.0, 0.5], [2.0, 4.0]])
    b = Builder()
    operands = [b.parameter("f32", (2, 4)), b.parameter("f32", (4, 3)), b.parameter("f32", (2, 2)), b.parameter("f32")]
    module = b.build(
        b.add(
            "scaled-dot",
            "f32",
            (2, 3),
            operands,
            lhs_contracting_dims=(1,),
            rhs_contracting_dims=(0,),
            lhs_batch_dims=(),
            rhs_batch_dims=(),
        )
    )
    found = evaluate(module, [x[None], w[None], scale[None], np.array([2.0])], domain=domain).outputs[0][0]
    assert decoded(domain, found) == [((x * np.repeat(scale, 2, axis=1)) @ w * 2).tolist()]


def test_ragged_all_to_all() -> None:
    b = Builder()
    vectors = [b.parameter("s32", (2,)) for _ in range(4)]
    module = b.build(
        b.add("ragged-all-to-all", "s32", (4,), [b.parameter("s32", (3,)), b.parameter("s32", (4,)), *vectors], replica_groups=((1, 0),))
    )
    data, target = np.array([[1, 2, 3], [4, 5, 6]]), np.full((2, 4), -1)
    # Members of the group are devices 1 and 0, in that order.
    starts, sizes, places = np.array([[0, 1], [0, 2]]), np.array([[1, 2], [2, 1]]), np.array([[2, 0], [0, 3]])
    found = evaluate(module, [starts, sizes, places, sizes, data, target], 2).outputs[0][0]
    assert found.tolist() == [[2, 3, -1, 6], [4, 5, 1, -1]]


@pytest.mark.parametrize("domain", ["f64", "rational", "field"])
def test_stochastic_convert(domain: str) -> None:
    b = Builder()
    module = b.build(
        [
            b.add(opcode, dtype, (4,), [b.parameter("f32", (4,)), b.parameter("u8", (4,))])
            for opcode, dtype in (("stochastic-convert", "s32"), ("stochastic-convert", "bf16"))
        ]
    )
    x, noise = floats(1.5, 1.5, -1.5, 3.0), np.array([[127, 128, 0, 0]])
    found = evaluate(module, [x, noise, x, noise], domain=domain).outputs[0]
    assert found[0].tolist() == [[2, 1, -2, 3]]
    assert decoded(domain, found[1]) == x.tolist()


def test_a_dimension_may_be_set_to_its_own_size_only() -> None:
    b = Builder()
    module = b.build(b.add("set-dimension-size", "f32", (3,), [b.parameter("f32", (3,)), b.parameter("s32")], dimensions=(0,)))
    assert evaluate(module, [floats(1.0, 2.0, 3.0), np.array([3])]).outputs[0][0].tolist() == [[1.0, 2.0, 3.0]]
    with pytest.raises(HloError, match="run time"):
        evaluate(module, [floats(1.0, 2.0, 3.0), np.array([2])])
