"""HLO text: every form that XLA and exporters write, and what is said about text that is wrong."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import HloError
from scalify.hlo.module import Frame, Location, Module, Shape, Sharding
from scalify.hlo.shapes import check
from scalify.hlo.text import parse
from scalify.hlo.window import ConvDims, WindowDimension
from tests.support.equality import assert_same_module

LONG = r"""HloModule jit_step.1, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias), {1,0}: (0, {2}, must-alias) }, entry_computation_layout={(f32[8,4]{1,0}, /*index=1*/f32[4]{0})->(f32[8,4]{1,0})}, replica_count=2, num_partitions=4

%region_0.3 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add.1 = f32[] add(f32[] %a, f32[] %b), metadata={op_name="jit(step)/psum {axis}"}
}

ENTRY %main.9 (x: f32[8,4], y: f32[4]) -> (f32[8,4]) {
  %x = f32[8,4]{1,0:T(8,128)S(1)} parameter(0), sharding={devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}
  %y = f32[4]{0} parameter(1), metadata={op_name="y" source_file="a.py" source_line=12}
  %broadcast.4 = f32[8,4]{1,0} broadcast(f32[4]{0} %y), dimensions={1}
  %all-reduce.5 = f32[8,4]{1,0} all-reduce(f32[8,4]{1,0} %x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%region_0.3
  %add.6 = f32[8,4]{1,0} add(f32[8,4]{1,0} %all-reduce.5, /*index=1*/f32[8,4]{1,0} %broadcast.4)
  ROOT %tuple.7 = (f32[8,4]{1,0}) tuple(f32[8,4]{1,0} %add.6)
}
"""
# The same in the other style, attributes and computations in another order, uses before definitions.
SHORT = r"""HloModule jit_step.1, num_partitions=4, replica_count=2, input_output_alias={ {0}: (1, {}), {1,0}: (0, {2}) }
ENTRY main.9 {
  x = f32[8,4]{1,0} parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dims={replicated}}
  y = f32[4] parameter(1), metadata={source_line=12 source_file="a.py" op_name="y"}
  broadcast.4 = f32[8,4] broadcast(y), dimensions={1}
  all-reduce.5 = f32[8,4] all-reduce(x), to_apply=region_0.3, use_global_device_ids=true, replica_groups=[2,2]<=[4], channel_id=1
  add.6 = f32[8,4] add(all-reduce.5, broadcast.4)  // a comment
  ROOT tuple.7 = (f32[8,4]) tuple(add.6)
}
region_0.3 { a = f32[] parameter(0)
  b = f32[] parameter(1)  ROOT add.1 = f32[] add(a, b), metadata={op_name="jit(step)/psum {axis}"} }
"""


def entry(*lines: str, header: str = "HloModule m", before: str = "") -> Module:
    return parse(f"{header}\n{before}\nENTRY main {{\n" + "\n".join(lines) + "\n}\n", "f.txt")


def attributes(opcode: str, text: str, operands: str = "x", shape: str = "f32[2]") -> dict[str, Any]:
    module = entry("x = f32[2] parameter(0)", f"ROOT r = {shape} {opcode}({operands}){text}")
    return dict(module.entry.instructions[-1].attributes)


def test_both_styles_give_the_same_module() -> None:
    long, short = parse(LONG, "a"), parse(SHORT, "b")
    assert_same_module(long, short)
    check(long)
    assert long.name == "jit_step.1"
    assert (long.num_partitions, long.num_replicas) == (4, 2)
    assert long.aliases == {(0,): (1, ()), (1, 0): (0, (2,))}
    assert long.entry.instructions[1].location == Location("y", (Frame("a.py", 12),))


def test_instructions_are_put_in_order() -> None:
    module = entry("ROOT c = f32[] add(b, a), control-predecessors={d}", "b = f32[] negate(a)", "d = f32[] exponential(a)",
                   "a = f32[] parameter(0)")  # fmt: skip
    place = {i.name: k for k, i in enumerate(module.entry.instructions)}
    assert place["a"] < place["b"] < place["c"] > place["d"]
    assert module.entry.root == place["c"]
    assert module.entry.instructions[place["c"]].control == (place["d"],)


def test_entry_and_root_by_default_are_the_last() -> None:
    module = parse("HloModule m\n first { a = f32[] parameter(0) }\n second { a = f32[] parameter(0)\n b = f32[] negate(a) }", "x")
    assert module.entry_name == "second"
    assert module.entry.root == 1


@pytest.mark.parametrize(("text", "dtype", "value"), [
    ("f32[] constant(-1.5e3)", np.float32, -1500.0), ("f32[] constant(inf)", np.float32, np.inf), ("f16[] constant(-inf)", np.float16, -np.inf),
    ("f32[2] constant({nan, -nan})", np.float32, [np.nan, np.nan]), ("f32[] constant(nan(0x7fc00001))", np.float32, np.nan),
    ("pred[] constant(true)", np.bool_, True), ("pred[2,2]{1,0} constant({ { 0, 1 }, { 1, 0 } })", np.bool_, [[0, 1], [1, 0]]),
    ("s32[2,1] constant({ { /*i0=0*/ 1 }, {-2} })", np.int32, [[1], [-2]]), ("u64[] constant(18446744073709551615)", np.uint64, 2**64 - 1),
    ("s4[2] constant({-8, 7})", np.int8, [-8, 7]), ("u4[] constant(15)", np.uint8, 15), ("bf16[2] constant({3.14, 1e-40})", np.float32, [3.140625, 0]),
    ("f8e4m3fn[3] constant({nan, 7, 0.3})", np.float32, [np.nan, 7, 0.3125]), ("f64[] constant(0.1)", np.float64, 0.1),
    ("c64[2] constant({(1, -2), (0, inf)})", np.complex64, [1 - 2j, complex(0, np.inf)]), ("f32[0,3] constant({})", np.float32, np.zeros((0, 3))),
    ("f32[2,0] constant({ { /*i0=0*/ }, { /*i0=1*/ } })", np.float32, np.zeros((2, 0))), ("f32[] constant(0x1.8p1)", np.float32, 3.0),
])  # fmt: skip
def test_constants(text: str, dtype: type, value: object) -> None:
    literal = entry(f"ROOT c = {text}").entry.instructions[0].literal
    assert literal.dtype == dtype
    expected: Any = np.array(value, dtype)
    if "1e-40" in text:
        expected[1] = literal[1]  # a denormal of bf16, below
        assert abs(literal[1] / 1e-40 - 1) < 0.2
    np.testing.assert_array_equal(literal, expected)


def test_elided_constants_have_no_literal() -> None:
    assert "literal" not in entry("ROOT c = f32[100,2] constant({...})").entry.instructions[0].attributes


@pytest.mark.parametrize(("text", "groups"), [
    ("{{0,1},{2,3}}", ((0, 1), (2, 3))), ("{{0, 1}, /*index=1*/{2, 3}}", ((0, 1), (2, 3))), ("{}", ()), ("{{}}", ()),
    ("[2,2]<=[4]", ((0, 1), (2, 3))), ("[2,2]<=[2,2]T(1,0)", ((0, 2), (1, 3))),
    ("mesh['x'=2,'y'=2] {'x'}", ((0, 2), (1, 3))), ("mesh['x'=2,'y'=2] {'y','x'}", ((0, 2, 1, 3),)), ("mesh[x=4] {x:(2)2}", ((0, 1), (2, 3))),
    ("mesh['x'=2,'y'=2], device_ids=(0,2,1,3) {'y'}", ((0, 2), (1, 3))),
    ("mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}", ((0, 2), (1, 3))),
])  # fmt: skip
def test_replica_groups(text: str, groups: tuple[tuple[int, ...], ...]) -> None:
    read = attributes("all-to-all", f", replica_groups={text}, dimensions={{0}}, channel_id=3")
    assert read["replica_groups"].groups == groups
    assert (read["dimensions"], read["channel_id"]) == ((0,), 3)


TILED = Sharding("tiled", (2, 1, 2), (0, 1, 2, 3), 1)


@pytest.mark.parametrize(("text", "sharding"), [
    ("{replicated}", Sharding("replicated")), ("{manual}", Sharding("manual")), ("{maximal device=3}", Sharding("maximal", devices=(3,))),
    ("{unknown}", Sharding("unknown")), ("{unreduced}", Sharding("unknown")),
    ("{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}", TILED), ("{devices=[2,1,2]<=[4] last_tile_dim_replicate shard_as 1}", TILED),
    ("{devices=[2,2]<=[2,2]T(1,0)}", Sharding("tiled", (2, 2), (0, 2, 1, 3))),
    ("{devices=[2,1,2]0,1,2,3 last_tile_dims={manual}}", Sharding("unknown", (2, 1, 2), (0, 1, 2, 3), 1)),
    ('{devices=[1,2,2]<=[4] last_tile_dims={replicated, replicated} metadata={op_name="a"}}', Sharding("tiled", (1, 2, 2), (0, 1, 2, 3), 2)),
    ("{{replicated}, {maximal device=0}}", Sharding("tuple", elements=(Sharding("replicated"), Sharding("maximal", devices=(0,))))),
    ("{}", Sharding("tuple")),
    ("{mesh['x'=2,'y'=2], [{'y'}, {}]}", Sharding("tiled", (2, 1, 2), (0, 2, 1, 3), 1)),
    ("{mesh['x'=2,'y'=2], [{'y', ?}], manual={'x'}}", Sharding("unknown", (2, 2), (0, 2, 1, 3), 1)),
    ("{mesh[], replicated}", Sharding("replicated")),
])  # fmt: skip
def test_shardings(text: str, sharding: Sharding) -> None:
    assert attributes("negate", f", sharding={text}")["sharding"] == sharding


@pytest.mark.parametrize(("opcode", "text", "expected"), [
    ("slice", ", slice={[0:2:1], [1:9]}", {"starts": (0, 1), "limits": (2, 9), "strides": (1, 1)}),
    ("pad", ", padding=0_1_0x-1_2", {"padding": ((0, 1, 0), (-1, 2, 0))}),
    ("dot", ", rhs_contracting_dims={0}, lhs_contracting_dims={1}, operand_precision={highest,default}, algorithm=dot_bf16_bf16_f32",
     {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,), "lhs_batch_dims": (), "rhs_batch_dims": ()}),
    ("reduce-window", ", window={size=3x2 stride=2x1 pad=1_1x0_-1 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=0x1}",
     {"window": (WindowDimension(3, 2, 1, 1, 1, 3), WindowDimension(2, 1, 0, -1, 2, 1, reversal=True))}),
    ("convolution", ", dim_labels=b01f_01io->b01f, window={size=1x1}, feature_group_count=2",
     {"dim_labels": ConvDims(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2)), "window": (WindowDimension(1), WindowDimension(1)),
      "feature_group_count": 2, "batch_group_count": 1}),
    ("collective-permute", ", source_target_pairs={{0,1},{1,0}}", {"source_target_pairs": ((0, 1), (1, 0))}),
    ("compare", ", direction=LT, type=TOTALORDER", {"direction": "LT", "type": "TOTALORDER"}),
    ("sort", ", dimensions={0}, is_stable=true", {"dimensions": (0,), "is_stable": True}),
    ("custom-call", (r', custom_call_target="a\"b", backend_config={"k": ["}", 1]}, custom_call_has_side_effect=true'
     ", output_to_operand_aliasing={{0}: (1, {2})}"),
     {"custom_call_target": 'a"b', "backend_config": '{"k": ["}", 1]}', "custom_call_has_side_effect": True,
      "output_to_operand_aliasing": (((0,), 1, (2,)),)}),
    ("batch-norm-training", ", epsilon=1e-05, feature_index=1", {"epsilon": float(np.float32(1e-5)), "feature_index": 1}),
    ("negate", ', frontend_attributes={a="b, {c",d={e = 1}}', {"frontend_attributes": {"a": "b, {c", "d": "{e = 1}"}}),
    ("negate", ', new_thing={a="x } y", b={c}}, other=fo-o, third="a b"',
     {"new_thing": '{a="x } y", b={c}}', "other": "fo-o", "third": "a b"}),
    ("negate", ', backend_config={"devices":[]}, statistics={a=1}, origin={{"x"}}', {}),
    ("domain", ', domain={kind="sharding", entry={maximal device=0}, exit={replicated}}',
     {"domain_entry": Sharding("maximal", devices=(0,)), "domain_exit": Sharding("replicated")}),
])  # fmt: skip
def test_attributes(opcode: str, text: str, expected: dict[str, Any]) -> None:
    assert attributes(opcode, text) == expected


def test_called_computations_in_order() -> None:
    before = "c { p = f32[] parameter(0) }\n d { q = f32[] parameter(0) }"
    for text, expected in [
        ("while(x), body=%c, condition=%d", ("d", "c")), ("conditional(x, x, x), branch_computations={%d, %c}", ("d", "c")),
        ("conditional(x, x, x), false_computation=c, true_computation=d", ("d", "c")), ("fusion(x), kind=kLoop, calls=c", ("c",)),
        ("select-and-scatter(x), scatter=d, select=c", ("c", "d")), ("call(x), to_apply=d", ("d",)),
        ('custom-call(x), custom_call_target="t", called_computations={c, d}', ("c", "d")),
    ]:  # fmt: skip
        module = entry("x = f32[] parameter(0)", f"ROOT r = f32[] {text}", before=before)
        assert module.entry.instructions[-1].calls == expected


def test_shapes_with_tuples_tokens_dynamic_sizes_and_layouts() -> None:
    module = entry("ROOT p = (f32[<=8,2]{1,0:T(8,128)(2,1)S(1)}, (token[], ()), /*index=2*/bf16[]{:T(128)}) parameter(0)")
    shape = module.parameter_shapes[0]
    array = Shape("f32", (8, 2), dynamic=(True, False))
    assert shape == Shape("tuple", elements=(array, Shape("tuple", elements=(Shape("token"), Shape("tuple"))), Shape("bf16")))
    assert shape.elements[0].layout == (1, 0)


def test_stack_frames() -> None:
    header = """HloModule m

FileNames
1 "a.py"
2 "b \\"c\\".py"

FunctionNames
1 "main"
2 "inner"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}
2 {file_name_id=2 function_name_id=2 line=7}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
"""
    module = entry('ROOT p = f32[] parameter(0), metadata={op_name="n" stack_frame_id=2}', header=header)
    stack = (Frame('b "c".py', 7, "inner"), Frame("a.py", 3, "main"))
    assert module.entry.instructions[0].location == Location("n", stack)


def test_strings_over_several_lines() -> None:
    module = entry(
        "ROOT p = f32[] parameter(0), metadata={op_name=\"a{\\n}\" source_file=\"f.py\n---\n['g.py:3',\n'h.py:4']\" source_line=3}"
    )
    location = module.entry.instructions[0].location
    assert location is not None
    assert location.op_name == "a{\n}"
    assert [frame.file for frame in location.stack] == ["h.py", "g.py"]


@pytest.mark.parametrize(("text", "message"), [
    ("", r"line 1: expected HloModule"),
    ("HloModule m", r"line 1: the module has no computation"),
    ("HloModule m\nENTRY e {\n}", r"the computation is empty"),
    ("HloModule m\nENTRY e {\n a = f32[] parameter(0)", r"line 3: expected an instruction"),
    ("HloModule m\nENTRY e {\n a = f32[] add(b, b)\n}", r"line 3: a uses 'b'"),
    ("HloModule m\nENTRY e {\n a = f32[] negate(a)\n}", r"line 2: e: instructions depend on each other in a cycle"),
    ("HloModule m\nENTRY e {\n a = f32[] parameter(0)\n a = f32[] parameter(1)\n}", r"two instructions have this name"),
    ("HloModule m\nENTRY e {\n a = f32[] parameter(1)\n}", r"parameters must be numbered"),
    ("HloModule m\nENTRY e {\n ROOT a = f32[] parameter(0)\n ROOT b = f32[] negate(a)\n}", r"line 4: a second ROOT"),
    ("HloModule m\nENTRY e {\n a = f33[] parameter(0)\n}", r"line 3: f33\[\] is not a known type"),
    ("HloModule m\nENTRY e {\n a = f32[2]{1} parameter(0)\n}", r"line 3: the layout '1' does not fit"),
    ("HloModule m\nENTRY e {\n a = f32[?] parameter(0)\n}", r"line 3: expected a shape"),
    ("HloModule m\nENTRY e {\n a = f32[2] constant({1})\n}", r"line 3: the literal has 1 elements"),
    ("HloModule m\nENTRY e {\n a = f32[2] constant({{1}, 2})\n}", r"line 3: the braces"),
    ("HloModule m\nENTRY e {\n a = s8[] constant(300)\n}", r"line 3: the literal has an element outside"),
    ("HloModule m\nENTRY e {\n a = s8[] constant(x)\n}", r"line 3: .*not of type s8"),
    ("HloModule m\nENTRY e {\n a = (f32[]) constant((1))\n}", r"line 3: a literal of type tuple cannot be read"),
    ("HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] negate(f32[2] a)\n}", r"line 4: b takes a as f32\[2\]"),
    ("HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] call(a), to_apply=f\n}", r"line 4: the called computation 'f'"),
    ("HloModule m\nf { a = f32[] parameter(0)\n ROOT b = f32[] call(a), to_apply=f }", r"computations call each other in a cycle"),
    ("HloModule m\nENTRY e { a = f32[] parameter(0) }\nENTRY f { a = f32[] parameter(0) }", r"line 3: a second ENTRY"),
    ("HloModule m\nENTRY e {\n a = f32[] parameter(0), sharding={devices=[2]0,0}\n}", r"line 3: sharding: .*every device once"),
    ("HloModule m\nENTRY e {\n a = f32[] parameter(0), sharding={devices=[2]0,1\n}", r"line 4: expected an instruction"),
    ("HloModule m\nENTRY e {\n a = f32[] parameter(0), x=1, x=2\n}", r"line 3: a has x twice"),
    ("HloModule m, num_partitions=0\nENTRY e { a = f32[] parameter(0) }", r"num_partitions must be positive"),
    ("HloModule m, input_output_alias={ {}: (3, {}) }\nENTRY e { a = f32[] parameter(0) }", r"parameter 3, which does not exist"),
    ('HloModule m\nENTRY e {\n a = f32[] parameter(0), metadata={op_name="x\n}', r"line 3: the bracket '{' is not closed"),
])  # fmt: skip
def test_errors_name_file_and_line(text: str, message: str) -> None:
    with pytest.raises(HloError, match=rf"^f\.txt: .*{message}"):
        parse(text, "f.txt")


@pytest.mark.parametrize("text", [
    "HloModule m\nENTRY e { a = " + "(" * 100_000 + "f32[]" + ")" * 100_000 + " parameter(0) }",
    "HloModule m\nENTRY e { a = " + "(" * 100_000,
    "HloModule m\nENTRY e { a = f32[] parameter(0), sharding=" + "{" * 50_000 + "}" * 50_000 + " }",
    "HloModule m\nENTRY e { a = f32[] parameter(0), x=" + "{[" * 50_000 + " }",
    "HloModule m\nENTRY e { a = f32[" + "1," * 50_000 + "1] constant(" + "{" * 50_000 + "1" + "}" * 50_000 + ") }",
    "HloModule m\nENTRY e { a = f32[] parameter(0), replica_groups=[1000000000,1000000000]<=[1000000000,1000000000] }",
    "HloModule m\nENTRY e { a = f32[4294967296,4294967296] constant({}) }",
    "HloModule m\nENTRY e { a = f32[99999999999999999999] parameter(0) }",
    "HloModule m " + "/*" * 100_000,
    'HloModule m\nENTRY e { a = f32[] parameter(0), x="' + "\\" * 100_001,
])  # fmt: skip
def test_hostile_text_is_refused_quickly(text: str) -> None:
    begin = time.perf_counter()
    with pytest.raises(HloError):
        parse(text, "f.txt")
    assert time.perf_counter() - begin < 5


def _is_read_or_refused(text: str) -> None:
    try:
        parse(text, "f.txt")
        message = "f.txt"
    except HloError as error:
        message = str(error)
    assert message.startswith("f.txt")
    assert "\n" not in message


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([LONG, SHORT]), st.data())
def test_damaged_text_is_read_or_refused(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 12))
        text = text[:place] + data.draw(st.text('(){}[]",=%\\/*0a<.\n -', max_size=4)) + text[place + length :]
    _is_read_or_refused(text)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([LONG, SHORT]), st.integers(0, 1400))
def test_truncated_text_is_read_or_refused(text: str, length: int) -> None:
    _is_read_or_refused(text[:length])


def test_reading_is_linear() -> None:
    def seconds(count: int) -> float:
        lines = [f'  v{k + 1} = f32[8]{{0}} negate(v{k}), metadata={{op_name="a{k}"}}' for k in range(count)]
        text = "HloModule m\nENTRY e {\n v0 = f32[8]{0} parameter(0)\n" + "\n".join(lines) + "\n}\n"
        begin = time.perf_counter()
        parse(text, "x")
        return time.perf_counter() - begin

    seconds(100)
    assert seconds(8000) < 40 * max(seconds(1000), 0.01)
