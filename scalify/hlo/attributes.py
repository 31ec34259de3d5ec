"""The attributes of HLO instructions: names of HLO text, and what kind of value each holds.

A name means the same for every opcode, so one table serves the text reader, the printer and the opcode table. A name that is not in the
table is kept as the text it was given with.

Source: ``xla/hlo/parser/hlo_parser.cc`` (names and spelling), ``xla/service/hlo.proto`` (meaning).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from scalify.hlo.module import ReplicaGroups


class Kind(Enum):
    """How a value is held in :attr:`Instruction.attributes` and spelled in text."""

    INT = auto()  # 3
    INTS = auto()  # tuple of int: {0,1}
    BOOL = auto()  # true
    FLOAT = auto()  # 1e-05
    WORD = auto()  # str: an enumerator without quotes
    STRING = auto()  # str: "quoted"
    GROUPS = auto()  # ReplicaGroups
    PAIRS = auto()  # tuple of (int, int): {{0,1},{1,0}}
    PADDING = auto()  # tuple of (low, high, interior): 0_1_0x2_2
    WINDOW = auto()  # tuple of WindowDimension: {size=3x3 pad=1_1x1_1}
    CONV_DIMS = auto()  # ConvDims: b01f_01io->b01f
    SHARDING = auto()  # Sharding: {devices=[2,1]<=[2]}
    STRINGS = auto()  # dict of str: {a="b"}
    ALIASES = auto()  # tuple of (index path, operand, index path): {{0}: (1, {})}
    LITERAL = auto()  # numpy array


ATTRIBUTES: dict[str, Kind] = {
    name: kind
    for kind, names in {
        Kind.INT: "index iota_dimension index_vector_dim channel_id feature_group_count batch_group_count feature_index exponent_bits"
        " mantissa_bits k delta",
        Kind.INTS: "dimensions lhs_contracting_dims rhs_contracting_dims lhs_batch_dims rhs_batch_dims starts limits strides dynamic_slice_sizes"
        " offset_dims collapsed_slice_dims start_index_map operand_batching_dims start_indices_batching_dims slice_sizes"
        " update_window_dims inserted_window_dims scatter_dims_to_operand_dims input_batching_dims scatter_indices_batching_dims"
        " fft_length lhs_ragged_dims rhs_group_dims unknown_fields",
        Kind.BOOL: "indices_are_sorted unique_indices use_global_device_ids constrain_layout is_stable lower left_side unit_diagonal largest"
        " is_host_transfer custom_call_has_side_effect",
        Kind.FLOAT: "epsilon",
        Kind.WORD: "direction type kind distribution algorithm fft_type transpose_a api_version",
        Kind.STRING: "custom_call_target backend_config infeed_config outfeed_config",
        Kind.GROUPS: "replica_groups",
        Kind.PAIRS: "source_target_pairs",
        Kind.PADDING: "padding",
        Kind.WINDOW: "window",
        Kind.CONV_DIMS: "dim_labels",
        Kind.SHARDING: "sharding domain_entry domain_exit",
        Kind.STRINGS: "frontend_attributes",
        Kind.ALIASES: "output_to_operand_aliasing",
        Kind.LITERAL: "literal",
    }.items()
    for name in names.split()
}
"""Kind of each attribute that any opcode of the table names."""

COMMON = frozenset({"sharding", "frontend_attributes", "unknown_fields"})
"""Attributes that every instruction may carry. ``unknown_fields`` are numbers of proto fields that the reader does not know."""

IGNORED = frozenset({
    "async_execution_thread", "cross_program_prefetch_index", "execution_thread", "is_composite", "is_cross_program_prefetch",
    "operand_layout_constraints", "operand_precision", "origin", "outfeed_shape", "parameter_replication", "result_accuracy", "schedule",
    "statistics",
})  # fmt: skip
"""Attributes of HLO text that say how or where something is computed, not what; neither reader keeps them."""

IGNORED_ELSEWHERE = frozenset({"backend_config", "algorithm"})
"""Attributes that only matter on the opcodes that list them: elsewhere they choose an implementation."""


def _empty(names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), ())


_DOT = _empty("lhs_contracting_dims rhs_contracting_dims lhs_batch_dims rhs_batch_dims")
_GROUPED = "all-reduce all-reduce-start all-gather all-gather-start reduce-scatter all-to-all ragged-all-to-all collective-broadcast"

DEFAULTS: dict[str, dict[str, Any]] = {
    "dot": _DOT,
    "scaled-dot": _DOT,
    "ragged-dot": _DOT | _empty("lhs_ragged_dims rhs_group_dims"),
    "gather": _empty("offset_dims collapsed_slice_dims start_index_map operand_batching_dims start_indices_batching_dims")
    | {"indices_are_sorted": False},
    "scatter": _empty(
        "update_window_dims inserted_window_dims scatter_dims_to_operand_dims input_batching_dims scatter_indices_batching_dims"
    )
    | {"indices_are_sorted": False, "unique_indices": False},
    "sort": {"is_stable": False},
    "topk": {"largest": False},
    "pad": {"padding": ()},
    "convolution": {"window": (), "feature_group_count": 1, "batch_group_count": 1},
    "cholesky": {"lower": False},
    "triangular-solve": {"left_side": False, "lower": False, "unit_diagonal": False},
    "infeed": {"infeed_config": ""},
    "outfeed": {"outfeed_config": ""},
    **{opcode: {"window": ()} for opcode in ("reduce-window", "select-and-scatter")},
    **{opcode: {"channel_id": 0, "is_host_transfer": False} for opcode in ("send", "send-done", "recv", "recv-done")},
    **{opcode: {"replica_groups": ReplicaGroups(())} for opcode in _GROUPED.split()},
}
"""Attributes that text leaves out when they have these values, and that an instruction always has."""
