"""Custom calls: decompositions against execution, what opaque calls keep, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scalify.hlo.module import Instruction, Location, Module, Shape
from scalify.lift.custom_calls import Decomposition, Identity, Opaque, Registry, expand
from scalify.lift.known_calls import BUILT_IN
from scalify.lift.pair import claimed, lift_pair
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from tests.lift.support import check
from tests.support.builder import Builder

RNG = np.random.default_rng(5)
MARKER = "AwsNeuronModuleMarkerStart-Forward"


def call(b: Builder, target: str, shape: Shape, *operands: int, config: str | None = None, **more: Any) -> int:
    attributes: dict[str, Any] = {"custom_call_target": target} | ({} if config is None else {"backend_config": config})
    return b.add("custom-call", shape, (), operands, **attributes, **more)


def opcodes(module: Module, registry: Registry = BUILT_IN) -> list[str]:
    return [i.opcode for i in expand(module, registry).entry.instructions]


def only(module: Module) -> Instruction:
    return next(i for i in expand(module, BUILT_IN).entry.instructions if i.opcode == "custom-call")


# -- decompositions against execution --------------------------------------------------------------------------------------
@pytest.mark.parametrize("dimension", [0, 1, 2, -1])
@pytest.mark.parametrize("spec", [(), ("tp",), (None, "tp"), (None, None, "tp")])
def test_rms_norm(dimension: int, spec: tuple[str | None, ...]) -> None:
    x = RNG.standard_normal((4, 6, 8))
    local = [n // 2 if d < len(spec) and spec[d] else n for d, n in enumerate(x.shape)]
    b = Builder()
    p = b.parameter("f32", local)
    weight = b.constant("f32", RNG.standard_normal(local[dimension]))
    call(b, "AwsNeuronRmsNorm", Shape("f32", tuple(local)), p, weight, b.constant("f32", 0.125), config=str(dimension))
    assert not check(b, [x], {"tp": 2}, [spec]).opaque


@pytest.mark.parametrize("config", [None, "0", "1", "2"])
def test_softmax(config: str | None) -> None:
    b = Builder()
    call(b, "AwsNeuronSoftmax", Shape("f32", (2, 4, 6)), b.parameter("f32", (2, 4, 6)), config=config)
    assert not check(b, [RNG.standard_normal((4, 4, 6))], {"dp": 2}, [("dp",)]).opaque


@pytest.mark.parametrize("target", ["AwsNeuronGelu", "AwsNeuronGeluApprxTanh", "AwsNeuronSilu", "AwsNeuronErf"])
def test_activations(target: str) -> None:
    b = Builder()
    call(b, target, Shape("f32", (3, 4)), b.parameter("f32", (3, 4)))
    assert not check(b, [3 * RNG.standard_normal((3, 8))], {"tp": 2}, [(None, "tp")]).opaque


def test_identities_and_their_tuples() -> None:
    b = Builder()
    x, y = b.parameter("f32", (3, 4)), b.parameter("s32", (2,))
    call(b, "Sharding", b.shape(x), x)
    call(b, "AwsNeuronTransferWithStaticRing", b.shape(x), x)
    pair = call(b, MARKER, Shape("tuple", (), (b.shape(x), b.shape(y))), x, y)
    b.get(pair, 0), b.get(pair, 1)
    assert not check(b, [RNG.standard_normal((3, 4)), np.array([4, -7])]).opaque


def test_opaque_calls_agree_with_themselves_only_along_their_batch() -> None:
    b = Builder()
    p = b.parameter("f32", (2, 3, 8))
    top = call(b, "AwsNeuronTopK", Shape("tuple", (), (Shape("f32", (2, 3, 4)), Shape("u32", (2, 3, 4)))), p, config="4")
    b.get(top, 0), b.get(top, 1)
    call(b, "AwsNeuronArgMax", Shape("u32", (2, 8)), p, config="1")
    assert check(b, [RNG.standard_normal((4, 3, 8))], {"dp": 2}, [("dp",)], opaque=True).checked == 5


# -- composite operations ------------------------------------------------------------------------------------------------
def batch_norm(dims: tuple[int, ...], feature: int, epsilon: float = 1e-5, order: tuple[int, ...] | None = None) -> Module:
    """Layer normalisation as frameworks write it: the rows are the features; ``order`` transposes the operand first."""
    b = Builder()
    p = b.parameter("f32", dims)
    if order is not None:
        dims = tuple(dims[d] for d in order)
        p = b.add("transpose", "f32", dims, [p], dimensions=order)
    kept = (dims[feature],)
    ones, zeros = b.broadcast(b.constant("f32", 1.0), kept), b.broadcast(b.constant("f32", 0.0), kept)
    shape = Shape("tuple", (), (Shape("f32", dims), Shape("f32", kept), Shape("f32", kept)))
    norm = b.add("batch-norm-training", shape, (), [p, ones, zeros], feature_index=feature, epsilon=epsilon)
    found = b.get(norm, 0)
    return b.build(found if order is None else b.add("transpose", "f32", [dims[d] for d in order], [found], dimensions=order))


@pytest.mark.parametrize("feature", [0, 1, 2])
@pytest.mark.parametrize("spec", [(), ("tp",), (None, None, "tp")])
def test_batch_norm_training(feature: int, spec: tuple[str | None, ...]) -> None:
    x = RNG.standard_normal((4, 3, 6))
    b = Builder()
    dims = tuple(n // 2 if spec[d : d + 1] == ("tp",) else n for d, n in enumerate(x.shape))
    p = b.parameter("f32", dims)
    kept = (dims[feature],)
    scale, offset = b.parameter("f32", kept), b.parameter("f32", kept)
    shape = Shape("tuple", (), (Shape("f32", dims), Shape("f32", kept), Shape("f32", kept)))
    norm = b.add("batch-norm-training", shape, (), [p, scale, offset], feature_index=feature, epsilon=0.25)
    [b.get(norm, k) for k in range(3)]
    vectors = [RNG.standard_normal(kept), RNG.standard_normal(kept)]
    assert not check(b, [x, *vectors], {"tp": 2}, [spec, (), ()]).opaque


def batch_norm_grad(dims: tuple[int, ...], feature: int, epsilon: float = 0.25) -> tuple[Builder, int]:
    b = Builder()
    x, kept = b.parameter("f32", dims), (dims[feature],)
    vectors = [b.parameter("f32", kept) for _ in range(3)]
    shape = Shape("tuple", (), (Shape("f32", dims), Shape("f32", kept), Shape("f32", kept)))
    grads = b.add("batch-norm-grad", shape, (), [x, *vectors, b.parameter("f32", dims)], feature_index=feature, epsilon=epsilon)
    return b, grads


@pytest.mark.parametrize("feature", [0, 1, 2])
@pytest.mark.parametrize("spec", [(), (None, None, "tp")])
def test_batch_norm_grad(feature: int, spec: tuple[str | None, ...]) -> None:
    x = RNG.standard_normal((4, 3, 6))
    dims = tuple(n // 2 if spec[d : d + 1] == ("tp",) else n for d, n in enumerate(x.shape))
    b, grads = batch_norm_grad(dims, feature)
    [b.get(grads, k) for k in range(3)]
    vectors = [RNG.standard_normal(dims[feature]), RNG.standard_normal(dims[feature]), 1 + RNG.random(dims[feature])]
    assert not check(b, [x, *vectors, RNG.standard_normal(x.shape)], {"tp": 2}, [spec, (), (), (), spec]).opaque


def test_gradients_of_a_norm_of_rows() -> None:
    """Rows may be cut over devices, columns not."""

    def equal(dims: tuple[int, int], arrays: str, vectors: str, epsilon: float = 0.25) -> bool:
        graphs = []
        for shape, eps in (((4, 6), 0.25), (dims, epsilon)):
            b, grads = batch_norm_grad(shape, 0, eps)
            graphs.append(b.build(b.get(grads, 0)))
        entries = [f"  - {{baseline: {n}, distributed: {n}, spec: {vectors if n in (1, 2, 3) else arrays}}}" for n in range(5)]
        text = "\n".join(["version: 1", "mesh: {tp: 2}", "inputs:", *entries, "outputs:", entries[0]])
        pair = lift_pair(graphs[0], [graphs[1]], resolve(parse(text, "r.yaml"), graphs[0], [graphs[1]]))
        expected, actual = claimed(pair, pair.claims[0])
        return expected.views == actual.views

    assert equal((2, 6), "[tp]", "[tp]")
    assert not equal((2, 6), "[tp]", "[tp]", epsilon=0.5), "another epsilon"
    assert not equal((4, 3), "[null, tp]", "[]"), "the mean of a device's part is not the mean"


def test_a_norm_of_rows_is_one_of_transposed_columns() -> None:
    assert proved(batch_norm((4, 6), 0), batch_norm((4, 6), 1, order=(1, 0)), "[]", "[]")
    assert proved(batch_norm((4, 6), 0), batch_norm((2, 6), 0), "[tp]", "[tp]")
    assert not proved(batch_norm((4, 6), 0), batch_norm((4, 6), 1), "[]", "[]"), "a norm over the other dimension"
    assert not proved(batch_norm((4, 6), 1), batch_norm((2, 6), 1), "[tp]", "[tp]"), "the mean of a device's part is not the mean"
    assert not proved(batch_norm((4, 6), 0), batch_norm((4, 6), 0, epsilon=1e-3), "[]", "[]"), "another epsilon"


# -- equal and different programs --------------------------------------------------------------------------------------------
def proved(baseline: Module, distributed: Module, cut: str, result: str, registry: Registry = BUILT_IN) -> bool:
    text = (
        f"version: 1\nmesh: {{tp: 2}}\ninputs:\n  - {{baseline: 0, distributed: 0, spec: {cut}}}\n"
        f"outputs:\n  - {{baseline: 0, distributed: 0, spec: {result}}}\n"
    )
    pair = lift_pair(baseline, [distributed], resolve(parse(text, "r.yaml"), baseline, [distributed]), registry=registry)
    expected, actual = claimed(pair, pair.claims[0])
    return expected.views == actual.views


def arg_max(rows: int, config: str, columns: int = 6) -> Module:
    b = Builder()
    dims = (rows, columns)
    kept = tuple(n for d, n in enumerate(dims) if d != int(config))
    return b.build(call(b, "AwsNeuronArgMax", Shape("u32", kept), b.parameter("f32", dims), config=config))


def test_an_opaque_call_is_shared_over_its_batch() -> None:
    assert proved(arg_max(4, "1"), arg_max(2, "1"), "[tp]", "[tp]")
    assert not proved(arg_max(6, "0"), arg_max(6, "1"), "[]", "[]"), "another backend_config is another function"
    assert not proved(arg_max(6, "1"), arg_max(3, "0"), "[tp]", "[]"), "the reduced dimension is no batch"


def kernel(rows: int, dims: tuple[int, ...] = (), target: str = "AwsNeuronCustomNativeKernel", config: str = "a") -> Module:
    b = Builder()
    p = b.parameter("f32", (rows, 4))
    return b.build(call(b, target, Shape("f32", dims or (rows, 4)), p, config=config))


ROWS = BUILT_IN.extended({"AwsNeuronCustomNativeKernel": Opaque(lambda call: [((0, 0),)])})
WHOLE = BUILT_IN.extended({"AwsNeuronCustomNativeKernel": Opaque(lambda call: [])})


def test_an_unregistered_call_is_unknown() -> None:
    assert not proved(kernel(4), kernel(4), "[]", "[]")
    assert proved(kernel(4), kernel(4), "[]", "[]", WHOLE)
    assert not proved(kernel(4), kernel(2), "[tp]", "[tp]", WHOLE)
    assert proved(kernel(4), kernel(2), "[tp]", "[tp]", ROWS)
    assert not proved(kernel(4), kernel(4, config="b"), "[]", "[]", WHOLE)


def test_the_reason_says_how_to_register() -> None:
    module = kernel(4, target="Mystery")
    text = "version: 1\nmesh: {tp: 2}\ninputs:\n  - {baseline: 0, distributed: 0}\noutputs:\n  - {baseline: 0, distributed: 0}\n"
    pair = lift_pair(module, [module], resolve(parse(text, "r.yaml"), module, [module]))
    assert [(o.opcode, r) for o, r in pair.distributed.unsupported] == [
        ("custom-call", "custom call Mystery is not registered; declare what it means in a file given with --custom-calls")
    ]


# -- the pass itself ---------------------------------------------------------------------------------------------------------
def test_a_module_without_custom_calls_is_handed_back() -> None:
    b = Builder()
    module = b.build(b.parameter("f32", (2,)))
    assert expand(module, BUILT_IN) is module


def test_instructions_of_a_decomposition_stand_where_the_call_stood() -> None:
    b = Builder()
    place = Location("layer/act")
    p = b.parameter("f32", (2,))
    module = b.build(call(b, "AwsNeuronSilu", Shape("f32", (2,)), p, name="act.7", location=place))
    expanded = expand(module, BUILT_IN)
    inlined = expanded.entry.instructions[1]
    assert (inlined.name, inlined.opcode, inlined.operands, inlined.location) == ("act.7", "call", (0,), place)
    body = expanded.computations[inlined.calls[0]]
    assert {(i.name, i.location) for i in body.instructions} == {("act.7", place)}


def test_computations_of_the_module_are_never_replaced() -> None:
    b = Builder()
    other = b.computation("custom call 0: body")
    name = other.end(other.parameter("f32", (2,)))
    p = b.parameter("f32", (2,))
    inner = b.add("call", "f32", (2,), [p], calls=[name])
    module = b.build(call(b, "AwsNeuronSilu", Shape("f32", (2,)), inner))
    expanded = expand(module, BUILT_IN)
    assert expanded.computations[name] is module.computations[name]
    assert expanded.entry.instructions[2].calls != (name,)


def test_calls_in_called_computations_are_expanded() -> None:
    b = Builder()
    inner = b.computation("inner")
    name = inner.end(call(inner, "Sharding", Shape("f32", (2,)), inner.parameter("f32", (2,))))
    module = b.build(b.add("call", "f32", (2,), [b.parameter("f32", (2,))], calls=[name]))
    assert expand(module, BUILT_IN).computations["inner"].instructions[1].opcode == "copy"


REFUSED: dict[str, tuple[str, str, Shape, list[Shape], str | None]] = {
    "an identity of other shape": ("identity needs", "SPMDFullToShardShape", Shape("f32", (2,)), [Shape("f32", (4,))], None),
    "no such dimension": ("names no dimension", "AwsNeuronSoftmax", Shape("f32", (2,)), [Shape("f32", (2,))], "1"),
    "no number": ("no integer", "AwsNeuronSoftmax", Shape("f32", (2,)), [Shape("f32", (2,))], "last"),
    "integers": ("floating-point", "AwsNeuronGelu", Shape("s32", (2,)), [Shape("s32", (2,))], None),
    "two operands": ("expected 1 operands", "AwsNeuronSilu", Shape("f32", (2,)), [Shape("f32", (2,))] * 2, None),
    "a weight of other size": (
        "weight along", "AwsNeuronRmsNorm", Shape("f32", (2, 3)), [Shape("f32", (2, 3)), Shape("f32", (2,)), Shape("f32")], "1",
    ),
    "an epsilon that is no scalar": (
        "scalar epsilon", "AwsNeuronRmsNorm", Shape("f32", (2, 3)), [Shape("f32", (2, 3)), Shape("f32", (3,)), Shape("f32", (3,))], "1",
    ),
    "another k": ("last dimension", "AwsNeuronTopK", Shape("tuple", (), (Shape("f32", (2,)),)), [Shape("f32", (4,))], "3"),
    "no tuple": ("tuple of values", "TopK", Shape("f32", (2,)), [Shape("f32", (4,))], None),
    "a result of the operand's rank": ("without the dimension", "AwsNeuronArgMax", Shape("u32", (4,)), [Shape("f32", (4,))], "0"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_calls_that_do_not_fit_stay_unknown(case: str) -> None:
    message, target, shape, operands, config = REFUSED[case]
    b = Builder()
    module = b.build(call(b, target, shape, *[b.add("parameter", s, index=n) for n, s in enumerate(operands)], config=config))
    assert message in str(only(module).attributes.values())


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([((0, 1),)], "another size"),
        ([((2, 0),)], "another size"),
        ([((0, 5),)], "another size"),
        ([(), ((0, 0),)], "it has 1 operands"),
        ([((0, 0), (0, 0))], "given twice"),
    ],
)
def test_batch_dimensions_that_are_none(batch: list[Any], message: str) -> None:
    registry = Registry({"K": Opaque(lambda call: batch)})
    expanded = expand(kernel(3, target="K"), registry)
    assert message in str(expanded.entry.instructions[1].attributes.values())


def test_an_entry_of_the_user_wins() -> None:
    module = kernel(3, target="AwsNeuronSilu")
    assert opcodes(module) == ["parameter", "call"]
    assert isinstance(BUILT_IN.entries["AwsNeuronSilu"], Decomposition)
    assert opcodes(module, BUILT_IN.extended({"AwsNeuronSilu": Identity()})) == ["parameter", "copy"]
