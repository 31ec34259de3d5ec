"""The definition of opcodes, element by element: what XLA's operation semantics page says, in plain index arithmetic.

Nothing here knows the lifter. A definition gives the element of a result on a device at an index, from the operands' elements ``x(k, device, index)``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from scalify.hlo.dtypes import DTYPES
from scalify.prove.proof.opcodes.scalar import FLOAT, INTEGER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scalify.prove.proof.opcodes.elements import Element, Elements
    from scalify.prove.proof.opcodes.operation import Dims, Operation

Index = tuple[int, ...]


@dataclass(frozen=True)
class Arrays:
    """The operands of an operation: ``x(k, device, index)`` is an element of operand k."""

    operation: Operation
    elements: Elements
    x: Callable[[int, int, Index], Element]

    @property
    def attributes(self) -> Any:
        return self.operation.attributes

    def dims(self, k: int) -> Dims:
        return self.operation.operands[k].dims


Definition = Callable[[Arrays, int, int, Index], "Element"]
"""The element of result number ``r`` on a device at an index: ``(arrays, r, device, index)``."""

DEFINITIONS: dict[str, Definition] = {}


def defines(*opcodes: str) -> Callable[[Definition], Definition]:
    """Registers the definition of opcodes."""

    def register(definition: Definition) -> Definition:
        DEFINITIONS.update(dict.fromkeys(opcodes, definition))
        return definition

    return register


def indices(dims: Sequence[int]) -> Iterator[Index]:
    """All indices of an array, row-major."""
    return itertools.product(*map(range, dims))


def combine(e: Elements, name: str, values: Sequence[Element]) -> Element:
    """A reducer applied to values, in any order."""
    if name in ("maximum", "or"):
        return e.greatest(values)
    if name in ("minimum", "and"):
        return e.least(values)
    return e.add(values) if name == "add" else e.multiply(values)


# -- elementwise -------------------------------------------------------------------------------------------------------------------
def elementwise(a: Arrays, r: int, device: int, index: Index) -> Element:
    """One element of each operand; those without dimensions count for all places (clamp)."""
    xs = [a.x(k, device, index if o.dims else ()) for k, o in enumerate(a.operation.operands)]
    integer = not any(DTYPES[o.dtype].is_float for o in a.operation.operands)
    table = INTEGER if integer and a.operation.opcode in INTEGER else FLOAT
    return table[a.operation.opcode](a, *xs)


DEFINITIONS.update(dict.fromkeys([*FLOAT, *INTEGER], elementwise))


# -- data movement -----------------------------------------------------------------------------------------------------------------
@defines("constant")
def _constant(a: Arrays, r: int, device: int, index: Index) -> Element:
    return number(a.attributes["literal"][index].item())


def number(value: float) -> int | Fraction:
    """An exact number."""
    return int(value) if isinstance(value, bool | int) or value.is_integer() else Fraction(value)


@defines("iota")
def _iota(a: Arrays, r: int, device: int, index: Index) -> Element:
    dimension: int = a.attributes["iota_dimension"]
    return index[dimension]


@defines("partition-id")
def _partition(a: Arrays, r: int, device: int, index: Index) -> Element:
    return device


@defines("replica-id")
def _replica(a: Arrays, r: int, device: int, index: Index) -> Element:
    return 0


@defines("broadcast")
def _broadcast(a: Arrays, r: int, device: int, index: Index) -> Element:
    return a.x(0, device, tuple([index[d] for d in a.attributes["dimensions"]]))


@defines("transpose")
def _transpose(a: Arrays, r: int, device: int, index: Index) -> Element:
    source = [0] * len(index)
    for i, d in enumerate(a.attributes["dimensions"]):
        source[d] = index[i]
    return a.x(0, device, tuple(source))


@defines("reshape", "bitcast", "copy")
def _reshape(a: Arrays, r: int, device: int, index: Index) -> Element:
    flat = 0
    for i, n in zip(index, a.operation.dims, strict=True):
        flat = flat * n + i
    source = []
    for n in reversed(a.dims(0)):
        flat, i = divmod(flat, n)
        source.append(i)
    return a.x(0, device, tuple(reversed(source)))


@defines("reduce-precision")
def _same(a: Arrays, r: int, device: int, index: Index) -> Element:
    """Over the reals: roundings are findings, no values."""
    return a.x(0, device, index)


@defines("slice")
def _slice(a: Arrays, r: int, device: int, index: Index) -> Element:
    starts, strides = a.attributes["starts"], a.attributes["strides"]
    return a.x(0, device, tuple([s + i * t for s, i, t in zip(starts, index, strides, strict=True)]))


@defines("reverse")
def _reverse(a: Arrays, r: int, device: int, index: Index) -> Element:
    dims = a.attributes["dimensions"]
    return a.x(0, device, tuple([n - 1 - i if d in dims else i for d, (i, n) in enumerate(zip(index, a.dims(0), strict=True))]))


@defines("concatenate")
def _concatenate(a: Arrays, r: int, device: int, index: Index) -> Element:
    (d,) = a.attributes["dimensions"]
    place = index[d]
    for k in range(len(a.operation.operands)):
        if place < a.dims(k)[d]:
            return a.x(k, device, (*index[:d], place, *index[d + 1 :]))
        place -= a.dims(k)[d]
    raise AssertionError("an index outside of the result")


@defines("pad")
def _pad(a: Arrays, r: int, device: int, index: Index) -> Element:
    source = []
    for i, n, (low, _, interior) in zip(index, a.dims(0), a.attributes["padding"], strict=True):
        place, between = divmod(i - low, interior + 1)
        if between or not 0 <= place < n:
            return a.x(1, device, ())
        source.append(place)
    return a.x(0, device, tuple(source))


# -- contractions ------------------------------------------------------------------------------------------------------------------
@defines("dot")
def _dot(a: Arrays, r: int, device: int, index: Index) -> Element:
    t = a.attributes
    batch = len(t["lhs_batch_dims"])
    left, right = [0] * len(a.dims(0)), [0] * len(a.dims(1))
    for i, (p, q) in enumerate(zip(t["lhs_batch_dims"], t["rhs_batch_dims"], strict=True)):
        left[p], right[q] = index[i], index[i]
    free = [d for d in range(len(left)) if d not in (*t["lhs_batch_dims"], *t["lhs_contracting_dims"])]
    other = [d for d in range(len(right)) if d not in (*t["rhs_batch_dims"], *t["rhs_contracting_dims"])]
    for i, d in zip(index[batch:], free, strict=False):
        left[d] = i
    for i, d in zip(index[batch + len(free) :], other, strict=True):
        right[d] = i
    summands = []
    for inner in indices([a.dims(0)[d] for d in t["lhs_contracting_dims"]]):
        for i, p, q in zip(inner, t["lhs_contracting_dims"], t["rhs_contracting_dims"], strict=True):
            left[p], right[q] = i, i
        summands.append(a.elements.multiply([a.x(0, device, tuple(left)), a.x(1, device, tuple(right))]))
    return a.elements.add(summands)


@defines("reduce")
def _reduce(a: Arrays, r: int, device: int, index: Index) -> Element:
    dims = a.attributes["dimensions"]
    kept = [d for d in range(len(a.dims(0))) if d not in dims]
    places = [dict(zip(kept, index, strict=True)) | dict(zip(dims, inner, strict=True)) for inner in indices([a.dims(0)[d] for d in dims])]
    values = [a.x(0, device, tuple([place[d] for d in range(len(place))])) for place in places]
    if a.operation.reducer in ("argmax", "argmin"):
        return _extreme(a.elements, a.operation.reducer, values, r)
    return combine(a.elements, a.operation.reducer, [*values, *_initial(a, device)])


def _initial(a: Arrays, device: int) -> list[Element]:
    """The initial value; an infinity is the identity of a maximum or a minimum (it is used with no other reducer)."""
    found = a.x(1, device, ())
    return [] if isinstance(found, float) and math.isinf(found) else [found]


def _extreme(e: Elements, name: str, values: Sequence[Element], r: int) -> Element:
    """Result 0: the greatest (least) value. Result 1: the number of the first value that is no less (greater) than any other; all before it are."""
    signed = values if name == "argmax" else [e.negative(v) for v in values]
    if r == 0:
        return e.greatest(values) if name == "argmax" else e.least(values)
    wins = [e.multiply([e.holds("ge0", e.add([v, e.negative(w)])) for w in signed]) for v in signed]
    first = [e.multiply([k, win, *[e.add([1, e.negative(w)]) for w in wins[:k]]]) for k, win in enumerate(wins)]
    return e.add(first)


@defines("reduce-window")
def _reduce_window(a: Arrays, r: int, device: int, index: Index) -> Element:
    windows = a.attributes["window"]
    values = [a.x(1, device, ())]
    for inner in indices([w.size for w in windows]):
        place = _met(windows, index, inner, a.dims(0))
        if place is not None:
            values.append(a.x(0, device, place))
    return combine(a.elements, a.operation.reducer, values)


def _met(windows: Sequence[Any], outputs: Sequence[int], inner: Sequence[int], dims: Sequence[int]) -> Index | None:
    """The place of the operand that an element of a window meets, None for padding and holes."""
    found = []
    for w, o, k, n in zip(windows, outputs, inner, dims, strict=True):
        element = w.size - 1 - k if w.reversal else k
        place, between = divmod(o * w.stride + element * w.rhs_dilate - w.pad_low, w.lhs_dilate)
        if between or not 0 <= place < n:
            return None
        found.append(place)
    return tuple(found)


@defines("convolution")
def _convolution(a: Arrays, r: int, device: int, index: Index) -> Element:
    d, windows = a.attributes["dim_labels"], a.attributes["window"]
    groups, batches = a.attributes.get("feature_group_count", 1), a.attributes.get("batch_group_count", 1)
    feature, each = index[d.output_feature], a.operation.dims[d.output_feature] // max(groups, batches)
    group = feature // each
    channels = a.dims(1)[d.kernel_input_feature]
    spatial = [index[o] for o in d.output_spatial]
    sizes = [a.dims(0)[s] for s in d.input_spatial]
    summands = []
    for channel, *inner in indices([channels, *[w.size for w in windows]]):
        place = _met(windows, spatial, inner, sizes)
        if place is None:
            continue
        image, kernel = [0] * len(a.dims(0)), [0] * len(a.dims(1))
        image[d.input_batch] = index[d.output_batch] + (group * a.operation.dims[d.output_batch] if batches > 1 else 0)
        image[d.input_feature] = channel + (group * channels if groups > 1 else 0)
        kernel[d.kernel_input_feature], kernel[d.kernel_output_feature] = channel, feature
        for k, (s, t) in enumerate(zip(d.input_spatial, d.kernel_spatial, strict=True)):
            image[s], kernel[t] = place[k], inner[k]
        summands.append(a.elements.multiply([a.x(0, device, tuple(image)), a.x(1, device, tuple(kernel))]))
    return a.elements.add(summands)


# -- indexing ----------------------------------------------------------------------------------------------------------------------
def whole(value: Element) -> int:
    """A known index."""
    assert isinstance(value, int)
    return value


def clamped(start: int, size: int, width: int) -> int:
    """A start that leaves the window inside."""
    return min(max(start, 0), size - width)


@defines("dynamic-slice")
def _dynamic_slice(a: Arrays, r: int, device: int, index: Index) -> Element:
    starts = [clamped(whole(a.x(1 + d, device, ())), n, a.operation.dims[d]) for d, n in enumerate(a.dims(0))]
    return a.x(0, device, tuple([s + i for s, i in zip(starts, index, strict=True)]))


@defines("dynamic-update-slice")
def _dynamic_update_slice(a: Arrays, r: int, device: int, index: Index) -> Element:
    starts = [clamped(whole(a.x(2 + d, device, ())), n, a.dims(1)[d]) for d, n in enumerate(a.dims(0))]
    place = tuple([i - s for i, s in zip(index, starts, strict=True)])
    inside = all(0 <= p < n for p, n in zip(place, a.dims(1), strict=True))
    return a.x(1, device, place) if inside else a.x(0, device, index)


def _vector(a: Arrays, device: int, batch: Sequence[int], count: int) -> list[int]:
    """The index vector at a place of the batch dimensions of the indices."""
    dim = a.attributes["index_vector_dim"]
    if dim == len(a.dims(1)):
        return [whole(a.x(1, device, tuple(batch)))]
    return [whole(a.x(1, device, (*batch[:dim], k, *batch[dim:]))) for k in range(count)]


@defines("gather")
def _gather(a: Arrays, r: int, device: int, index: Index) -> Element:
    t = a.attributes
    batch = [i for d, i in enumerate(index) if d not in t["offset_dims"]]
    offsets = [index[d] for d in t["offset_dims"]]
    place = [0] * len(a.dims(0))
    for d, start in zip(t["start_index_map"], _vector(a, device, batch, len(t["start_index_map"])), strict=True):
        place[d] = clamped(start, a.dims(0)[d], t["slice_sizes"][d])
    for d, s in zip(t["operand_batching_dims"], t["start_indices_batching_dims"], strict=True):
        place[d] = batch[s - (s > t["index_vector_dim"])]
    kept = [d for d in range(len(place)) if d not in (*t["collapsed_slice_dims"], *t["operand_batching_dims"])]
    for d, o in zip(kept, offsets, strict=True):
        place[d] += o
    return a.x(0, device, tuple(place))


@defines("scatter")
def _scatter(a: Arrays, r: int, device: int, index: Index) -> Element:
    """Updates whose window does not fit are left out; those that land here are combined in any order (the instances have no two that overwrite)."""
    t = a.attributes
    landing = [a.x(0, device, index)]
    for update in indices(a.dims(2)):
        batch = [i for d, i in enumerate(update) if d not in t["update_window_dims"]]
        window = [d for d in range(len(index)) if d not in (*t["inserted_window_dims"], *t["input_batching_dims"])]
        start, offset, width = [0] * len(index), [0] * len(index), [1] * len(index)
        for d, v in zip(t["scatter_dims_to_operand_dims"], _vector(a, device, batch, len(t["scatter_dims_to_operand_dims"])), strict=True):
            start[d] = v
        for d, s in zip(t["input_batching_dims"], t["scatter_indices_batching_dims"], strict=True):
            start[d] = batch[s - (s > t["index_vector_dim"])]
        for d, w in zip(window, t["update_window_dims"], strict=True):
            offset[d], width[d] = update[w], a.dims(2)[w]
        fits = all(0 <= s <= n - w for s, n, w in zip(start, a.dims(0), width, strict=True))
        if fits and index == tuple([s + o for s, o in zip(start, offset, strict=True)]):
            landing.append(a.x(2, device, update))
    return landing[-1] if a.operation.reducer == "second" else combine(a.elements, a.operation.reducer, landing)


# -- collectives -------------------------------------------------------------------------------------------------------------------
def _group(a: Arrays, device: int) -> tuple[int, ...]:
    """The replica group of a device, in the order in which the module lists it."""
    groups = a.attributes["replica_groups"].groups or (tuple(range(a.operation.devices)),)
    found: tuple[int, ...] = next(g for g in groups if device in g)
    return found


@defines("all-reduce")
def _all_reduce(a: Arrays, r: int, device: int, index: Index) -> Element:
    return combine(a.elements, a.operation.reducer, [a.x(r, member, index) for member in _group(a, device)])


@defines("all-gather")
def _all_gather(a: Arrays, r: int, device: int, index: Index) -> Element:
    (d,) = a.attributes["dimensions"]
    member, place = divmod(index[d], a.dims(r)[d])
    return a.x(r, _group(a, device)[member], (*index[:d], place, *index[d + 1 :]))


@defines("reduce-scatter")
def _reduce_scatter(a: Arrays, r: int, device: int, index: Index) -> Element:
    (d,) = a.attributes["dimensions"]
    group = _group(a, device)
    place = (*index[:d], group.index(device) * a.operation.dims[d] + index[d], *index[d + 1 :])
    return combine(a.elements, a.operation.reducer, [a.x(r, member, place) for member in group])


@defines("all-to-all")
def _all_to_all(a: Arrays, r: int, device: int, index: Index) -> Element:
    group = _group(a, device)
    own = group.index(device)
    if "dimensions" not in a.attributes:
        return a.x(own, group[r], index)
    (d,) = a.attributes["dimensions"]
    part = a.dims(0)[d] // len(group)
    member, place = divmod(index[d], part)
    return a.x(0, group[member], (*index[:d], own * part + place, *index[d + 1 :]))


@defines("collective-permute")
def _collective_permute(a: Arrays, r: int, device: int, index: Index) -> Element:
    found = [s for s, t in a.attributes["source_target_pairs"] if t == device]
    return a.x(r, found[0], index) if found else 0


@defines("collective-broadcast")
def _collective_broadcast(a: Arrays, r: int, device: int, index: Index) -> Element:
    groups = [g for g in a.attributes["replica_groups"].groups if device in g]
    return a.x(r, groups[0][0], index) if groups else 0
