"""Graph files and relation files damaged: cut short, bits flipped, fields and words exchanged, in bytes, in text and in YAML."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml
from google.protobuf.message import DecodeError

from scalify.hlo.load import load_bytes
from scalify.hlo.opcodes import OPCODES
from scalify.hlo.printer import to_text
from scalify.hlo.schema import message

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from tests.support.fuzz.outcome import Input

NUMBERS = (0, 1, 2, 3, -1, 7, 64, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))
WORDS = [
    "f32",
    "s32",
    "pred",
    "c64",
    "add",
    "reduce",
    "while",
    "all-reduce",
    "dot",
    "tuple",
    "token[]",
    "{",
    "}",
    "(",
    ")",
    ",",
    "[0]",
    "[]",
    "{}",
    "<=",
    "%",
    "ROOT",
    "=",
    "/*",
]
VALUES: tuple[Any, ...] = (
    -1,
    0,
    1,
    3,
    10**6,
    10**20,
    None,
    "tp",
    ["tp"],
    {},
    [],
    1.5,
    True,
    [0, 10**12],
    {0: [0, 5]},
    "a b -> [tp] a b",
    float("inf"),
    [[1, 2], [3]],
)
KEYS = ("map", "spec", "pad", "value", "per_device", "device_index", "baseline_slice", "distributed_slice", "steps", "ignore", "module")


def damaged(rnd: Random, given: Input) -> Input:
    """One of the files damaged. The graphs must be given as bytes."""
    way = rnd.choice([proto, text, relation])
    if way is relation:
        return replace(given, relation=relation(rnd, given.relation))
    assert isinstance(given.baseline, bytes)
    hurt = proto if way is proto else text
    if rnd.random() < 0.4:
        return replace(given, baseline=hurt(rnd, given.baseline))
    graphs = list(given.distributed)
    k = rnd.randrange(len(graphs))
    one = graphs[k]
    assert isinstance(one, bytes)
    graphs[k] = hurt(rnd, one)
    return replace(given, distributed=graphs)


def proto(rnd: Random, data: bytes) -> bytes:
    """Bytes lost or changed; or, mostly, an instruction changed so that the file can still be read."""
    way = rnd.random()
    if way < 0.05:
        return data[: rnd.randrange(len(data))]
    if way < 0.15:
        changed = bytearray(data)
        for _ in range(rnd.choice([1, 3, 20])):
            changed[rnd.randrange(len(data))] ^= 1 << rnd.randrange(8)
        return bytes(changed)
    module = message("HloModuleProto").FromString(data)
    for _ in range(rnd.randint(1, 3)):
        rows = rnd.choice(module.computations).instructions
        _change(rnd, rnd.choice(rows), rnd.choice(rows))
    result: bytes = module.SerializeToString()
    return result


def _change(rnd: Random, one: Any, other: Any) -> None:
    match rnd.randrange(7):
        case 0:
            one.shape = other.shape
        case 1:
            one.opcode = rnd.choice([other.opcode, rnd.choice(sorted(OPCODES))])
        case 2 if one.operand_ids:
            one.operand_ids[rnd.randrange(len(one.operand_ids))] = other.id
        case 3:
            one.operand_ids.append(other.id)
        case 4:
            one.shape = _other_dims(rnd, one.shape)
        case _:
            _field(rnd, one)


def _other_dims(rnd: Random, data: bytes) -> bytes:
    try:
        shape = message("ShapeProto").FromString(data)
    except DecodeError:
        return data
    if shape.dimensions:
        shape.dimensions[rnd.randrange(len(shape.dimensions))] = rnd.choice(NUMBERS)
    result: bytes = shape.SerializeToString()
    return result


def _field(rnd: Random, one: Any) -> None:
    """Another number somewhere in the instruction itself; bytes of another field or of none."""
    field = rnd.choice([f for f, _ in one.ListFields()])
    value = getattr(one, field.name)
    values = value if field.is_repeated else [value]
    new = (
        rnd.choice(NUMBERS[:7])
        if isinstance(values[0], int)
        else rnd.choice([values[0] * 2, values[0][:-1], type(values[0])()])
        if isinstance(values[0], (str, bytes))
        else None
    )
    if new is None:
        one.ClearField(field.name)
    elif field.is_repeated:
        value[rnd.randrange(len(value))] = abs(new) if isinstance(new, int) else new
    else:
        setattr(
            one,
            field.name,
            abs(new) if isinstance(new, int) and not isinstance(new, bool) else bool(new) if isinstance(value, bool) else new,
        )


def text(rnd: Random, data: bytes) -> bytes:
    """The graph as text with numbers, words, names and lines changed."""
    lines = to_text(load_bytes(data, "file"))
    for _ in range(rnd.choice([1, 1, 2, 4])):
        lines = _text(rnd, lines) or "x"
    return lines.encode()


def _text(rnd: Random, written: str) -> str:
    rows = written.split("\n")
    k = rnd.randrange(len(rows))
    match rnd.randrange(7):
        case 0:
            return written[: rnd.randrange(len(written))] if rnd.random() < 0.2 else written
        case 1:
            return _exchanged(rnd, written, r"\d+", lambda old: str(rnd.choice([*NUMBERS, int(old[:18]) + 1, int(old[:18]) - 1])))
        case 2:
            return "\n".join(rows[:k] + rows[k + 1 :])
        case 3:
            other = rnd.randrange(len(rows))
            rows[k], rows[other] = rows[other], rows[k]
            return "\n".join(rows)
        case 4:
            return _exchanged(rnd, written, r"[a-z][\w-]*", lambda _: rnd.choice(WORDS))
        case 5:
            at = rnd.randrange(len(written))
            return written[:at] + rnd.choice(WORDS) + written[at:]
        case _:
            names = re.findall(r"%[\w.-]+", written)
            return _exchanged(rnd, written, r"%[\w.-]+", lambda _: rnd.choice(names))


def _exchanged(rnd: Random, written: str, pattern: str, new: Callable[[str], str]) -> str:
    found = list(re.finditer(pattern, written))
    if not found:
        return written
    one = rnd.choice(found)
    return written[: one.start()] + new(one[0]) + written[one.end() :]


def relation(rnd: Random, written: str) -> str:
    """The relation file with characters changed, or with entries of another meaning."""
    if rnd.random() < 0.3:
        at = rnd.randrange(len(written))
        return (
            written[:at] + rnd.choice([*map(str, VALUES), "(", ")", " ", "\n", "-", ":", "'", "["]) + written[at + rnd.choice([0, 1, 3]) :]
        )
    tree = yaml.safe_load(written)
    for _ in range(rnd.choice([1, 1, 2, 3])):
        _meaning(rnd, tree)
    return yaml.safe_dump(tree, default_flow_style=None)


def _meaning(rnd: Random, tree: dict[str, Any]) -> None:
    entries = [*tree["inputs"], *tree["outputs"]]
    match rnd.randrange(9):
        case 0:
            tree["mesh"][rnd.choice([*tree["mesh"], "x"])] = rnd.choice([0, 1, 2, 3, 16, 1000, 10**6, 10**12, -1])
        case 1:
            tree["device_ids"] = rnd.sample(range(8), 8)[: rnd.choice([1, 2, 4, 8])] + rnd.choice([[], [-1], [99], [0]])
        case 2 if tree["inputs"]:
            del tree["inputs"][rnd.randrange(len(tree["inputs"]))]
        case 3 if tree["outputs"]:
            tree["outputs"].append(dict(rnd.choice(tree["outputs"])))
        case 4:
            tree["baseline_mesh"] = rnd.choice(["same", "x", 3])
        case 5:
            tree["assume"] = [{"baseline": rnd.choice([0, 1, 50]), "range": rnd.choice([[0, 1], [5, 1], [0, 10**30], [-5, 5]])}]
        case 6:
            tree["sizes"] = {rnd.choice(["d", "h", "k", "tp"]): rnd.choice([0, 1, 3, 64, 10**15, -2])}
        case _ if entries:
            _entry(rnd, rnd.choice(entries))


def _entry(rnd: Random, entry: dict[str, Any]) -> None:
    key = rnd.choice([*entry, *KEYS])
    if key in {"value", "device_index", "per_device"}:
        for old in ("baseline", "map", "spec", "pad"):
            entry.pop(old, None)
    if key == "map" and isinstance(entry.get("map"), str):
        words = entry["map"].split(" ")
        entry["map"] = " ".join(rnd.sample(words, len(words)))
    elif key == "pad":
        entry["pad"] = {rnd.choice([0, 1, "h", 7]): rnd.choice([[0, 1], [0, 10**9], [0, 1 << 40], [-1, 0], [3]])}
    elif key in {"baseline_slice", "distributed_slice"}:
        entry[key] = {rnd.choice([0, 1]): rnd.choice([[0, 1], [1, 2], [0, 0], [2, 1], [0, 10**12]])}
    else:
        entry[key] = rnd.choice(VALUES)


def cases(folder: Path, largest: int) -> list[Input]:
    """The graph pairs below a folder whose files are all smaller than ``largest`` bytes."""
    from tests.support.fuzz.outcome import Input  # noqa: PLC0415

    found = []
    for case in sorted(folder.iterdir()):
        graphs = sorted(case.glob("*.hlo.pb")) if case.is_dir() else []
        if len(graphs) > 1 and all(g.stat().st_size < largest for g in graphs):
            found.append(Input(graphs[0].read_bytes(), [g.read_bytes() for g in graphs[1:]], (case / "relation.yaml").read_text()))
    return found
