"""Collectives whose groups are written in each way that HLO knows, on devices in any order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from scalify.hlo.module import Shape
from tests.lift import support
from tests.lift.support import check
from tests.support.builder import Builder

ROW = (1, 4)
WHOLE = np.arange(16.0).reshape(4, 4) ** 2


def collectives(b: Builder, x: int, groups: Any, **more: Any) -> None:
    count = len(groups[0]) if groups else 4
    b.add("all-reduce", "f32", ROW, [x], calls=[b.reducer("add", "f32")], replica_groups=groups, **more)
    b.add("all-reduce", "f32", ROW, [x], calls=[b.reducer("maximum", "f32")], replica_groups=groups, **more)
    for d, dims in ((0, (count, 4)), (1, (1, 4 * count))):
        b.add("all-gather", "f32", dims, [x], dimensions=(d,), replica_groups=groups, **more)
    b.add("reduce-scatter", "f32", (1, 4 // count), [x], calls=[b.reducer("add", "f32")], dimensions=(1,), replica_groups=groups, **more)
    b.add("all-to-all", "f32", ROW, [x], dimensions=(1,), replica_groups=groups, **more)
    parts = b.add("all-to-all", Shape("tuple", (), (Shape("f32", ROW),) * count), (), [x] * count, replica_groups=groups, **more)
    for k in range(count):
        b.get(parts, k)
    b.add("collective-broadcast", "f32", ROW, [x], replica_groups=groups[:1] if groups else groups, **more)


@pytest.mark.parametrize(
    "groups", [[], [[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]], [[0], [1], [2], [3]], [[1, 0], [3, 2]], [[2, 3], [0, 1]]]
)
@pytest.mark.parametrize("ids", [(0, 1, 2, 3), (0, 2, 1, 3), (3, 1, 0, 2)])
def test_groups(groups: list[list[int]], ids: tuple[int, ...]) -> None:
    b = Builder()
    x = b.parameter("f32", ROW)
    collectives(b, b.like("add", x, b.broadcast(b.add("convert", "f32", (), [b.add("partition-id", "u32")]), ROW)), groups)
    check(b, [WHOLE], {"a": 2, "b": 2}, [(("a", "b"), None)], device_ids=ids, opaque=True)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_one_group_in_every_order(order: tuple[int, ...]) -> None:
    b = Builder()
    collectives(b, b.parameter("f32", ROW), [list(order)])
    b.add("collective-permute", "f32", ROW, [0], source_target_pairs=tuple(enumerate(order)))
    b.add("collective-permute", "f32", ROW, [0], source_target_pairs=tuple(enumerate(order))[:2])
    check(b, [WHOLE], {"a": 4}, [("a", None)], opaque=True)


REPLICATED: list[dict[str, Any]] = [
    {},
    {"replica_groups": ((0, 1),)},
    {"replica_groups": ((0,), (1,))},
    {"replica_groups": ((0, 1),), "channel_id": 1},
    {"replica_groups": ((0,), (1,)), "channel_id": 1},
    {"replica_groups": ((0, 1), (2, 3)), "channel_id": 1, "use_global_device_ids": True},
    {"replica_groups": ((0, 2), (1, 3)), "channel_id": 1, "use_global_device_ids": True},
]


@pytest.mark.parametrize("groups", REPLICATED)
@pytest.mark.parametrize("ids", [(0, 1, 2, 3), (0, 2, 1, 3)])
def test_replicas_of_partitions(groups: dict[str, Any], ids: tuple[int, ...]) -> None:
    """With both replicas and partitions a channel decides what a group's members are."""
    b = Builder()
    x = b.parameter("f32", ROW)
    b.add("all-reduce", "f32", ROW, [x], calls=[b.reducer("add", "f32")], **groups)
    b.add("partition-id", "u32")
    b.add("replica-id", "u32")
    if "use_global_device_ids" not in groups:
        b.add("all-to-all", "f32", ROW, [x], dimensions=(1,), **groups)
    channel: dict[str, Any] = {"channel_id": 2} if "channel_id" in groups else {}
    b.add("collective-permute", "f32", ROW, [x], source_target_pairs=((0, 1), (1, 0)), **channel)
    check(b, [WHOLE], {"a": 4}, [("a", None)], device_ids=ids, num_partitions=2, num_replicas=2, opaque=True)


def test_only_replica_of_all_partitions() -> None:
    b = Builder()
    x = b.parameter("f32", ROW)
    b.add("all-reduce", "f32", ROW, [x], calls=[b.reducer("add", "f32")], replica_groups=((0,),), channel_id=1)
    check(b, [WHOLE], {"a": 4}, [("a", None)])


@pytest.mark.parametrize("contexts", [0, 2])
def test_asynchronous(contexts: int) -> None:
    b = Builder()
    x = b.parameter("f32", ROW)
    row, whole = Shape("f32", ROW), Shape("f32", (4, 4))
    more = (Shape("u32"),) * contexts
    start = b.add("collective-permute-start", Shape("tuple", (), (row, row, *more)), (), [x], source_target_pairs=((0, 1), (1, 2), (2, 3)))
    b.like("negate", b.add("collective-permute-done", row, (), [start]))
    start = b.add("all-gather-start", Shape("tuple", (), (row, whole)), (), [x], dimensions=(0,))
    b.like("negate", b.add("all-gather-done", whole, (), [start]))
    both = Shape("tuple", (), (Shape("tuple", (), (row, row)), Shape("tuple", (), (whole, whole))))
    done = b.add("all-gather-done", both.elements[1], (), [b.add("all-gather-start", both, (), [x, b.like("negate", x)], dimensions=(0,))])
    b.like("negate", b.get(done, 1))
    start = b.add("all-reduce-start", row, (), [x], calls=[b.reducer("add", "f32")])
    b.like("negate", b.add("all-reduce-done", row, (), [start]))
    check(b, [WHOLE], {"a": 4}, [("a", None)])


def test_support_rejects_wrong_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself finds a wrong lifting."""
    b = Builder()
    x = b.parameter("f32", ROW)
    b.add("all-reduce", "f32", ROW, [x], calls=[b.reducer("add", "f32")])
    monkeypatch.setattr("scalify.lift.transfer.collective.device_factors", lambda *_: [])
    with pytest.raises(AssertionError, match="all-reduce"):
        support.check(b, [WHOLE], {"a": 4}, [("a", None)])
