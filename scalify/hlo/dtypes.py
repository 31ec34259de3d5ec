"""HLO element types: kind, width, integer range.

Source: ``xla/xla_data.proto`` (``PrimitiveType``) and XLA's shapes page for the names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """An element type. ``kind`` is ``f`` float, ``s`` signed, ``u`` unsigned, ``pred`` or ``c`` complex.

    ``bits`` is the width of one element as XLA counts it when it sizes a bitcast (``pred`` counts 8). ``minimum`` and ``maximum``
    are the range of an integer or of ``pred`` (0 and 1), and None for the other kinds.
    """

    name: str
    kind: str
    bits: int
    minimum: int | None = None
    maximum: int | None = None

    @property
    def is_integer(self) -> bool:
        return self.kind in ("s", "u")

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"


def _integer(kind: str, bits: int) -> DType:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind == "s" else (0, (1 << bits) - 1)
    return DType(f"{kind}{bits}", kind, bits, low, high)


_FLOATS = {
    "f64": 64, "f32": 32, "f16": 16, "bf16": 16,
    "f8e5m2": 8, "f8e4m3": 8, "f8e4m3fn": 8, "f8e4m3b11fnuz": 8, "f8e5m2fnuz": 8, "f8e4m3fnuz": 8, "f8e3m4": 8, "f8e8m0fnu": 8,
    "f4e2m1fn": 4,
}  # fmt: skip

DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        DType("pred", "pred", 8, 0, 1),
        *(_integer(kind, bits) for kind in "su" for bits in (1, 2, 4, 8, 16, 32, 64)),
        *(DType(name, "f", bits) for name, bits in _FLOATS.items()),
        DType("c64", "c", 64),
        DType("c128", "c", 128),
    )
}
"""Every element type that an array may have, by HLO's name."""

COMPLEX_PART = {"c64": "f32", "c128": "f64"}
"""The type of the real and imaginary part of a complex type."""

COMPLEX_OF = {part: whole for whole, part in COMPLEX_PART.items()}
