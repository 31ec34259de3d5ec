"""The transfer functions with what each states and how it is checked: one entry an opcode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from scalify.prove.proof.opcodes import cases, cases_of_sums, congruence
from scalify.prove.proof.opcodes.checks import Tally, check
from scalify.prove.proof.opcodes.operation import Operation
from scalify.prove.proof.opcodes.specification import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

Cases = Callable[[], Iterator[Operation]]
KIND = "exhaustive"


@dataclass(frozen=True)
class Transfer:
    """What the transfer function of an opcode states. ``operations`` None: the opcode is an uninterpreted function."""

    opcode: str
    family: str
    statement: str
    operations: Cases | None = None

    def check(self, every: int = 1) -> Tally:
        """The check, of every n-th operation only where asked; the definition must say something of some operation."""
        if self.operations is None:
            return congruence.check_variants(congruence.VARIANTS[self.opcode]())
        found = check(islice(self.operations(), 0, None, every))
        if not found.wrong and not found.checked:
            found.wrong = "no operation was lifted"
        return found


def _elementwise(opcode: str) -> str:
    return f"{opcode} of the operands' elements at the same index, over the reals; integers modulo 2^bits"


_ELEMENTWISE: dict[str, Cases] = {
    **{o: partial(cases.elementwise, o) for o in (*cases.UNARY, *cases.BINARY, *cases.INTEGER_UNARY, *cases.INTEGER_BINARY, "compare")},
    **{o: partial(cases.complex_parts, o) for o in ("real", "imag", "complex")},
    "select": cases.select,
    "clamp": cases.clamp,
    "convert": cases.convert,
}
_MOVEMENT: dict[str, tuple[Cases, str]] = {
    "constant": (cases.constant, "result[i] = literal[i]"),
    "iota": (cases.iota, "result[i] = i[iota_dimension]"),
    "partition-id": (partial(cases.device_id, "partition-id"), "the number of the device's partition"),
    "replica-id": (partial(cases.device_id, "replica-id"), "the number of the device's replica"),
    "broadcast": (cases.broadcast, "result[i] = x[i[dimensions]]"),
    "transpose": (cases.transpose, "result[i] = x[j], j[dimensions[k]] = i[k]"),
    **{o: (partial(cases.reshape, o), "result[i] = x[j] with the same row-major position") for o in ("reshape", "bitcast", "copy")},
    "slice": (cases.slices, "result[i] = x[start + i stride]"),
    "reverse": (cases.reverse, "result[i] = x[n - 1 - i] along the dimensions"),
    "concatenate": (cases.concatenate, "result[i] = the operand that position i falls into, at what is left of it"),
    "pad": (cases.pad, "result[low + i (interior + 1)] = x[i], the padding value elsewhere"),
}
_SUMS: dict[str, tuple[Cases, str]] = {
    "dot": (cases_of_sums.dot, "result[b, l, r] = sum_k x[b, l, k] y[b, r, k]"),
    "reduce": (cases_of_sums.reduce, "result[i] = the reducer over x[i, k] for all k, and the initial value"),
    "reduce-window": (
        cases_of_sums.reduce_window,
        "result[i] = the reducer over x[i stride + k - low] for k in the window, and the initial value",
    ),
    "convolution": (
        cases_of_sums.convolution,
        "result[b, f, i] = sum_{c,k} x[b, c, (i stride + k dilation - low) / base] w[f, c, k], groups apart",
    ),
}
_INDEXING: dict[str, tuple[Cases, str]] = {
    "gather": (cases_of_sums.gather, "result[b, o] = x[clamp(start[b]) + o]"),
    "scatter": (cases_of_sums.scatter, "result[i] = x[i] combined with all updates whose window fits and lands on i"),
    "dynamic-slice": (cases_of_sums.dynamic_slice, "result[i] = x[clamp(start) + i]"),
    "dynamic-update-slice": (cases_of_sums.dynamic_update_slice, "result[i] = update[i - clamp(start)] inside of it, else x[i]"),
}
_COLLECTIVES: dict[str, tuple[Cases, str]] = {
    "all-reduce": (cases_of_sums.all_reduce, "on each device the reducer over its group"),
    "all-gather": (cases_of_sums.all_gather, "the group's operands one after the other along the dimension, in the group's order"),
    "reduce-scatter": (
        cases_of_sums.reduce_scatter,
        "the reducer over the group, of which each device keeps the part of its number in the group",
    ),
    "all-to-all": (cases_of_sums.all_to_all, "part j of the device of number i goes to part i of the device of number j"),
    "collective-permute": (cases_of_sums.collective_permute, "each target has the operand of its source, others have 0"),
    "collective-broadcast": (
        cases_of_sums.collective_broadcast,
        "each device has the operand of the first of its group, those in none have 0",
    ),
}
_OPAQUE = "an uninterpreted function: equal exactly when operands, attributes and computation are, separately for each index of the other dimensions"


def _entries() -> Iterator[Transfer]:
    for opcode, operations in _ELEMENTWISE.items():
        yield Transfer(opcode, "elementwise", _elementwise(opcode), operations)
    for family, entries in (("movement", _MOVEMENT), ("contraction", _SUMS), ("indexing", _INDEXING), ("collective", _COLLECTIVES)):
        for opcode, (operations, statement) in entries.items():
            yield Transfer(opcode, family, statement, operations)
    for opcode in congruence.VARIANTS:
        yield Transfer(opcode, "opaque", _OPAQUE)


TRANSFERS: Mapping[str, Transfer] = {t.opcode: t for t in _entries()}
assert set(TRANSFERS) - set(congruence.VARIANTS) <= set(DEFINITIONS)
