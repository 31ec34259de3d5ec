"""Relation files to typed entries; every mistake names file, line and key.

The language is described in :mod:`scalify.relation`; here only form is checked. What an entry means for given modules, and whether
it contradicts them, is settled in :mod:`scalify.relation.resolve`.
"""

from __future__ import annotations

import difflib
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from scalify.errors import RelationError
from scalify.relation.einops import is_name, parse_map
from scalify.relation.file import AssumeText, Data, Entry, Place, Reference, RelationFile, Spec, StepText
from scalify.relation.syntax import MAX_CHARACTERS, Mapping, Node, Scalar, Sequence, describe, read_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TOP_KEYS = ("version", "mesh", "device_ids", "inputs", "outputs", "assume", "sizes", "baseline_mesh")
STEP_KEYS = ("map", "spec", "pad")
KNOWN_KEYS = ("value", "per_device", "device_index")
COPY_KEYS = (*STEP_KEYS, "steps", "baseline_slice", "distributed_slice")
ENTRY_KEYS = ("baseline", "distributed", "module", *COPY_KEYS, *KNOWN_KEYS, "ignore")
ASSUME_KEYS = ("baseline", "distributed", "range")
MAX_DEVICES = 1 << 17
MAX_STEPS = 64
MAX_SIZE = 1 << 48
"""Sizes and bounds beyond this are typing mistakes; products of a few of them must stay cheap."""

T = TypeVar("T")


def read(path: str | Path) -> RelationFile:
    """Read a relation file.

    Raises:
        RelationError: the file cannot be read, is not UTF-8, or is malformed.
    """
    where = str(path)
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_CHARACTERS + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise RelationError(f"cannot be read: {error.strerror}", where) from None
    except UnicodeDecodeError as error:
        raise RelationError(f"is not UTF-8 text (byte {error.start}); a relation file is YAML", where) from None
    return parse(text, where)


def parse(text: str, where: str = "relation") -> RelationFile:
    """Parse the text of a relation file; ``where`` names it in errors.

    Raises:
        RelationError: malformed; the message names line and key.
    """
    root = read_tree(text, where)
    place = Place(where, root.line)
    top = _mapping(root, place, TOP_KEYS)
    lines = {str(key): line for key, line in top.lines.items()}

    def field(key: str, build: Callable[[Node, Place], T], default: T) -> T:
        return build(top.items[key], Place(where, lines[key], key)) if key in top.items else default

    identity = "baseline_mesh" in top.items  # entries then default to the identity on each device
    for key in ("version", "mesh", *(() if identity else ("inputs", "outputs"))):
        if key not in top.items:
            raise RelationError(f"`{key}` is missing; a relation file needs version, mesh, inputs and outputs", where)
    field("version", _version, default=None)
    none: tuple[tuple[str, int], ...] = ()
    mesh = field("mesh", _mesh, none)
    return RelationFile(
        name=where,
        mesh=mesh,
        device_ids=field("device_ids", lambda n, p: _device_ids(n, p, prod(size for _, size in mesh)), default=None),
        inputs=field("inputs", _entries, default=()),
        outputs=field("outputs", _entries, default=()),
        assume=field("assume", _assumptions, default=()),
        sizes=field("sizes", _sizes, default={}),
        same_mesh=field("baseline_mesh", _baseline_mesh, default=False),
        lines=lines,
    )


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A hint that ends an error: the nearest valid name, or all of them."""
    valid = list(names)
    near = difflib.get_close_matches(name[:100], valid[:2000], n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"valid: {', '.join(valid[:20])}" if valid else "there is none"


# -- top level --------------------------------------------------------------------------------------------------------
def _version(node: Node, place: Place) -> None:
    if not isinstance(node, Scalar) or node.value != 1 or isinstance(node.value, bool):
        raise place.error(f"must be 1, not {describe(node)}")


def _mesh(node: Node, place: Place) -> tuple[tuple[str, int], ...]:
    mapping = _mapping(node, place)
    if not mapping.items:
        raise place.error("needs at least one axis, such as {tp: 8}")
    axes = []
    for key, item in mapping.items.items():
        at = Place(place.file, mapping.lines[key], f"mesh.{key}")
        if not isinstance(key, str) or not is_name(key):
            raise at.error("an axis name is letters, digits and underscores, and starts with a letter")
        axes.append((key, _integer(item, at, low=1, high=MAX_DEVICES)))
    if prod(size for _, size in axes) > MAX_DEVICES:
        raise place.error(f"has more than {MAX_DEVICES} devices")
    return tuple(axes)


def _device_ids(node: Node, place: Place, count: int) -> tuple[int, ...]:
    ids = tuple(_integer(item, place, low=0, high=MAX_SIZE) for item in _list(node, place))
    if len(ids) != count:
        raise place.error(f"lists {len(ids)} devices, but the mesh has {count} positions")
    seen: set[int] = set()
    for device in ids:
        if device in seen:
            raise place.error(f"device {device} stands twice")
        if device >= count:
            raise place.error(f"device {device} is outside of 0 to {count - 1}, the devices of the mesh")
        seen.add(device)
    return ids


def _sizes(node: Node, place: Place) -> dict[str, int]:
    mapping = _mapping(node, place)
    found: dict[str, int] = {}
    for key, item in mapping.items.items():
        at = Place(place.file, mapping.lines[key], f"sizes.{key}")
        if not isinstance(key, str) or not is_name(key):
            raise at.error("a factor name is letters, digits and underscores, and starts with a letter")
        found[key] = _integer(item, at, low=1, high=MAX_SIZE)
    return found


def _baseline_mesh(node: Node, place: Place) -> bool:
    if not isinstance(node, Scalar) or node.value != "same":
        raise place.error(f"the only value is `same`, not {describe(node)}")
    return True


def _assumptions(node: Node, place: Place) -> tuple[AssumeText, ...]:
    return tuple(_assumption(item, Place(place.file, item.line, f"assume[{i}]")) for i, item in enumerate(_list(node, place)))


def _assumption(node: Node, place: Place) -> AssumeText:
    mapping = _mapping(node, place, ASSUME_KEYS)
    sides = [key for key in ("baseline", "distributed") if key in mapping.items]
    if len(sides) != 1 or "range" not in mapping.items:
        raise place.error("needs `baseline` or `distributed`, and `range: [low, high]`")
    at = _inside(place, mapping, "range")
    low, high = _pair(mapping.items["range"], at, low=-MAX_SIZE * MAX_SIZE, high=MAX_SIZE * MAX_SIZE)
    if low >= high:
        raise at.error(f"[{low}, {high}] is empty; the range is half-open, low < high")
    return AssumeText(place, sides[0], _reference(mapping.items[sides[0]], _inside(place, mapping, sides[0])), low, high)


# -- entries ----------------------------------------------------------------------------------------------------------
def _entries(node: Node, place: Place) -> tuple[Entry, ...]:
    return tuple(_entry(item, Place(place.file, item.line, f"{place.key}[{i}]")) for i, item in enumerate(_list(node, place)))


def _entry(node: Node, place: Place) -> Entry:
    mapping = _mapping(node, place, ENTRY_KEYS)
    _check_combination(mapping, place)
    is_output = place.key.startswith("outputs")

    def field(key: str, build: Callable[[Node, Place], T], default: T) -> T:
        return build(mapping.items[key], _inside(place, mapping, key)) if key in mapping.items else default

    if is_output and any(key in mapping.items for key in KNOWN_KEYS):
        raise place.error("a result is related to the baseline, it cannot be given as data")
    if not is_output and "ignore" in mapping.items:
        raise _inside(place, mapping, "ignore").error("only results can be ignored; an input needs a relation or a value")
    return Entry(
        place=place,
        lines={str(key): line for key, line in mapping.lines.items()},
        baseline=field("baseline", _reference, default=None),
        distributed=field("distributed", _references, default=None),
        module=field("module", lambda n, p: _integer(n, p, low=0, high=MAX_DEVICES), default=None),
        baseline_slice=field("baseline_slice", _ranges, default={}),
        distributed_slice=field("distributed_slice", _ranges, default={}),
        steps=_steps(mapping, place),
        value=field("value", _data, default=None),
        per_device=field("per_device", lambda n, p: [_data(i, p) for i in _list(n, p)], default=None),
        device_index=field("device_index", _axis_names, default=None),
        ignore=field("ignore", _true, default=False),
    )


def _check_combination(mapping: Mapping, place: Place) -> None:
    """Keys that exclude or need each other."""
    present = [key for key in ENTRY_KEYS if key in mapping.items]
    known = [key for key in present if key in KNOWN_KEYS]
    copy = [key for key in present if key in COPY_KEYS]
    sides = [key for key in present if key in ("baseline", "distributed")]
    if not sides:
        raise place.error("needs `baseline`, `distributed` or both")
    excluded = [key for key in copy if key != "distributed_slice" or "distributed" not in present]
    if len(known) > 1 or (known and excluded):
        first, second = known[0], (known[1:] or excluded)[0]
        raise _inside(place, mapping, second).error(f"cannot stand beside `{first}`: the data is known already")
    if "ignore" in present:
        if known or copy:
            raise _inside(place, mapping, (known or copy)[0]).error("cannot stand beside `ignore`")
        return
    if not known and len(sides) != 2:
        missing = "distributed" if sides == ["baseline"] else "baseline"
        raise place.error(f"`{missing}` is missing; an entry relates both sides, unless it has value, per_device, device_index or ignore")
    if "steps" in present and any(key in present for key in STEP_KEYS):
        raise place.error("`steps` holds the maps and paddings; map, spec and pad cannot stand beside it")


def _steps(mapping: Mapping, place: Place) -> tuple[StepText, ...]:
    if "steps" in mapping.items:
        at = _inside(place, mapping, "steps")
        steps = tuple(
            _step(_mapping(item, at, STEP_KEYS), Place(place.file, item.line, "steps")) for item in _list(mapping.items["steps"], at)
        )
        if not 1 <= len(steps) <= MAX_STEPS:
            raise at.error(f"needs 1 to {MAX_STEPS} steps, not {len(steps)}")
        return steps
    if any(key in mapping.items for key in STEP_KEYS):
        return (_step(mapping, place),)
    return ()


def _step(mapping: Mapping, place: Place) -> StepText:
    if not any(key in mapping.items for key in STEP_KEYS):
        raise place.error("a step needs map, spec or pad")
    if "map" in mapping.items and "spec" in mapping.items:
        raise _inside(place, mapping, "spec").error("cannot stand beside `map`; it is a shorthand for one")
    parsed = spec = None
    at = place
    if "map" in mapping.items:
        at = _inside(place, mapping, "map")
        text = _string(mapping.items["map"], at, 'a map such as "h (tp k) -> [tp] h k"')
        try:
            parsed = parse_map(text)
        except RelationError as error:
            raise at.error(error.message) from None
    elif "spec" in mapping.items:
        at = _inside(place, mapping, "spec")
        spec = _spec(mapping.items["spec"], at)
    elif "pad" in mapping.items:
        at = _inside(place, mapping, "pad")
    dims, factors = _padding(mapping, place)
    return StepText(at, parsed, spec, dims, factors)


def _padding(mapping: Mapping, place: Place) -> tuple[dict[int, tuple[int, int]], dict[str, tuple[int, int]]]:
    if "pad" not in mapping.items:
        return {}, {}
    at = _inside(place, mapping, "pad")
    dims: dict[int, tuple[int, int]] = {}
    factors: dict[str, tuple[int, int]] = {}
    for key, item in _mapping(mapping.items["pad"], at).items.items():
        pair = _pair(item, at, low=0, high=MAX_SIZE)
        if isinstance(key, int):
            dims[key] = pair
        elif is_name(key):
            factors[key] = pair
        else:
            raise at.error(f"keys are dimension numbers or factor names, not {key!r}")
    return dims, factors


def _spec(node: Node, place: Place) -> Spec:
    if not isinstance(node, Sequence):
        raise place.error(f"must be a list with an entry for each dimension, such as [null, tp], not {describe(node)}")
    return tuple(() if isinstance(item, Scalar) and item.value is None else _axis_names(item, place) for item in node.items)


def _axis_names(node: Node, place: Place) -> tuple[str, ...]:
    items = node.items if isinstance(node, Sequence) else [node]
    return tuple(_string(item, place, "a mesh axis or a list of them") for item in items)


def _references(node: Node, place: Place) -> Reference | tuple[Reference | None, ...]:
    if not isinstance(node, Sequence):
        return _reference(node, place)
    if not node.items:
        raise place.error("is empty; a list has a parameter for each module")
    return tuple(None if isinstance(i, Scalar) and i.value is None else _reference(i, place) for i in node.items)


def _reference(node: Node, place: Place) -> Reference:
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
        return node.value
    if isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return _integer(node, place, low=0, high=MAX_SIZE)
    raise place.error(f"must be a number from 0 or a name, not {describe(node)}")


def _data(node: Node, place: Place) -> Data:
    """Nested lists of numbers; the depth is bounded by the reader."""
    if isinstance(node, Sequence):
        return [_data(item, place) for item in node.items]
    if isinstance(node, Mapping) or node.value is None or isinstance(node.value, str):
        raise Place(place.file, node.line, place.key).error(f"must be a number, a boolean or nested lists of them, not {describe(node)}")
    return node.value


def _ranges(node: Node, place: Place) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for key, item in _mapping(node, place).items.items():
        if not isinstance(key, int):
            raise place.error(f"keys are dimension numbers, not {key!r}")
        low, high = _pair(item, place, low=0, high=MAX_SIZE)
        if low >= high:
            raise place.error(f"[{low}, {high}] of dimension {key} is empty; ranges are half-open")
        found[key] = (low, high)
    return found


# -- leaves -----------------------------------------------------------------------------------------------------------
def _inside(place: Place, mapping: Mapping, key: str) -> Place:
    return Place(place.file, mapping.lines.get(key, place.line), key)


def _mapping(node: Node, place: Place, keys: tuple[str, ...] | None = None) -> Mapping:
    if not isinstance(node, Mapping):
        raise place.error("must be a mapping" + (f" with keys {', '.join(keys)}" if keys else "") + f", not {describe(node)}")
    if keys is not None:
        for key, line in node.lines.items():
            if key not in keys:
                raise Place(place.file, line, str(key)).error(f"unknown key; {did_you_mean(str(key), keys)}")
    return node


def _list(node: Node, place: Place) -> list[Node]:
    if not isinstance(node, Sequence):
        raise place.error(f"must be a list, not {describe(node)}")
    return node.items


def _integer(node: Node, place: Place, *, low: int, high: int) -> int:
    if not isinstance(node, Scalar) or not isinstance(node.value, int) or isinstance(node.value, bool):
        raise place.error(f"must be an integer, not {describe(node)}")
    if not low <= node.value <= high:
        raise place.error(f"{node.value} is outside of {low} to {high}")
    return node.value


def _pair(node: Node, place: Place, *, low: int, high: int) -> tuple[int, int]:
    items = _list(node, place)
    if len(items) != 2:
        raise place.error(f"must be two integers [low, high], not {len(items)}")
    return _integer(items[0], place, low=low, high=high), _integer(items[1], place, low=low, high=high)


def _string(node: Node, place: Place, what: str) -> str:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        raise place.error(f"must be {what}, not {describe(node)}")
    return node.value


def _true(node: Node, place: Place) -> bool:
    if not isinstance(node, Scalar) or node.value is not True:
        raise place.error(f"the only value is `true`, not {describe(node)}")
    return True
