"""Collectives against what each device sends and receives, written out."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import HloError, UsageError
from scalify.hlo.interpret import run
from scalify.hlo.module import Shape
from tests.support.builder import Builder
from tests.support.interpreter import evaluate, tuple_shape

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

DEVICES = 4


@st.composite
def groupings(draw: st.DrawFn) -> tuple[tuple[int, ...], ...]:
    """Any partition of the devices into groups of one size, in any order."""
    order = draw(st.permutations(range(DEVICES)))
    size = draw(st.sampled_from([1, 2, 4]))
    return tuple(tuple(order[n : n + size]) for n in range(0, DEVICES, size))


def values(*dims: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-99, 99, (DEVICES, *dims))


def add(b: Builder) -> list[str]:
    return [b.reducer("add", "s32")]


def ordered(b: Builder) -> list[str]:
    inner = b.computation("ordered")
    old, new = inner.parameter("s32"), inner.parameter("s32")
    return [inner.end(inner.like("add", inner.like("multiply", old, inner.constant("s32", 3)), new))]


@settings(deadline=None)
@given(groupings())
def test_all_reduce(groups: tuple[tuple[int, ...], ...]) -> None:
    x = values(3)
    for calls, function in ((add, lambda a, c: a + c), (ordered, lambda a, c: a * 3 + c)):
        result = evaluate("all-reduce", ("s32", (3,)), [("s32", x)], devices=DEVICES, calls=calls, replica_groups=groups)[0]
        for group in groups:
            for device in group:
                assert result[device].tolist() == reduce(function, [x[m] for m in group]).tolist()


def test_all_reduce_of_groups_of_different_size_and_of_all() -> None:
    x = values(3)
    result = evaluate("all-reduce", ("s32", (3,)), [("s32", x)], devices=DEVICES, calls=add, replica_groups=((0, 2, 3), (1,)))[0]
    assert result.tolist() == [x[[0, 2, 3]].sum(0).tolist(), x[1].tolist(), *[x[[0, 2, 3]].sum(0).tolist()] * 2]
    assert evaluate("all-reduce", ("s32", (3,)), [("s32", x)], devices=DEVICES, calls=add)[0].tolist() == [x.sum(0).tolist()] * DEVICES


def test_variadic_all_reduce() -> None:
    x, y = values(3), values(2, seed=1)
    shape = tuple_shape(("s32", (3,)), ("s32", (2,)))
    results = evaluate("all-reduce", shape, [("s32", x), ("s32", y)], devices=DEVICES, calls=add)
    assert [r[1].tolist() for r in results] == [x.sum(0).tolist(), y.sum(0).tolist()]


@settings(deadline=None)
@given(groupings(), st.integers(0, 1))
def test_gather_scatter_exchange(groups: tuple[tuple[int, ...], ...], axis: int) -> None:
    size, x = len(groups[0]), values(4, 8)
    wide, narrow = [4, 8], [4, 8]
    wide[axis] *= size
    narrow[axis] //= size
    more: dict[str, Any] = {"devices": DEVICES, "replica_groups": groups, "dimensions": (axis,)}
    gathered = evaluate("all-gather", ("s32", tuple(wide)), [("s32", x)], **more)[0]
    scattered = evaluate("reduce-scatter", ("s32", tuple(narrow)), [("s32", x)], calls=add, **more)[0]
    exchanged = evaluate("all-to-all", ("s32", (4, 8)), [("s32", x)], **more)[0]
    for group in groups:
        for place, device in enumerate(group):
            assert gathered[device].tolist() == np.concatenate([x[m] for m in group], axis=axis).tolist()
            assert scattered[device].tolist() == np.split(sum(x[m] for m in group), size, axis=axis)[place].tolist()
            assert exchanged[device].tolist() == np.concatenate([np.split(x[m], size, axis=axis)[place] for m in group], axis=axis).tolist()


def test_all_to_all_of_tuples() -> None:
    x, y = values(3), values(3, seed=1)
    groups = ((2, 0), (1, 3))
    results = evaluate("all-to-all", tuple_shape(*[("s32", (3,))] * 2), [("s32", x), ("s32", y)], devices=DEVICES, replica_groups=groups)
    for first, second in groups:
        assert results[0][first].tolist() == x[first].tolist()
        assert results[1][first].tolist() == x[second].tolist()
        assert results[0][second].tolist() == y[first].tolist()
        assert results[1][second].tolist() == y[second].tolist()


def test_collective_permute_fills_with_zeros() -> None:
    x = values(3)
    pairs = ((0, 1), (1, 2), (3, 0))
    result = evaluate("collective-permute", ("s32", (3,)), [("s32", x)], devices=DEVICES, source_target_pairs=pairs)[0]
    assert result.tolist() == [x[3].tolist(), x[0].tolist(), x[1].tolist(), [0, 0, 0]]


def test_collective_broadcast() -> None:
    x = values(3)
    result = evaluate("collective-broadcast", ("s32", (3,)), [("s32", x)], devices=DEVICES, replica_groups=((2, 0),))[0]
    assert result.tolist() == [x[2].tolist(), [0, 0, 0], x[2].tolist(), [0, 0, 0]]


def test_start_and_done_forms() -> None:
    b = Builder()
    x = b.parameter("s32", (2,))
    one, two = Shape("s32", (2,)), Shape("s32", (8,))
    reduced = b.add("all-reduce-done", one, (), [b.add("all-reduce-start", one, (), [x], calls=add(b))])
    start = b.add("all-gather-start", Shape("tuple", (), (one, two)), (), [x], dimensions=(0,))
    gathered = b.add("all-gather-done", two, (), [start])
    context = Shape("u32")
    pairs = tuple((n, (n + 1) % DEVICES) for n in range(DEVICES))
    sent = b.add("collective-permute-start", Shape("tuple", (), (one, one, context, context)), (), [x], source_target_pairs=pairs)
    shifted = b.add("collective-permute-done", one, (), [sent])
    value = values(2)
    results = run(b.build([reduced, gathered, shifted], num_partitions=DEVICES), [value], DEVICES)
    assert results[0].tolist() == [value.sum(0).tolist()] * DEVICES
    assert results[1].tolist() == [value.reshape(-1).tolist()] * DEVICES
    assert results[2].tolist() == np.roll(value, 1, axis=0).tolist()


def ids(partitions: int, replicas: int, devices: int = DEVICES) -> list[list[int]]:
    b = Builder()
    module = b.build([b.add("partition-id", "u32"), b.add("replica-id", "u32")], num_partitions=partitions, num_replicas=replicas)
    return [r.tolist() for r in run(module, [], devices)]


def test_device_ids() -> None:
    assert ids(4, 1) == [[0, 1, 2, 3], [0, 0, 0, 0]]
    assert ids(1, 4) == [[0, 0, 0, 0], [0, 1, 2, 3]]
    assert ids(2, 2) == [[0, 1, 0, 1], [0, 0, 1, 1]]
    assert ids(1, 1) == [[0, 1, 2, 3], [0, 0, 0, 0]]
    with pytest.raises(UsageError, match="2 partitions"):
        ids(2, 1)


@pytest.mark.parametrize(
    ("groups", "attributes", "expected"),
    [
        (((0, 1),), {}, [{0, 2}, {1, 3}]),
        (((0, 1),), {"channel_id": 1}, [{0, 1, 2, 3}]),
        (((0,), (1,)), {"channel_id": 1}, [{0, 1}, {2, 3}]),
        (((0, 3), (1, 2)), {"channel_id": 1, "use_global_device_ids": True}, [{0, 3}, {1, 2}]),
    ],
)
def test_what_groups_denote_with_replicas_and_partitions(
    groups: tuple[tuple[int, ...], ...], attributes: dict[str, Any], expected: list[set[int]]
) -> None:
    x = np.array([[1], [10], [100], [1000]])
    result = evaluate(
        "all-reduce", ("s32", (1,)), [("s32", x)], devices=4, partitions=2, replicas=2, calls=add, replica_groups=groups, **attributes
    )[0]
    for group in expected:
        assert all(result[d, 0] == sum(int(x[m, 0]) for m in group) for d in group)


def test_permute_with_replicas_and_partitions() -> None:
    x = np.array([[1], [2], [3], [4]])
    more: dict[str, Any] = {"devices": 4, "partitions": 2, "replicas": 2, "source_target_pairs": ((0, 1),)}
    assert evaluate("collective-permute", ("s32", (1,)), [("s32", x)], **more)[0].ravel().tolist() == [0, 0, 1, 2]
    assert evaluate("collective-permute", ("s32", (1,)), [("s32", x)], channel_id=1, **more)[0].ravel().tolist() == [0, 1, 0, 3]


def test_the_only_replica_with_a_channel_is_all_partitions() -> None:
    x = values(1)
    result = evaluate("all-reduce", ("s32", (1,)), [("s32", x)], devices=DEVICES, calls=add, replica_groups=((0,),), channel_id=1)[0]
    assert result.ravel().tolist() == [x.sum()] * DEVICES


@pytest.mark.parametrize(
    ("groups", "message"),
    [(((0, 1), (1, 2, 3)), "repeat a device"), (((0, 1, 2, 3, 4),), "does not exist"), (((0, 1),), "in no replica group")],
)
def test_wrong_groups(groups: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(HloError, match=message):
        evaluate("all-reduce", ("s32", (1,)), [("s32", values(1))], devices=DEVICES, calls=add, replica_groups=groups)


def test_wrong_pairs() -> None:
    for pairs, message in ((((0, 1), (0, 2)), "repeat"), (((0, 9),), "does not exist")):
        with pytest.raises(HloError, match=message):
            evaluate("collective-permute", ("s32", (1,)), [("s32", values(1))], devices=DEVICES, source_target_pairs=pairs)
