"""Lifted operations against their definitions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalify.hlo.dtypes import DTYPES
from scalify.prove.proof.opcodes.elements import Element, Elements, Number
from scalify.prove.proof.opcodes.functions import UnknownError, wrapped
from scalify.prove.proof.opcodes.meaning import Meaning
from scalify.prove.proof.opcodes.operation import Operation, lift
from scalify.prove.proof.opcodes.specification import DEFINITIONS, Arrays, indices

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from scalify.lift.lifter import Lifter
    from scalify.prove.proof.opcodes.specification import Index

MOST_ASSIGNMENTS = 400  #: of numbers to the integer elements of one operation

Place = tuple[int, int, "Index"]  # operand, device, index


@dataclass
class Tally:
    """``checked`` operations agree with the definition; ``opaque`` ones were not lifted, which says nothing and is sound."""

    checked: int = 0
    opaque: int = 0
    wrong: str = ""


def check(operations: Iterator[Operation]) -> Tally:
    """All operations, up to the first that is wrong."""
    tally = Tally()
    for operation in operations:
        wrong = check_operation(operation)
        if wrong is None:
            tally.opaque += 1
        elif wrong:
            tally.wrong = f"{operation}: {wrong}"
            return tally
        else:
            tally.checked += 1
    return tally


def check_operation(operation: Operation) -> str | None:
    """What is wrong with what the lifter makes of an operation: empty when nothing is, None when it was not lifted."""
    pair = lift(operation)
    outputs = pair.distributed.program.outputs[: len(operation.results)]
    for known in _assignments(operation):
        elements = Elements()

        def element(k: int, device: int, index: Index, known: dict[Place, Number] = known, elements: Elements = elements) -> Element:
            return _element(operation, elements, known, k, device, index)

        meaning = Meaning(elements, pair.store, _leaves(operation, pair.baseline, element))
        arrays = Arrays(operation, elements, lambda k, device, index, e=element: _operand(operation, e, k, device, index))  # type: ignore[misc]
        pairs = []
        try:
            for r, output in enumerate(outputs):
                for (device, *index), lifted in meaning.value(pair.distributed.values[output]):
                    defined = DEFINITIONS[operation.opcode](arrays, r, device, tuple(index))
                    pairs.append(_modulo(operation.results[r][0], lifted, defined))
        except UnknownError:
            return None
        wrong = elements.differ(pairs)
        if wrong is not None:
            return wrong + (f" at {known}" if known else "")
    return ""


def _modulo(dtype: str, lifted: Element, defined: Element) -> tuple[Element, Element]:
    """Integers are kept modulo the length of their type's range."""
    known = DTYPES[dtype]
    if known.is_integer and isinstance(lifted, int) and known.minimum is not None and known.maximum is not None:
        lifted = wrapped(lifted, known.minimum, known.maximum)
        defined = wrapped(defined, known.minimum, known.maximum) if isinstance(defined, int) else defined
    return lifted, defined


def _operand(operation: Operation, element: Callable[[int, int, Index], Element], k: int, device: int, index: Index) -> Element:
    """An element of an operand, which may be a constant."""
    found = operation.operands[k].literal
    if found is None:
        return element(k, device, index)
    for i in index:
        found = found[i]
    known: Element = found
    return known


def _element(operation: Operation, elements: Elements, known: dict[Place, Number], k: int, device: int, index: Index) -> Element:
    operand = operation.operands[k]
    if operand.values:
        return known[k, 0 if operand.alike else device, index]
    name = f"x{k}[{device}]{list(index)}"
    return elements.truth(name) if operand.dtype == "pred" else elements.symbol(name)


def _assignments(operation: Operation) -> Iterator[dict[Place, Number]]:
    """Numbers for the integer elements: all combinations, or evenly chosen ones where these are too many."""
    places: list[Place] = []
    choices: list[tuple[Number, ...]] = []
    for k, o in enumerate(operation.operands):
        if o.values:
            own = [(k, d, i) for d in range(1 if o.alike else operation.devices) for i in indices(o.dims)]
            places += own
            choices += [o.values] * len(own)
    total = 1
    for c in choices:
        total *= len(c)
    step = max(1, total // MOST_ASSIGNMENTS) | 1  # odd, so that every number comes up
    for picks in itertools.islice(itertools.product(*choices), 0, None, step):
        yield dict(zip(places, picks, strict=True))


def _leaves(
    operation: Operation, baseline: Lifter, element: Callable[[int, int, Index], Element]
) -> dict[Hashable, Callable[[Index], Element]]:
    """The elements of the baseline's parameters: each block of each, by its slots."""
    found: dict[Hashable, Callable[[Index], Element]] = {}
    parameters = [k for k, o in enumerate(operation.operands) if o.literal is None]
    for p, value in enumerate(baseline.program.parameters):
        layout = baseline.layout_of(value)
        for number, block in enumerate(layout.blocks):
            base = ("parameter", p) if layout.plain else ("parameter", p, number)
            dims = [layout.alternative((d,), block) for d in range(1, len(layout.dims))]

            def leaf(slots: Index, k: int = parameters[p], dims: list[tuple[int, list[tuple[int, int, int]]]] = dims) -> Element:
                device, *index = [offset + sum(slots[s] * stride for s, _, stride in digits) for offset, digits in dims]
                return element(k, device, tuple(index))

            found[base] = leaf
    return found
