"""The part of ``hlo.proto`` and ``xla_data.proto`` that Scalify reads, built at import: no protoc, no generated code.

Messages inside an instruction that repeat a great deal (shape, metadata, sharding, dimension numbers) are declared as
``bytes``: on the wire they are the same, the parser does not unfold them, and the reader decodes each distinct payload once.
The column after ``#`` names the message to decode such a field with. Enumerations are declared as ``int32``, which is the same on the wire too.
Fields that only a compiler or profiler uses are declared (so that they do not count as unknown) and never read;
a field that is not declared here stays in the message's unknown fields, where :mod:`scalify.hlo.proto` finds it.

Source: ``xla/service/hlo.proto`` and ``xla/xla_data.proto`` of OpenXLA.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE: Final = "scalify.xla"

# One field a line: number, name, type; "*" before the type means repeated; a capitalised type is a message of this file.
_MESSAGES: Final[dict[str, str]] = {
    "LayoutProto": """
        1 minor_to_major *int64
        """,
    "ShapeProto": """
        2 element_type int32
        3 dimensions *int64
        6 is_dynamic_dimension *bool
        4 tuple_shapes *bytes           # ShapeProto
        5 layout LayoutProto
        """,
    "LiteralProto": """
        1 shape bytes                   # ShapeProto
        2 preds *bool
        30 s1s bytes
        26 s2s bytes
        21 s4s bytes
        15 s8s bytes
        31 u1s bytes
        27 u2s bytes
        22 u4s bytes
        3 u8s bytes
        4 s32s *int32
        5 s64s *int64
        6 u32s *uint32
        7 u64s *uint64
        8 f32s *float
        9 f64s *double
        12 c64s *float
        18 c128s *double
        10 tuple_literals *bytes        # LiteralProto
        11 f16s bytes
        13 bf16s bytes
        16 u16s bytes
        17 s16s bytes
        32 f4e2m1fns bytes
        29 f8e3m4s bytes
        23 f8e4m3b11fnuzs bytes
        20 f8e4m3fns bytes
        25 f8e4m3fnuzs bytes
        28 f8e4m3s bytes
        24 f8e5m2fnuzs bytes
        19 f8e5m2s bytes
        33 f8e8m0fnus bytes
        14 sparse_indices *int64
        """,
    "OpMetadata": """
        1 op_type string
        2 op_name string
        3 source_file string
        4 source_line int32
        15 stack_frame_id int32
        """,
    "WindowDimension": """
        1 size int64
        2 stride int64
        3 padding_low int64
        4 padding_high int64
        5 window_dilation int64
        6 base_dilation int64
        7 window_reversal bool
        """,
    "Window": """
        1 dimensions *WindowDimension
        """,
    "ConvolutionDimensionNumbers": """
        7 input_batch_dimension int64
        8 input_feature_dimension int64
        11 input_spatial_dimensions *int64
        3 kernel_input_feature_dimension int64
        4 kernel_output_feature_dimension int64
        6 kernel_spatial_dimensions *int64
        9 output_batch_dimension int64
        10 output_feature_dimension int64
        12 output_spatial_dimensions *int64
        """,
    "DotDimensionNumbers": """
        1 lhs_contracting_dimensions *int64
        2 rhs_contracting_dimensions *int64
        3 lhs_batch_dimensions *int64
        4 rhs_batch_dimensions *int64
        """,
    "RaggedDotDimensionNumbers": """
        1 dot_dimension_numbers DotDimensionNumbers
        2 lhs_ragged_dimensions *int64
        3 rhs_group_dimensions *int64
        """,
    "GatherDimensionNumbers": """
        1 offset_dims *int64
        2 collapsed_slice_dims *int64
        3 start_index_map *int64
        4 index_vector_dim int64
        5 operand_batching_dims *int64
        6 start_indices_batching_dims *int64
        """,
    "ScatterDimensionNumbers": """
        1 update_window_dims *int64
        2 inserted_window_dims *int64
        3 scatter_dims_to_operand_dims *int64
        4 index_vector_dim int64
        5 input_batching_dims *int64
        6 scatter_indices_batching_dims *int64
        """,
    "PaddingDimension": """
        1 edge_padding_low int64
        2 edge_padding_high int64
        3 interior_padding int64
        """,
    "PaddingConfig": """
        1 dimensions *PaddingDimension
        """,
    "SliceDimensions": """
        1 start int64
        2 limit int64
        3 stride int64
        """,
    "TriangularSolveOptions": """
        1 left_side bool
        2 lower bool
        3 unit_diagonal bool
        4 transpose_a int32
        """,
    "CholeskyOptions": """
        1 lower bool
        """,
    "Attribute": """
        1 key string
        2 value string
        """,
    "FrontendAttributes": """
        1 map *Attribute
        """,
    "OutputOperandAliasing": """
        1 output_shape_index *int64
        2 operand_index int64
        3 operand_shape_index *int64
        """,
    "SourceTarget": """
        1 source int64
        2 target int64
        """,
    "ReplicaGroup": """
        1 replica_ids *int64
        """,
    "IotaReplicaGroupListProto": """
        1 num_replica_groups int64
        2 num_devices_per_group int64
        3 iota_reshape_dims *int64
        4 iota_transpose_perm *int32
        """,
    "CollectiveDeviceListProto": """
        1 replica_groups *ReplicaGroup
        2 iota_replica_group_list IotaReplicaGroupListProto
        """,
    "MeshAxis": """
        1 name string
        2 size int64
        """,
    "IotaTile": """
        1 iota_reshape_dims *int64
        2 iota_transpose_perm *int32
        """,
    "MeshProto": """
        1 axes *MeshAxis
        2 device_ids *int64
        3 iota IotaTile                 # the ids as a reshaped and transposed iota: written by jaxlib 0.10, newer than the public file
        """,
    "SubAxis": """
        1 pre_size int64
        2 size int64
        """,
    "AxisRefProto": """
        1 mesh_axis_index int64
        2 sub_axis_info SubAxis
        """,
    "MeshAxesReplicaGroupListProto": """
        1 mesh MeshProto
        2 axes *AxisRefProto
        """,
    "OpSharding": """
        1 type int32
        2 tile_shape bytes
        3 tile_assignment_dimensions *int64
        4 tile_assignment_devices *int64
        5 tuple_shardings *bytes        # OpSharding
        6 replicate_on_last_tile_dim bool
        7 metadata *bytes
        8 last_tile_dims *int32
        9 iota_reshape_dims *int64
        10 iota_transpose_perm *int32
        11 is_shard_group bool
        12 shard_group_id int64
        13 shard_group_type int32
        14 named_sharding bytes         # NamedShardingProto
        """,
    "DimensionSharding": """
        1 axes *AxisRefProto
        2 is_closed bool
        """,
    "NamedShardingProto": """
        1 tuple_shardings *bytes        # NamedShardingProto
        2 mesh MeshProto
        3 dim_shardings *DimensionSharding
        4 replicated_axes *AxisRefProto
        5 unreduced_axes *AxisRefProto
        6 metadata *bytes
        """,
    "HloInstructionProto": """
        1 name string
        2 opcode string
        3 shape bytes                   # ShapeProto
        7 metadata bytes                # OpMetadata
        8 literal bytes                 # LiteralProto
        9 parameter_number int64
        11 fusion_kind string
        13 tuple_index int64
        14 dimensions *int64
        15 window bytes                 # Window
        16 convolution_dimension_numbers bytes  # ConvolutionDimensionNumbers
        17 slice_dimensions *bytes       # SliceDimensions
        18 exponent_bits int32
        19 mantissa_bits int32
        20 dynamic_slice_sizes *int64
        21 padding_config bytes         # PaddingConfig
        22 outfeed_config bytes
        23 distribution int32
        24 epsilon float
        25 feature_index int64
        26 channel_id int64
        27 infeed_config bytes
        28 custom_call_target string
        29 outfeed_shape bytes
        30 dot_dimension_numbers bytes  # DotDimensionNumbers
        31 fft_type int32
        32 fft_length *int64
        33 gather_dimension_numbers bytes  # GatherDimensionNumbers
        34 gather_slice_sizes *int64
        35 id int64
        36 operand_ids *int64
        37 control_predecessor_ids *int64
        38 called_computation_ids *int64
        40 sharding bytes               # OpSharding
        43 backend_config bytes
        45 all_reduce_id int64
        47 is_host_transfer bool
        48 scatter_dimension_numbers bytes  # ScatterDimensionNumbers
        49 replica_groups *bytes         # ReplicaGroup
        50 feature_group_count int64
        51 precision_config bytes
        52 source_target_pairs *SourceTarget
        54 domain_entry_sharding bytes  # OpSharding
        55 domain_exit_sharding bytes   # OpSharding
        56 constrain_layout bool
        57 operand_shapes_with_layout *bytes
        58 batch_group_count int64
        59 triangular_solve_options bytes  # TriangularSolveOptions
        60 is_stable bool
        61 parameter_replication bytes
        62 cholesky_options bytes       # CholeskyOptions
        63 comparison_direction string
        65 custom_call_has_side_effect bool
        66 delta int64
        67 indices_are_sorted bool
        68 frontend_attributes bytes    # FrontendAttributes
        69 unique_indices bool
        70 rng_algorithm int32
        71 use_global_device_ids bool
        72 comparison_type string
        73 is_cross_program_prefetch bool
        74 output_operand_aliasing *OutputOperandAliasing
        76 custom_call_schedule int32
        77 custom_call_api_version int32
        79 async_execution_thread string
        80 cross_program_prefetch_index int32
        81 k int64
        82 statistics_viz bytes
        85 largest bool
        87 collective_device_list bytes  # CollectiveDeviceListProto
        88 original_value bytes
        89 is_composite bool
        90 ragged_dot_dimension_numbers bytes  # RaggedDotDimensionNumbers
        91 result_accuracy bytes
        92 iota_collective_device_list bytes  # IotaReplicaGroupListProto
        93 mesh_axes_replica_group_list bytes  # MeshAxesReplicaGroupListProto
        """,
    "HloComputationProto": """
        1 name string
        2 instructions *HloInstructionProto
        4 program_shape bytes
        5 id int64
        6 root_id int64
        7 is_fusion_computation bool
        8 execution_thread string
        """,
    "AliasEntryProto": """
        1 output_shape_index *int64
        2 parameter_number int64
        3 parameter_shape_index *int64
        4 kind int32
        """,
    "HloInputOutputAliasProto": """
        1 entries *AliasEntryProto
        """,
    "FileLocation": """
        1 file_name_id int32
        2 function_name_id int32
        3 line int32
        """,
    "StackFrame": """
        1 file_location_id int32
        2 parent_frame_id int32
        """,
    "StackFrameIndexProto": """
        1 file_names *string
        2 function_names *string
        3 file_locations *FileLocation
        4 stack_frames *StackFrame
        """,
    "DeviceAssignmentProto": """
        1 replica_count int32
        2 computation_count int32
        """,
    "HloProto": """
        1 hlo_module bytes              # HloModuleProto; in an HloSnapshot, an HloProto
        3 buffer_assignment bytes
        """,
    "HloModuleProto": """
        1 name string
        2 entry_computation_name string
        3 computations *HloComputationProto
        4 host_program_shape bytes
        5 id int64
        6 entry_computation_id int64
        7 schedule bytes
        8 input_output_alias HloInputOutputAliasProto
        12 spmd_output_sharding bytes   # OpSharding
        14 spmd_parameters_shardings *bytes  # OpSharding
        15 device_assignment DeviceAssignmentProto
        17 stack_frame_index StackFrameIndexProto
        """,
}

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final[dict[str, Any]] = {
    "bool": _FIELD.TYPE_BOOL,
    "bytes": _FIELD.TYPE_BYTES,
    "double": _FIELD.TYPE_DOUBLE,
    "float": _FIELD.TYPE_FLOAT,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "string": _FIELD.TYPE_STRING,
    "uint32": _FIELD.TYPE_UINT32,
    "uint64": _FIELD.TYPE_UINT64,
}


def _add_field(message: descriptor_pb2.DescriptorProto, line: str) -> None:
    number, name, kind = line.split("#", maxsplit=1)[0].split()
    field = message.field.add(name=name, number=int(number))
    field.label = _FIELD.LABEL_REPEATED if kind.startswith("*") else _FIELD.LABEL_OPTIONAL
    scalar = _SCALARS.get(kind.lstrip("*"))
    field.type = _FIELD.TYPE_MESSAGE if scalar is None else scalar
    if scalar is None:
        field.type_name = f".{_PACKAGE}.{kind.lstrip('*')}"


def _pool() -> descriptor_pool.DescriptorPool:
    """A pool of our own, so that another library's ``hlo.proto`` in the same process cannot clash with this one."""
    file = descriptor_pb2.FileDescriptorProto(name="scalify/hlo.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for line in filter(None, map(str.strip, fields.splitlines())):
            _add_field(message, line)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


_POOL: Final = _pool()


def message(name: str) -> Any:
    """The message class of ``name``, for example ``message("HloModuleProto")``. Raises KeyError for an unknown name."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
