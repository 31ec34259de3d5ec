"""Llama-like decoders of any size, as a baseline and a tensor-parallel module, with the relation between them.

One function writes both programs: the baseline is the program of one device of a mesh of size 1, without collectives. So the pair is
right by construction in the manner of Megatron-LM: column-parallel q, k, v, gate and up, row-parallel o and down followed by an
all-reduce, KV heads repeated when there are more devices than KV heads, vocabulary-parallel head.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scalify.hlo.module import Frame, Location
from tests.support.builder import Builder

if TYPE_CHECKING:
    from scalify.hlo.module import Module

SOURCE = "decoder.py"
EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes of a decoder; ``batch`` and ``sequence`` are those of the prompt."""

    layers: int = 2
    hidden: int = 512
    intermediate: int = 1408
    heads: int = 64
    kv_heads: int = 8
    head_dim: int = 16
    vocabulary: int = 1024
    batch: int = 3
    sequence: int = 24
    dtype: str = "f32"


LLAMA_405B = Config(
    layers=126,
    hidden=16384,
    intermediate=53248,
    heads=128,
    kv_heads=8,
    head_dim=128,
    vocabulary=128256,
    sequence=8192,
    batch=1,
    dtype="bf16",
)


def generate(config: Config, tp: int) -> tuple[Module, Module, str]:
    """Baseline, distributed module for ``tp`` devices, and the text of the relation file.

    Raises:
        ValueError: ``tp`` does not divide heads, intermediate size or vocabulary.
    """
    if any(size % tp for size in (config.heads, config.intermediate, config.vocabulary)):
        raise ValueError(
            f"tp {tp} does not divide heads {config.heads}, intermediate {config.intermediate} or vocabulary {config.vocabulary}"
        )
    if max(tp, config.kv_heads) % min(tp, config.kv_heads):
        raise ValueError(f"tp {tp} and {config.kv_heads} KV heads do not divide each other")
    baseline, distributed = _Decoder(config, 1), _Decoder(config, tp)
    return baseline.module(), distributed.module(), distributed.relation()


@dataclass
class _Decoder:
    """Writes the program of one device. ``maps`` has the relation entry of each parameter, in order."""

    config: Config
    tp: int
    builder: Builder = field(default_factory=lambda: Builder("decoder"))
    maps: list[str] = field(default_factory=list)
    where: Location | None = None

    @property
    def kv_heads(self) -> int:
        return max(self.config.kv_heads // self.tp, 1)

    def module(self) -> Module:
        c, b = self.config, self.builder
        ids = self.parameter("s32", (c.batch, c.sequence), "", "ids")
        table = self.parameter(c.dtype, (c.vocabulary, c.hidden), "", "embed")
        cos = self.parameter("f32", (c.sequence, c.head_dim), "", "cos")
        sin = self.parameter("f32", (c.sequence, c.head_dim), "", "sin")
        x = self.embed(ids, table)
        keys_values: list[int] = []
        for layer in range(c.layers):
            x, key, value = self.layer(x, cos, sin, layer)
            keys_values += [key, value]
        x = self.norm(x, "norm", 90)
        head = self.parameter(c.dtype, (c.hidden, c.vocabulary // self.tp), "spec: [null, tp]", "lm_head")
        logits = self.project(x, head, "lm_head", 91)
        return b.build([logits, *keys_values], num_partitions=self.tp)

    def relation(self) -> str:
        """The relation file of this program against the program for one device."""
        entries = [f"  - {{baseline: {n}, distributed: {n}{', ' + m if m else ''}}}" for n, m in enumerate(self.maps)]
        cache = '"b s (kv d) -> [tp=(kv rep)] b s d"' if self.tp > self.config.kv_heads else '"b s (tp k) -> [tp] b s k"'
        outputs = ["  - {baseline: 0, distributed: 0, spec: [null, null, tp]}"]
        outputs += [f"  - {{baseline: {n + 1}, distributed: {n + 1}, map: {cache}}}" for n in range(2 * self.config.layers)]
        head = ["version: 1", f"mesh: {{tp: {self.tp}}}", "inputs:"]
        tail = ["assume:", f"  - {{baseline: 0, range: [0, {self.config.vocabulary}]}}", "sizes:", f"  d: {self.config.head_dim}"]
        return "\n".join([*head, *entries, "outputs:", *outputs, *tail, ""])

    def layer(self, x: int, cos: int, sin: int, layer: int) -> tuple[int, int, int]:
        path = f"model/layers/{layer}"
        attention, key, value = self.attention(self.norm(x, f"{path}/input_norm", 20), cos, sin, f"{path}/self_attn")
        x = self.elementwise("add", x, attention)
        mlp = self.mlp(self.norm(x, f"{path}/post_norm", 24), f"{path}/mlp")
        return self.elementwise("add", x, mlp), key, value

    def attention(self, x: int, cos: int, sin: int, path: str) -> tuple[int, int, int]:
        c = self.config
        kv = "spec: [null, tp]" if self.tp <= c.kv_heads else 'map: "h (kv d) -> [tp=(kv rep)] h d"'
        local, kv_local = c.heads // self.tp * c.head_dim, self.kv_heads * c.head_dim
        q = self.project(x, self.parameter(c.dtype, (c.hidden, local), "spec: [null, tp]", f"{path}/q"), path, 31)
        k = self.project(x, self.parameter(c.dtype, (c.hidden, kv_local), kv, f"{path}/k"), path, 32)
        v = self.project(x, self.parameter(c.dtype, (c.hidden, kv_local), kv, f"{path}/v"), path, 33)
        group = c.heads // self.tp // self.kv_heads
        queries = self.rope(self.reshape(q, (c.batch, c.sequence, self.kv_heads, group, c.head_dim)), cos, sin, path, 35)
        keys = self.rope(self.reshape(k, (c.batch, c.sequence, self.kv_heads, c.head_dim)), cos, sin, path, 36)
        values = self.reshape(v, (c.batch, c.sequence, self.kv_heads, c.head_dim))
        mixed = self.mix(self.softmax(self.scores(queries, keys, path), path), values, path)
        o = self.parameter(c.dtype, (local, c.hidden), "spec: [tp]", f"{path}/o")
        key_rows = self.reshape(keys, (c.batch, c.sequence, kv_local))
        return self.reduce_over_mesh(self.project(mixed, o, path, 45), path, 46), key_rows, v

    def scores(self, queries: int, keys: int, path: str) -> int:
        """[batch, kv, query position, group, key position], scaled and causal."""
        c, b = self.config, self.builder
        self.at(path, 38)
        group = b.shape(queries).dims[3]
        dims = (c.batch, self.kv_heads, c.sequence, group, c.sequence)
        raw = self.dot(queries, keys, dims, batch=((0, 2), (0, 2)), contract=((4,), (3,)))
        scores = self.convert(raw, "f32")
        scores = self.elementwise("multiply", scores, self.scalar(c.head_dim**-0.5, dims))
        row = b.add("iota", "s32", dims, iota_dimension=2, location=self.where)
        column = b.add("iota", "s32", dims, iota_dimension=4, location=self.where)
        mask = b.add("compare", "pred", dims, [row, column], direction="GE", location=self.where)
        return b.add("select", "f32", dims, [mask, scores, self.scalar(-1e30, dims)], location=self.where)

    def softmax(self, scores: int, path: str) -> int:
        self.at(path, 40)
        top = self.spread(self.reduce("maximum", scores, 4, float("-inf")), scores, 4)
        exps = self.elementwise("exponential", self.elementwise("subtract", scores, top))
        total = self.spread(self.reduce("add", exps, 4, 0.0), exps, 4)
        return self.convert(self.elementwise("divide", exps, total), self.config.dtype)

    def mix(self, weights: int, values: int, path: str) -> int:
        c, b = self.config, self.builder
        self.at(path, 42)
        group = b.shape(weights).dims[3]
        dims = (c.batch, self.kv_heads, c.sequence, group, c.head_dim)
        mixed = self.dot(weights, values, dims, batch=((0, 1), (0, 2)), contract=((4,), (1,)))
        order = (c.batch, c.sequence, self.kv_heads, group, c.head_dim)
        moved = b.add("transpose", c.dtype, order, [mixed], dimensions=(0, 2, 1, 3, 4), location=self.where)
        return self.reshape(moved, (c.batch, c.sequence, self.kv_heads * group * c.head_dim))

    def rope(self, x: int, cos: int, sin: int, path: str, line: int) -> int:
        """Rotary embedding of the last dimension; dimension 1 is the position."""
        b = self.builder
        self.at(path, line)
        wide = self.convert(x, "f32")
        dims = b.shape(wide).dims
        half = dims[-1] // 2
        parts = [self.slice_last(wide, 0, half), self.slice_last(wide, half, 2 * half)]
        turned = b.add(
            "concatenate", "f32", dims, [self.elementwise("negate", parts[1]), parts[0]], dimensions=(len(dims) - 1,), location=self.where
        )
        kept = self.elementwise("multiply", wide, b.broadcast(cos, dims, (1, len(dims) - 1), location=self.where))
        moved = self.elementwise("multiply", turned, b.broadcast(sin, dims, (1, len(dims) - 1), location=self.where))
        return self.convert(self.elementwise("add", kept, moved), self.config.dtype)

    def mlp(self, x: int, path: str) -> int:
        c = self.config
        local = c.intermediate // self.tp
        gate = self.project(x, self.parameter(c.dtype, (c.hidden, local), "spec: [null, tp]", f"{path}/gate"), path, 51)
        up = self.project(x, self.parameter(c.dtype, (c.hidden, local), "spec: [null, tp]", f"{path}/up"), path, 52)
        active = self.elementwise("multiply", self.elementwise("multiply", gate, self.elementwise("logistic", gate)), up)
        down = self.parameter(c.dtype, (local, c.hidden), "spec: [tp]", f"{path}/down")
        return self.reduce_over_mesh(self.project(active, down, path, 54), path, 55)

    def norm(self, x: int, path: str, line: int) -> int:
        c, b = self.config, self.builder
        weight = self.parameter(c.dtype, (c.hidden,), "", f"{path}/weight")
        self.at(path, line)
        wide = self.convert(x, "f32")
        squares = self.reduce("add", self.elementwise("multiply", wide, wide), 2, 0.0)
        dims = b.shape(squares).dims
        mean = self.elementwise("multiply", squares, self.scalar(1 / c.hidden, dims))
        scale = self.elementwise("rsqrt", self.elementwise("add", mean, self.scalar(EPSILON, dims)))
        scaled = self.convert(self.elementwise("multiply", wide, self.spread(scale, wide, 2)), c.dtype)
        return self.elementwise("multiply", scaled, b.broadcast(weight, b.shape(x).dims, (2,), location=self.where))

    def embed(self, ids: int, table: int) -> int:
        c, b = self.config, self.builder
        self.at("model/embed", 10)
        column = self.reshape(ids, (c.batch, c.sequence, 1))
        shape = (c.batch, c.sequence, c.hidden)
        return b.add(
            "gather", c.dtype, shape, [table, column], location=self.where, offset_dims=(2,), collapsed_slice_dims=(0,), start_index_map=(0,),
            index_vector_dim=2, slice_sizes=(1, c.hidden),
        )  # fmt: skip

    def project(self, x: int, weight: int, path: str, line: int) -> int:
        self.at(path, line)
        dims = (*self.builder.shape(x).dims[:-1], self.builder.shape(weight).dims[1])
        return self.dot(x, weight, dims, batch=((), ()), contract=((2,), (0,)))

    def reduce_over_mesh(self, x: int, path: str, line: int) -> int:
        if self.tp == 1:
            return x
        self.at(path, line)
        b, dtype = self.builder, self.builder.shape(x).dtype
        groups = (tuple(range(self.tp)),)
        return b.add("all-reduce", b.shape(x), (), [x], calls=[b.reducer("add", dtype)], replica_groups=groups, location=self.where)

    def dot(
        self,
        x: int,
        y: int,
        dims: tuple[int, ...],
        *,
        batch: tuple[tuple[int, ...], tuple[int, ...]],
        contract: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> int:
        return self.builder.add(
            "dot", self.config.dtype, dims, [x, y], location=self.where, lhs_batch_dims=batch[0], rhs_batch_dims=batch[1],
            lhs_contracting_dims=contract[0], rhs_contracting_dims=contract[1],
        )  # fmt: skip

    def reduce(self, opcode: str, x: int, dimension: int, initial: float) -> int:
        b, shape = self.builder, self.builder.shape(x)
        dims = shape.dims[:dimension] + shape.dims[dimension + 1 :]
        start = b.constant(shape.dtype, initial, location=self.where)
        return b.add(
            "reduce", shape.dtype, dims, [x, start], calls=[b.reducer(opcode, shape.dtype)], dimensions=(dimension,), location=self.where
        )

    def spread(self, x: int, like: int, dimension: int) -> int:
        """Broadcast ``x`` along the dimension of ``like`` that it lacks."""
        dims = self.builder.shape(like).dims
        return self.builder.broadcast(x, dims, tuple(d for d in range(len(dims)) if d != dimension), location=self.where)

    def slice_last(self, x: int, start: int, limit: int) -> int:
        dims = self.builder.shape(x).dims
        cut = (*dims[:-1], limit - start)
        starts, limits = (0,) * (len(dims) - 1) + (start,), (*dims[:-1], limit)
        return self.builder.add("slice", "f32", cut, [x], starts=starts, limits=limits, strides=(1,) * len(dims), location=self.where)

    def scalar(self, value: float, dims: tuple[int, ...]) -> int:
        return self.builder.broadcast(self.builder.constant("f32", value, location=self.where), dims, location=self.where)

    def convert(self, x: int, dtype: str) -> int:
        shape = self.builder.shape(x)
        return x if shape.dtype == dtype else self.builder.add("convert", dtype, shape.dims, [x], location=self.where)

    def reshape(self, x: int, dims: tuple[int, ...]) -> int:
        return self.builder.add("reshape", self.builder.shape(x).dtype, dims, [x], location=self.where)

    def elementwise(self, opcode: str, *operands: int) -> int:
        return self.builder.like(opcode, *operands, location=self.where)

    def parameter(self, dtype: str, dims: tuple[int, ...], relation: str, path: str) -> int:
        self.maps.append(relation)
        return self.builder.parameter(dtype, dims, location=Location(path, ()))

    def at(self, path: str, line: int) -> None:
        """Instructions from here on come from this line."""
        self.where = Location(path, (Frame(SOURCE, line),))
