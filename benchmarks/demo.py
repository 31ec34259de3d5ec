"""``make demo``: a real graph pair that is right, then a real historical bug of the same framework, found at its line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).parent.parent / "tests" / "cases"
STEPS = (
    (
        "tnx_llamagqa_b3_tp8_context",
        0,
        "Llama as Transformers NeuronX builds it, tensor parallel over 8 devices with grouped-query attention. It is right:",
    ),
    (
        "tnx_llama_collbsh_b2_tp4_context",
        3,
        (
            "The same framework with collectives_layout=BSH. Its gated_mlp reshapes sequence-major rows to\n(batch, sequence, hidden) "
            "without a transpose; results were silently wrong for batches larger than one:"
        ),
    ),
)


def main() -> int:
    """Run both pairs through the command line; 0 when both verdicts are as expected (a bug may also be refuted, status 1)."""
    good = True
    for name, expected, story in STEPS:
        case = Path("tests", "cases", name)
        command = [
            "scalify",
            "verify",
            *(str(case / f"{side}.hlo.pb") for side in ("baseline", "distributed")),
            "--relation",
            str(case / "relation.yaml"),
        ]
        print(f"\n{story}\n\n$ {' '.join(command)}", flush=True)
        status = subprocess.run([sys.executable, "-m", *command], cwd=CASES.parent.parent, check=False).returncode
        print(f"exit status {status}", flush=True)
        good &= status == expected or (expected == 3 and status == 1)
    if not good:
        print("\ndemo: a verdict is not the expected one", file=sys.stderr)
    return int(not good)


if __name__ == "__main__":
    raise SystemExit(main())
