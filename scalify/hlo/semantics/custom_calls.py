"""Reference semantics of the custom calls that Scalify knows.

Sources: XLA's sharding custom calls (identities on each device once partitioned), XLA's ``TopK``, and the calls that Neuron frameworks
emit (facts from Transformers NeuronX: ``AwsNeuronRmsNorm(x, weight, eps)`` with the normalised dimension as ``backend_config``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError
from scalify.hlo.semantics.elementwise import UNARY
from scalify.hlo.semantics.ordering import top_k

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scalify.hlo.semantics.values import Array, Handler, Op, Value


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


def _rms_norm(op: Op, operands: Sequence[Array]) -> Array:
    """X / sqrt(mean(x^2) + eps) * weight, over and along dimension ``backend_config``."""
    x, weight, eps = operands
    axis = _configured(op) % (x.ndim - 1) + 1
    shape = [1] * x.ndim
    shape[0], shape[axis] = x.shape[0], x.shape[axis]
    mean = np.mean(np.square(x), axis=axis, keepdims=True)
    result: Array = x / np.sqrt(mean + eps.reshape(x.shape[0], *(1,) * (x.ndim - 1))) * weight.reshape(shape)
    return result


def _axis(op: Op, x: Array) -> int:
    """The array axis of the dimension in ``backend_config``, the last one when there is none."""
    dimension = _configured(op) if op.attributes.get("backend_config") else -1
    rank = x.ndim - 1
    if not -rank <= dimension < rank:
        raise HloError(f"there is no dimension {dimension} to reduce")
    return dimension % rank + 1


def _softmax(op: Op, operands: Sequence[Array]) -> Array:
    """Softmax over dimension ``backend_config``."""
    x = operands[0]
    axis = _axis(op, x)
    shifted = np.exp(x - x.max(axis=axis, keepdims=True))
    result: Array = shifted / shifted.sum(axis=axis, keepdims=True)
    return result


def _arg_max(op: Op, operands: Sequence[Array]) -> Array:
    """The first place of the greatest element along dimension ``backend_config``."""
    result: Array = np.argmax(operands[0], axis=_axis(op, operands[0]))
    return result


def _arg_min(op: Op, operands: Sequence[Array]) -> Array:
    result: Array = np.argmin(operands[0], axis=_axis(op, operands[0]))
    return result


def _erf(_op: Op, operands: Sequence[Array]) -> Array:
    return UNARY["erf"](operands[0])


def _gelu(_op: Op, operands: Sequence[Array]) -> Array:
    x = operands[0]
    result: Array = 0.5 * x * (1 + UNARY["erf"](x / np.sqrt(2.0)))
    return result


def _gelu_tanh(_op: Op, operands: Sequence[Array]) -> Array:
    x = operands[0]
    result: Array = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return result


def _silu(_op: Op, operands: Sequence[Array]) -> Array:
    return operands[0] * UNARY["logistic"](operands[0])


def _top_k(op: Op, operands: Sequence[Array]) -> tuple[Any, ...]:
    """The ``k`` largest of the last dimension, k being the last dimension of the result."""
    return top_k(operands[0], op.shape.elements[0].dims[-1])


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
    if target not in CUSTOM_CALLS:
        raise HloError(f"custom call {target!r} has no reference semantics")
    return CUSTOM_CALLS[target](op, operands)


HANDLERS: dict[str, Handler] = {"custom-call": _custom_call}
