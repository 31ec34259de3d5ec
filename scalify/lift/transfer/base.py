"""The table of transfer functions and what they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scalify.hlo.dtypes import DTYPES
from scalify.lift.functions import wrap
from scalify.lift.layout import Value

if TYPE_CHECKING:
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation
    from scalify.lift.terms import View

Transfer = Callable[["Lifter", "Operation"], list[Value]]

TRANSFERS: dict[str, Transfer] = {}


class Unsupported(Exception):
    """The operation has no exact lifting here; the result becomes an unknown value of its own."""


def lifts(*opcodes: str) -> Callable[[Transfer], Transfer]:
    """Declares the transfer function of one or several opcodes."""

    def register(transfer: Transfer) -> Transfer:
        for opcode in opcodes:
            TRANSFERS[opcode] = transfer
        return transfer

    return register


def exact(lifter: Lifter, view: View, dtype: str) -> View:
    """The value that an integer of this type really has, for use where arithmetic is not modular.

    Integer views are kept modulo 2^bits: add, subtract and multiply respect that; comparisons, divisions, conversions to wider types and indices do
    not, so a view whose range does not fit the type gets an explicit wrap-around first.
    """
    known = DTYPES[dtype]
    if not known.is_integer or known.minimum is None or known.maximum is None:
        return view
    return wrap(lifter.store, view, known.minimum, known.maximum)


def exact_value(lifter: Lifter, value: Value, dtype: str) -> Value:
    if not DTYPES[dtype].is_integer:
        return value
    return Value(value.layout, tuple([exact(lifter, v, dtype) for v in value.views]))
