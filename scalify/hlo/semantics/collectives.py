"""Collectives on the simulated mesh. Each group keeps the order in which the module lists its members.

Source: XLA's operation semantics and ``collective_ops_utils.h`` for what group members denote. Device ``r * partitions + p``
is partition ``p`` of replica ``r``; where one of the two counts is 1, replica ids, partition ids and device ids are the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.module import ReplicaGroups
from scalify.hlo.semantics.reduction import fold, unpack
from scalify.hlo.semantics.values import Array, Handler, Op, Scope, Value, as_index

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.hlo.module import Instruction

Groups = list[list[int]]
PERMUTING = ("all-to-all", "collective-broadcast", "collective-permute", "collective-permute-start")
"""With a channel these work across partitions, the others across replicas and partitions at once."""


def device_groups(instruction: Instruction, replicas: int, partitions: int) -> Groups:
    """Groups of device ids, each in its own order."""
    groups: ReplicaGroups = instruction.attributes["replica_groups"]
    channel, flat = instruction.attributes.get("channel_id"), instruction.attributes.get("use_global_device_ids", False)
    joint = channel is not None and not flat and instruction.opcode not in PERMUTING
    if replicas == 1 or partitions == 1:
        # Across replicas and partitions at once, the group of the only replica is all of its partitions.
        whole = joint and groups.groups == ((0,),)
        return [list(g) for g in ReplicaGroups(()).resolve(replicas * partitions)] if whole else _lists(groups, replicas * partitions)
    if channel is not None and flat:
        return _lists(groups, replicas * partitions)
    if joint:
        return [[r * partitions + p for r in g for p in range(partitions)] for g in groups.resolve(replicas)]
    if channel is not None:
        return [[r * partitions + p for p in g] for r in range(replicas) for g in groups.resolve(partitions)]
    return [[r * partitions + p for r in g] for p in range(partitions) for g in groups.resolve(replicas)]


def _lists(groups: ReplicaGroups, devices: int) -> Groups:
    return [list(g) for g in groups.resolve(devices)]


def _lane_groups(op: Op, *, cover: bool) -> Groups:
    """The groups as lanes. :raises HloError: overlapping groups, or a group that only some of the running devices belong to."""
    lane = _lane_of(op.scope)
    groups = device_groups(op.instruction, *op.scope.machine.counts)
    members = [d for g in groups for d in g]
    if len(set(members)) != len(members) or any(not 0 <= d < op.scope.machine.devices for d in members):
        raise HloError("replica groups repeat a device or name one that does not exist")
    running = [g for g in groups if any(d in lane for d in g)]
    if any(d not in lane for g in running for d in g):
        raise HloError("only a part of a group reaches this collective; the others would wait for ever")
    if cover and not lane.keys() <= set(members):
        raise HloError("a device is in no replica group")
    return [[lane[d] for d in g] for g in running]


def _lane_of(scope: Scope) -> dict[int, int]:
    if not scope.whole:
        raise HloError("a collective inside a scalar computation")
    return {int(device): n for n, device in enumerate(scope.devices)}


def _reduced(op: Op, operands: Sequence[Array], group: Sequence[int]) -> list[Array]:
    """Each operand reduced over the lanes of a group; no leading axis."""
    name = op.instruction.calls[0]
    parameters = len(op.scope.machine.module.computations[name].parameters)
    joint = parameters == 2 * len(operands) and len(operands) > 1
    batches = [list(operands)] if joint else [[x] for x in operands]
    one = Scope(op.scope.machine, op.scope.devices[np.array(group[:1])], whole=False)
    results: list[Array] = []
    for batch in batches:
        first = [x[group[0]][None] for x in batch]
        results += (r[0] for r in fold(one, name, first, ([x[m][None] for x in batch] for m in group[1:])))
    return results


def _all_reduce(op: Op, operands: Sequence[Array]) -> Any:
    results = [np.empty_like(x) for x in operands]
    for group in _lane_groups(op, cover=True):
        for result, value in zip(results, _reduced(op, operands, group), strict=True):
            result[group] = value
    return unpack(tuple(results), as_tuple=op.shape.is_tuple)


def _reduce_scatter(op: Op, operands: Sequence[Array]) -> Any:
    axis = op.attributes["dimensions"][0]
    results: list[list[Any]] = [[None] * op.scope.lanes for _ in operands]
    for group in _lane_groups(op, cover=True):
        for result, value in zip(results, _reduced(op, operands, group), strict=True):
            for member, part in zip(group, _split(value, len(group), axis), strict=True):
                result[member] = part
    return unpack(tuple(np.stack(r) for r in results), as_tuple=op.shape.is_tuple)


def _split(x: Array, count: int, axis: int) -> list[Array]:
    if x.shape[axis] % count:
        raise HloError(f"dimension {axis} of size {x.shape[axis]} is not divided by a group of {count}")
    return np.split(x, count, axis=axis)


def _all_gather(op: Op, operands: Sequence[Array]) -> Any:
    axis = op.attributes["dimensions"][0]
    groups = _lane_groups(op, cover=True)
    results = tuple(_gathered(x, groups, axis) for x in operands)
    return unpack(results, as_tuple=len(operands) > 1 or (op.shape.is_tuple and not op.instruction.opcode.endswith("-start")))


def _gathered(x: Array, groups: Groups, axis: int) -> Array:
    rows: list[Any] = [None] * x.shape[0]
    for group in groups:
        whole = np.concatenate([x[m] for m in group], axis=axis)
        for member in group:
            rows[member] = whole
    return np.stack(rows)


def _all_to_all(op: Op, operands: Sequence[Array]) -> Any:
    groups = _lane_groups(op, cover=True)
    if not op.attributes.get("dimensions"):
        return unpack(_exchanged(operands, groups), as_tuple=op.shape.is_tuple)
    axis = op.attributes["dimensions"][0]
    rows: list[Any] = [None] * op.scope.lanes
    for group in groups:
        parts = [_split(operands[0][m], len(group), axis) for m in group]
        for place, member in enumerate(group):
            rows[member] = np.concatenate([part[place] for part in parts], axis=axis)
    return np.stack(rows)


def _exchanged(operands: Sequence[Array], groups: Groups) -> tuple[Array, ...]:
    """Tuple form: member ``i`` sends its operand ``j`` to member ``j``, who has it as result ``i``."""
    results = [np.empty_like(x) for x in operands]
    for group in groups:
        if len(group) != len(operands):
            raise HloError(f"{len(operands)} operands for a group of {len(group)}")
        for sender_place, sender in enumerate(group):
            for place, member in enumerate(group):
                results[sender_place][member] = operands[place][sender]
    return tuple(results)


def _collective_broadcast(op: Op, operands: Sequence[Array]) -> Array:
    result = np.zeros_like(operands[0])
    for group in _lane_groups(op, cover=False):
        result[group] = operands[0][group[0]]
    return result


def device_pairs(instruction: Instruction, replicas: int, partitions: int) -> list[tuple[int, int]]:
    """Source and target device ids of a collective-permute."""
    pairs = [(int(s), int(t)) for s, t in instruction.attributes["source_target_pairs"]]
    if replicas == 1 or partitions == 1:
        return pairs
    if instruction.attributes.get("channel_id") is not None:
        return [(r * partitions + s, r * partitions + t) for r in range(replicas) for s, t in pairs]
    return [(s * partitions + p, t * partitions + p) for p in range(partitions) for s, t in pairs]


def _collective_permute(op: Op, operands: Sequence[Array]) -> Any:
    """A device that no pair names as target gets zeros."""
    lane, pairs = _lane_of(op.scope), device_pairs(op.instruction, *op.scope.machine.counts)
    if len({s for s, _ in pairs}) != len(pairs) or len({t for _, t in pairs}) != len(pairs):
        raise HloError("source_target_pairs repeat a source or a target")
    if any(not 0 <= d < op.scope.machine.devices for pair in pairs for d in pair):
        raise HloError("source_target_pairs name a device that does not exist")
    running = [(s, t) for s, t in pairs if s in lane or t in lane]
    if any(d not in lane for pair in running for d in pair):
        raise HloError("only one end of a pair reaches this collective; the other would wait for ever")
    results = tuple(np.zeros_like(x) for x in operands)
    for result, x in zip(results, operands, strict=True):
        for source, target in running:
            result[lane[target]] = x[lane[source]]
    return results if len(operands) > 1 else results[0]


def _ragged_all_to_all(op: Op, operands: Sequence[Array]) -> Array:
    """Rows of the first operand go into the receiver's second operand, at the offsets that the sender gives.

    Each of the four vectors has the same number of entries for every member of the group, in the group's order.
    """
    data, target, starts, sizes, places, _ = operands
    result = np.array(target)
    for group in _lane_groups(op, cover=True):
        each = starts.shape[1] // len(group)
        for sender in group:
            for number, (start, size, place) in enumerate(
                zip(*(as_index(v[sender]).tolist() for v in (starts, sizes, places)), strict=True)
            ):
                receiver = group[number // each]
                if min(start, size, place) < 0 or start + size > data.shape[1] or place + size > result.shape[1]:
                    raise HloError("a ragged slice is not inside its operand")
                result[receiver, place : place + size] = data[sender, start : start + size]
    return result


def _started(plain: Callable[[Op, Sequence[Array]], Value]) -> Handler:
    """The ``-start`` form: (operands, results, contexts of the implementation)."""

    def handler(op: Op, operands: Sequence[Array]) -> Value:
        sent = tuple(operands) if len(operands) > 1 else operands[0]
        return (sent, plain(op, operands), *(op.scope.zeros(s) for s in op.shape.elements[2:]))

    return handler


def _second(_op: Op, operands: Sequence[Value]) -> Value:
    return operands[0][1]


def _first(_op: Op, operands: Sequence[Value]) -> Value:
    return operands[0]


def _device_id(op: Op, _operands: Sequence[Array]) -> Array:
    _, partitions = op.scope.machine.counts
    devices = op.scope.devices
    return devices % partitions if op.instruction.opcode == "partition-id" else devices // partitions


HANDLERS: dict[str, Handler] = {
    "all-gather": _all_gather,
    "all-gather-done": _second,
    "all-gather-start": _started(_all_gather),
    "all-reduce": _all_reduce,
    "all-reduce-done": _first,
    "all-reduce-start": _all_reduce,
    "all-to-all": _all_to_all,
    "collective-broadcast": _collective_broadcast,
    "collective-permute": _collective_permute,
    "collective-permute-done": _second,
    "collective-permute-start": _started(_collective_permute),
    "partition-id": _device_id,
    "ragged-all-to-all": _ragged_all_to_all,
    "reduce-scatter": _reduce_scatter,
    "replica-id": _device_id,
}

MEETINGS = frozenset(HANDLERS) - {
    "all-gather-done",
    "all-reduce-done",
    "collective-permute-done",
    "partition-id",
    "replica-id",
}
"""Opcodes in which devices meet."""
