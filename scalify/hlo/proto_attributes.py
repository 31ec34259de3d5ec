"""The attributes of an instruction proto, by opcode, under the names of HLO text.

Each opcode has one reader in :data:`READERS`; it touches the fields of that opcode only. Opcodes without attributes are absent.

Source: ``HloInstructionProto`` of ``xla/service/hlo.proto``; names from the printer of XLA's HLO text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from scalify.errors import HloError
from scalify.hlo import payloads
from scalify.hlo.literal import read_literal
from scalify.hlo.payloads import Payloads, parse
from scalify.hlo.window import ConvDims, WindowDimension

if TYPE_CHECKING:
    from scalify.hlo.module import Shape

Attributes = dict[str, Any]
Reader = Callable[[Any, Payloads, Attributes], None]

API_VERSIONS: Final = (
    "API_VERSION_UNSPECIFIED",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)
DISTRIBUTIONS: Final = ("rng_invalid", "rng_uniform", "rng_normal")
ALGORITHMS: Final = ("rng_default", "rng_three_fry", "rng_philox")
FFT_TYPES: Final = ("FFT", "IFFT", "RFFT", "IRFFT")
TRANSPOSES: Final = ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
DIRECTIONS: Final = frozenset({"EQ", "NE", "GE", "GT", "LE", "LT"})


def _name(names: tuple[str, ...], number: int, what: str) -> str:
    if not 0 <= number < len(names):
        raise HloError(f"{what} number {number} is not known")
    return names[number]


def text(raw: bytes) -> str:
    r"""Configuration bytes as text; bytes that are not UTF-8 are written ``\\xNN``."""
    return raw.decode("utf-8", "backslashreplace")


def _parameter(m: Any, _: Payloads, out: Attributes) -> None:
    out["index"] = m.parameter_number


def _element(m: Any, _: Payloads, out: Attributes) -> None:
    out["index"] = m.tuple_index


def _constant(m: Any, known: Payloads, out: Attributes) -> None:
    if not m.literal:
        return
    shape, literal = known.get(_literal, m.literal) if len(m.literal) < _SMALL else _literal(m.literal)
    if shape != known.shapes[m.shape]:
        raise HloError(f"the literal has shape {shape}, which is not the instruction's")
    if literal is not None:
        out["literal"] = literal


# Larger literals are not looked up among the known ones: they rarely repeat, and hashing them costs more than reading.
_SMALL: Final = 4096


def _literal(raw: bytes) -> tuple[Shape, Any]:
    literal = parse("LiteralProto", raw)
    shape = payloads.read_shape(literal.shape)
    return shape, read_literal(literal, shape)


def _dimensions(m: Any, _: Payloads, out: Attributes) -> None:
    out["dimensions"] = tuple(m.dimensions[:])


def _iota(m: Any, _: Payloads, out: Attributes) -> None:
    if len(m.dimensions) != 1:
        raise HloError(f"iota needs one dimension, not {len(m.dimensions)}")
    out["iota_dimension"] = m.dimensions[0]


def _sort(m: Any, known: Payloads, out: Attributes) -> None:
    _dimensions(m, known, out)
    out["is_stable"] = m.is_stable


def _dot(m: Any, known: Payloads, out: Attributes) -> None:
    out.update(known.get(_dot_dims, m.dot_dimension_numbers))


def _dot_dims(raw: bytes) -> Attributes:
    return _dot_numbers(parse("DotDimensionNumbers", raw))


def _dot_numbers(d: Any) -> Attributes:
    return {
        "lhs_contracting_dims": tuple(d.lhs_contracting_dimensions),
        "rhs_contracting_dims": tuple(d.rhs_contracting_dimensions),
        "lhs_batch_dims": tuple(d.lhs_batch_dimensions),
        "rhs_batch_dims": tuple(d.rhs_batch_dimensions),
    }


def _ragged_dot(m: Any, _: Payloads, out: Attributes) -> None:
    d = parse("RaggedDotDimensionNumbers", m.ragged_dot_dimension_numbers)
    out.update(_dot_numbers(d.dot_dimension_numbers))
    out["lhs_ragged_dims"] = tuple(d.lhs_ragged_dimensions)
    out["rhs_group_dims"] = tuple(d.rhs_group_dimensions)


def _slice(m: Any, known: Payloads, out: Attributes) -> None:
    bounds = [known.get(_slice_bounds, raw) for raw in m.slice_dimensions]
    out["starts"] = tuple(b[0] for b in bounds)
    out["limits"] = tuple(b[1] for b in bounds)
    out["strides"] = tuple(b[2] for b in bounds)


def _slice_bounds(raw: bytes) -> tuple[int, int, int]:
    d = parse("SliceDimensions", raw)
    return d.start, d.limit, d.stride or 1  # a stride of 0 is how old exporters leave the field out


def _dynamic_slice(m: Any, _: Payloads, out: Attributes) -> None:
    out["dynamic_slice_sizes"] = tuple(m.dynamic_slice_sizes)


def _pad(m: Any, known: Payloads, out: Attributes) -> None:
    out["padding"] = known.get(_padding, m.padding_config)


def _padding(raw: bytes) -> tuple[tuple[int, int, int], ...]:
    config = parse("PaddingConfig", raw)
    return tuple((d.edge_padding_low, d.edge_padding_high, d.interior_padding) for d in config.dimensions)


def _gather(m: Any, known: Payloads, out: Attributes) -> None:
    out.update(known.get(_gather_dims, m.gather_dimension_numbers))
    out["slice_sizes"] = tuple(m.gather_slice_sizes)
    out["indices_are_sorted"] = m.indices_are_sorted


def _gather_dims(raw: bytes) -> Attributes:
    d = parse("GatherDimensionNumbers", raw)
    names = ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims", "start_indices_batching_dims")
    return {name: tuple(getattr(d, name)) for name in names} | {"index_vector_dim": d.index_vector_dim}


def _scatter(m: Any, known: Payloads, out: Attributes) -> None:
    out.update(known.get(_scatter_dims, m.scatter_dimension_numbers))
    out["indices_are_sorted"] = m.indices_are_sorted
    out["unique_indices"] = m.unique_indices


def _scatter_dims(raw: bytes) -> Attributes:
    d = parse("ScatterDimensionNumbers", raw)
    names = (
        "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims", "scatter_indices_batching_dims",
    )  # fmt: skip
    return {name: tuple(getattr(d, name)) for name in names} | {"index_vector_dim": d.index_vector_dim}


def _compare(m: Any, _: Payloads, out: Attributes) -> None:
    if m.comparison_direction not in DIRECTIONS:
        raise HloError(f"comparison direction {m.comparison_direction[:20]!r} is not known")
    out["direction"] = m.comparison_direction
    if m.comparison_type:
        out["type"] = m.comparison_type


def _channel(m: Any, _: Payloads, out: Attributes) -> None:
    channel = m.channel_id or m.all_reduce_id
    if channel > 0:
        out["channel_id"] = channel
    if m.use_global_device_ids:
        out["use_global_device_ids"] = True
    if m.constrain_layout:
        out["constrain_layout"] = True


def _collective(m: Any, known: Payloads, out: Attributes) -> None:
    _channel(m, known, out)
    out["replica_groups"] = _groups(m, known)


def _groups(m: Any, known: Payloads) -> Any:
    """The newest encoding that is present; a writer fills one only, or the old one as a copy."""
    if m.mesh_axes_replica_group_list:
        return known.mesh_lists[m.mesh_axes_replica_group_list]
    if m.iota_collective_device_list:
        return known.iota_lists[m.iota_collective_device_list]
    if m.collective_device_list:
        return known.device_lists[m.collective_device_list]
    return known.group_lists[tuple(m.replica_groups)]


def _dimension_collective(m: Any, known: Payloads, out: Attributes) -> None:
    _collective(m, known, out)
    if m.dimensions:
        out["dimensions"] = tuple(m.dimensions)


def _permute(m: Any, known: Payloads, out: Attributes) -> None:
    _channel(m, known, out)
    out["source_target_pairs"] = tuple((p.source, p.target) for p in m.source_target_pairs)


def _transfer(m: Any, _: Payloads, out: Attributes) -> None:
    out["channel_id"] = m.channel_id
    out["is_host_transfer"] = m.is_host_transfer


def _custom_call(m: Any, known: Payloads, out: Attributes) -> None:
    out["custom_call_target"] = m.custom_call_target
    _backend_config(m, known, out)
    if m.custom_call_api_version:
        out["api_version"] = _name(API_VERSIONS, m.custom_call_api_version, "custom call API version")
    if m.custom_call_has_side_effect:
        out["custom_call_has_side_effect"] = True
    if m.output_operand_aliasing:
        pairs = ((tuple(a.output_shape_index), a.operand_index, tuple(a.operand_shape_index)) for a in m.output_operand_aliasing)
        out["output_to_operand_aliasing"] = tuple(pairs)
    if m.constrain_layout:
        out["constrain_layout"] = True
    if m.window:
        out["window"] = known.get(_window_dims, m.window)
    if m.convolution_dimension_numbers:
        _convolution_dims(m, known, out)


def _backend_config(m: Any, _: Payloads, out: Attributes) -> None:
    if m.backend_config:
        out["backend_config"] = text(m.backend_config)


def _fusion(m: Any, known: Payloads, out: Attributes) -> None:
    out["kind"] = m.fusion_kind
    _backend_config(m, known, out)


def _window(m: Any, known: Payloads, out: Attributes) -> None:
    out["window"] = known.get(_window_dims, m.window)


def _window_dims(raw: bytes) -> tuple[WindowDimension, ...]:
    return tuple(
        WindowDimension(d.size, d.stride, d.padding_low, d.padding_high, d.base_dilation, d.window_dilation, d.window_reversal)
        for d in parse("Window", raw).dimensions
    )


def _convolution(m: Any, known: Payloads, out: Attributes) -> None:
    _window(m, known, out)
    _convolution_dims(m, known, out)


def _convolution_dims(m: Any, known: Payloads, out: Attributes) -> None:
    out["dim_labels"] = known.get(_conv_dims, m.convolution_dimension_numbers)
    out["feature_group_count"] = m.feature_group_count or 1
    out["batch_group_count"] = m.batch_group_count or 1


def _conv_dims(raw: bytes) -> ConvDims:
    d = parse("ConvolutionDimensionNumbers", raw)
    return ConvDims(
        input_batch=d.input_batch_dimension,
        input_feature=d.input_feature_dimension,
        input_spatial=tuple(d.input_spatial_dimensions),
        kernel_input_feature=d.kernel_input_feature_dimension,
        kernel_output_feature=d.kernel_output_feature_dimension,
        kernel_spatial=tuple(d.kernel_spatial_dimensions),
        output_batch=d.output_batch_dimension,
        output_feature=d.output_feature_dimension,
        output_spatial=tuple(d.output_spatial_dimensions),
    )


def _rng(m: Any, _: Payloads, out: Attributes) -> None:
    out["distribution"] = _name(DISTRIBUTIONS, m.distribution, "random distribution")


def _rng_bits(m: Any, _: Payloads, out: Attributes) -> None:
    out["algorithm"] = _name(ALGORITHMS, m.rng_algorithm, "random algorithm")


def _rng_state(m: Any, _: Payloads, out: Attributes) -> None:
    out["delta"] = m.delta


def _fft(m: Any, _: Payloads, out: Attributes) -> None:
    out["fft_type"] = _name(FFT_TYPES, m.fft_type, "FFT type")
    out["fft_length"] = tuple(m.fft_length)


def _cholesky(m: Any, _: Payloads, out: Attributes) -> None:
    out["lower"] = parse("CholeskyOptions", m.cholesky_options).lower


def _triangular_solve(m: Any, _: Payloads, out: Attributes) -> None:
    options = parse("TriangularSolveOptions", m.triangular_solve_options)
    out.update(left_side=options.left_side, lower=options.lower, unit_diagonal=options.unit_diagonal)
    out["transpose_a"] = _name(TRANSPOSES, options.transpose_a, "transpose_a")


def _topk(m: Any, _: Payloads, out: Attributes) -> None:
    out["k"] = m.k
    out["largest"] = m.largest


def _batch_norm(m: Any, _: Payloads, out: Attributes) -> None:
    out["epsilon"] = m.epsilon
    out["feature_index"] = m.feature_index


def _reduce_precision(m: Any, _: Payloads, out: Attributes) -> None:
    out["exponent_bits"] = m.exponent_bits
    out["mantissa_bits"] = m.mantissa_bits


def _infeed(m: Any, _: Payloads, out: Attributes) -> None:
    out["infeed_config"] = text(m.infeed_config)


def _outfeed(m: Any, _: Payloads, out: Attributes) -> None:
    out["outfeed_config"] = text(m.outfeed_config)


def _domain(m: Any, known: Payloads, out: Attributes) -> None:
    out["domain_entry"] = known.shardings[m.domain_entry_sharding]
    out["domain_exit"] = known.shardings[m.domain_exit_sharding]


READERS: Final[dict[str, Reader]] = {
    "parameter": _parameter,
    "get-tuple-element": _element,
    "constant": _constant,
    **dict.fromkeys(
        ("broadcast", "transpose", "reduce", "concatenate", "reverse", "map", "get-dimension-size", "set-dimension-size"), _dimensions
    ),
    "iota": _iota,
    "sort": _sort,
    "dot": _dot,
    "ragged-dot": _ragged_dot,
    "slice": _slice,
    "dynamic-slice": _dynamic_slice,
    "pad": _pad,
    "gather": _gather,
    "scatter": _scatter,
    "compare": _compare,
    **dict.fromkeys(
        ("all-gather", "all-gather-start", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-broadcast"),
        _dimension_collective,
    ),
    **dict.fromkeys(("all-reduce", "all-reduce-start"), _collective),
    **dict.fromkeys(("all-reduce-done", "all-gather-done", "collective-permute-done"), _channel),
    **dict.fromkeys(("collective-permute", "collective-permute-start"), _permute),
    **dict.fromkeys(("send", "send-done", "recv", "recv-done"), _transfer),
    "custom-call": _custom_call,
    **dict.fromkeys(("while", "call"), _backend_config),
    "fusion": _fusion,
    **dict.fromkeys(("reduce-window", "select-and-scatter"), _window),
    "convolution": _convolution,
    "rng": _rng,
    "rng-bit-generator": _rng_bits,
    "rng-get-and-update-state": _rng_state,
    "fft": _fft,
    "cholesky": _cholesky,
    "triangular-solve": _triangular_solve,
    "topk": _topk,
    **dict.fromkeys(("batch-norm-training", "batch-norm-inference", "batch-norm-grad"), _batch_norm),
    "reduce-precision": _reduce_precision,
    "infeed": _infeed,
    "outfeed": _outfeed,
    "domain": _domain,
}
