"""Makes serialized HLO modules for the reader's tests, field by field, in the words of ``hlo.proto``.

module = hlo([computation([inst(1, "parameter", "f32", (4,)), inst(2, "negate", "f32", (4,), [1])])])
load_bytes(module.SerializeToString(), "test")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scalify.errors import HloError
from scalify.hlo.load import load_bytes
from scalify.hlo.payloads import ELEMENT_TYPES
from scalify.hlo.schema import message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.hlo.module import Instruction, Module

NUMBERS = {name: number for number, name in ELEMENT_TYPES.items()}


def make(kind: str, /, **fields: Any) -> Any:
    return message(kind)(**fields)


def raw(kind: str, /, **fields: Any) -> bytes:
    data: bytes = make(kind, **fields).SerializeToString()
    return data


def shape(dtype: str, dims: Sequence[int] = (), layout: Sequence[int] | None = None, **fields: Any) -> bytes:
    if layout is not None:
        fields["layout"] = make("LayoutProto", minor_to_major=layout)
    return raw("ShapeProto", element_type=NUMBERS[dtype], dimensions=dims, **fields)


def tuple_shape(*elements: bytes) -> bytes:
    return raw("ShapeProto", element_type=NUMBERS["tuple"], tuple_shapes=elements)


def inst(number: int, opcode: str, dtype: str = "f32", dims: Sequence[int] = (), operands: Sequence[int] = (), **fields: Any) -> Any:
    fields.setdefault("name", f"{opcode}.{number}")
    fields.setdefault("shape", shape(dtype, dims))
    return make("HloInstructionProto", id=number, opcode=opcode, operand_ids=operands, **fields)


def computation(instructions: Sequence[Any], number: int = 1, name: str = "main", root: int | None = None) -> Any:
    root_id = instructions[-1].id if root is None else root
    return make("HloComputationProto", name=name, id=number, root_id=root_id, instructions=instructions)


def reducer(number: int, name: str = "sum", opcode: str = "add") -> Any:
    """A scalar reducer whose instruction ids are ``100 * number`` and following."""
    first = 100 * number
    body = [
        inst(first, "parameter"),
        inst(first + 1, "parameter", parameter_number=1),
        inst(first + 2, opcode, operands=[first, first + 1]),
    ]
    return computation(body, number, name)


def hlo(computations: Sequence[Any], **fields: Any) -> Any:
    entry = computations[-1]
    fields = {"name": "test", "entry_computation_name": entry.name, "entry_computation_id": entry.id, **fields}
    return make("HloModuleProto", computations=computations, **fields)


def with_one(instruction: Any, *more: Any, **fields: Any) -> bytes:
    """A serialized module: two parameters (ids 1 and 2, f32[4,8]), a reducer (computation 7), ``more`` computations, and ``instruction``."""
    parameters = [inst(1, "parameter", "f32", (4, 8)), inst(2, "parameter", "f32", (4, 8), parameter_number=1)]
    data: bytes = hlo([reducer(7), *more, computation([*parameters, instruction])], **fields).SerializeToString()
    return data


def read(data: Any) -> Module:
    return load_bytes(data if isinstance(data, bytes) else data.SerializeToString(), "file")


def one(instruction: Any, *more: Any, **fields: Any) -> Instruction:
    return read(with_one(instruction, *more, **fields)).entry.instructions[-1]


def refused(data: Any, message: str) -> None:
    with pytest.raises(HloError, match=message) as caught:
        read(data)
    assert str(caught.value).startswith("file: ")
    assert "\n" not in str(caught.value)
