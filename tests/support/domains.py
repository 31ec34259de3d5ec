"""One module evaluated in several domains, whose results must be images of each other."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.errors import OverBudget, Undecidable
from scalify.hlo.dtypes import DTYPES
from scalify.hlo.interpret import Evaluation, evaluate

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from scalify.hlo.module import Module, Shape

    Array = npt.NDArray[Any]


def check_domains(module: Module, inputs: Sequence[Array], devices: int) -> set[str]:
    """The domains that could compute the module; asserts that they agree.

    The field must have the image of every rational, if it used nothing but ring operations; floats must be near the rationals.
    """
    # The exact domains have no negative zero.
    if any(((x == 0) & np.signbit(x)).any() for x in inputs if x.dtype.kind == "f"):
        return set()
    found: dict[str, Evaluation] = {}
    for name in ("f64", "rational", "field"):
        with contextlib.suppress(Undecidable, OverBudget):
            found[name] = evaluate(module, inputs, devices, domain=name)
    if "rational" not in found:
        return set(found)
    rational, field = found["rational"], found.get("field")
    finite = all(np.isfinite(x).all() for x in inputs)
    for number, shape in enumerate(module.output_shapes):
        if shape.is_array and (finite or not DTYPES[shape.dtype].is_complex):
            _check_near(shape, rational.outputs[0][number], found["f64"].outputs[0][number])
        if shape.is_array and field is not None and not field.arbitrary:
            _check_image(shape, rational, field, number)
    return set(found)


def _check_image(shape: Shape, rational: Evaluation, field: Evaluation, number: int) -> None:
    images = [e.domain.digest(e.outputs[0][number], shape.dtype) for e in (rational, field)]
    assert images[0].tolist() == images[1].tolist()


def _check_near(shape: Shape, exact: Array, real: Array) -> None:
    kind = DTYPES[shape.dtype]
    if kind.is_integer or kind.kind == "pred":
        # Beyond 2^53 an integer that came from a float was rounded.
        large = np.abs(exact.astype(np.float64)) > 2.0**53
        assert (exact == real)[~large].all()
        np.testing.assert_allclose(real.astype(np.float64), exact.astype(np.float64), rtol=1e-15)
    elif kind.is_complex:
        np.testing.assert_allclose(real.real, exact["re"].astype(np.float64), rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(real.imag, exact["im"].astype(np.float64), rtol=1e-9, atol=1e-6)
    else:
        np.testing.assert_allclose(real, exact.astype(np.float64), rtol=1e-9, atol=1e-6)
