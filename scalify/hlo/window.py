"""Windows and dimension numbers of ``convolution``, ``reduce-window`` and ``select-and-scatter``.

Source: ``Window`` and ``ConvolutionDimensionNumbers`` of ``xla/xla_data.proto``; XLA's semantics page, "Conv" and "ReduceWindow".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """One dimension of a window, in elements.

    ``pad_low`` and ``pad_high`` may be negative (elements removed). ``lhs_dilate`` is the base's dilation, ``rhs_dilate`` the window's,
    both 1 for none. ``reversal`` says that the window is read backwards along this dimension.
    """

    size: int
    stride: int = 1
    pad_low: int = 0
    pad_high: int = 0
    lhs_dilate: int = 1
    rhs_dilate: int = 1
    reversal: bool = False


@dataclass(frozen=True, slots=True)
class ConvDims:
    """Which dimension of a convolution's input, kernel and output plays which role.

    The n-th entries of the three spatial tuples belong together and to the n-th window dimension.
    """

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]
