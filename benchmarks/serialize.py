"""Writes generated modules as serialized ``HloModuleProto``, for the opcodes of :mod:`benchmarks.generate` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.generate import generate
from scalify.hlo.schema import message

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.generate import Config
    from scalify.hlo.module import Computation, Instruction, Location, Module, Shape

ELEMENT_TYPES = {"pred": 1, "s32": 4, "f32": 11, "tuple": 13, "bf16": 16}
LITERAL_FIELDS = {"s32": "s32s", "f32": "f32s"}
DOT_FIELDS = {
    "lhs_contracting_dims": "lhs_contracting_dimensions",
    "rhs_contracting_dims": "rhs_contracting_dimensions",
    "lhs_batch_dims": "lhs_batch_dimensions",
    "rhs_batch_dims": "rhs_batch_dimensions",
}
GATHER_FIELDS = (
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "index_vector_dim",
    "operand_batching_dims",
    "start_indices_batching_dims",
)


def serialize(module: Module) -> bytes:
    """The module as bytes that XLA and Scalify read. ids are positions, counted through all computations."""
    proto = message("HloModuleProto")(name=module.name, entry_computation_name=module.entry_name, id=1)
    ids = {name: n + 1 for n, name in enumerate(module.computations)}
    first = 0
    for computation in module.computations.values():
        proto.computations.append(_computation(computation, ids, first))
        first += len(computation.instructions)
    proto.entry_computation_id = ids[module.entry_name]
    if module.num_partitions > 1:
        proto.device_assignment.replica_count = 1
        proto.device_assignment.computation_count = module.num_partitions
    return bytes(proto.SerializeToString())


def _computation(computation: Computation, ids: dict[str, int], first: int) -> Any:
    proto = message("HloComputationProto")(name=computation.name, id=ids[computation.name], root_id=first + computation.root)
    proto.instructions.extend(_instruction(i, first + n, first, ids) for n, i in enumerate(computation.instructions))
    return proto


def _instruction(instruction: Instruction, number: int, first: int, ids: dict[str, int]) -> Any:
    proto = message("HloInstructionProto")(name=instruction.name, opcode=instruction.opcode, shape=_shape(instruction.shape), id=number)
    proto.operand_ids.extend(first + operand for operand in instruction.operands)
    proto.called_computation_ids.extend(ids[name] for name in instruction.calls)
    if instruction.location:
        proto.metadata = _metadata(instruction.location)
    _attributes(proto, instruction)
    return proto


def _attributes(proto: Any, instruction: Instruction) -> None:
    attributes = instruction.attributes
    match instruction.opcode:
        case "parameter":
            proto.parameter_number = attributes["index"]
        case "constant":
            proto.literal = _literal(instruction)
        case "dot":
            numbers = {field: attributes[name] for name, field in DOT_FIELDS.items()}
            proto.dot_dimension_numbers = message("DotDimensionNumbers")(**numbers).SerializeToString()
        case "gather":
            numbers = {name: attributes[name] for name in GATHER_FIELDS}
            proto.gather_dimension_numbers = message("GatherDimensionNumbers")(**numbers).SerializeToString()
            proto.gather_slice_sizes.extend(attributes["slice_sizes"])
        case "slice":
            rows = zip(attributes["starts"], attributes["limits"], attributes["strides"], strict=True)
            proto.slice_dimensions.extend(message("SliceDimensions")(start=a, limit=b, stride=s).SerializeToString() for a, b, s in rows)
        case "iota":
            proto.dimensions.append(attributes["iota_dimension"])
        case "compare":
            proto.comparison_direction = attributes["direction"]
        case "all-reduce":
            groups = attributes["replica_groups"].groups
            proto.replica_groups.extend(message("ReplicaGroup")(replica_ids=group).SerializeToString() for group in groups)
        case _:
            proto.dimensions.extend(attributes.get("dimensions", ()))


def _shape(shape: Shape) -> bytes:
    proto = message("ShapeProto")(element_type=ELEMENT_TYPES[shape.dtype], dimensions=shape.dims)
    proto.tuple_shapes.extend(map(_shape, shape.elements))
    if not shape.elements:
        proto.is_dynamic_dimension.extend([False] * len(shape.dims))
        proto.layout.minor_to_major.extend(reversed(range(len(shape.dims))))
    return bytes(proto.SerializeToString())


def _literal(instruction: Instruction) -> bytes:
    dtype = instruction.shape.dtype
    proto = message("LiteralProto")(shape=_shape(instruction.shape))
    getattr(proto, LITERAL_FIELDS[dtype]).extend(instruction.literal.flatten().tolist())
    return bytes(proto.SerializeToString())


def _metadata(location: Location) -> bytes:
    proto = message("OpMetadata")(op_name=location.op_name)
    for frame in location.stack[:1]:
        proto.source_file, proto.source_line = frame.file, frame.line
    return bytes(proto.SerializeToString())


def write(folder: Path, config: Config, tp: int) -> tuple[list[str], str, int]:
    """A generated pair as files below ``folder``: graph files, relation file, number of instructions."""
    baseline, distributed, relation = generate(config, tp)
    paths = [folder / "baseline.hlo.pb", folder / "distributed.hlo.pb", folder / "relation.yaml"]
    for path, data in zip(paths, (serialize(baseline), serialize(distributed), relation.encode()), strict=True):
        path.write_bytes(data)
    return [str(paths[0]), str(paths[1])], str(paths[2]), baseline.instruction_count + distributed.instruction_count
