"""The custom calls that Scalify knows, and the composite operations that it writes out.

Sources: XLA's sharding custom calls (identities on each device once partitioned), XLA's ``TopK``, and the targets that Transformers NeuronX,
torch-neuronx and NeuronX Distributed emit, with operands and ``backend_config`` as these frameworks write them.
"""

from __future__ import annotations

from math import pi, prod, sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.dtypes import DTYPES
from scalify.hlo.module import Computation, Instruction, Shape
from scalify.lift.custom_calls import Body, Call, Decomposition, Identity, Opaque, Pairs, Refused, Registry, Semantics, Writing

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Builder:
    """A decomposition in the making; values are positions. ``like`` and ``spread`` take their shapes from the operands."""

    def __init__(self, call: Call) -> None:
        self.rows: list[Instruction] = []
        self.helpers: dict[str, Computation] = {}
        self.parameters = [self.add("parameter", shape, index=n) for n, shape in enumerate(call.operands)]

    def add(self, opcode: str, shape: Shape, *operands: int, calls: tuple[str, ...] = (), **attributes: Any) -> int:
        self.rows.append(Instruction("", opcode, shape, operands, attributes, calls))
        return len(self.rows) - 1

    def like(self, opcode: str, *operands: int) -> int:
        return self.add(opcode, self.rows[operands[-1]].shape, *operands)

    def constant(self, dtype: str, value: float) -> int:
        return self.add("constant", Shape(dtype), literal=np.asarray(value, dtype=np.float64))

    def spread(self, value: int, to: Shape, *dimensions: int) -> int:
        return self.add("broadcast", Shape(self.rows[value].shape.dtype, to.dims), value, dimensions=dimensions)

    def filled(self, value: float, like: Shape) -> int:
        return self.spread(self.constant(like.dtype, value), like)

    def convert(self, value: int, dtype: str) -> int:
        shape = self.rows[value].shape
        return value if shape.dtype == dtype else self.add("convert", Shape(dtype, shape.dims), value)

    def reduce(self, opcode: str, value: int, dimension: int, initial: float) -> int:
        shape = self.rows[value].shape
        dims = tuple([n for d, n in enumerate(shape.dims) if d != dimension])
        start = self.constant(shape.dtype, initial)
        name = self._reducer(opcode, shape.dtype)
        return self.add("reduce", Shape(shape.dtype, dims), value, start, calls=(name,), dimensions=(dimension,))

    def _reducer(self, opcode: str, dtype: str) -> str:
        scalar = Shape(dtype)
        rows = [Instruction(f"p{n}", "parameter", scalar, (), {"index": n}) for n in range(2)]
        self.helpers[opcode] = Computation(opcode, (*rows, Instruction("root", opcode, scalar, (0, 1))), 2)
        return opcode

    def chooser(self, dtype: str, index: str, direction: str) -> str:
        """A reducer of (value, index) pairs: the better value, of equal ones that of the lesser index."""
        value, place, truth = Shape(dtype), Shape(index), Shape("pred")
        rows = [Instruction(f"p{n}", "parameter", place if n % 2 else value, (), {"index": n}) for n in range(4)]
        rows += [
            Instruction("better", "compare", truth, (0, 2), {"direction": direction}),
            Instruction("equal", "compare", truth, (0, 2), {"direction": "EQ"}),
            Instruction("value", "select", value, (4, 0, 2)),
            Instruction("there", "select", place, (4, 1, 3)),
            Instruction("lesser", "minimum", place, (1, 3)),
            Instruction("place", "select", place, (5, 8, 7)),
            Instruction("root", "tuple", Shape("tuple", (), (value, place)), (6, 9)),
        ]
        self.helpers[direction] = Computation(direction, tuple(rows), 10)
        return direction

    def body(self, root: int) -> Body:
        return Body(Computation("body", tuple(self.rows), root), tuple(self.helpers.values()))


def _kept(rank: int, dimension: int) -> tuple[int, ...]:
    return tuple([d for d in range(rank) if d != dimension])


def _number(call: Call) -> int | None:
    """The integer in ``backend_config``; None when it is empty. :raises Refused: something else is there."""
    text = call.config.strip()
    if not text:
        return None
    if len(text) > 20 or not (text.isdecimal() or (text[0] == "-" and text[1:].isdecimal())):
        raise Refused("the backend_config is no integer")
    return int(text)


def _dimension(call: Call) -> int:
    """The dimension of operand 0 that ``backend_config`` names, the last one when it is empty."""
    rank = call.operands[0].rank if call.operands else 0
    number = _number(call)
    dimension = rank - 1 if number is None else number + rank * (number < 0)
    if not 0 <= dimension < rank:
        raise Refused("the backend_config names no dimension of the operand")
    return dimension


def _expect(call: Call, count: int) -> Shape:
    """The first operand: a float array, with the result's dimensions. :raises Refused: it is none, or other operands than ``count``."""
    if len(call.operands) != count or call.operands[0].dims != call.shape.dims:
        raise Refused(f"expected {count} operands, the first with the dimensions of the result")
    for shape in (*call.operands, call.shape):
        if shape.dtype not in DTYPES or not DTYPES[shape.dtype].is_float:
            raise Refused("expected operands and a result of a floating-point type")
    return call.operands[0]


def _rms_norm(call: Call) -> Body:
    """``x * rsqrt(mean(x^2) + eps) * weight``, the mean over and the weight along the dimension in ``backend_config``."""
    shape = _expect(call, 3)
    dimension = _dimension(call)
    size = shape.dims[dimension]
    if call.operands[1].dims != (size,) or call.operands[2].dims or not size:
        raise Refused("expected a weight along the normalised dimension and a scalar epsilon")
    b = _Builder(call)
    x, weight, eps = b.parameters
    total = b.reduce("add", b.like("multiply", x, x), dimension, 0.0)
    sums = b.rows[total].shape
    mean = b.like("divide", total, b.filled(size, sums))
    scale = b.like("rsqrt", b.like("add", mean, b.spread(b.convert(eps, shape.dtype), sums)))
    normal = b.like("multiply", x, b.spread(scale, shape, *_kept(shape.rank, dimension)))
    weights = b.spread(b.convert(weight, shape.dtype), shape, dimension)
    return b.body(b.convert(b.like("multiply", normal, weights), call.shape.dtype))


def _softmax(call: Call) -> Body:
    """``exp(x - max) / sum(exp(x - max))`` over the dimension in ``backend_config``."""
    shape = _expect(call, 1)
    dimension = _dimension(call)
    kept = _kept(shape.rank, dimension)
    b = _Builder(call)
    x = b.parameters[0]
    top = b.spread(b.reduce("maximum", x, dimension, -np.inf), shape, *kept)
    grown = b.like("exponential", b.like("subtract", x, top))
    total = b.spread(b.reduce("add", grown, dimension, 0.0), shape, *kept)
    return b.body(b.convert(b.like("divide", grown, total), call.shape.dtype))


def _gelu(call: Call) -> Body:
    """``x / 2 * (1 + erf(x / sqrt 2))``."""
    shape = _expect(call, 1)
    b = _Builder(call)
    x = b.parameters[0]
    curve = b.like("erf", b.like("multiply", x, b.filled(sqrt(0.5), shape)))
    return b.body(_gated(b, call, curve))


def _gelu_tanh(call: Call) -> Body:
    """``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))``."""
    shape = _expect(call, 1)
    b = _Builder(call)
    x = b.parameters[0]
    cube = b.like("multiply", b.like("multiply", x, x), x)
    inner = b.like("add", x, b.like("multiply", cube, b.filled(0.044715, shape)))
    curve = b.like("tanh", b.like("multiply", inner, b.filled(sqrt(2 / pi), shape)))
    return b.body(_gated(b, call, curve))


def _gated(b: _Builder, call: Call, curve: int) -> int:
    """``x / 2 * (1 + curve)`` in the type of the result."""
    shape = call.operands[0]
    gate = b.like("multiply", b.like("add", curve, b.filled(1.0, shape)), b.filled(0.5, shape))
    return b.convert(b.like("multiply", b.parameters[0], gate), call.shape.dtype)


def _silu(call: Call) -> Body:
    """``x * logistic(x)``."""
    _expect(call, 1)
    b = _Builder(call)
    x = b.parameters[0]
    return b.body(b.convert(b.like("multiply", x, b.like("logistic", x)), call.shape.dtype))


def _erf(call: Call) -> Body:
    _expect(call, 1)
    b = _Builder(call)
    return b.body(b.convert(b.like("erf", b.parameters[0]), call.shape.dtype))


def _top_k(call: Call) -> Sequence[Pairs]:
    """All dimensions but the last; ``backend_config`` is k where it is given (XLA's own form keeps k in the result's shape alone)."""
    if len(call.operands) != 1 or not call.operands[0].rank or not call.shape.is_tuple:
        raise Refused("expected one operand and a tuple of values and places")
    k = {s.dims[-1:] for s in call.shape.elements}
    if call.target.startswith("Aws") and k != {(_number(call),)}:
        raise Refused("the backend_config is not the size of the result's last dimension")
    return [tuple([(d, d) for d in range(call.operands[0].rank - 1)])]


def _arg_max(call: Call) -> Body:
    """The index of the first of the greatest elements along the dimension in ``backend_config``, which the result lacks."""
    return _arg_extreme(call, "GE", -1)


def _arg_min(call: Call) -> Body:
    """The same of the least elements."""
    return _arg_extreme(call, "LE", 1)


def _arg_extreme(call: Call, direction: str, sign: int) -> Body:
    if len(call.operands) != 1:
        raise Refused("expected one operand")
    shape, dimension = call.operands[0], _dimension(call)
    known, counted = DTYPES.get(shape.dtype), DTYPES.get(call.shape.dtype)
    if call.shape.dims != tuple([n for d, n in enumerate(shape.dims) if d != dimension]):
        raise Refused("expected a result without the dimension in the backend_config")
    if known is None or counted is None or not counted.is_integer or not (known.is_float or known.is_integer):
        raise Refused("expected numbers and an integer index")
    b = _Builder(call)
    worst = sign * np.inf if known.is_float else float((known.minimum if sign < 0 else known.maximum) or 0)
    place = b.add("iota", Shape(call.shape.dtype, shape.dims), iota_dimension=dimension)
    starts = (b.constant(shape.dtype, worst), b.constant(call.shape.dtype, 0))
    pair = Shape("tuple", (), (Shape(shape.dtype, call.shape.dims), call.shape))
    name = b.chooser(shape.dtype, call.shape.dtype, direction)
    both = b.add("reduce", pair, b.parameters[0], place, *starts, calls=(name,), dimensions=(dimension,))
    return b.body(b.add("get-tuple-element", call.shape, both, index=1))


def _batch_norm_training(instruction: Instruction, operands: tuple[Shape, ...]) -> Body:
    """``(x - mean) * rsqrt(variance + epsilon) * scale + offset`` with the mean and the (biased) variance, over all dimensions but the feature's.

    Source: XLA's operation semantics. Frameworks write layer normalisation with it, rows as features.
    """
    shape = operands[0]
    if 0 in shape.dims:
        raise Refused("a mean of no elements")
    b = _Builder(Call("", "", instruction.shape, operands))
    x, scale, offset = b.parameters
    feature = instruction.attributes["feature_index"]
    mean = _mean(b, x, feature)
    centred = b.like("subtract", x, b.spread(mean, shape, feature))
    variance = _mean(b, b.like("multiply", centred, centred), feature)
    factor = b.like("rsqrt", b.like("add", variance, b.filled(instruction.attributes["epsilon"], b.rows[variance].shape)))
    normal = b.like("multiply", centred, b.spread(factor, shape, feature))
    scaled = b.like("multiply", normal, b.spread(scale, shape, feature))
    result = b.like("add", scaled, b.spread(offset, shape, feature))
    return b.body(b.add("tuple", instruction.shape, result, mean, variance))


def _batch_norm_grad(instruction: Instruction, operands: tuple[Shape, ...]) -> Body:
    """The gradients of the operand, the scale and the offset; the operands are those of the norm, its mean and variance, and the result's gradient.

    With ``n = (x - mean) * rsqrt(variance + epsilon)``: ``scale * rsqrt(variance + epsilon) * (g - mean(g) - n * mean(g * n))``, ``sum(g * n)``, ``sum(g)``.
    Source: XLA's operation semantics.
    """
    shape = operands[0]
    if 0 in shape.dims:
        raise Refused("a mean of no elements")
    b = _Builder(Call("", "", instruction.shape, operands))
    x, scale, mean, variance, gradient = b.parameters
    feature = instruction.attributes["feature_index"]
    factor = b.like("rsqrt", b.like("add", variance, b.filled(instruction.attributes["epsilon"], b.rows[variance].shape)))
    normal = b.like("multiply", b.like("subtract", x, b.spread(mean, shape, feature)), b.spread(factor, shape, feature))
    weighted = b.like("multiply", gradient, normal)
    rest = b.like("subtract", gradient, b.spread(_mean(b, gradient, feature), shape, feature))
    rest = b.like("subtract", rest, b.like("multiply", normal, b.spread(_mean(b, weighted, feature), shape, feature)))
    result = b.like("multiply", b.spread(b.like("multiply", scale, factor), shape, feature), rest)
    return b.body(b.add("tuple", instruction.shape, result, _total(b, weighted, feature), _total(b, gradient, feature)))


def _total(b: _Builder, value: int, feature: int) -> int:
    """The sum over all dimensions but one."""
    for d in reversed(range(b.rows[value].shape.rank)):
        if d != feature:
            value = b.reduce("add", value, d, 0.0)
    return value


def _mean(b: _Builder, value: int, feature: int) -> int:
    """The mean over all dimensions but one."""
    shape = b.rows[value].shape
    value = _total(b, value, feature)
    count = prod(shape.dims[d] for d in range(shape.rank) if d != feature)
    return b.like("divide", value, b.filled(count, b.rows[value].shape))


_IDENTITIES = (
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "AwsNeuronTransferWithStaticRing",
    "AwsNeuronModuleMarkerStart-Forward",
    "AwsNeuronModuleMarkerStart-Backward",
    "AwsNeuronModuleMarkerEnd-Forward",
    "AwsNeuronModuleMarkerEnd-Backward",
)

_BUILT_IN: dict[str, Semantics] = {
    **dict.fromkeys(_IDENTITIES, Identity()),
    "AwsNeuronRmsNorm": Decomposition(_rms_norm),
    "AwsNeuronSoftmax": Decomposition(_softmax),
    "AwsNeuronGelu": Decomposition(_gelu),
    "AwsNeuronGeluApprxTanh": Decomposition(_gelu_tanh),
    "AwsNeuronSilu": Decomposition(_silu),
    "AwsNeuronErf": Decomposition(_erf),
    "AwsNeuronTopK": Opaque(_top_k),
    "TopK": Opaque(_top_k),
    "AwsNeuronArgMax": Decomposition(_arg_max),
    "AwsNeuronArgMin": Decomposition(_arg_min),
}

_WRITTEN: dict[str, Writing] = {"batch-norm-training": _batch_norm_training, "batch-norm-grad": _batch_norm_grad}

BUILT_IN = Registry(MappingProxyType(_BUILT_IN), MappingProxyType(_WRITTEN))
