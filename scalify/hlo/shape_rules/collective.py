"""Shape rules of collectives, synchronous and asynchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.hlo.shape_rules.base import (
    U32,
    agree,
    array,
    bundle,
    check_reducer,
    dimension,
    fail,
    replaced,
    tuple_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Instruction, Module, ReplicaGroups, Shape


def _group_sizes(instruction: Instruction, module: Module) -> set[int]:
    """The sizes that a group may have; empty when nothing says how many devices there are."""
    groups: ReplicaGroups = instruction.attributes["replica_groups"]
    sizes = {len(group) for group in groups.groups}
    if len(sizes) > 1 or 0 in sizes:
        fail(f"replica_groups differ in size: {sorted(sizes)}")
    devices = module.num_partitions * module.num_replicas
    if not sizes:
        return {module.num_replicas, module.num_partitions, devices} if devices > 1 else set()
    if "channel_id" in instruction.attributes and not instruction.attributes.get("use_global_device_ids"):
        return sizes | {size * module.num_partitions for size in sizes}  # groups of replicas, each over all partitions
    return sizes


def _along(instruction: Instruction, operand: Shape) -> int:
    dimensions = instruction.attributes["dimensions"]
    if len(dimensions) != 1:
        fail(f"needs exactly one dimension, got dimensions={dimensions}")
    return dimension(dimensions[0], array(operand).rank)


def _results(instruction: Instruction) -> Sequence[Shape]:
    shape = instruction.shape
    return shape.elements if shape.is_tuple else (shape,)


def all_reduce(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    for operand in operands:
        check_reducer(module, instruction.calls[0], [array(operand)])
    return bundle(instruction, operands)


def all_gather(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    gathered(instruction, operands, _results(instruction), module)
    return None


def gathered(instruction: Instruction, operands: Sequence[Shape], results: Sequence[Shape], module: Module) -> None:
    """Each result is its operand with the gathered dimension multiplied by the group size."""
    sizes = _group_sizes(instruction, module)
    if len(results) != len(operands):
        fail(f"{len(results)} results for {len(operands)} operands")
    for operand, result in zip(operands, results, strict=True):
        _scaled(operand, result, _along(instruction, operand), sizes)


def reduce_scatter(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    sizes, results = _group_sizes(instruction, module), _results(instruction)
    if len(results) != len(operands):
        fail(f"{len(results)} results for {len(operands)} operands")
    for operand, result in zip(operands, results, strict=True):
        check_reducer(module, instruction.calls[0], [array(operand)])
        _scaled(result, operand, _along(instruction, operand), sizes)
    return None


def _scaled(small: Shape, large: Shape, d: int, sizes: set[int]) -> None:
    if small.dtype != large.dtype or small.rank != large.rank or replaced(small.dims, d, 0) != replaced(large.dims, d, 0):
        fail(f"{small} and {large} differ outside dimension {d}")
    factors = sizes or {large.dims[d] // small.dims[d] if small.dims[d] else 0}
    if all(small.dims[d] * factor != large.dims[d] for factor in factors):
        fail(f"dimension {d} of {small} and {large} does not differ by the group size {'/'.join(map(str, sorted(factors)))}")


def all_to_all(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    """Array form: one operand, cut along a dimension. Tuple form: one operand for each member of the group."""
    sizes = _group_sizes(instruction, module)
    if "dimensions" not in instruction.attributes:
        if sizes and len(operands) not in sizes:
            fail(f"{len(operands)} operands for groups of {'/'.join(map(str, sorted(sizes)))}")
        if any(not agree(operand, operands[0]) for operand in operands):
            fail("operands differ")
        return bundle(instruction, operands)
    for operand in operands:
        size = operand.dims[_along(instruction, operand)]
        if sizes and all(size % factor for factor in sizes):
            fail(f"the group size does not divide the split dimension of {operand}")
    return bundle(instruction, operands)


def collective_broadcast(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return bundle(instruction, operands)


def collective_permute(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    """With four operands the second one is updated in place at given offsets."""
    _check_pairs(instruction)
    return bundle(instruction, operands) if not _in_place(operands) else operands[1]


def _in_place(operands: Sequence[Shape]) -> bool:
    return len(operands) == 4 and not (operands[2].is_array and operands[2].dims)


def _check_pairs(instruction: Instruction) -> None:
    pairs = instruction.attributes["source_target_pairs"]
    for which, ends in (("source", [a for a, _ in pairs]), ("target", [b for _, b in pairs])):
        if len(set(ends)) != len(ends):
            fail(f"a device is {which} twice in source_target_pairs")
        if any(end < 0 for end in ends):
            fail("negative device id in source_target_pairs")


def ragged_all_to_all(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return operands[1]


def device_id(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    return U32


def all_gather_start(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    source, target = _pair(instruction, operands)
    if not agree(source, operands[0] if len(operands) == 1 else tuple_of(operands)):
        fail(f"the first element of {instruction.shape} must be the operands")
    gathered(instruction, operands, target.elements if target.is_tuple else (target,), module)
    return None


def collective_permute_start(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    _check_pairs(instruction)
    source, target = _pair(instruction, operands)
    values = operands[:2] if _in_place(operands) else operands
    whole = values[0] if len(values) == 1 else tuple_of(values)
    moved = whole if values is operands else operands[1]
    if not (agree(source, whole) and agree(target, moved)):
        fail(f"{instruction.shape} must begin with operand and result, {whole} and {moved}")
    return None


def _pair(instruction: Instruction, operands: Sequence[Shape]) -> tuple[Shape, Shape]:
    """Operand and result in the tuple of an asynchronous start; what follows them is context."""
    elements = instruction.shape.elements
    if len(elements) < 2:
        fail(f"must return a tuple of operand and result, not {instruction.shape}")
    return elements[0], elements[1]


def second_of_start(instruction: Instruction, operands: Sequence[Shape], module: Module) -> Shape | None:
    """all-gather-done, collective-permute-done, async-done: the result inside the tuple of the start."""
    if len(operands[0].elements) < 2:
        fail(f"needs the tuple of an asynchronous start, got {operands[0]}")
    return operands[0].elements[1]
