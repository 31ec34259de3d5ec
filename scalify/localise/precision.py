"""Where the distributed graph computes, stores or reduces in a narrower type than the baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.hlo.dtypes import DTYPES

if TYPE_CHECKING:
    from scalify.lift.lifter import Lifter
    from scalify.lift.program import Operation
    from scalify.lift.terms import Term


def _bits(dtype: str) -> int:
    known = DTYPES.get(dtype)
    return known.bits if known is not None and known.is_float else 0


def narrowed(baseline: Lifter, distributed: Lifter, count: int) -> list[tuple[Operation, str, str]]:
    """``(operation, its type, the baseline's)`` for the first operation of each chain that is narrower than every baseline value of its term."""
    widths: dict[Term, tuple[int, str]] = {}
    for operation in baseline.program.operations[:count]:
        for result in operation.results:
            _note(widths, baseline, result)
    flagged: set[int] = set()
    found = []
    for operation in distributed.program.operations:
        for result in operation.results:
            wider = _wider(widths, distributed, result)
            if wider is None:
                if (
                    any(o in flagged for o in operation.operands)
                    and _bits(distributed.dtype(result))
                    and not _known(widths, distributed, result)
                ):
                    flagged.add(result)
                continue
            if not any(o in flagged for o in operation.operands):
                found.append((operation, distributed.dtype(result), wider))
            flagged.add(result)
    return found


def _note(widths: dict[Term, tuple[int, str]], lifter: Lifter, value: int) -> None:
    dtype = lifter.dtype(value)
    bits = _bits(dtype)
    if not bits:
        return
    for view in lifter.values[value].views:
        if view.term.kind != "one" and (view.term not in widths or bits < widths[view.term][0]):
            widths[view.term] = (bits, dtype)


def _known(widths: dict[Term, tuple[int, str]], lifter: Lifter, value: int) -> bool:
    return any(v.term in widths for v in lifter.values[value].views)


def _wider(widths: dict[Term, tuple[int, str]], lifter: Lifter, value: int) -> str | None:
    bits = _bits(lifter.dtype(value))
    if not bits:
        return None
    for view in lifter.values[value].views:
        found = widths.get(view.term)
        if found is not None and bits < found[0]:
            return found[1]
    return None
