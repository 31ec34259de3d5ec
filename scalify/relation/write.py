"""Relation files as YAML text; :func:`~scalify.relation.parse.parse` reads back an equal file, line numbers apart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from scalify.relation.settle import show_spec
from scalify.relation.syntax import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scalify.relation.file import AssumeText, Data, Entry, Reference, RelationFile, StepText


def write(file: RelationFile) -> str:
    """The text of a relation file, one line an entry."""
    lines = ["version: 1", f"mesh: {{{', '.join(f'{quoted(axis)}: {size}' for axis, size in file.mesh)}}}"]
    if file.device_ids is not None and file.device_ids != tuple(range(len(file.device_ids))):
        lines.append(f"device_ids: {list(file.device_ids)}")
    if file.same_mesh:
        lines.append("baseline_mesh: same")
    for key, entries in (("inputs", file.inputs), ("outputs", file.outputs)):
        lines += [f"{key}:", *(f"  - {{{', '.join(_entry(entry))}}}" for entry in entries)] if entries else [f"{key}: []"]
    if file.assume:
        lines += ["assume:", *(f"  - {_assume(text)}" for text in file.assume)]
    if file.sizes:
        lines.append(f"sizes: {{{', '.join(f'{quoted(name)}: {size}' for name, size in file.sizes.items())}}}")
    return "\n".join(lines) + "\n"


def _entry(entry: Entry) -> Iterator[str]:
    if entry.baseline is not None:
        yield f"baseline: {_reference(entry.baseline)}"
    if entry.baseline_slice:
        yield f"baseline_slice: {_ranges(entry.baseline_slice)}"
    if entry.distributed is not None:
        listed = isinstance(entry.distributed, tuple)
        many = entry.distributed if isinstance(entry.distributed, tuple) else (entry.distributed,)
        text = ", ".join("null" if r is None else _reference(r) for r in many)
        yield f"distributed: {f'[{text}]' if listed else text}"
    if entry.module is not None:
        yield f"module: {entry.module}"
    if entry.distributed_slice:
        yield f"distributed_slice: {_ranges(entry.distributed_slice)}"
    if len(entry.steps) == 1:
        yield from _step(entry.steps[0])
    elif entry.steps:
        steps = [f"{{{', '.join(_step(step))}}}" for step in entry.steps]
        yield f"steps: [{', '.join(steps)}]"
    yield from _known(entry)


def _known(entry: Entry) -> Iterator[str]:
    if entry.value is not None:
        yield f"value: {_data(entry.value)}"
    if entry.per_device is not None:
        yield f"per_device: {_data(entry.per_device)}"
    if entry.device_index is not None:
        yield f"device_index: [{', '.join(map(quoted, entry.device_index))}]"
    if entry.ignore:
        yield "ignore: true"


def _step(step: StepText) -> Iterator[str]:
    if step.map is not None:
        yield f"map: {json.dumps(step.map.text)}"
    if step.spec is not None:
        yield f"spec: {show_spec(step.spec)}"
    pads = {**{str(d): p for d, p in step.pad_dims.items()}, **{quoted(n): p for n, p in step.pad_factors.items()}}
    if pads:
        yield f"pad: {_ranges(pads)}"


def _assume(text: AssumeText) -> str:
    return f"{{{text.side}: {_reference(text.parameter)}, range: [{text.low}, {text.high}]}}"


def _ranges(ranges: Mapping[int, tuple[int, int]] | Mapping[str, tuple[int, int]]) -> str:
    return f"{{{', '.join(f'{key}: [{low}, {high}]' for key, (low, high) in ranges.items())}}}"


def _reference(reference: Reference) -> str:
    return str(reference) if isinstance(reference, int) else json.dumps(reference)


def _data(data: Data) -> str:
    if isinstance(data, list):
        return f"[{', '.join(map(_data, data))}]"
    if isinstance(data, bool):
        return str(data).lower()
    text = repr(data)
    return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(text, text)
