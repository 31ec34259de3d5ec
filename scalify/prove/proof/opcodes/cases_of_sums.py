"""The operations that contractions, windows, indexing and collectives are checked on."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from scalify.hlo.module import ReplicaGroups
from scalify.hlo.window import ConvDims, WindowDimension
from scalify.prove.proof.opcodes.cases import CUTS, dims_up_to, real
from scalify.prove.proof.opcodes.operation import Operand, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scalify.prove.proof.opcodes.operation import Dims

REDUCERS = {"add": (0, 2), "multiply": (1, 2), "maximum": (-1, 5), "minimum": (5, -1)}  #: with initial values
GROUPS: dict[int, tuple[tuple[tuple[int, ...], ...], ...]] = {
    1: ((), ((0,),)),
    2: ((), ((0, 1),), ((1, 0),), ((0,), (1,))),
    3: ((), ((0, 1, 2),), ((2, 0, 1),)),
    4: ((), ((0, 1), (2, 3)), ((0, 2), (1, 3)), ((1, 0), (3, 2)), ((0, 3), (1, 2)), ((0, 1, 2, 3),), ((0, 2, 1, 3),), ((0,), (1,), (2,), (3,))),
    6: (((0, 1), (2, 3), (4, 5)), ((0, 2, 4), (1, 3, 5)), ((0, 3), (1, 4), (2, 5))),
}  # fmt: skip


# -- contractions ------------------------------------------------------------------------------------------------------------------
def dot() -> Iterator[Operation]:
    """Every order of batch, contracted and free dimensions on both sides."""
    labels = {"b": 2, "k": 3, "l": 2, "m": 2, "n": 1}
    for shared in ("", "k", "b", "bk", "kl", "bkl"):
        for left, right in itertools.product(("", "m", "mn"), ("", "n", "m")):
            orders = itertools.product(itertools.permutations(shared + left), itertools.permutations(shared + right.upper()))
            for number, (p, q) in enumerate(orders):
                if number % 11 == 0 or len(p) + len(q) < 4:
                    yield _dot(p, q, shared, labels, number % 2)


def _dot(left: tuple[str, ...], right: tuple[str, ...], shared: str, labels: dict[str, int], cut: int) -> Operation:
    batch = [c for c in shared if c == "b"]
    inner = [c for c in shared if c != "b"]
    attributes = {
        "lhs_batch_dims": tuple([left.index(c) for c in batch]),
        "rhs_batch_dims": tuple([right.index(c) for c in batch]),
        "lhs_contracting_dims": tuple([left.index(c) for c in inner]),
        "rhs_contracting_dims": tuple([right.index(c) for c in inner]),
    }
    x, y = (tuple([labels[c.lower()] for c in side]) for side in (left, right))
    free = [labels[c.lower()] for c in (*left, *right) if c not in shared]
    dims = tuple([labels[c] for c in batch] + free)
    return Operation("dot", (real(*x), real(*y)), (("f32", dims),), attributes, cut=cut, devices=1 + cut)


def reduce() -> Iterator[Operation]:
    """Every subset of dimensions, every reducer, initial values that are its identity and others."""
    for dims in [d for d in dims_up_to(3) if d]:
        for chosen in itertools.product((False, True), repeat=len(dims)):
            where = tuple([d for d, c in enumerate(chosen) if c])
            kept = tuple([n for d, n in enumerate(dims) if d not in where])
            for name, initial in REDUCERS.items():
                for value in (real(literal=initial[0]), real(literal=initial[1]), real()):
                    cut = sum(dims) % 2
                    yield Operation("reduce", (real(*dims), value), (("f32", kept),), {"dimensions": where}, name, cut=cut)
    for name, infinity in (("maximum", float("-inf")), ("minimum", float("inf"))):
        yield Operation("reduce", (real(2, 3), real(literal=infinity)), (("f32", (2,)),), {"dimensions": (1,)}, name)
    yield from _logical_reductions()
    yield from _with_indices()


def _with_indices() -> Iterator[Operation]:
    """The greatest and the least value with the first index where it is."""
    for n, name, (dims, where) in itertools.product((1, 2, 3), ("argmax", "argmin"), (((0,), 0), ((0, 2), 0), ((2, 0), 1))):
        shape = tuple([n if d == where else m for d, m in enumerate(dims)])
        kept = tuple([m for d, m in enumerate(dims) if d != where])
        positions = np.broadcast_to(np.arange(n).reshape([-1 if d == where else 1 for d in range(len(dims))]), shape).tolist()
        initial = real(literal=float("-inf") if name == "argmax" else float("inf"))
        operands = (real(*shape), Operand("s32", shape, positions), initial, Operand("s32", (), 0))
        yield Operation("reduce", operands, (("f32", kept), ("s32", kept)), {"dimensions": (where,)}, name)


def _logical_reductions() -> Iterator[Operation]:
    for name, value, where in itertools.product(("and", "or", "add", "multiply"), (0, 1), ((0,), (1,), (0, 1))):
        operands = (Operand("pred", (2, 2), values=(0, 1)), Operand("pred", (), value))
        reducer = {"add": "or", "multiply": "and"}.get(name, name)
        kept = (2,) * (2 - len(where))
        yield Operation("reduce", operands, (("pred", kept),), {"dimensions": where}, reducer)


# -- windows -----------------------------------------------------------------------------------------------------------------------
def windows(n: int, dilated: bool) -> Iterator[tuple[WindowDimension, int]]:
    """Windows along a dimension of size n, with the number of outputs."""
    for size, stride, low, high in itertools.product((1, 2, 3), (1, 2), (0, 1, 2), (0, 1)):
        for base, inner, back in itertools.product((1, 2), (1, 2), (False, True)) if dilated else ((1, 1, False),):
            reach = (n - 1) * base + 1 + low + high - ((size - 1) * inner + 1)
            if reach >= 0:
                yield WindowDimension(size, stride, low, high, base, inner, back), reach // stride + 1


def reduce_window() -> Iterator[Operation]:
    for n in (2, 3, 4):
        for window, outputs in windows(n, dilated=False):
            for name, initial in (("add", 0), ("maximum", -9), ("minimum", 9), ("maximum", 0)):
                attributes = {"window": (window,)}
                yield Operation("reduce-window", (real(n), real(literal=initial)), (("f32", (outputs,)),), attributes, name, cut=n % 2)
    plain = WindowDimension(1)
    for window, outputs in windows(3, dilated=False):
        for first in (True, False):
            both = (plain, window) if first else (window, plain)
            dims, result = ((2, 3), (2, outputs)) if first else ((3, 2), (outputs, 2))
            yield Operation("reduce-window", (real(*dims), real(literal=0)), (("f32", result),), {"window": both}, "add", devices=2)


def convolution() -> Iterator[Operation]:
    """Strides, padding, both dilations, reversal; both kinds of groups; dimensions in several orders."""
    order = ConvDims(0, 1, (2,), 1, 0, (2,), 0, 1, (2,))
    other = ConvDims(1, 2, (0,), 0, 2, (1,), 2, 0, (1,))
    for n in (2, 3):
        for window, outputs in windows(n, dilated=True):
            yield _convolution(order, window, n, outputs, (1, 2, 1), (1, 1))
    for n, labels in itertools.product((3, 4), (order, other)):
        for window, outputs in windows(n, dilated=False):
            yield _convolution(labels, window, n, outputs, (2, 2, 2), (1, 1))
            yield _convolution(labels, window, n, outputs, (1, 2, 4), (2, 1))
            yield _convolution(labels, window, n, outputs, (4, 1, 4), (1, 2))


def _convolution(d: ConvDims, w: WindowDimension, n: int, outputs: int, sizes: Dims, groups: Dims) -> Operation:
    batch, channels, features = sizes
    image, kernel, result = [0] * 3, [0] * 3, [0] * 3
    image[d.input_batch], image[d.input_feature], image[d.input_spatial[0]] = batch, channels, n
    kernel[d.kernel_input_feature], kernel[d.kernel_output_feature], kernel[d.kernel_spatial[0]] = channels // groups[0], features, w.size
    result[d.output_batch], result[d.output_feature], result[d.output_spatial[0]] = batch // groups[1], features, outputs
    attributes = {"window": (w,), "dim_labels": d, "feature_group_count": groups[0], "batch_group_count": groups[1]}
    return Operation("convolution", (real(*image), real(*kernel)), (("f32", tuple(result)),), attributes)


# -- indexing ----------------------------------------------------------------------------------------------------------------------
def _start(n: int, alike: bool = True) -> Operand:
    """A start index that also lies outside."""
    return Operand("s32", (), values=tuple(range(-2, n + 2)), alike=alike)


def dynamic_slice() -> Iterator[Operation]:
    for n in (1, 2, 3, 4):
        for size in range(1, n + 1):
            for start in (_start(n), *[Operand("s32", (), c) for c in (-1, 0, 1, n)]):
                yield Operation("dynamic-slice", (real(n), start), (("f32", (size,)),), {"dynamic_slice_sizes": (size,)}, cut=n % 2)
    for sizes in itertools.product((1, 2), (1, 2, 3)):
        yield Operation("dynamic-slice", (real(2, 3), _start(2), _start(3)), (("f32", sizes),), {"dynamic_slice_sizes": sizes})
        starts = (_start(2, alike=False), Operand("s32", (), 1))
        yield Operation("dynamic-slice", (real(2, 3), *starts), (("f32", sizes),), {"dynamic_slice_sizes": sizes}, devices=2)


def dynamic_update_slice() -> Iterator[Operation]:
    for n in (1, 2, 3, 4):
        for size in range(1, n + 1):
            for start in (_start(n), *[Operand("s32", (), c) for c in (-1, 0, 1, n)]):
                yield Operation("dynamic-update-slice", (real(n), real(size), start), (("f32", (n,)),), cut=n % 2)
    for sizes in itertools.product((1, 2), (1, 2, 3)):
        yield Operation("dynamic-update-slice", (real(2, 3), real(*sizes), _start(2), _start(3)), (("f32", (2, 3)),))
        starts = (_start(2, alike=False), Operand("s32", (), 1))
        yield Operation("dynamic-update-slice", (real(2, 3), real(*sizes), *starts), (("f32", (2, 3)),), devices=2)


def _gather_attributes(**given: tuple[int, ...]) -> dict[str, object]:
    empty: dict[str, object] = dict.fromkeys(
        ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims", "start_indices_batching_dims"), ()
    )
    return {**empty, "indices_are_sorted": False, **given}


def gather() -> Iterator[Operation]:
    """Windows of every size along one or two indexed dimensions, kept or collapsed, and batching."""
    for n, m, count, vector in itertools.product((2, 3), (1, 2), (1, 2), (0, 1, 2)):
        shape = ((1, count), (count, 1), (count,))[vector]
        indices = Operand("s32", shape, values=tuple(range(-1, n + 1)))
        a = _gather_attributes(start_index_map=(0,), collapsed_slice_dims=(0,), offset_dims=(1,))
        yield Operation(
            "gather",
            (real(n, m), indices),
            (("f32", (count, m)),),
            {**a, "index_vector_dim": min(vector, len(shape)), "slice_sizes": (1, m)},
        )
        for width in range(1, n + 1):
            a = _gather_attributes(start_index_map=(0,), offset_dims=(0, 2), slice_sizes=(width, m))
            yield Operation(
                "gather", (real(n, m), indices), (("f32", (width, count, m)),), {**a, "index_vector_dim": min(vector, len(shape))}
            )
    pairs = Operand("s32", (2, 2), values=(-1, 0, 1, 2))
    for order in ((0, 1), (1, 0)):
        a = _gather_attributes(start_index_map=order, collapsed_slice_dims=(0, 1), slice_sizes=(1, 1))
        yield Operation("gather", (real(2, 2), pairs), (("f32", (2,)),), {**a, "index_vector_dim": 1}, cut=1)
    known = Operand("s32", (3, 1), ((2,), (0,), (2,)))
    a = _gather_attributes(start_index_map=(0,), collapsed_slice_dims=(0,), offset_dims=(1,), slice_sizes=(1, 2))
    yield Operation("gather", (real(3, 2), known), (("f32", (3, 2)),), {**a, "index_vector_dim": 1}, devices=2)
    batched = Operand("s32", (2, 1), values=(-1, 0, 1, 2, 3))
    a = _gather_attributes(
        operand_batching_dims=(0,), start_indices_batching_dims=(0,), start_index_map=(1,), collapsed_slice_dims=(1,), slice_sizes=(1, 1)
    )
    yield Operation("gather", (real(2, 3), batched), (("f32", (2,)),), {**a, "index_vector_dim": 1})


def _scatter_attributes(**given: object) -> dict[str, object]:
    empty: dict[str, object] = dict.fromkeys(
        (
            "update_window_dims",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
        ),
        (),
    )
    return {**empty, "indices_are_sorted": False, "unique_indices": False, **given}


def scatter() -> Iterator[Operation]:
    """Added updates that meet, overwriting updates that do not; windows that reach outside."""
    for n, m, count in itertools.product((2, 3), (1, 2), (1, 2)):
        indices = Operand("s32", (count, 1), values=tuple(range(-1, n + 1)))
        a = _scatter_attributes(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1)
        for reducer in ("add", "second") if count == 1 else ("add",):
            yield Operation("scatter", (real(n, m), indices, real(count, m)), (("f32", (n, m)),), a, reducer)
        for width in range(1, n + 1):
            a = _scatter_attributes(update_window_dims=(1, 2), scatter_dims_to_operand_dims=(0,), index_vector_dim=1)
            for reducer in ("add", "second") if count == 1 else ("add",):
                yield Operation("scatter", (real(n, m), indices, real(count, width, m)), (("f32", (n, m)),), a, reducer)
    known = Operand("s32", (2, 1), ((2,), (0,)))
    a = _scatter_attributes(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1)
    for reducer in ("add", "second"):
        yield Operation("scatter", (real(3, 2), known, real(2, 2)), (("f32", (3, 2)),), a, reducer, devices=2)
    pairs = Operand("s32", (2, 2), values=(-1, 0, 1, 2))
    for order in ((0, 1), (1, 0)):
        a = _scatter_attributes(inserted_window_dims=(0, 1), scatter_dims_to_operand_dims=order, index_vector_dim=1)
        yield Operation("scatter", (real(2, 2), pairs, real(2)), (("f32", (2, 2)),), a, "add", cut=1)


# -- collectives -------------------------------------------------------------------------------------------------------------------
def grouped() -> Iterator[tuple[int, ReplicaGroups, int]]:
    """Numbers of devices, groups, and the size of a group."""
    for devices, choices in GROUPS.items():
        for groups in choices:
            yield devices, ReplicaGroups(groups), len(groups[0]) if groups else devices


def all_reduce() -> Iterator[Operation]:
    for devices, groups, _ in grouped():
        for name, dims in itertools.product(REDUCERS, ((), (2,), (2, 3))):
            yield Operation("all-reduce", (real(*dims),), (("f32", dims),), {"replica_groups": groups}, name, devices, cut=sum(dims) % 2)
    for name in ("and", "or"):
        truth = Operand("pred", (), values=(0, 1))
        yield Operation("all-reduce", (truth,), (("pred", ()),), {"replica_groups": ReplicaGroups(((0, 1), (2, 3)))}, name, 4)


def all_gather() -> Iterator[Operation]:
    for devices, groups, count in grouped():
        for dims, d in (((1,), 0), ((2,), 0), ((3, 2), 0), ((3, 2), 1), ((1, 2), 0)):
            result = tuple([n * count if i == d else n for i, n in enumerate(dims)])
            for cut in CUTS:
                attributes = {"replica_groups": groups, "dimensions": (d,)}
                yield Operation("all-gather", (real(*dims),), (("f32", result),), attributes, "", devices, cut)


def reduce_scatter() -> Iterator[Operation]:
    for devices, groups, count in grouped():
        for result, d in (((1,), 0), ((2,), 0), ((3, 2), 0), ((3, 2), 1)):
            dims = tuple([n * count if i == d else n for i, n in enumerate(result)])
            for name in REDUCERS:
                attributes = {"replica_groups": groups, "dimensions": (d,)}
                yield Operation("reduce-scatter", (real(*dims),), (("f32", result),), attributes, name, devices)


def all_to_all() -> Iterator[Operation]:
    for devices, groups, count in grouped():
        for part, d in (((1,), 0), ((2,), 0), ((3, 2), 0), ((3, 2), 1)):
            dims = tuple([n * count if i == d else n for i, n in enumerate(part)])
            attributes = {"replica_groups": groups, "dimensions": (d,)}
            yield Operation("all-to-all", (real(*dims),), (("f32", dims),), attributes, "", devices)
        operands = tuple([real(2) for _ in range(count)])
        if count > 1:
            yield Operation("all-to-all", operands, tuple([("f32", (2,))] * count), {"replica_groups": groups}, "", devices)


def collective_permute() -> Iterator[Operation]:
    """Every permutation of up to three devices with every subset left out; some of four and six."""
    for devices in (1, 2, 3):
        for order in itertools.permutations(range(devices)):
            for kept in itertools.product((True, False), repeat=devices):
                pairs = tuple([(s, t) for s, t in enumerate(order) if kept[s]])
                yield Operation("collective-permute", (real(2),), (("f32", (2,)),), {"source_target_pairs": pairs}, "", devices)
    for devices, shift in itertools.product((4, 6), range(6)):
        pairs = tuple([(s, (s + shift) % devices) for s in range(devices)])
        for some in (pairs, pairs[1:], pairs[::2]):
            yield Operation("collective-permute", (real(2, 2),), (("f32", (2, 2)),), {"source_target_pairs": some}, "", devices, cut=1)


def collective_broadcast() -> Iterator[Operation]:
    for devices, groups, _ in grouped():
        for some in {groups.groups, groups.groups[1:]}:
            if some:
                yield Operation("collective-broadcast", (real(2),), (("f32", (2,)),), {"replica_groups": ReplicaGroups(some)}, "", devices)
