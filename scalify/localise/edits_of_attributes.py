"""Edits of what an operation does with its operands: dimensions, offsets, directions, opcodes."""

from __future__ import annotations

from itertools import combinations, islice, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.localise.edits import edits
from scalify.report.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from scalify.localise.edits import Edit, Site

_DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
_MOST_ORDERS = 130  #: permutations of dimensions that are looked at


@edits(Kind.WRONG_LAYOUT, "transpose")
def _other_permutation(site: Site) -> Iterator[Edit]:
    rank = len(site.operation.shapes[0].dims)
    for order in islice(permutations(range(rank)), _MOST_ORDERS):
        yield from site.having("`transpose` exchanges the wrong dimensions", f"verifies with dimensions={_braces(order)}", dimensions=order)


@edits(Kind.WRONG_LAYOUT, "reshape")
def _other_order_before(site: Site) -> Iterator[Edit]:
    """A transpose before the reshape left out, or done in another order."""
    value = site.operation.operands[0]
    before = site.maker(value)
    problem = "`reshape` merges or splits dimensions whose elements are in another order"
    if before.opcode == "transpose":
        source = before.operands[0]
        yield from site.edit(problem, f"verifies without {site.called(value)} before it", operands=[source])


@edits(Kind.WRONG_AXIS, "dot")
def _other_contraction(site: Site) -> Iterator[Edit]:
    names = ("lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims")
    now = {n: tuple(site.attributes[n]) for n in names}
    if len(site.operation.operands) != 2:
        return
    left, right = [len(site.dims(o)) for o in site.operation.operands]
    for inner, batch in (names[0], names[2]), (names[1], names[3]):
        rank = left if inner.startswith("lhs") else right
        count = len(now[inner])
        for order in islice(permutations(range(rank), count + len(now[batch])), _MOST_ORDERS):
            new = {inner: order[:count], batch: order[count:]}
            text = ", ".join([f"{n}={_braces(d)}" for n, d in new.items() if d != now[n]])
            yield from site.having("`dot` contracts or pairs other dimensions than the baseline", f"verifies with {text}", **new)


@edits(Kind.WRONG_AXIS, "reduce")
def _other_reduced_dimensions(site: Site) -> Iterator[Edit]:
    now = site.attributes["dimensions"]
    for dims in combinations(range(len(site.dims(site.operation.operands[0]))), len(now)):
        yield from site.having(
            f"`reduce` works along dimensions {_braces(now)}", f"verifies along dimensions {_braces(dims)}", dimensions=dims
        )


@edits(Kind.WRONG_AXIS, "broadcast")
def _other_broadcast_dimensions(site: Site) -> Iterator[Edit]:
    now = site.attributes.get("dimensions", ())
    for dims in islice(permutations(range(len(site.operation.shapes[0].dims)), len(now)), _MOST_ORDERS):
        yield from site.having(
            "`broadcast` repeats along the wrong dimensions", f"verifies with dimensions={_braces(dims)}", dimensions=dims
        )


@edits(Kind.WRONG_AXIS, "iota", "sort", "cumsum")
def _other_iota(site: Site) -> Iterator[Edit]:
    name = "iota_dimension" if site.operation.opcode == "iota" else "dimensions"
    for d in range(len(site.operation.shapes[0].dims)):
        value = d if name == "iota_dimension" else (d,)
        yield from site.having(
            f"`{site.operation.opcode}` works along the wrong dimension", f"verifies along dimension {d}", **{name: value}
        )


@edits(Kind.WRONG_LAYOUT, "reverse", "concatenate")
def _other_dimension(site: Site) -> Iterator[Edit]:
    for d in range(len(site.operation.shapes[0].dims)):
        yield from site.having(
            f"`{site.operation.opcode}` works along the wrong dimension", f"verifies along dimension {d}", dimensions=(d,)
        )


@edits(Kind.WRONG_SLICE, "slice")
def _other_start(site: Site) -> Iterator[Edit]:
    """The window moved by itself, by a half and by one; with a stride, by one."""
    starts, limits = site.attributes["starts"], site.attributes["limits"]
    whole = site.dims(site.operation.operands[0])
    for d, size in enumerate(whole):
        length = limits[d] - starts[d]
        if length == size:
            continue
        places = [*range(starts[d] % length, size - length + 1, length), *range(0, size - length + 1, length)]
        for start in dict.fromkeys([*places, starts[d] - 1, starts[d] + 1, size - length]):
            if 0 <= start <= size - length and start != starts[d]:
                new = [*starts[:d], start, *starts[d + 1 :]], [*limits[:d], start + length, *limits[d + 1 :]]
                problem = f"`slice` reads {starts[d]}:{limits[d]} of dimension {d}"
                yield from site.having(
                    problem, f"verifies if it reads {start}:{start + length}", starts=tuple(new[0]), limits=tuple(new[1])
                )


@edits(Kind.WRONG_SLICE, "pad")
def _other_padding(site: Site) -> Iterator[Edit]:
    now = site.attributes["padding"]
    for d, (low, high, interior) in enumerate(now):
        if low != high:
            new = (*now[:d], (high, low, interior), *now[d + 1 :])
            yield from site.having("`pad` puts the padding on the wrong side", "verifies with the padding on the other side", padding=new)


@edits(Kind.WRONG_OPERATION, "compare")
def _other_direction(site: Site) -> Iterator[Edit]:
    now = site.attributes["direction"]
    for direction in _DIRECTIONS:
        yield from site.having(f"`compare` is {now}", f"verifies if it is {direction}", direction=direction)


@edits(Kind.WRONG_AXIS, "gather", "scatter")
def _other_index_dimensions(site: Site) -> Iterator[Edit]:
    names = {
        "gather": ("start_index_map", "offset_dims", "collapsed_slice_dims"),
        "scatter": ("scatter_dims_to_operand_dims", "update_window_dims", "inserted_window_dims"),
    }[site.operation.opcode]
    rank = max(len(site.dims(v)) for v in (*site.operation.operands, *site.operation.results))
    for name in names:
        for dims in islice(permutations(range(rank), len(site.attributes[name])), _MOST_ORDERS):
            problem = f"`{site.operation.opcode}` has {name}={_braces(site.attributes[name])}"
            yield from site.having(problem, f"verifies with {name}={_braces(dims)}", **{name: dims})


@edits(Kind.WRONG_CONSTANT, "constant")
def _other_constant(site: Site) -> Iterator[Edit]:
    """The baseline's constants of the same shape; integers one more and one less; tables reversed or rolled."""
    now = site.attributes.get("literal")
    if now is None:
        return
    for other in site.bench.constants(site.shape(site.operation.results[0])):
        yield from _literal(site, np.asarray(other).astype(now.dtype), f"verifies if it is {_short(other)}, as in the baseline")
    if now.dtype.kind in "iu" and now.size == 1:
        for number in (int(now.flat[0]) + 1, int(now.flat[0]) - 1):
            if np.iinfo(now.dtype).min <= number <= np.iinfo(now.dtype).max:
                yield from _literal(site, np.full_like(now, number), f"verifies if it is {number}")
    elif now.ndim == 1:
        for words, table in (
            ("reversed", now[::-1]),
            ("sorted", np.sort(now)),
            ("rolled back", np.roll(now, -1)),
            ("rolled on", np.roll(now, 1)),
        ):
            yield from _literal(site, table, f"verifies if the table is {words}")


def _literal(site: Site, data: npt.NDArray[Any], remedy: str) -> Iterator[Edit]:
    if data.shape == site.attributes["literal"].shape and not (data == site.attributes["literal"]).all():
        yield from site.having(f"the constant {site.name} is not the baseline's", remedy, literal=data)


def _short(data: object) -> str:
    text = str(np.asarray(data).tolist())
    return text if len(text) <= 40 else text[:37] + "..."


def _braces(dims: Sequence[int]) -> str:
    return str(tuple(dims)).replace("(", "{").replace(")", "}").replace(",}", "}").replace(" ", "")
