"""Makes small HLO modules in a few lines, without a file.

    b = Builder()
    x = b.parameter("f32", (4, 8))
    y = b.parameter("f32", (8, 4))
    z = b.add("dot", "f32", (4, 4), [x, y], lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
    r = b.add("all-reduce", "f32", (4, 4), [z], calls=[b.reducer("add", "f32")], replica_groups=((0, 1), (2, 3)))
    module = b.build(r, num_partitions=4)

Values are positions in the computation being built. Attributes that readers always give get their default here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scalify.hlo.module import Computation, Instruction, Location, Module, ReplicaGroups, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-broadcast", "all-reduce-start", "all-gather-start")
DEFAULTS: dict[str, dict[str, Any]] = {
    "dot": dict.fromkeys(("lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims"), ()),
    "gather": {
        **dict.fromkeys(("offset_dims", "collapsed_slice_dims", "start_index_map"), ()),
        **dict.fromkeys(("operand_batching_dims", "start_indices_batching_dims"), ()),
        "indices_are_sorted": False,
    },
    "scatter": {
        **dict.fromkeys(("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"), ()),
        **dict.fromkeys(("input_batching_dims", "scatter_indices_batching_dims"), ()),
        "indices_are_sorted": False,
        "unique_indices": False,
    },
    **{opcode: {"replica_groups": ()} for opcode in COLLECTIVES},
}
LITERAL_DTYPES = {
    "pred": "bool", "s4": "int8", "u4": "uint8", "s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16", "s32": "int32", "u32": "uint32",
    "s64": "int64", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip


class Builder:
    """One computation in the making; :meth:`computation` starts another one of the same module."""

    def __init__(self, name: str = "main", computations: dict[str, Computation] | None = None) -> None:
        self.name = name
        self.computations = {} if computations is None else computations
        self.instructions: list[Instruction] = []

    def add(
        self,
        opcode: str,
        dtype: str | Shape,
        dims: Sequence[int] = (),
        operands: Sequence[int] = (),
        *,
        calls: Sequence[str] = (),
        name: str | None = None,
        location: Location | None = None,
        control: Sequence[int] = (),
        **attributes: Any,
    ) -> int:
        """Appends an instruction; ``dtype`` may be a whole :class:`Shape` (tuples, tokens), ``dims`` is then unused."""
        shape = dtype if isinstance(dtype, Shape) else Shape(dtype, tuple(dims))
        merged = {**DEFAULTS.get(opcode, {}), **attributes}
        groups = merged.get("replica_groups")
        if groups is not None and not isinstance(groups, ReplicaGroups):
            merged["replica_groups"] = ReplicaGroups(tuple(tuple(g) for g in groups))
        position = len(self.instructions)
        name = name or f"{opcode}.{position}"
        self.instructions.append(Instruction(name, opcode, shape, tuple(operands), merged, tuple(calls), location, tuple(control)))
        return position

    def parameter(self, dtype: str | Shape, dims: Sequence[int] = (), **more: Any) -> int:
        """The next parameter."""
        return self.add("parameter", dtype, dims, index=sum(i.opcode == "parameter" for i in self.instructions), **more)

    def constant(self, dtype: str, value: Any, **more: Any) -> int:
        """A literal (a number, nested lists or an array)."""
        literal = np.asarray(value).astype(LITERAL_DTYPES.get(dtype, "float32"))
        return self.add("constant", dtype, literal.shape, literal=literal, **more)

    def like(self, opcode: str, *operands: int, **more: Any) -> int:
        """An elementwise instruction whose shape is that of its last operand."""
        return self.add(opcode, self.shape(operands[-1]), (), operands, **more)

    def broadcast(self, value: int, dims: Sequence[int], dimensions: Sequence[int] = (), **more: Any) -> int:
        return self.add("broadcast", self.shape(value).dtype, dims, [value], dimensions=tuple(dimensions), **more)

    def tuple(self, *values: int, **more: Any) -> int:
        return self.add("tuple", Shape("tuple", (), tuple(map(self.shape, values))), (), values, **more)

    def get(self, value: int, index: int, **more: Any) -> int:
        return self.add("get-tuple-element", self.shape(value).elements[index], (), [value], index=index, **more)

    def shape(self, value: int) -> Shape:
        return self.instructions[value].shape

    def computation(self, name: str) -> Builder:
        """A builder of another computation of this module; end it with :meth:`end`."""
        return Builder(name, self.computations)

    def end(self, root: int) -> str:
        """Registers the computation under its name, which it returns (for ``calls=[...]``)."""
        self.computations[self.name] = Computation(self.name, tuple(self.instructions), root)
        return self.name

    def reducer(self, opcode: str, dtype: str) -> str:
        """The scalar computation ``opcode(a, b)``, made once for each opcode and type."""
        name = f"{opcode}_{dtype}"
        if name not in self.computations:
            inner = self.computation(name)
            a, b = inner.parameter(dtype), inner.parameter(dtype)
            inner.end(inner.add(opcode, dtype, (), [a, b]))
        return name

    def build(self, root: int | Sequence[int], *, num_partitions: int = 1, num_replicas: int = 1, **more: Any) -> Module:
        """The module whose entry is this computation; several roots become a tuple."""
        root = root if isinstance(root, int) else self.tuple(*root)
        self.end(root)
        return Module(self.name, dict(self.computations), self.name, num_partitions, num_replicas, **more)
