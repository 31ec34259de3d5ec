"""Random numbers, host transfers, and messages between devices.

What comes from outside (``rng``, ``infeed``, a host transfer) is an unknown value: seeded, different for every instruction, execution and
device, the same in every domain. ``rng-bit-generator`` is an unknown function of its state, so that equal states give equal bits.
A message waits for its receiver under the channel and the sender's device id.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError, Undecidable
from scalify.hlo.arithmetic import hashing
from scalify.hlo.arithmetic.domain import whole
from scalify.hlo.arithmetic.integers import as_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Instruction, Shape
    from scalify.hlo.semantics.values import Array, Handler, Machine, Op, Value

PAIRS = "_xla_send_recv_source_target_pairs"
"""Frontend attribute of XLA's pipeline transfers: ``{{source,target},...}``."""


def _words(op: Op, dims: tuple[int, ...]) -> hashing.Words:
    """Hashes ``[lanes, *dims]`` that no other instruction, execution or device has."""
    machine, scope = op.scope.machine, op.scope
    name = op.instruction.name
    count = machine.draws[name] = machine.draws.get(name, 0) + 1
    salt = hashing.key(scope.domain.seed, "unknown", machine.label, machine.number, name, count)
    lanes = scope.devices.astype(np.uint64)
    if not scope.whole:
        lanes = hashing.combined(salt, [lanes, hashing.positions((scope.lanes,))])
    return hashing.combined(salt, [lanes.reshape(-1, *(1,) * len(dims)), hashing.positions(dims)[None]])


def _unknown(op: Op, shape: Shape) -> Value:
    if shape.is_tuple:
        return tuple(_unknown(op, s) for s in shape.elements)
    return op.domain.unknown(_words(op, shape.dims), shape.dtype) if shape.is_array else None


def _outside(op: Op, _operands: Sequence[Value]) -> Value:
    return _unknown(op, op.shape)


def _token(_op: Op, _operands: Sequence[Value]) -> Value:
    return None


def _rng(op: Op, operands: Sequence[Array]) -> Array:
    """Uniform in [a, b), or a symmetric distribution of the given mean and deviation."""
    first, second = (x.reshape(-1, *(1,) * op.shape.rank) for x in operands)
    if whole(op.dtype):
        op.domain.arbitrary.add("unknown values")
        low, high = as_index(first), as_index(second)
        drawn = low + (_words(op, op.shape.dims) % np.maximum(high - low, 1).astype(np.uint64)).astype(np.int64)
        return np.asarray(drawn, op.domain.storage(op.dtype))
    unit = op.domain.unknown(_words(op, op.shape.dims), op.dtype)
    if str(op.attributes["distribution"]) == "rng_normal":
        return _f(op, "add", first, _f(op, "multiply", second, _f(op, "multiply", unit, op.domain.number(2.0, op.dtype))))
    share = _f(op, "multiply", _f(op, "add", unit, op.domain.number(1.0, op.dtype)), op.domain.number(0.5, op.dtype))
    return _f(op, "add", first, _f(op, "multiply", share, _f(op, "subtract", second, first)))


def _f(op: Op, opcode: str, *operands: Array) -> Array:
    return op.domain.apply(opcode, operands, op.dtype)


def _bit_generator(op: Op, operands: Sequence[Array]) -> Any:
    """(next state, bits), or the bits alone: functions of the state and the algorithm."""
    state = operands[0].reshape(operands[0].shape[0], -1)
    algorithm = str(op.attributes.get("algorithm", ""))

    def drawn(what: str, shape: Shape) -> Array:
        value = op.domain.opaque(f"rng-bit-generator\0{algorithm}\0{what}", [(state, op.source)], shape.dims, shape.dtype)
        return np.broadcast_to(value, (op.scope.lanes, *shape.dims))

    if not op.shape.is_tuple:
        return drawn("bits", op.shape)
    return drawn("state", op.shape.elements[0]), drawn("bits", op.shape.elements[1])


def _send(op: Op, operands: Sequence[Value]) -> Value:
    """(operand, context, token)."""
    if not op.attributes.get("is_host_transfer", False):
        channel = op.attributes.get("channel_id", 0)
        for lane, device in enumerate(op.scope.devices.tolist()):
            op.scope.machine.sent.setdefault((channel, device), []).append(operands[0][lane])
    return (operands[0], *(op.scope.zeros(s) for s in op.shape.elements[1:]))


def _recv(op: Op, _operands: Sequence[Value]) -> Value:
    """(data, context, token); the data comes with ``recv-done``, but for the host's."""
    channel = op.attributes.get("channel_id", 0)
    op.scope.machine.receiving[channel] = None if op.attributes.get("is_host_transfer", False) else _pairs(op.instruction)
    if op.attributes.get("is_host_transfer", False):
        return (_unknown(op, op.shape.elements[0]), *(op.scope.zeros(s) for s in op.shape.elements[1:]))
    return op.scope.zeros(op.shape)


def _pairs(instruction: Instruction) -> list[tuple[int, int]]:
    text = str(instruction.attributes.get("frontend_attributes", {}).get(PAIRS, ""))
    return [(int(s), int(t)) for s, t in re.findall(r"\{(\d{1,9}),\s*(\d{1,9})\}", text)]


def sources(op: Op) -> list[tuple[int, int]] | None:
    """For a ``recv-done`` the (sender, receiver) device ids on its lanes; None when the host sends.

    :raises Undecidable: nothing says who sends.
    """
    machine = op.scope.machine
    pairs = machine.receiving.get(op.attributes.get("channel_id", 0), [])
    if pairs is None:
        return None
    lanes = set(op.scope.devices.tolist())
    named = [(s, t) for s, t in pairs if t in lanes] if pairs else _by_order(machine, op)
    if len({t for _, t in named}) != len(named):
        raise HloError(f"{PAIRS} repeats a target")
    return named


def _by_order(machine: Machine, op: Op) -> list[tuple[int, int]]:
    """Between modules a channel joins two of them, whose devices correspond in order."""
    channel = op.attributes.get("channel_id", 0)
    senders = machine.peers.get(channel)
    if senders is None or len(senders) != op.scope.lanes:
        raise Undecidable(f"nothing says which device sends on channel {channel}")
    return list(zip(senders, op.scope.devices.tolist(), strict=True))


def arrived(op: Op) -> bool:
    """Whether everything that a ``recv-done`` waits for was sent."""
    pairs = sources(op)
    channel = op.attributes.get("channel_id", 0)
    return pairs is None or all(op.scope.machine.sent.get((channel, s)) for s, _ in pairs)


def _recv_done(op: Op, operands: Sequence[Value]) -> Value:
    """(data, token); a device to which nothing is sent gets zeros."""
    data, pairs = operands[0][0], sources(op)
    if pairs is None:
        return data, None
    channel, lane = op.attributes.get("channel_id", 0), {d: n for n, d in enumerate(op.scope.devices.tolist())}
    result = np.zeros_like(data)
    for source, target in pairs:
        message = op.scope.machine.sent[channel, source].pop(0)
        if np.shape(message) != result.shape[1:]:
            raise HloError(f"channel {channel} carries {list(np.shape(message))}, not {list(result.shape[1:])}")
        result[lane[target]] = message
    return result, None


HANDLERS: dict[str, Handler] = {
    "infeed": _outside,
    "outfeed": _token,
    "recv": _recv,
    "recv-done": _recv_done,
    "rng": _rng,
    "rng-bit-generator": _bit_generator,
    "rng-get-and-update-state": _outside,
    "send": _send,
    "send-done": _token,
}
