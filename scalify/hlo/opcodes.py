"""The opcode table: category, arity, attributes, called computations and shape rule of every HLO opcode.

An opcode that is not in the table is not an error here: the graph stays readable, and the prover calls the instruction unsupported.
Reference semantics (:mod:`scalify.hlo.semantics`) and transfer functions (:mod:`scalify.lift`) are looked up by the same names.

Source: XLA's HLO semantics page; ``xla/hlo/ir/hlo_opcode.h``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from scalify.hlo.shape_rules import collective, contraction, control, elementwise, indexing, movement, reduction

if TYPE_CHECKING:
    from scalify.hlo.shape_rules.base import Rule


class Category(Enum):
    """What an opcode does with its operands' elements."""

    UNARY = "elementwise unary"
    BINARY = "elementwise binary"
    TERNARY = "elementwise ternary"
    MOVEMENT = "data movement"
    INDEXING = "data movement by computed indices"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    COLLECTIVE = "collective"
    CONTROL = "control flow"
    STRUCTURE = "parameters, constants, tuples and tokens"
    OPAQUE = "opaque"
    EFFECT = "random numbers, host transfers and other effects"


@dataclass(frozen=True, slots=True)
class Opcode:
    """One row of the table. ``arity`` and ``calls`` are inclusive (least, most) counts; None is no limit.

    ``required`` and ``optional`` are names in :data:`scalify.hlo.attributes.ATTRIBUTES`; every instruction may also have those of ``COMMON``.
    """

    name: str
    category: Category
    rule: Rule
    arity: tuple[int, int | None]
    required: frozenset[str]
    optional: frozenset[str]
    calls: tuple[int, int | None]


_MANY = (1, None)
_ANY = (0, None)
_TABLE: list[Opcode] = []


def _add(
    category: Category,
    names: str,
    rule: Rule,
    arity: int | tuple[int, int | None],
    required: str = "",
    optional: str = "",
    calls: int | tuple[int, int | None] = 0,
) -> None:
    operands = (arity, arity) if isinstance(arity, int) else arity
    called = (calls, calls) if isinstance(calls, int) else calls
    needs, may = frozenset(required.split()), frozenset(optional.split())
    _TABLE.extend(Opcode(name, category, rule, operands, needs, may, called) for name in names.split())


_GATHER = "offset_dims collapsed_slice_dims start_index_map operand_batching_dims start_indices_batching_dims index_vector_dim slice_sizes"
_SCATTER = "update_window_dims inserted_window_dims scatter_dims_to_operand_dims input_batching_dims scatter_indices_batching_dims index_vector_dim"
_DOT = "lhs_contracting_dims rhs_contracting_dims lhs_batch_dims rhs_batch_dims"
_CHANNEL = "channel_id use_global_device_ids constrain_layout"

# fmt: off
_add(Category.UNARY, "exponential exponential-minus-one log log-plus-one logistic sqrt rsqrt cbrt sine cosine tan tanh", elementwise.complex_unary, 1)
_add(Category.UNARY, "sinh cosh asin acos atan asinh acosh atanh", elementwise.complex_unary, 1)
_add(Category.UNARY, "floor ceil round-nearest-afz round-nearest-even erf", elementwise.float_unary, 1)
_add(Category.UNARY, "negate sign", elementwise.number_unary, 1)
_add(Category.UNARY, "abs real imag", elementwise.component, 1)
_add(Category.UNARY, "not", elementwise.bit_unary, 1)
_add(Category.UNARY, "popcnt count-leading-zeros", elementwise.integer_unary, 1)
_add(Category.UNARY, "is-finite", elementwise.is_finite, 1)
_add(Category.UNARY, "convert", elementwise.convert, 1)
_add(Category.UNARY, "reduce-precision", elementwise.float_unary, 1, "exponent_bits mantissa_bits")
_add(Category.UNARY, "copy", elementwise.identity, 1)
_add(Category.BINARY, "add multiply maximum minimum", elementwise.any_binary, 2)
_add(Category.BINARY, "subtract divide remainder power atan2", elementwise.number_binary, 2)
_add(Category.BINARY, "and or xor", elementwise.bit_binary, 2)
_add(Category.BINARY, "shift-left shift-right-arithmetic shift-right-logical", elementwise.integer_binary, 2)
_add(Category.BINARY, "complex", elementwise.make_complex, 2)
_add(Category.BINARY, "compare", elementwise.compare, 2, "direction", "type")
_add(Category.BINARY, "stochastic-convert", elementwise.stochastic_convert, 2)
_add(Category.TERNARY, "select", elementwise.select, 3)
_add(Category.TERNARY, "clamp", elementwise.clamp, 3)

_add(Category.MOVEMENT, "broadcast", movement.broadcast, 1, "dimensions")
_add(Category.MOVEMENT, "reshape", movement.reshape, 1)
_add(Category.MOVEMENT, "dynamic-reshape", movement.dynamic_reshape, _MANY)
_add(Category.MOVEMENT, "transpose", movement.transpose, 1, "dimensions")
_add(Category.MOVEMENT, "reverse", movement.reverse, 1, "dimensions")
_add(Category.MOVEMENT, "bitcast", movement.bitcast, 1)
_add(Category.MOVEMENT, "bitcast-convert", elementwise.bitcast_convert, 1)
_add(Category.MOVEMENT, "concatenate", movement.concatenate, _MANY, "dimensions")
_add(Category.MOVEMENT, "slice", movement.slice_, 1, "starts limits strides")
_add(Category.MOVEMENT, "pad", movement.pad, 2, "padding")
_add(Category.MOVEMENT, "iota", movement.iota, 0, "iota_dimension")
_add(Category.MOVEMENT, "get-dimension-size", movement.get_dimension_size, 1, "dimensions")
_add(Category.MOVEMENT, "set-dimension-size", movement.set_dimension_size, 2, "dimensions")
_add(Category.MOVEMENT, "copy-start", control.copy_start, 1)
_add(Category.MOVEMENT, "copy-done", control.copy_done, 1)
_add(Category.INDEXING, "dynamic-slice", movement.dynamic_slice, _MANY, "dynamic_slice_sizes")
_add(Category.INDEXING, "dynamic-update-slice", movement.dynamic_update_slice, (2, None))
_add(Category.INDEXING, "gather", indexing.gather, 2, _GATHER, "indices_are_sorted")
_add(Category.INDEXING, "scatter", indexing.scatter, (3, None), _SCATTER, "indices_are_sorted unique_indices", 1)
_add(Category.INDEXING, "sort", indexing.sort, _MANY, "dimensions", "is_stable", 1)
_add(Category.INDEXING, "topk", indexing.topk, 1, "k", "largest")

_add(Category.REDUCTION, "reduce", reduction.reduce, (2, None), "dimensions", "", 1)
_add(Category.REDUCTION, "reduce-window", reduction.reduce_window, (2, None), "window", "", 1)
_add(Category.REDUCTION, "select-and-scatter", reduction.select_and_scatter, 3, "window", "", 2)
_add(Category.CONTRACTION, "dot", contraction.dot, (2, 4), _DOT)
_add(Category.CONTRACTION, "ragged-dot", contraction.ragged_dot, 3, _DOT, "lhs_ragged_dims rhs_group_dims")
_add(Category.CONTRACTION, "scaled-dot", contraction.scaled_dot, (2, 4), _DOT)
_add(Category.CONTRACTION, "convolution", contraction.convolution, 2, "dim_labels", "window feature_group_count batch_group_count")

_add(Category.COLLECTIVE, "all-reduce all-reduce-start", collective.all_reduce, _MANY, "replica_groups", _CHANNEL, 1)
_add(Category.COLLECTIVE, "all-gather", collective.all_gather, _MANY, "replica_groups dimensions", _CHANNEL)
_add(Category.COLLECTIVE, "all-gather-start", collective.all_gather_start, _MANY, "replica_groups dimensions", _CHANNEL)
_add(Category.COLLECTIVE, "reduce-scatter", collective.reduce_scatter, _MANY, "replica_groups dimensions", _CHANNEL, 1)
_add(Category.COLLECTIVE, "all-to-all", collective.all_to_all, _MANY, "replica_groups", "dimensions " + _CHANNEL)
_add(Category.COLLECTIVE, "ragged-all-to-all", collective.ragged_all_to_all, 6, "replica_groups", _CHANNEL)
_add(Category.COLLECTIVE, "collective-broadcast", collective.collective_broadcast, _MANY, "replica_groups", _CHANNEL)
_add(Category.COLLECTIVE, "collective-permute", collective.collective_permute, _MANY, "source_target_pairs", _CHANNEL)
_add(Category.COLLECTIVE, "collective-permute-start", collective.collective_permute_start, _MANY, "source_target_pairs", _CHANNEL)
_add(Category.COLLECTIVE, "all-reduce-done", control.first, 1)
_add(Category.COLLECTIVE, "all-gather-done collective-permute-done", collective.second_of_start, 1)
_add(Category.COLLECTIVE, "partition-id replica-id", collective.device_id, 0)

_add(Category.CONTROL, "call", control.call, _ANY, "", "backend_config", 1)
_add(Category.CONTROL, "fusion", control.call, _ANY, "", "kind backend_config", (1, None))
_add(Category.CONTROL, "while", control.while_, 1, "", "backend_config", 2)
_add(Category.CONTROL, "conditional", control.conditional, (2, None), calls=_MANY)
_add(Category.CONTROL, "map", elementwise.map_, _MANY, "", "dimensions", 1)
_add(Category.CONTROL, "async-start", control.async_start, _ANY, calls=1)
_add(Category.CONTROL, "async-update", control.first, 1, calls=(0, 1))
_add(Category.CONTROL, "async-done", collective.second_of_start, 1, calls=(0, 1))
_add(Category.STRUCTURE, "parameter", control.free, 0, "index")
_add(Category.STRUCTURE, "constant", control.constant, 0, "", "literal")
_add(Category.STRUCTURE, "tuple", control.tuple_, _ANY)
_add(Category.STRUCTURE, "get-tuple-element", control.get_tuple_element, 1, "index")
_add(Category.STRUCTURE, "opt-barrier", control.barrier, _MANY)
_add(Category.STRUCTURE, "after-all", control.token, _ANY)
_add(Category.STRUCTURE, "add-dependency", control.first, 2)
_add(Category.STRUCTURE, "domain", control.first, 1, "", "domain_entry domain_exit")

_add(Category.OPAQUE, "custom-call", control.free, _ANY, "custom_call_target",
     "backend_config api_version custom_call_has_side_effect output_to_operand_aliasing constrain_layout dim_labels window feature_group_count batch_group_count", _ANY)
_add(Category.OPAQUE, "fft", contraction.fft, 1, "fft_type fft_length")
_add(Category.OPAQUE, "cholesky", contraction.cholesky, 1, "", "lower")
_add(Category.OPAQUE, "triangular-solve", contraction.triangular_solve, 2, "", "left_side lower unit_diagonal transpose_a")
_add(Category.OPAQUE, "batch-norm-training", contraction.batch_norm_training, 3, "feature_index", "epsilon")
_add(Category.OPAQUE, "batch-norm-inference", contraction.batch_norm_inference, 5, "feature_index", "epsilon")
_add(Category.OPAQUE, "batch-norm-grad", contraction.batch_norm_grad, 5, "feature_index", "epsilon")
_add(Category.EFFECT, "rng", control.rng, 2, "distribution")
_add(Category.EFFECT, "rng-bit-generator", control.rng_bit_generator, 1, "", "algorithm")
_add(Category.EFFECT, "rng-get-and-update-state", control.rng_state, 0, "", "delta")
_add(Category.EFFECT, "infeed", control.infeed, 1, "", "infeed_config")
_add(Category.EFFECT, "outfeed", control.token, 2, "", "outfeed_config")
_add(Category.EFFECT, "send", control.send, 2, "", "channel_id is_host_transfer")
_add(Category.EFFECT, "send-done", control.send_done, 1, "", "channel_id is_host_transfer")
_add(Category.EFFECT, "recv", control.recv, 1, "", "channel_id is_host_transfer")
_add(Category.EFFECT, "recv-done", control.recv_done, 1, "", "channel_id is_host_transfer")
# fmt: on

OPCODES: dict[str, Opcode] = {opcode.name: opcode for opcode in _TABLE}
"""Every opcode by its HLO name."""
