"""One instruction executed by the reference interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.interpret import run
from scalify.hlo.module import Shape
from tests.support.builder import Builder
from tests.support.domains import check_domains

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[Any]

MOST_COMPARED = 300
"""Elements of operands and results that are also computed in the slower domains."""


def evaluate(
    opcode: str,
    result: Shape | tuple[str, tuple[int, ...]],
    operands: Sequence[tuple[str, Array]],
    *,
    devices: int = 1,
    calls: Callable[[Builder], Sequence[str]] | None = None,
    partitions: int | None = None,
    replicas: int = 1,
    arithmetic: str = "f64",
    **attributes: Any,
) -> list[Array]:
    """The results of ``opcode`` on all devices, which all domains agree on. Operands are ``(dtype, [devices, *dims])``; ``calls`` makes the called computations."""
    b = Builder()
    values = [b.parameter(dtype, np.shape(x)[1:]) for dtype, x in operands]
    shape = result if isinstance(result, Shape) else Shape(*result)
    root = b.add(opcode, shape, (), values, calls=calls(b) if calls else (), **attributes)
    module = b.build(root, num_partitions=devices if partitions is None else partitions, num_replicas=replicas)
    inputs = [np.asarray(x) for _, x in operands]
    results = run(module, inputs, devices, arithmetic=arithmetic)
    if arithmetic == "f64" and sum(x.size for x in (*inputs, *results)) < MOST_COMPARED:
        check_domains(module, inputs, devices)
    return results


def single(opcode: str, result: Shape | tuple[str, tuple[int, ...]], operands: Sequence[tuple[str, Array]], **more: Any) -> Array:
    """The only result of ``opcode`` on one device; operands and result without the device axis."""
    only: Array = evaluate(opcode, result, [(d, np.asarray(x)[None]) for d, x in operands], **more)[0][0]
    return only


def tuple_shape(*parts: tuple[str, tuple[int, ...]]) -> Shape:
    return Shape("tuple", (), tuple(Shape(dtype, dims) for dtype, dims in parts))
