"""Programs of a range of seeds on both sides; one JSON line for each on standard output."""

from __future__ import annotations

import json
import sys

from scalify.errors import HloError, Undecidable
from scalify.hlo.interpret import evaluate
from scalify.hlo.printer import to_text
from tests.xla.execute import execute
from tests.xla.programs import Program, program
from tests.xla.rounding import Rounded, outside

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
        wrong = outside(shape, ball, other, "XLA") or outside(shape, ball, value, "float64")
        if wrong:
            source = p.module.entry.instructions[root.operands[number]]
            return "differ", f"{source.name} {shape}: {wrong}"
    return "agree", ""


def main() -> None:
    """Compares the programs of the seeds from the first argument up to the second."""
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        p = program(seed)
        outcome, message = compared(p)
        print(json.dumps({"seed": seed, "outcome": outcome, "message": message, "families": p.families}), flush=True)


if __name__ == "__main__":
    main()
