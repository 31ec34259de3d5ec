"""Programs of a range of seeds on both sides; one JSON line for each on standard output."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import HloError, Undecidable
from scalify.hlo.dtypes import DTYPES
from scalify.hlo.interpret import evaluate
from scalify.hlo.printer import to_text
from tests.xla.execute import execute
from tests.xla.programs import Program, program
from tests.xla.rounding import Rounded

if TYPE_CHECKING:
    import numpy.typing as npt

    from scalify.hlo.module import Shape

    Array = npt.NDArray[Any]

_TYPES = {
    "pred": "bool", "s4": "int4", "u4": "uint4", "s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16", "s32": "int32", "u32": "uint32", "s64": "int64", "u64": "uint64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip


def compared(p: Program) -> tuple[str, str]:
    """(outcome, message): agree, differ, unclear (a comparison depends on rounding), unsupported (by XLA), refused (by the interpreter)."""
    try:
        ours = evaluate(p.module, p.inputs, p.devices, domain=Rounded)
        floats = evaluate(p.module, p.inputs, p.devices)
    except Undecidable as error:
        return "undecidable", str(error)
    except HloError as error:
        return "refused", str(error)
    if "unclear" in ours.arbitrary:
        return "unclear", ""
    try:
        theirs = execute(to_text(p.module), p.inputs, [_TYPES[s.dtype] for s in p.module.parameter_shapes], p.devices)
    except Exception as error:  # noqa: BLE001
        return "unsupported by XLA", f"{type(error).__name__}: {str(error)[:300]}"
    root = p.module.entry.instructions[p.module.entry.root]
    for number, (shape, ball, value, other) in enumerate(
        zip(p.module.output_shapes, ours.outputs[0], floats.outputs[0], theirs, strict=True)
    ):
        wrong = difference(shape, ball, value, other)
        if wrong:
            source = p.module.entry.instructions[root.operands[number]]
            return "differ", f"{source.name} {shape}: {wrong}"
    return "agree", ""


def difference(shape: Shape, ball: Array, value: Array, other: Array) -> str:
    """What does not agree, empty when all does: exactly, or within the ball."""
    kind = DTYPES[shape.dtype]
    if kind.is_integer or kind.kind == "pred":
        return _first(ball == other, value, other, np.zeros(1))
    if kind.is_complex:
        return _parts(ball["re"], value.real, other.real) or _parts(ball["im"], value.imag, other.imag)
    return _parts(ball, value, other)


def _parts(ball: Array, value: Array, other: Array) -> str:
    mid, rad, other = ball["mid"], ball["rad"], other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near, same = _near(mid, rad, other), _near(mid, rad, value)
    return _first(near & same, mid, other, rad)


def _near(mid: Array, rad: Array, other: Array) -> Array:
    near: Array = (other == mid) | (np.isnan(other) & np.isnan(mid)) | (np.abs(other - mid) <= rad) | np.isposinf(rad)
    return near


def _first(good: Array, value: Array, other: Array, rad: Array) -> str:
    if good.all():
        return ""
    place = tuple(int(n) for n in np.argwhere(~good)[0])
    return f"at {place} XLA has {other[place]}, we have {value[place]}, radius {np.broadcast_to(rad, value.shape)[place]}"


def main() -> None:
    """Compares the programs of the seeds from the first argument up to the second."""
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        p = program(seed)
        outcome, message = compared(p)
        print(json.dumps({"seed": seed, "outcome": outcome, "message": message, "families": p.families}), flush=True)


if __name__ == "__main__":
    main()
