"""Reference semantics of the custom calls that Scalify knows, and opaque functions for those of which only the batch dimensions are known.

Sources: XLA's sharding custom calls (identities on each device once partitioned), XLA's ``TopK``, and the calls that Neuron frameworks
emit (facts from Transformers NeuronX: ``AwsNeuronRmsNorm(x, weight, eps)`` with the normalised dimension as ``backend_config``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError, Undecidable
from scalify.hlo.semantics.ordering import top_k

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.hlo.module import Shape
    from scalify.hlo.semantics.values import Array, Handler, Op, Value

BATCH = "custom call: batch"
"""Attribute of a registered opaque call: for each operand pairs of (its dimension, dimension of every result) that are batch dimensions.
No reader gives attributes with such names."""


def _identity(op: Op, operands: Sequence[Value]) -> Value:
    """The operand, or all of them where the result is their tuple."""
    return tuple(operands) if op.shape.is_tuple and len(operands) == len(op.shape.elements) else operands[0]


def _configured(op: Op) -> int:
    """The one integer that a Neuron call keeps in ``backend_config``."""
    text = str(op.attributes.get("backend_config", "")).strip()
    try:
        return int(text)
    except ValueError:
        raise HloError(f"backend_config {text[:40]!r} is not an integer") from None


def _axis(op: Op, x: Array) -> int:
    """The array axis of the dimension in ``backend_config``, the last one when there is none."""
    dimension = _configured(op) if op.attributes.get("backend_config") else -1
    rank = x.ndim - 1
    if not -rank <= dimension < rank:
        raise HloError(f"there is no dimension {dimension} to reduce")
    return dimension % rank + 1


def _rms_norm(op: Op, operands: Sequence[Array]) -> Array:
    """X / sqrt(mean(x^2) + eps) * weight, over and along dimension ``backend_config``."""
    x, weight, eps = operands
    axis = _configured(op) % (x.ndim - 1) + 1
    shape = [1] * x.ndim
    shape[0], shape[axis] = x.shape[0], x.shape[axis]
    total = np.expand_dims(op.domain.reduce("add", _f(op, "multiply", x, x), (axis,), op.source), axis)
    mean = _f(op, "divide", total, op.domain.number(x.shape[axis], op.source))
    root = _f(op, "sqrt", _f(op, "add", mean, eps.reshape(x.shape[0], *(1,) * (x.ndim - 1))))
    return _f(op, "multiply", _f(op, "divide", x, root), weight.reshape(shape))


def _f(op: Op, opcode: str, *operands: Array) -> Array:
    return op.domain.apply(opcode, operands, op.source)


def _softmax(op: Op, operands: Sequence[Array]) -> Array:
    """Softmax over dimension ``backend_config``."""
    x = operands[0]
    axis = _axis(op, x)
    top = np.expand_dims(op.domain.reduce("maximum", x, (axis,), op.source), axis)
    shifted = _f(op, "exponential", _f(op, "subtract", x, top))
    return _f(op, "divide", shifted, np.expand_dims(op.domain.reduce("add", shifted, (axis,), op.source), axis))


def _arg_max(op: Op, operands: Sequence[Array]) -> Array:
    """The first place of the greatest element along dimension ``backend_config``."""
    result: Array = np.argmax(op.domain.order_key(operands[0], op.source), axis=_axis(op, operands[0]))
    return result


def _arg_min(op: Op, operands: Sequence[Array]) -> Array:
    result: Array = np.argmin(op.domain.order_key(operands[0], op.source), axis=_axis(op, operands[0]))
    return result


def _erf(op: Op, operands: Sequence[Array]) -> Array:
    return _f(op, "erf", operands[0])


def _gated(op: Op, x: Array, curve: Array) -> Array:
    """``x / 2 * (1 + curve)``."""
    one, half = op.domain.number(1.0, op.source), op.domain.number(0.5, op.source)
    return _f(op, "multiply", _f(op, "multiply", half, x), _f(op, "add", one, curve))


def _gelu(op: Op, operands: Sequence[Array]) -> Array:
    x = operands[0]
    return _gated(op, x, _f(op, "erf", _f(op, "multiply", x, op.domain.number(math.sqrt(0.5), op.source))))


def _gelu_tanh(op: Op, operands: Sequence[Array]) -> Array:
    x = operands[0]
    cube = _f(op, "multiply", _f(op, "multiply", x, x), x)
    inner = _f(op, "add", x, _f(op, "multiply", op.domain.number(0.044715, op.source), cube))
    return _gated(op, x, _f(op, "tanh", _f(op, "multiply", op.domain.number(math.sqrt(2 / math.pi), op.source), inner)))


def _silu(op: Op, operands: Sequence[Array]) -> Array:
    return _f(op, "multiply", operands[0], _f(op, "logistic", operands[0]))


def _top_k(op: Op, operands: Sequence[Array]) -> tuple[Any, ...]:
    """The ``k`` largest of the last dimension, k being the last dimension of the result."""
    return top_k(op, operands[0], op.shape.elements[0].dims[-1])


CUSTOM_CALLS: dict[str, Callable[[Op, Sequence[Any]], Value]] = {
    "AwsNeuronArgMax": _arg_max,
    "AwsNeuronArgMin": _arg_min,
    "AwsNeuronErf": _erf,
    "AwsNeuronGelu": _gelu,
    "AwsNeuronGeluApprxTanh": _gelu_tanh,
    **{f"AwsNeuronModuleMarker{end}-{way}": _identity for end in ("Start", "End") for way in ("Forward", "Backward")},
    "AwsNeuronRmsNorm": _rms_norm,
    "AwsNeuronSilu": _silu,
    "AwsNeuronSoftmax": _softmax,
    "AwsNeuronTopK": _top_k,
    "AwsNeuronTransferWithStaticRing": _identity,
    "SPMDFullToShardShape": _identity,
    "SPMDShardToFullShape": _identity,
    "Sharding": _identity,
    "TopK": _top_k,
}


def _custom_call(op: Op, operands: Sequence[Any]) -> Value:
    target = str(op.attributes.get("custom_call_target", ""))
    if target in CUSTOM_CALLS:
        return CUSTOM_CALLS[target](op, operands)
    if BATCH in op.attributes:
        return _opaque(op, operands)
    raise Undecidable(f"custom call {target!r} has no reference semantics")


def _opaque(op: Op, operands: Sequence[Array]) -> Value:
    """A seeded function, applied at every index of the batch dimensions of the results."""
    results = op.shape.elements if op.shape.is_tuple else (op.shape,)
    if not all(s.is_array for s in (*results, *op.shapes)):
        raise Undecidable("an opaque custom call of tuples or tokens")
    batch: list[int] = sorted({r for pairs in op.attributes[BATCH] for _, r in pairs})
    sizes = tuple(results[0].dims[r] for r in batch)
    rows = [(_rows(x, pairs, batch, sizes), s.dtype) for x, pairs, s in zip(operands, op.attributes[BATCH], op.shapes, strict=True)]
    op.charge(sum(x.size for x, _ in rows), max((x.size for x, _ in rows), default=0))
    values = tuple(_result(op, rows, n, s, batch, sizes) for n, s in enumerate(results))
    return values if op.shape.is_tuple else values[0]


def _rows(x: Array, pairs: Sequence[tuple[int, int]], batch: Sequence[int], sizes: tuple[int, ...]) -> Array:
    """``[lanes * batch, core elements]``; an operand that a batch dimension does not cut is repeated along it."""
    own = {r: d + 1 for d, r in pairs}
    core = [a for a in range(1, x.ndim) if a not in own.values()]
    moved = x.transpose(0, *[own[r] for r in batch if r in own], *core)
    shape = [n if r in own else 1 for r, n in zip(batch, sizes, strict=True)]
    moved = moved.reshape(x.shape[0], *shape, *(x.shape[a] for a in core))
    whole_shape = (x.shape[0], *sizes, *(x.shape[a] for a in core))
    return np.broadcast_to(moved, whole_shape).reshape(x.shape[0] * math.prod(sizes), -1)


def _result(op: Op, rows: Sequence[tuple[Array, str]], number: int, shape: Shape, batch: Sequence[int], sizes: tuple[int, ...]) -> Array:
    core = [d for d in range(shape.rank) if d not in batch]
    name = "\0".join(
        ["custom call", str(op.attributes.get("custom_call_target")), str(op.attributes.get("backend_config", "")), str(number)]
    )
    value = op.domain.opaque(name, rows, tuple(shape.dims[d] for d in core), shape.dtype)
    lanes = op.scope.lanes
    value = np.broadcast_to(value, (lanes * math.prod(sizes), *value.shape[1:])).reshape(lanes, *sizes, *value.shape[1:])
    place = [*batch, *core]
    return value.transpose(0, *(1 + place.index(d) for d in range(shape.rank)))


HANDLERS: dict[str, Handler] = {"custom-call": _custom_call}
