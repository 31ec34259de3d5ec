"""Every mistake is one RelationError that names file, line and key. One row a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scalify.errors import RelationError
from scalify.relation.parse import parse, read
from tests.relation.support import module, relation

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "version: 1\nmesh: {dp: 2, tp: 4}\n"
OUT = "outputs:\n  - {baseline: 0, distributed: 0}\n"

FORM = [
    # text, place, part of the message
    ("", "r.yaml", "empty"),
    ("[1, 2]", "r.yaml: line 1", "must be a mapping with keys version"),
    ("version: 1", "r.yaml", "`mesh` is missing"),
    ("version: 2\nmesh: {a: 1}\ninputs: []\noutputs: []", "r.yaml: line 1: version", "must be 1, not 2"),
    ("version: 1\nmesh: {a: 1}\ninput: []", "r.yaml: line 3: input", "did you mean inputs?"),
    ("version: 1\nmesh: []\ninputs: []\noutputs: []", "r.yaml: line 2: mesh", "must be a mapping, not a list"),
    ("version: 1\nmesh: {}\ninputs: []\noutputs: []", "r.yaml: line 2: mesh", "at least one axis"),
    ("version: 1\nmesh: {tp: 0}\ninputs: []\noutputs: []", "r.yaml: line 2: mesh.tp", "0 is outside of 1 to"),
    ("version: 1\nmesh: {tp: four}\ninputs: []\noutputs: []", "r.yaml: line 2: mesh.tp", "must be an integer, not 'four'"),
    ("version: 1\nmesh: {'t p': 4}\ninputs: []\noutputs: []", "r.yaml: line 2: mesh.t p", "an axis name is letters"),
    ("version: 1\nmesh: {a: 1000, b: 1000}\ninputs: []\noutputs: []", "r.yaml: line 2: mesh", "more than 131072 devices"),
    (HEAD + "mesh: {a: 1}", "r.yaml: line 3: mesh", "duplicate key; it stands also on line 2"),
    (HEAD + "inputs: []\noutputs: []\ndevice_ids: [0, 1]", "r.yaml: line 5: device_ids", "lists 2 devices, but the mesh has 8"),
    (HEAD + "inputs: []\noutputs: []\ndevice_ids: [0, 1, 2, 3, 4, 5, 6, 6]", "r.yaml: line 5: device_ids", "device 6 stands twice"),
    (HEAD + "inputs: []\noutputs: []\ndevice_ids: [0, 1, 2, 3, 4, 5, 6, 8]", "r.yaml: line 5: device_ids", "device 8 is outside of 0 to 7"),
    (HEAD + "inputs: []\noutputs: []\nbaseline_mesh: other", "r.yaml: line 5: baseline_mesh", "the only value is `same`, not 'other'"),
    (HEAD + "inputs: []\noutputs: []\nsizes: {d: -1}", "r.yaml: line 5: sizes.d", "-1 is outside of 1 to"),
    (HEAD + "inputs: []\noutputs: []\nsizes: {1: 2}", "r.yaml: line 5: sizes.1", "a factor name is letters"),
    (HEAD + "inputs: []\noutputs: []\nassume:\n- {baseline: 0}", "r.yaml: line 6: assume[0]", "and `range: [low, high]`"),
    (HEAD + "inputs: []\noutputs: []\nassume:\n- {baseline: 0, range: [3, 3]}", "r.yaml: line 6: range", "[3, 3] is empty"),
    (HEAD + "inputs: []\noutputs: []\nassume:\n- {baseline: 0, range: [3]}", "r.yaml: line 6: range", "two integers [low, high], not 1"),
    (HEAD + "inputs: {}\noutputs: []", "r.yaml: line 3: inputs", "must be a list, not a mapping"),
    (HEAD + "inputs:\n- 3\noutputs: []", "r.yaml: line 4: inputs[0]", "must be a mapping with keys baseline"),
    (HEAD + "inputs:\n- {base: 0}\noutputs: []", "r.yaml: line 4: base", "did you mean baseline?"),
    (HEAD + "inputs:\n- {spec: [tp]}\noutputs: []", "r.yaml: line 4: inputs[0]", "needs `baseline`, `distributed` or both"),
    (HEAD + "inputs:\n- {baseline: 0}\noutputs: []", "r.yaml: line 4: inputs[0]", "`distributed` is missing"),
    (HEAD + "inputs:\n- {baseline: -1, distributed: 0}\noutputs: []", "r.yaml: line 4: baseline", "-1 is outside"),
    (
        HEAD + "inputs:\n- {baseline: 1.5, distributed: 0}\noutputs: []",
        "r.yaml: line 4: baseline",
        "must be a number from 0 or a name, not 1.5",
    ),
    (HEAD + "inputs:\n- {baseline: true, distributed: 0}\noutputs: []", "r.yaml: line 4: baseline", "not true"),
    (HEAD + "inputs:\n- {distributed: []}\noutputs: []", "r.yaml: line 4: inputs[0]", "`baseline` is missing"),
    (HEAD + "inputs:\n- {baseline: 0, distributed: []}\noutputs: []", "r.yaml: line 4: distributed", "is empty"),
    (HEAD + "inputs:\n- {distributed: 0, value: 1,\n   spec: [tp]}\noutputs: []", "r.yaml: line 5: spec", "cannot stand beside `value`"),
    (HEAD + "inputs:\n- {distributed: 0, value: 1, device_index: tp}\noutputs: []", "r.yaml: line 4: device_index", "beside `value`"),
    (
        HEAD + "inputs:\n- {distributed: 0, value: text}\noutputs: []",
        "r.yaml: line 4: value",
        "must be a number, a boolean or nested lists",
    ),
    (HEAD + "inputs:\n- {distributed: 0, value: {}}\noutputs: []", "r.yaml: line 4: value", "not a mapping"),
    (HEAD + "inputs:\n- {distributed: 0, value: 1e999}\noutputs: []", "r.yaml: line 4", "too large; write .inf"),
    (HEAD + "inputs:\n- {distributed: 0, per_device: 3}\noutputs: []", "r.yaml: line 4: per_device", "must be a list, not 3"),
    (
        HEAD + "inputs:\n- {distributed: 0, device_index: 3}\noutputs: []",
        "r.yaml: line 4: device_index",
        "must be a mesh axis or a list of them",
    ),
    (HEAD + "inputs:\n- {distributed: 0, ignore: true}\noutputs: []", "r.yaml: line 4: ignore", "only results can be ignored"),
    (HEAD + "inputs: []\noutputs:\n- {distributed: 0, ignore: false}", "r.yaml: line 5: ignore", "the only value is `true`"),
    (HEAD + "inputs: []\noutputs:\n- {distributed: 0, ignore: true, spec: []}", "r.yaml: line 5: spec", "cannot stand beside `ignore`"),
    (HEAD + "inputs: []\noutputs:\n- {distributed: 0, value: 0}", "r.yaml: line 5: outputs[0]", "cannot be given as data"),
    (HEAD + "inputs:\n- {baseline: 0, distributed: 0, spec: tp}\noutputs: []", "r.yaml: line 4: spec", "such as [null, tp], not 'tp'"),
    (HEAD + "inputs:\n- {baseline: 0, distributed: 0, spec: [3]}\noutputs: []", "r.yaml: line 4: spec", "must be a mesh axis"),
    (HEAD + "inputs:\n- {baseline: 0, distributed: 0, spec: [], map: 'a -> a'}\noutputs: []", "r.yaml: line 4: spec", "beside `map`"),
    (
        HEAD + "inputs:\n- {baseline: 0, distributed: 0, spec: [], steps: []}\noutputs: []",
        "r.yaml: line 4: inputs[0]",
        "cannot stand beside it",
    ),
    (HEAD + "inputs:\n- {baseline: 0, distributed: 0, steps: []}\noutputs: []", "r.yaml: line 4: steps", "needs 1 to 64 steps"),
    (HEAD + "inputs:\n- {baseline: 0, distributed: 0, steps: [{mapp: a}]}\noutputs: []", "r.yaml: line 4: mapp", "did you mean map?"),
    (HEAD + "inputs:\n- {baseline: 0, distributed: 0, steps: [{}]}\noutputs: []", "r.yaml: line 4: steps", "a step needs map, spec or pad"),
    (HEAD + "inputs:\n- {baseline: 0, distributed: 0, pad: {0: [1]}}\noutputs: []", "r.yaml: line 4: pad", "two integers"),
    (HEAD + "inputs:\n- {baseline: 0, distributed: 0, pad: {0: [-1, 0]}}\noutputs: []", "r.yaml: line 4: pad", "-1 is outside of 0"),
    (
        HEAD + "inputs:\n- {baseline: 0, distributed: 0, pad: {'dim 0': [1, 0]}}\noutputs: []",
        "r.yaml: line 4: pad",
        "dimension numbers or factor names",
    ),
    (
        HEAD + "inputs:\n- {baseline: 0, distributed: 0, baseline_slice: {a: [0, 1]}}\noutputs: []",
        "r.yaml: line 4: baseline_slice",
        "keys are dimension numbers",
    ),
    (
        HEAD + "inputs:\n- {baseline: 0, distributed: 0, baseline_slice: {0: [1, 1]}}\noutputs: []",
        "r.yaml: line 4: baseline_slice",
        "is empty",
    ),
    (HEAD + "inputs:\n- {baseline: 0, distributed: 0, module: tp}\noutputs: []", "r.yaml: line 4: module", "must be an integer"),
    # YAML
    ("version: [1]]", "r.yaml: line 1", "not valid YAML"),
    ("a: b: c", "r.yaml: line 1", "not valid YAML"),
    ("version: 1\n---\nversion: 1", "r.yaml: line 2", "a second document"),
    ("a: &x [1]\nb: *x", "r.yaml: line 2", "aliases"),
    ("a: !!python/object:os.system {}", "r.yaml: line 1", "tags are not allowed"),
    ("a: !!int 3", "r.yaml: line 1", "tags are not allowed"),
    ("? [1, 2]\n: 3", "r.yaml: line 1", "a key must be a name or a number, not a list"),
    ("1.5: 3", "r.yaml: line 1", "not 1.5"),
    ("[" * 40, "r.yaml: line 1", "nested more than 24 levels deep"),
    ("\x00", "r.yaml", "not valid YAML"),
]

MAPS = [
    # map, part of the message
    ("h k", "expected `->`, found nothing at the end"),
    ("h -> -> h", "found `->` at column 6"),
    ("(h k -> h", "expected a factor name, `1` or a group, found `->` at column 6"),
    ("h) -> h", "found `)` at column 2"),
    ("((h)) -> h", "found `(` at column 2"),
    ("h 2 -> h", "found the number 2; name the factor and give its size under `sizes` at column 3"),
    ("h -> [tp h", "expected a mesh axis or `]`, found nothing"),
    ("h -> [tp=] h", "found `]`"),
    ("h -> h [tp]", "brackets stand once, first on the right side; found `[` at column 8"),
    ("[tp] h -> h", "brackets stand once"),
    ("h -> [tp tp] h", "mesh axis tp stands twice"),
    ("h -> [+tp=(a b)] h", "a partial axis is written +tp alone"),
    ("... h ... -> h", "`...` stands twice"),
    ("h; -> h", "found `;` at column 2"),
    ("h h -> h", "factor h stands twice on the left side"),
    ("h k -> h h", "factor h stands twice on the right side"),
    ("h k -> h", "factor k of the left side is lost"),
    ("a b c -> a b c", "the left side has 3 dimensions, but 2 are to be mapped"),
    ("h k -> [ttp] h k", "ttp is not a mesh axis; did you mean tp?"),
    ("h (tp k) -> [tp] h k e", "gives 3 local dimensions, but the distributed array has 2"),
    ("h (tp k) -> [tp] k h", "h is 3, but local dimension 1 has 2 (baseline parameter 0 is f32[3,8], distributed parameter 0 is f32[3,2])"),
    ("h (tp k) -> [dp=tp] h k", "(tp k) is 2 * 2 = 4, but dimension 1 of the baseline has 8"),
    ("(a b) k -> (a b) k", "the size of factor a in (a b) does not follow from the shapes; give it as `sizes: {a: N}`"),
]  # fmt: skip

MEANING = [
    # line of the inputs, baseline, distributed, key, part of the message
    ("{baseline: 7, distributed: 0}", "f32[8]", "f32[8]", "baseline", "there is no parameter 7; the baseline module has parameters 0 to 0"),
    ("{baseline: wq, distributed: 0}", "f32[8]", "f32[8]", "baseline", "no parameter named 'wq'; valid: p0"),
    ("{baseline: 0, distributed: param0}", "f32[8]", "f32[8]", "distributed", "the distributed module has no parameter named 'param0'; valid: p0"),
    ("{baseline: 0, distributed: 0}", "f32[8]", "s32[8]", "inputs[0]", "relates floating-point data to integer data"),
    ("{baseline: 0, distributed: 0}", "f32[8]", "f32[2]", "inputs[0]", "it is whole on each device, but the shapes differ (baseline parameter 0 is f32[8], distributed parameter 0 is f32[2])"),
    ("{baseline: 0, distributed: 0, spec: [tp]}", "f32[10]", "f32[2]", "spec", "10"),
    ("{baseline: 0, distributed: 0, spec: [tpp]}", "f32[8]", "f32[2]", "spec", "tpp is not a mesh axis; did you mean tp?"),
    ("{baseline: 0, distributed: 0, spec: [tp, tp]}", "f32[8,8]", "f32[2,2]", "spec", "mesh axis tp stands twice"),
    ("{baseline: 0, distributed: 0, spec: [null, tp]}", "f32[8]", "f32[2]", "spec", "has 2 entries, but there is 1 dimension"),
    ("{baseline: 0, distributed: 0, pad: {3: [0, 1]}}", "f32[8]", "f32[9]", "pad", "pad names dimension 3"),
    ("{baseline: 0, distributed: 0, pad: {q: [0, 1]}, map: '(k d) -> (k d)'}", "f32[8]", "f32[9]", "map", "pad names factor q"),
    ("{baseline: 0, distributed: 0, steps: [{spec: [tp]}, {spec: [dp]}]}", "f32[8]", "f32[1]", "spec", "a second step names mesh axes"),
    ("{baseline: 0, distributed: 0, map: 'a -> [+tp] a'}", "f32[8]", "f32[8]", "map", "a parameter cannot be partial"),
    ("{baseline: 0, distributed: 0, baseline_slice: {1: [0, 1]}}", "f32[8]", "f32[8]", "baseline_slice", "names dimension 1"),
    ("{baseline: 0, distributed: 0, baseline_slice: {0: [0, 9]}}", "f32[8]", "f32[8]", "baseline_slice", "[0, 9] ends beyond dimension 0"),
    ("{baseline: 0, distributed: 0, distributed_slice: {0: [0, 9]}}", "f32[8]", "f32[8]", "distributed_slice", "ends beyond"),
    ("{baseline: 0, distributed: 0, module: 1}", "f32[8]", "f32[8]", "module", "there is no module 1"),
    ("{baseline: 0, distributed: [0, 0]}", "f32[8]", "f32[8]", "distributed", "lists 2 parameters, but there is 1 distributed module"),
    ("{distributed: 0, value: [1, 2]}", "", "f32[3]", "value", "has shape [2], but the parameter is f32[3]"),
    ("{distributed: 0, value: [1, [2]]}", "", "f32[2]", "value", "ragged"),
    ("{distributed: 0, value: [[1], [2, 3]]}", "", "f32[2,1]", "value", "ragged"),
    ("{distributed: 0, value: 1.5}", "", "s32[]", "value", "1.5 is not an integer, but the parameter has type s32"),
    ("{distributed: 0, value: .nan}", "", "s32[]", "value", "nan is not an integer"),
    ("{distributed: 0, value: 300}", "", "u8[]", "value", "300 is outside of 0 to 255, the range of u8"),
    ("{distributed: 0, value: 1.0e+39}", "", "f32[]", "value", "1e+39 is too large for f32"),
    ("{distributed: 0, value: 123456789012345678901234567890123456789}", "", "f16[]", "value", "is too large for f16"),
    ("{distributed: 0, value: true}", "", "f32[]", "value", "true is a boolean, but the parameter has type f32"),
    ("{distributed: 0, value: 2}", "", "pred[]", "value", "2 is not true or false"),
    ("{distributed: 0, value: 2}", "", "c64[]", "value", "data of type c64 cannot be written"),
    ("{distributed: 0, per_device: [1, 2]}", "", "f32[]", "per_device", "has 2 entries, but the mesh has 8 positions"),
    ("{distributed: 0, per_device: [[1], [1], [1], [1], [1], [1], [1], [1]]}", "", "f32[2]", "per_device", "has shape [1] on each device"),
    ("{distributed: 0, device_index: pp}", "", "s32[]", "device_index", "pp is not a mesh axis"),
    ("{distributed: 0, device_index: [tp, tp]}", "", "s32[]", "device_index", "stands twice"),
    ("{distributed: 0, device_index: tp}", "", "s32[4]", "device_index", "is one number on each device"),
    ("{baseline: 0, device_index: tp}", "s32[]", "", "device_index", "the baseline runs on one device"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "where", "message"), FORM)
def test_a_mistake_of_form_names_line_and_key(text: str, where: str, message: str) -> None:
    with pytest.raises(RelationError) as caught:
        parse(text, "r.yaml")
    assert caught.value.where == where
    assert message in caught.value.message
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "message"), MAPS)
def test_a_wrong_map_names_what_is_wrong(text: str, message: str) -> None:
    file = HEAD + f'inputs:\n  - baseline: 0\n    distributed: 0\n    map: "{text}"\n' + OUT
    with pytest.raises(RelationError) as caught:
        relation(file, module("f32[3,8]"), module("f32[3,2]" if "(a b)" not in text or "tp" in text else "f32[3,8]"))
    assert caught.value.where == "r.yaml: line 6: map"
    assert message in caught.value.message


@pytest.mark.parametrize(("entry", "baseline", "distributed", "key", "message"), MEANING)
def test_a_contradiction_with_the_graphs_names_line_and_key(entry: str, baseline: str, distributed: str, key: str, message: str) -> None:
    with pytest.raises(RelationError) as caught:
        relation(f"{HEAD}inputs:\n\n  - {entry}\n{OUT}", module(baseline), module(distributed))
    assert caught.value.where == f"r.yaml: line 5: {key}"
    assert message in caught.value.message


HALF = "{baseline: 0, baseline_slice: {0: [0, 5]}, distributed: 0, distributed_slice: {0: [0, 5]}}"
WHOLE = [
    # inputs from line 4 on, outputs and the rest from line 10 on; both modules are f32[8] s32[] -> f32[8]
    (["{baseline: 0, distributed: 0}"] * 2, [], "line 5: inputs[1]", "line 4 and this line both give it"),
    (["{baseline: 0, distributed: 0}", "{distributed: 0, distributed_slice: {0: [6, 8]}, value: 0}"], [], "line 5: inputs[1]", "both give its elements [6:8]"),
    ([HALF], [], "line 4: inputs[0]", "no entry gives its elements [5:8]"),
    ([HALF, "{baseline: 0, baseline_slice: {0: [4, 7]}, distributed: 0, distributed_slice: {0: [5, 8]}}"], [],
     "line 5: inputs[1]", "takes [4:7] of baseline parameter 0, which overlaps [0:5] of line 4"),
    (["{baseline: 1, value: 3}", "{baseline: 1, value: 4}"], [], "line 5: baseline", "has a value already on line 4"),
    ([], ["outputs:", "- {distributed: 0, ignore: true}"], "line 10: outputs", "baseline output 0 is f32[8] (named r0) and is not listed"),
    ([], ["outputs:", "- {baseline: 0, distributed: 0, ignore: true}"], "line 10: outputs", "no result is compared"),
    ([], ["outputs:", "- {baseline: 0, distributed: 0}", "- {distributed: 0, ignore: true}"], "line 12: outputs[1]", "is ignored here and related on line 11"),
    ([], ["outputs: []", "assume: [{baseline: 0, range: [0, 3]}]"], "line 11: assume[0]", "a range needs integers"),
    ([], ["outputs: []", "assume: [{distributed: 5, range: [0, 3]}]"], "line 11: assume[0]", "there is no parameter 5"),
    (["{baseline: 1, value: 3}", "{distributed: 1, value: 3}"], ["outputs: []", "assume: [{baseline: 1, range: [0, 3]}]"],
     "line 11: assume[0]", "contradicts the value on line 4"),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "rest", "where", "message"), WHOLE)
def test_a_file_that_is_wrong_as_a_whole(inputs: list[str], rest: list[str], where: str, message: str) -> None:
    lines = ["version: 1", "mesh: {tp: 2}", "inputs:" if inputs else "inputs: []", *(f"  - {entry}" for entry in inputs)]
    lines += [""] * (9 - len(lines)) + (rest or ["outputs: []"])
    both = module("f32[8] s32[]", "f32[8]")
    with pytest.raises(RelationError) as caught:
        relation("\n".join(lines), both, both)
    assert caught.value.where == f"r.yaml: {where}"
    assert message in caught.value.message


def test_missing_parameters_are_named() -> None:
    text = HEAD + "inputs:\n  - {distributed: 0, value: 0}\noutputs: [{baseline: 0, distributed: 0}]"
    with pytest.raises(
        RelationError, match=r"r.yaml: line 3: inputs: distributed parameter 1 is f32\[3\] \(named p1\) and is not listed, nor are 1 more"
    ):
        relation(text, module("f32[3] f32[4]"), module("f32[] f32[3] f32[4]"))


def test_an_incomplete_output_is_an_error_and_an_unused_input_is_noted() -> None:
    part = "{baseline: 0, baseline_slice: {0: [0, 4]}, distributed: 0}"
    text = f"version: 1\nmesh: {{tp: 1}}\ninputs: [{part}]\noutputs:\n  - %s"
    with pytest.raises(
        RelationError, match=r"line 5: outputs\[0\]: baseline output 0 is f32\[8\], but its elements \[4:8\] are not compared"
    ):
        relation(text % part, module("f32[8]", "f32[8]"), module("f32[4]", "f32[4]"))
    found = relation(text % "{baseline: 0, distributed: 0}", module("f32[8]", "f32[8]"), module("f32[4]", "f32[8]"))
    assert found.notes == ("elements [4:8] of baseline parameter 0 reach no device",)


def test_the_mesh_must_fit_the_modules() -> None:
    text = HEAD + "inputs: []\n" + OUT
    with pytest.raises(RelationError, match="line 2: mesh: has 8 devices, but module main was compiled for 4"):
        relation(text, module(""), module("", num_partitions=4))
    with pytest.raises(RelationError, match="line 2: mesh: 3 distributed modules do not fit mesh"):
        relation(text, module(""), *[module("")] * 3)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path
    with pytest.raises(RelationError, match=r"missing\.yaml: cannot be read: No such file"):
        read(folder / "missing.yaml")
    (folder / "bytes.yaml").write_bytes(b"version: \xff\xfe")
    with pytest.raises(RelationError, match=r"bytes\.yaml: is not UTF-8 text"):
        read(folder / "bytes.yaml")
    with pytest.raises(RelationError, match="cannot be read"):
        read(folder)
