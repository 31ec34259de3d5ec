"""What the printer writes, the reader takes back: bit for bit, in every style."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scalify.hlo.attributes import ATTRIBUTES, Kind
from scalify.hlo.literal import small_float_table
from scalify.hlo.literal_text import read_literal, write_literal
from scalify.hlo.module import Frame, Location, Module, ReplicaGroups, Shape, Sharding
from scalify.hlo.printer import Style, to_text
from scalify.hlo.shape_text import read_shape, write_shape
from scalify.hlo.sharding_text import read_sharding, write_sharding
from scalify.hlo.spelling import SPELLINGS
from scalify.hlo.text import parse
from scalify.hlo.window import ConvDims, WindowDimension
from tests.support.builder import Builder
from tests.support.equality import assert_same_module

STYLES = [Style(percent=p, operand_shapes=o) for p in (True, False) for o in (True, False)]
EXAMPLES = settings(max_examples=80, deadline=None)

sizes = st.integers(0, 5)
shapes = st.recursive(
    st.one_of(
        st.builds(Shape, st.sampled_from(["f32", "bf16", "s4", "pred", "c64"]), st.lists(sizes, max_size=3).map(tuple)),
        st.just(Shape("token")),
        st.just(Shape("f32", (4, 2), (), (True, False), (0, 1))),
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda elements: Shape("tuple", elements=tuple(elements))),
    max_leaves=6,
)
names = st.one_of(st.from_regex(r"[\w.\-]{1,12}", fullmatch=True), st.text(min_size=1, max_size=8))
tiles = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@st.composite
def tiled_shardings(draw: st.DrawFn) -> Sharding:
    tile = tuple(draw(tiles))
    devices = draw(st.permutations(range(int(np.prod(tile)))))
    trailing = draw(st.integers(0, len(tile)))
    return Sharding(draw(st.sampled_from(["tiled", "unknown"])) if trailing else "tiled", tile, tuple(devices), trailing)


shardings = st.recursive(
    st.one_of(
        tiled_shardings(),
        st.sampled_from([Sharding("replicated"), Sharding("manual"), Sharding("unknown"), Sharding("maximal", devices=(3,))]),
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda elements: Sharding("tuple", elements=tuple(elements))),
    max_leaves=5,
)


@EXAMPLES
@given(shapes)
def test_shapes(shape: Shape) -> None:
    read = read_shape(write_shape(shape))
    assert read == shape
    assert read.layout == shape.layout


@EXAMPLES
@given(shardings)
def test_shardings(sharding: Sharding) -> None:
    assert read_sharding(write_sharding(sharding)) == sharding


NUMPY = ["bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
HLO = ["pred", "s8", "u8", "s16", "u32", "s64", "u64", "f16", "f32", "f64", "c64", "c128"]


@pytest.mark.parametrize(("dtype", "name"), list(zip(NUMPY, HLO, strict=True)))
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_constants_of_every_type(dtype: str, name: str, data: st.DataObject) -> None:
    array = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
    read = read_literal(write_literal(array), Shape(name, array.shape))
    assert read is not None
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)
    if array.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(read), np.signbit(array))


@pytest.mark.parametrize(
    "name", ["f8e5m2", "f8e4m3", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "f8e3m4", "f4e2m1fn", "f8e8m0fnu"]
)
def test_every_value_of_the_small_floats(name: str) -> None:
    table = small_float_table(name)
    read = read_literal(write_literal(table), Shape(name, table.shape))
    assert read is not None
    np.testing.assert_array_equal(read, table)


def test_every_bfloat16() -> None:
    table = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    read = read_literal(write_literal(table), Shape("bf16", table.shape))
    assert read is not None
    np.testing.assert_array_equal(read, table)
    np.testing.assert_array_equal(np.signbit(read), np.signbit(table))


VALUES: dict[Kind, list[Any]] = {
    Kind.INT: [0, -3, 2**62],
    Kind.INTS: [(), (0,), (1, 0)],
    Kind.BOOL: [True, False],
    Kind.FLOAT: [float(np.float32(1e-5)), 0.0],
    Kind.WORD: ["EQ", "kLoop", "with space"],
    Kind.STRING: ["", 'a "b" \\ {c', "line\nline\t\x01ü", "{}"],
    Kind.GROUPS: [ReplicaGroups(()), ReplicaGroups(((0, 2), (1, 3)))],
    Kind.PAIRS: [(), ((0, 1), (1, 0))],
    Kind.PADDING: [(), ((0, -1, 2),), ((0, 1, 0), (2, 2, 0))],
    Kind.WINDOW: [(), (WindowDimension(3), WindowDimension(2, 1, -1, 4, 2, 3, reversal=True))],
    Kind.CONV_DIMS: [ConvDims(0, 1, (), 0, 1, (), 0, 1, ()), ConvDims(3, 0, (2, 1), 0, 3, (1, 2), 1, 2, (0, 3))],
    Kind.SHARDING: [Sharding("replicated")],
    Kind.STRINGS: [{}, {"a": "b", "x.y": 'c="d", {', "odd key": ""}],
    Kind.ALIASES: [(), (((), 0, ()), ((0, 1), 2, (3,)))],
}


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.LITERAL])
def test_every_kind_of_attribute(kind: Kind) -> None:
    for value in VALUES[kind]:
        assert SPELLINGS[kind].read(SPELLINGS[kind].write(value)) == value


def module_with(attributes: dict[str, Any]) -> Module:
    b = Builder()
    return b.build(b.add("anything", "f32", (), [b.parameter("f32")], **attributes))


@pytest.mark.parametrize("name", sorted(ATTRIBUTES.keys() - {"literal", "starts", "limits", "strides", "domain_entry", "domain_exit"}))
def test_every_attribute_in_an_instruction(name: str) -> None:
    for value in VALUES[ATTRIBUTES[name]]:
        module = module_with({name: value} | ({"feature_group_count": 2, "batch_group_count": 3} if name == "dim_labels" else {}))
        assert_same_module(parse(to_text(module), "x"), module)


@EXAMPLES
@given(st.text(max_size=12))
def test_unknown_attributes_and_strings(text: str) -> None:
    module = module_with({"new_thing": text, "frontend_attributes": {"k": text}, "custom_call_target": text})
    assert_same_module(parse(to_text(module), "x"), module)


@EXAMPLES
@given(names, names)
def test_names_of_any_characters(first: str, second: str) -> None:
    b = Builder()
    x = b.parameter("f32", (2,), name=first + "1")
    module = b.build(b.like("negate", x, name=second + "2"))
    assert_same_module(parse(to_text(module), "x"), module)


def locations() -> st.SearchStrategy[Location | None]:
    frames = st.builds(Frame, st.sampled_from(["a.py", "dir/b.py", 'c "d".py']), st.integers(0, 99), st.sampled_from(["", "f", "<module>"]))
    return st.one_of(st.none(), st.builds(Location, st.text(max_size=6), st.lists(frames, max_size=4).map(tuple)))


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """A random graph: constants, elementwise ops, tuples, a loop, a collective, locations, control edges."""
    b = Builder("entry computation" if draw(st.booleans()) else "main.1")
    dims = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    values = [b.parameter("f32", dims, location=draw(locations())), b.parameter("f32", dims)]
    values.append(b.constant("f32", draw(hnp.arrays("float32", dims))))
    for _ in range(draw(st.integers(0, 6))):
        opcode = draw(st.sampled_from(["add", "negate", "all-reduce", "copy", "select"]))
        values.append(_random_instruction(b, draw, opcode, values))
    loop = b.add("while", b.shape(values[0]), (), [values[-1]], calls=_loop(b, dims))
    counts: dict[str, Any] = {"num_partitions": draw(st.integers(1, 8)), "num_replicas": draw(st.integers(1, 3))}
    whole: dict[str, Any] = {
        "parameter_shardings": draw(st.none() | st.lists(shardings, max_size=2).map(tuple)),
        "output_sharding": draw(st.none() | shardings),
    }
    return b.build([loop, *values[-2:]], aliases=draw(st.sampled_from([{}, {(0,): (1, ())}])), **counts, **whole)


def _random_instruction(b: Builder, draw: st.DrawFn, opcode: str, values: list[int]) -> int:
    x, y = draw(st.sampled_from(values)), draw(st.sampled_from(values))
    more: dict[str, Any] = {"location": draw(locations()), "control": draw(st.sampled_from([(), (values[0],)]))}
    if draw(st.booleans()):
        more["sharding"] = draw(shardings)
    if opcode == "all-reduce":
        return b.like(opcode, x, calls=[b.reducer("add", "f32")], replica_groups=draw(st.sampled_from([(), ((0, 1), (2, 3))])), **more)
    if opcode == "select":
        return b.like(opcode, b.constant("pred", draw(st.booleans())), x, y, **more)
    return b.like(opcode, x, **more) if opcode in ("negate", "copy") else b.like(opcode, x, y, **more)


def _loop(b: Builder, dims: tuple[int, ...]) -> list[str]:
    condition, body = b.computation("condition"), b.computation("body")
    condition.parameter("f32", dims)
    return [condition.end(condition.constant("pred", value=False)), body.end(body.like("negate", body.parameter("f32", dims)))]


@settings(max_examples=120, deadline=None)
@given(modules(), st.sampled_from(STYLES))
def test_random_modules(module: Module, style: Style) -> None:
    text = to_text(module, style)
    read = parse(text, "x")
    assert_same_module(read, module)
    assert to_text(read, style) == text


def test_styles() -> None:
    b = Builder()
    x = b.parameter("f32", (2,), location=Location("x", (Frame("a.py", 3),)))
    module = b.build(b.add("negate", "f32", (2,), [x]))
    assert "ROOT %negate.1 = f32[2] negate(%parameter.0)" in to_text(module)
    assert "ROOT negate.1 = f32[2] negate(f32[2] parameter.0)" in to_text(module, Style(percent=False, operand_shapes=True))
    assert 'metadata={op_name="x" source_file="a.py" source_line=3}' in to_text(module)
    assert "metadata" not in to_text(module, Style(locations=False))


def test_slices_domains_and_elided_constants() -> None:
    b = Builder()
    x = b.add("constant", "f32", (8,))
    y = b.add("slice", "f32", (3,), [x], starts=(1,), limits=(7,), strides=(2,))
    z = b.add("domain", "f32", (3,), [y], domain_entry=Sharding("replicated"), domain_exit=Sharding("maximal", devices=(0,)))
    module = b.build(z)
    assert_same_module(parse(to_text(module), "x"), module)


@pytest.mark.parametrize(("opcode", "count"), [
    ("while", 2), ("conditional", 2), ("conditional", 3), ("fusion", 1), ("call", 1), ("select-and-scatter", 2), ("custom-call", 1),
    ("custom-call", 3), ("async-start", 1), ("anything", 1), ("anything", 2), ("while", 1),
])  # fmt: skip
def test_called_computations_keep_their_order(opcode: str, count: int) -> None:
    b = Builder()
    called = []
    for k in range(count):
        inner = b.computation(f"c{count - k}")
        called.append(inner.end(inner.parameter("f32")))
    defaults: dict[str, Any] = {"window": ()} if opcode == "select-and-scatter" else {}
    module = b.build(b.add(opcode, "f32", (), [b.parameter("f32")], calls=called, **defaults))
    assert_same_module(parse(to_text(module), "x"), module)


def test_branches_of_a_predicate_are_named_as_xla_wants_them() -> None:
    b = Builder()
    called = []
    for name in ("on_true", "on_false"):
        inner = b.computation(name)
        called.append(inner.end(inner.parameter("f32")))
    x, chooser = b.parameter("f32"), b.parameter("pred")
    module = b.build(b.add("conditional", "f32", (), [chooser, x, x], calls=called))
    text = to_text(module)
    assert "true_computation=%on_true, false_computation=%on_false" in text
    assert_same_module(parse(text, "x"), module)
