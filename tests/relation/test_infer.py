"""Relations without a file: shardings as mesh axes, shapes with one reading, and the text that is written."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import RelationError, UsageError
from scalify.hlo.module import Module, Sharding
from scalify.relation.execute import apply
from scalify.relation.infer import infer, parse_mesh
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from scalify.relation.write import write
from tests.relation.support import module, tiled
from tests.support.builder import Builder

if TYPE_CHECKING:
    from scalify.relation.model import Relation

REPLICATED = Sharding("replicated")


def sharded(parameters: str, outputs: str, inputs: list[Sharding], results: list[Sharding], devices: int) -> Module:
    return module(
        parameters,
        outputs,
        num_partitions=devices,
        parameter_shardings=tuple(inputs),
        output_sharding=results[0] if len(results) == 1 else Sharding("tuple", elements=tuple(results)),
    )


def assert_equal(left: Relation, right: Relation) -> None:
    """Equal but for line numbers and notes."""
    assert (left.mesh, left.same_mesh, left.inputs.keys(), left.outputs.keys()) == (
        right.mesh,
        right.same_mesh,
        right.inputs.keys(),
        right.outputs.keys(),
    )
    for a, b in ((left.inputs, right.inputs), (left.outputs, right.outputs)):
        for number in a:
            assert [(p.recipe.steps, p.starts, p.region) for p in a[number]] == [(p.recipe.steps, p.starts, p.region) for p in b[number]]


@st.composite
def shardings(draw: st.DrawFn) -> tuple[list[int], list[int], list[Sharding], list[list[int]]]:
    """Mesh sizes, a device order, and tiled shardings of that mesh with their tile counts."""
    sizes = draw(st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=3).filter(lambda s: prod(s) <= 24))
    order = list(range(prod(sizes))) if draw(st.booleans()) else list(draw(st.permutations(range(prod(sizes)))))
    mesh = np.array(order).reshape(sizes)
    found, tiles = [], []
    for _ in range(draw(st.integers(1, 3))):
        axes = list(draw(st.permutations(range(len(sizes)))))
        cut = draw(st.integers(1, len(axes)))
        bounds = sorted(draw(st.lists(st.integers(0, cut), min_size=1, max_size=2)))
        groups = [axes[a:b] for a, b in zip([0, *bounds], [*bounds, cut], strict=True)]
        tile = [prod(sizes[a] for a in g) for g in groups]
        rest = prod(sizes[a] for a in axes[cut:])
        devices = mesh.transpose(axes).reshape(-1).tolist()
        found.append(tiled([*tile, rest] if rest > 1 else tile, devices, int(rest > 1)))
        tiles.append(tile)
    return sizes, order, found, tiles


@settings(max_examples=150, deadline=None)
@given(shardings(), st.data())
def test_a_sharding_is_read_as_the_tiles_that_it_lists(
    drawn: tuple[list[int], list[int], list[Sharding], list[list[int]]], data: st.DataObject
) -> None:
    """The tile of a device, straight from the definition, against the recipe of the inferred relation."""
    sizes, _, found, tiles = drawn
    locals_ = [[data.draw(st.integers(1, 2)) for _ in tile] for tile in tiles]
    whole = [[n * t for n, t in zip(local, tile, strict=True)] for local, tile in zip(locals_, tiles, strict=True)]

    def shapes(lists: list[list[int]]) -> str:
        return " ".join(f"s32[{','.join(map(str, dims))}]" for dims in lists)

    d = sharded(shapes(locals_), "s32[]", found, [REPLICATED], prod(sizes))
    named = tuple((f"a{i}", s) for i, s in enumerate(sizes)) if data.draw(st.booleans()) else None
    b = module(shapes(whole), "s32[]")
    try:
        relation, text = infer(b, [d], named)
    except RelationError as error:
        assert "do not fit" in error.message  # noqa: PT017  an order that no sharding lists is not found
        return
    assert_equal(resolve(parse(text), b, [d]), relation)
    ids = list(relation.mesh.device_ids)
    for number, (sharding, local, dims) in enumerate(zip(found, locals_, whole, strict=True)):
        array = np.arange(prod(dims)).reshape(dims)
        result = apply(relation.inputs[number][0].recipe, array).reshape(prod(sizes), *local)
        for place, device in np.ndenumerate(np.array(sharding.devices).reshape(sharding.tile)):
            part = array[tuple(slice(i * n, (i + 1) * n) for i, n in zip(place, local, strict=False))]
            np.testing.assert_array_equal(result[ids.index(device)], part)


def test_the_mesh_is_as_coarse_as_the_shardings_allow() -> None:
    d = sharded("f32[4] f32[2,2]", "f32[4]", [tiled([2, 4], range(8), 1), tiled([2, 4], range(8))], [tiled([2, 4], range(8), 1)], 8)
    relation, text = infer(module("f32[8] f32[4,8]", "f32[8]"), [d])
    assert relation.mesh.axes == (("m0", 2), ("m1", 4))
    assert text == (
        "version: 1\nmesh: {m0: 2, m1: 4}\n"
        "inputs:\n  - {baseline: 0, distributed: 0, spec: [m0]}\n  - {baseline: 1, distributed: 1, spec: [m0, m1]}\n"
        "outputs:\n  - {baseline: 0, distributed: 0, spec: [m0]}\n"
    )
    assert relation.notes[0] == "parameter 0 is taken to be baseline 0, cut along dimension 0 over m0 (from the module's sharding)"


def test_permuted_devices_give_device_ids() -> None:
    d = sharded("f32[1]", "f32[4]", [tiled([4], [3, 1, 0, 2])], [REPLICATED], 4)
    relation, text = infer(module("f32[4]", "f32[4]"), [d])
    assert relation.mesh.device_ids == (3, 1, 0, 2)
    assert "device_ids: [3, 1, 0, 2]" in text


def test_named_axes_must_fit() -> None:
    d = sharded("f32[2]", "f32[4]", [tiled([4], range(4))], [REPLICATED], 4)
    b = module("f32[8]", "f32[4]")
    assert infer(b, [d], (("dp", 2), ("tp", 2)))[0].inputs[0][0].recipe.steps[0].dims == (2, 2, 2)  # type: ignore[union-attr]
    with pytest.raises(RelationError, match="was compiled for 4"):
        infer(b, [d], (("tp", 8),))


def test_one_device_is_the_identity() -> None:
    both = module("f32[8] s32[]", "f32[4]")
    relation, text = infer(both, [both])
    assert text.startswith("version: 1\nmesh: {m0: 1}\n")
    assert all(len(p.recipe.steps) == 1 for pieces in relation.inputs.values() for p in pieces)


def test_shapes_with_one_reading() -> None:
    relation, text = infer(module("f32[8,6] f32[6]", "f32[8]"), [module("f32[2,6] f32[6]", "f32[8]")], (("tp", 4),))
    assert "{baseline: 0, distributed: 0, spec: [tp]}" in text
    assert "{baseline: 1, distributed: 1}" in text
    assert relation.notes[0].endswith("(from the shapes)")


@pytest.mark.parametrize(
    ("baseline", "local", "axes", "message"),
    [
        ("f32[8]", "f32[2]", "x=2,y=2", r"2 readings; choose one: spec: \[\[x, y\]\]; spec: \[\[y, x\]\]"),
        ("f32[8]", "f32[4]", "x=2,y=2", r"2 readings; choose one: spec: \[x\]; spec: \[y\]"),
        ("f32[8]", "f32[3]", "x=2", "no sharding over mesh {'x': 2} explains the shapes"),
        ("f32[8]", "f32[8,1]", "x=2", "no sharding"),
        ("f32[0]", "f32[1]", "x=2", "no sharding"),
        ("f32[8]", "s32[8]", "x=2", "relates floating-point data to integer data"),
    ],
)
def test_shapes_with_none_or_several_readings(baseline: str, local: str, axes: str, message: str) -> None:
    with pytest.raises(RelationError, match=message):
        infer(module(baseline), [module(local)], parse_mesh(axes))


def test_names_from_metadata_pair_parameters_before_positions() -> None:
    b, d = module("f32[4] f32[4]", names=["w", "v"]), module("f32[4] f32[4]", names=["v", "w"])
    assert "{baseline: 1, distributed: 0}" in infer(b, [d])[1]


def test_instruction_names_pair_parameters_when_counts_differ() -> None:
    text = "version: 1\nmesh: {tp: 2}\ninputs: [{baseline: 0, value: 0}]\noutputs: [{baseline: 0, distributed: 0}]"

    def named(*names: str) -> Module:
        builder = Builder()
        numbers = [builder.parameter("f32", (4,), name=name) for name in names]
        return builder.build(numbers[0])

    found = resolve(parse(text), named("eps", "w", "v"), [named("v", "w")])
    assert [found.inputs[i][0].recipe.source for i in (0, 1)] == [2, 1]
    with pytest.raises(RelationError, match="not listed"):  # names that only count say nothing
        resolve(parse(text), named("p0.1", "p1.2", "p2.3"), [named("p1.2", "p2.3")])


def test_collectives_tell_the_number_of_devices() -> None:
    builder = Builder()
    x = builder.parameter("f32", (2,))
    y = builder.add("all-gather", "f32", (8,), [x], dimensions=(0,), replica_groups=((0, 1, 2, 3),))
    relation, _ = infer(module("f32[8]", "f32[8]"), [builder.build([y])])
    assert relation.mesh.axes == (("m0", 4),)


def test_a_baseline_on_the_mesh_is_related_device_by_device() -> None:
    both = sharded("f32[2]", "f32[4]", [tiled([4], range(4))], [REPLICATED], 4)
    relation, text = infer(both, [both])
    assert relation.same_mesh
    assert relation.inputs[0][0].recipe.steps == ()
    assert "baseline_mesh: same" in text


def test_a_module_before_partitioning_is_named_as_such() -> None:
    d = sharded("f32[8]", "f32[8]", [tiled([4], range(4))], [REPLICATED], 4)
    with pytest.raises(RelationError, match="looks not partitioned yet"):
        infer(module("f32[8]", "f32[8]"), [d])


def test_a_sharding_that_does_not_divide_needs_an_entry() -> None:
    d = sharded("f32[3]", "f32[8]", [tiled([4], range(4))], [REPLICATED], 4)
    with pytest.raises(RelationError, match="devices hold padding; list it with `pad`"):
        infer(module("f32[10]", "f32[8]"), [d])


@pytest.mark.parametrize("text", ["", "tp", "tp=0", "tp=x", "tp=2,tp=2", "a=1000,b=1000", "2=2"])
def test_a_wrong_mesh_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_mesh(text)


def test_written_files_read_back() -> None:
    text = """\
version: 1
mesh: {dp: 2, "null": 2}
device_ids: [3, 2, 1, 0]
baseline_mesh: same
inputs:
  - {baseline: 0, baseline_slice: {0: [0, 2]}, distributed: [0, null, "w.q"], distributed_slice: {1: [0, 3]}, map: "a (b c) -> [dp=(b r)] a c", pad: {0: [1, 2], b: [0, 1]}}
  - {baseline: "x: y", distributed: 3, module: 2, steps: [{spec: [null, [dp, "null"]]}, {pad: {0: [0, 1]}}, {map: "... -> ..."}]}
  - {distributed: 5, value: [[1, -.inf], [1e-05, 0.1]]}
  - {distributed: 6, per_device: [true, false, true, true]}
  - {distributed: 7, device_index: ["null", dp]}
outputs:
  - {baseline: 0, distributed: 0, map: "a -> [+dp] a"}
  - {distributed: 1, ignore: true}
assume:
  - {baseline: "ids", range: [-3, 32000]}
sizes: {d: 128}
"""
    written = write(parse(text))
    assert written == text
    assert write(parse(written)) == written
