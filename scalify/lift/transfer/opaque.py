"""Operations without factor semantics: equal operands give equal results, and batch dimensions stay labels.

The content of an opaque term names the opcode, its attributes, its reducer (by structure), every operand over the core axes in the order in which
the operation sees them, and which part of the result it is. So two of them are equal only if they are the same function of the same values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from itertools import product as combinations
from typing import TYPE_CHECKING

import numpy as np

from scalify.hlo.dtypes import DTYPES
from scalify.hlo.module import Computation, Module, ReplicaGroups
from scalify.lift.atoms import opaque
from scalify.lift.collate import PER_DEVICE
from scalify.lift.terms import View, bounds, is_integer
from scalify.lift.transfer.base import Unsupported, exact_value, lifts

if TYPE_CHECKING:
    from scalify.lift.layout import Block, Layout, Value
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation

#: opcodes that are functions of their operands alone
PURE = frozenset(
    {
        "convolution", "fft", "cholesky", "triangular-solve", "select-and-scatter", "reduce-window", "topk", "sort", "map", "scatter", "reduce",
        "batch-norm-training", "batch-norm-inference", "batch-norm-grad", "dot", "bitcast-convert", "gather", "dynamic-slice",
        "stochastic-convert", "while", "conditional", "rng-bit-generator",
    }
)  # fmt: skip

#: opcodes that are functions of what all devices hold, and of their attributes
COLLECTIVE = frozenset({"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast"})

_IGNORED = frozenset({"sharding", "frontend_attributes", "indices_are_sorted"})
_EFFECTS = frozenset(
    {
        "infeed",
        "outfeed",
        "send",
        "recv",
        "rng",
        "rng-bit-generator",
        "rng-get-and-update-state",
        "custom-call",
        "partition-id",
        "replica-id",
    }
)


def attributes_key(attributes: Mapping[str, object]) -> Hashable:
    known = [(k, _plain(v)) for k, v in sorted(attributes.items()) if k not in _IGNORED]
    return tuple([(k, "given" if k == "channel_id" else v) for k, v in known])  # a channel's number is only a name


def _plain(value: object) -> Hashable:
    if isinstance(value, ReplicaGroups):
        return value.groups
    if isinstance(value, np.ndarray):
        return (value.dtype.char, value.shape, value.tobytes())
    return repr(value)


def computation_key(module: Module, computation: Computation) -> Hashable:
    """The structure of a computation, free of names. :raises Unsupported: it communicates or has effects."""
    found: dict[str, Hashable] = {}
    pending = [computation]
    while pending:
        top = pending[-1]
        missing = [c for i in top.instructions for c in i.calls if c not in found]
        if missing:
            pending += [module.computations[c] for c in missing]
            continue
        if top.name not in found:
            found[top.name] = _digest(_structure(top, found))
        pending.pop()
    return found[computation.name]


def _digest(rows: Hashable) -> str:
    """A name of constant length: computations that call each other many times would nest without bound."""
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _structure(computation: Computation, known: Mapping[str, Hashable]) -> Hashable:
    """The instructions that the root needs, numbered as a walk from the root meets them."""
    numbers: dict[int, int] = {}
    rows = []
    pending = [computation.root]
    while pending:
        position = pending[-1]
        i = computation.instructions[position]
        missing = [o for o in reversed(i.operands) if o not in numbers]
        if missing:
            pending += missing
            continue
        pending.pop()
        if position in numbers:
            continue
        if PER_DEVICE in i.attributes:
            raise Unsupported("a computation with constants that differ between devices")
        numbers[position] = len(numbers)
        rows.append(
            (
                i.opcode,
                str(i.shape),
                tuple([numbers[o] for o in i.operands]),
                attributes_key(i.attributes),
                tuple([known[c] for c in i.calls]),
            )
        )
    for i in computation.instructions:
        if i.opcode in _EFFECTS or "replica_groups" in i.attributes or "source_target_pairs" in i.attributes:
            raise Unsupported(f"a computation with {i.opcode} in it")
    return tuple(rows)


class Batch:
    """Which dimensions of the operands are which dimensions of the results; the device dimension is one, too, unless devices communicate."""

    def __init__(self, operands: Sequence[Mapping[int, int]], *, devices: bool = True) -> None:
        first = {0: 0} if devices else {}
        self.operands = [{**first, **{d + 1: r + 1 for d, r in m.items()}} for m in operands]


def call(lifter: Lifter, operation: Operation, batch: Batch, key: Hashable = None) -> list[Value]:
    """The results of an opaque operation."""
    structure = tuple([computation_key(lifter.program.module, c) for c in operation.computations])
    base = ("op", operation.opcode, attributes_key(operation.instruction.attributes), structure, key)
    shapes = tuple([(lifter.dtype(o), lifter.program.shapes[o].dims) for o in operation.operands])
    local = tuple([tuple(n for d, n in enumerate(dims) if d + 1 not in m) for (_, dims), m in zip(shapes, batch.operands, strict=True)])
    kinds = tuple([t for t, _ in shapes])
    operands = [exact_value(lifter, lifter.values[o], lifter.dtype(o)) for o in operation.operands]
    found = []
    for number, result in enumerate(operation.results):
        target = lifter.layout_of(result)
        limits = _chosen_limits(lifter, operation, number, operands) or lifter.integer_limits(result)
        kind = _result_kind(lifter, operation, result, batch)
        views = []
        for where in range(target.count):
            arguments = _arguments(lifter, operands, batch, target, where)
            content, places = _result_place(target, where, batch)
            name = (*base, number, kind, local, kinds, content, tuple([k for _, _, k in arguments]))
            block = target.blocks[where]
            sizes = dict(enumerate(block.sizes))
            views.append(opaque(lifter.store, name, [(v, core) for v, core, _ in arguments], places, sizes, limits))
        found.append(lifter.value(target, views))
    return found


def _chosen_limits(lifter: Lifter, operation: Operation, number: int, operands: Sequence[Value]) -> tuple[int, int] | None:
    """The integer range of a result of a reduction that only chooses among its operands, as argmax does: theirs, all together."""
    if operation.opcode != "reduce" or not _chooses(operation.computations[0], number, len(operation.results)):
        return None
    found = [bounds(v) for k in (number, number + len(operation.results)) for v in operands[k].views]
    if any(f is None for f in found) or not all(
        is_integer(v) for k in (number, number + len(operation.results)) for v in operands[k].views
    ):
        return None
    return min(int(f[0]) for f in found if f), max(int(f[1]) for f in found if f)


def _chooses(computation: Computation, number: int, count: int) -> bool:
    """Whether one result of a reducer is always one of the two values that it is given for it."""
    instructions = computation.instructions
    root = instructions[computation.root]
    pending = [root.operands[number]] if root.opcode == "tuple" else [computation.root]
    seen: set[int] = set()
    while pending:
        where = pending.pop()
        if where in seen:
            continue
        seen.add(where)
        top = instructions[where]
        if top.opcode in ("select", "minimum", "maximum"):
            pending += top.operands[1 if top.opcode == "select" else 0 :]
        elif top.opcode != "parameter" or top.attributes["index"] not in (number, number + count):
            return False
    return True


def _result_kind(lifter: Lifter, operation: Operation, result: int, batch: Batch) -> Hashable:
    """What a result is besides its elements: type (all floats are reals, but not their bits), core dimensions, which ones are a batch."""
    dtype = lifter.dtype(result)
    fixed = {t for dims in batch.operands for t in dims.values()}
    core = tuple([n for d, n in enumerate(operation.shapes[operation.results.index(result)].dims) if d + 1 not in fixed])
    named = "float" if DTYPES[dtype].is_float and operation.opcode != "bitcast-convert" else dtype
    return named, core, tuple([tuple(sorted(dims.items())) for dims in batch.operands])


Argument = tuple[View, list[tuple[int, int]], Hashable]


def _arguments(lifter: Lifter, operands: Sequence[Value], batch: Batch, target: Layout, where: int) -> list[Argument]:
    """Every block of every operand that the result block depends on: view, core slots, and which block it is."""
    found: list[Argument] = []
    block = target.blocks[where]
    for operand, dims in zip(operands, batch.operands, strict=True):
        source = operand.layout
        same: dict[int, int] = {}
        for d, t in dims.items():
            if source.key[d] != target.key[t]:
                raise Unsupported("a batch dimension that is cut in another way")
            same.update(zip(source.range(d), target.range(t), strict=True))
        core = [f for f in range(len(source.factors)) if f not in same]
        for picks in combinations(*[range(len(source.parts[f])) for f in core]):
            chosen = dict(zip(core, picks, strict=True))
            choice = [block.choice[same[f]] if f in same else chosen[f] for f in range(len(source.factors))]
            found.append(_argument(lifter, operand, choice, same, block, core))
    return found


def _argument(
    lifter: Lifter, operand: Value, choice: Sequence[int], same: Mapping[int, int], block: Block, core: Sequence[int]
) -> Argument:
    source = operand.layout
    where = source.position(choice)
    own = source.blocks[where]
    names: dict[int, int] = {}
    slots: list[tuple[int, int]] = []
    for f in range(len(source.factors)):
        if f in same:
            names.update(zip(own.slots[f], block.slots[same[f]], strict=True))
            continue
        for s in own.slots[f]:
            names[s] = lifter.store.fresh()
            slots.append((names[s], own.sizes[s]))
    coef, term, at = operand.views[where]
    structure = tuple([source.parts[f][choice[f]] for f in core])
    return View(coef, term, tuple([names[s] for s in at])), slots, structure


def _result_place(target: Layout, where: int, batch: Batch) -> tuple[Hashable, list[int]]:
    """What part of the result a block is, and the slots of its core dimensions."""
    fixed = {t for dims in batch.operands for t in dims.values()}
    block = target.blocks[where]
    parts: list[Hashable] = []
    slots: list[int] = []
    for d in range(len(target.dims)):
        if d in fixed:
            continue
        parts.append(target.alternative((d,), block)[0])
        for f in target.range(d):
            parts.append(target.parts[f][block.choice[f]])
            slots += list(block.slots[f])
    return tuple(parts), slots


def whole(lifter: Lifter, operation: Operation) -> list[Value]:
    """Everything local is core; only the devices are a batch."""
    return call(lifter, operation, Batch([{} for _ in operation.operands]))


@lifts("sort")
def _sort(lifter: Lifter, operation: Operation) -> list[Value]:
    dim = (operation.instruction.attribute("dimensions") or (len(operation.shapes[0].dims) - 1,))[0]
    rank = len(operation.shapes[0].dims)
    return call(lifter, operation, Batch([{d: d for d in range(rank) if d != dim} for _ in operation.operands]))


@lifts("topk")
def _topk(lifter: Lifter, operation: Operation) -> list[Value]:
    rank = len(operation.shapes[0].dims)
    return call(lifter, operation, Batch([{d: d for d in range(rank - 1)}]))


def _reduce_window(lifter: Lifter, operation: Operation) -> list[Value]:
    window = operation.instruction.attributes["window"]
    whole_dims = [d for d, w in enumerate(window) if w.size == w.stride == 1 and w.pad_low == w.pad_high == 0]
    count = len(operation.results)
    maps: list[dict[int, int]] = [{d: d for d in whole_dims} for _ in range(count)]
    return call(lifter, operation, Batch(maps + [{} for _ in range(count)]))


def variadic_reduce(lifter: Lifter, operation: Operation) -> list[Value]:
    """A reduction with a reducer of its own (argmax and the like): the kept dimensions are a batch."""
    dims = operation.instruction.attributes["dimensions"]
    count = len(operation.results)
    rank = len(lifter.program.shapes[operation.operands[0]].dims)
    kept = {d: k for k, d in enumerate([d for d in range(rank) if d not in dims])}
    return call(lifter, operation, Batch([kept] * count + [{} for _ in range(count)]), tuple(dims))


def _scatter(lifter: Lifter, operation: Operation) -> list[Value]:
    """A scatter whose windows cover whole dimensions does to each slice along them the same thing, whatever its indices are.

    Where two updates meet, the order in which they are applied is the implementation's choice; it is taken to depend on the indices
    alone (as ties of an unstable sort are taken to be broken alike for equal operands), so a slice of the result is a function of
    the indices and of that slice of the operand and of the updates. A dimension that the indices address, or that a window covers in part, is no batch.
    """
    a = operation.instruction.attributes
    sizes = lifter.program.shapes[operation.operands[0]].dims
    updates = lifter.program.shapes[operation.operands[2]].dims
    hidden = {*a["inserted_window_dims"], *a["input_batching_dims"]}
    window = dict(zip([d for d in range(len(sizes)) if d not in hidden], a["update_window_dims"], strict=True))
    free = {d: w for d, w in window.items() if d not in a["scatter_dims_to_operand_dims"] and updates[w] == sizes[d]}
    return call(lifter, operation, Batch([{d: d for d in free}, {}, {w: d for d, w in free.items()}]))


def fallback(lifter: Lifter, operation: Operation) -> list[Value]:
    """An operation that its transfer function could not lift, as a function of its operands. :raises Unsupported: it is not one."""
    if operation.opcode in COLLECTIVE:
        return call(lifter, operation, Batch([{} for _ in operation.operands], devices=False), tuple(lifter.device_ids))
    if operation.opcode not in PURE:
        raise Unsupported(f"{operation.opcode} is no function of its operands alone")
    if operation.opcode == "reduce":
        return variadic_reduce(lifter, operation)
    if operation.opcode == "reduce-window":
        return _reduce_window(lifter, operation)
    if operation.opcode == "scatter" and len(operation.results) == 1:
        return _scatter(lifter, operation)
    return whole(lifter, operation)
