"""Reports for the tests of renderings."""

from __future__ import annotations

from scalify.hlo.module import Frame
from scalify.report.model import (
    Finding,
    Inputs,
    Kind,
    Output,
    Place,
    Report,
    Severity,
    Stats,
    Stopped,
    StopReason,
    Verdict,
)

HOSTILE = "x\x1b[31m\u202e<script>alert(1)</script> [bold]b[/bold] `|` @someone #12\n# head [a](http://evil) ![i](//evil)"
"""Text of a graph that tries every rendering: escape sequences, bidirectional overrides, HTML, console markup, Markdown, line breaks."""


def verified() -> Report:
    outputs = tuple(Output(n, Verdict.VERIFIED) for n in range(3))
    return Report(
        Verdict.VERIFIED, outputs, assumptions=("numbers are read as reals",), stats=Stats(40, 60, 0, 0, {"read": 0.012, "lift": 1.5}, 64.0)
    )


def unverified(text: str = "layers/0/mlp", repeats: int = 32) -> Report:
    """One unproved output of three, two findings; ``text`` stands wherever a graph can put text."""
    stack = tuple(Frame(f"/home/user/frame{n}.py" if n else text, 10 + n, f"function{n}" if n else text) for n in range(9))
    missing = Finding(
        Kind.MISSING_REDUCTION,
        Severity.ERROR,
        f"the sum over tp of this value is missing: {text}",
        Place("multiply.214", "multiply", "modeling_llama.py", 312, stack, text),
        Place("multiply.12", "multiply", "modeling_llama.py", 300),
        repeats,
        "verifies if an all-reduce over tp follows line 214",
    )
    narrow = Finding(Kind.PRECISION, Severity.WARNING, text, Place(text, "add"))
    return Report(
        Verdict.UNVERIFIED,
        (Output(0, Verdict.UNVERIFIED), Output(1, Verdict.VERIFIED), Output(2, Verdict.VERIFIED)),
        (missing, narrow),
        assumptions=(text,),
        stats=Stats(1700, 2200, 3, 1, {"read": 0.12}, 120.5),
        stopped=Stopped(StopReason.LIMIT, text, "nodes", 40000),
        inputs=Inputs(text, ("distributed.hlo.pb",), "relation.yaml"),
    )
