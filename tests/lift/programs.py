"""Random programs for one device or a mesh, small enough to be executed and evaluated in milliseconds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

MOST_ELEMENTS = 72
MOST_MAGNITUDE = 1 << 45  # float64 then holds every value exactly
MESHES: tuple[dict[str, int], ...] = ({"a": 1}, {"a": 2}, {"a": 4}, {"a": 2, "b": 2}, {"a": 3, "b": 2}, {"a": 2, "b": 2, "c": 2})


class Program:
    """A random program in the making. ``values`` are positions in the builder; ``size[v]`` bounds the magnitude of float v."""

    def __init__(self, rnd: Random, mesh: dict[str, int]) -> None:
        self.rnd = rnd
        self.b = Builder()
        self.mesh = mesh
        self.devices = math.prod(mesh.values())
        self.ids = list(range(self.devices))
        if rnd.random() < 0.3:
            rnd.shuffle(self.ids)
        self.values: list[int] = []
        self.size: dict[int, int] = {}
        self.inputs: list[np.ndarray[Any, Any]] = []
        self.specs: list[tuple[Any, ...]] = []
        self.ranges: dict[int, tuple[int, int]] = {}

    # -- values ------------------------------------------------------------------------------------------------------------
    def dims(self, value: int) -> tuple[int, ...]:
        return self.b.shape(value).dims

    def dtype(self, value: int) -> str:
        return self.b.shape(value).dtype

    def keep(self, value: int, size: int = 1) -> int:
        self.values.append(value)
        self.size[value] = size
        return value

    def choose(self, *dtypes: str, rank: int | None = None) -> int | None:
        found = [v for v in self.values if (not dtypes or self.dtype(v) in dtypes) and (rank is None or len(self.dims(v)) >= rank)]
        return self.rnd.choice(found) if found else None

    def parameter(self, dtype: str, dims: Sequence[int]) -> int:
        spec, whole, axes = [], list(dims), list(self.mesh)
        for d in range(len(dims)):
            mine = tuple(axes.pop(self.rnd.randrange(len(axes))) for _ in range(2) if axes and self.rnd.random() < 0.4)
            spec.append(mine)
            whole[d] *= math.prod(self.mesh[a] for a in mine)
        generator = np.random.default_rng(self.rnd.randrange(1 << 30))
        if dtype == "pred":
            data = generator.integers(0, 2, whole).astype(bool)
        elif dtype == "f32":
            data = generator.integers(-9, 10, whole).astype(float)
        else:
            low, high = self.rnd.choice([(0, 4), (-3, 7), (0, 2), (-100, 100)])
            data = generator.integers(max(low, 0) if dtype == "u8" else low, high, whole)
            if self.rnd.random() < 0.5:
                self.ranges[len(self.inputs)] = (max(low, 0) if dtype == "u8" else low, high)
        self.inputs.append(data)
        self.specs.append(tuple(spec))
        return self.keep(self.b.parameter(dtype, dims), 9)

    def start(self) -> None:
        shapes = [(6,), (2, 3), (4, 2), (2, 2, 3), (1, 4), (5,), (8,), (3, 4)]
        self.parameter("f32", self.rnd.choice(shapes))
        self.parameter("f32", self.rnd.choice(shapes))
        self.parameter("s32", self.rnd.choice([(), (1,), (2,), (4,)]))
        self.parameter(self.rnd.choice(["s32", "u8", "pred"]), self.rnd.choice(shapes))

    def index(self) -> int:
        """A scalar s32: a constant, data, or something made of the device id."""
        kind = self.rnd.randrange(4)
        scalars = [v for v in self.values if self.dtype(v) == "s32" and self.dims(v) == ()]
        if kind == 0 and scalars:
            return self.rnd.choice(scalars)
        if kind == 1:
            table = [self.rnd.randrange(-2, 6) for _ in range(self.devices)]
            row = self.b.add("dynamic-slice", "s32", (1,), [self.b.constant("s32", table), self.device()], dynamic_slice_sizes=(1,))
            return self.b.add("reshape", "s32", (), [row])
        if kind == 2:
            return self.scaled(self.device())
        return self.b.constant("s32", self.rnd.randrange(-2, 6))

    def device(self) -> int:
        return self.b.add("convert", "s32", (), [self.b.add("partition-id", "u32")])

    def scaled(self, value: int) -> int:
        b = self.b
        by = b.constant("s32", self.rnd.choice([1, 2, 3]))
        value = b.like(self.rnd.choice(["multiply", "remainder", "divide"]), value, by)
        return b.like(self.rnd.choice(["add", "subtract"]), value, b.constant("s32", self.rnd.choice([0, 1, 2])))

    def groups(self) -> list[list[int]]:
        """Replica groups: over some mesh axes, over strided devices, or arbitrary ones of equal size."""
        kind = self.rnd.randrange(3)
        if kind == 0:
            return []
        if kind == 1:
            ids = np.array(self.ids).reshape(list(self.mesh.values()))
            axes = [d for d in range(ids.ndim) if self.rnd.random() < 0.6]
            self.rnd.shuffle(axes)
            rest = [d for d in range(ids.ndim) if d not in axes]
            width = math.prod(ids.shape[d] for d in axes)
            return [[int(x) for x in row] for row in ids.transpose(*rest, *axes).reshape(-1, width)]
        order = list(range(self.devices))
        self.rnd.shuffle(order)
        width = self.rnd.choice([w for w in range(1, self.devices + 1) if self.devices % w == 0])
        return [order[k : k + width] for k in range(0, self.devices, width)]
