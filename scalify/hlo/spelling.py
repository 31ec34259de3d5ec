"""How each kind of attribute value is spelled in HLO text: one reader and one writer for each kind.

A reader takes the text of the value and raises HloError (without a place) when it does not fit; what the writer makes, the reader takes back.

Source: ``HloParserImpl::ParseAttributeHelper``; ``window_util::ToString``, ``ConvolutionDimensionNumbersToString``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scalify.errors import HloError
from scalify.hlo.attributes import Kind
from scalify.hlo.lexer import quote, split, unquote, without_comments
from scalify.hlo.sharding_text import read_groups, read_lists, read_sharding, write_lists, write_sharding
from scalify.hlo.window import ConvDims, WindowDimension

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scalify.hlo.module import ReplicaGroups

_INTEGER: Final = re.compile(r"-?\d{1,19}\Z")
_WORD: Final = re.compile(r"[\w.\-]+\Z")
_ALIAS: Final = re.compile(r"\{([\d,\s]*)\}\s*:\s*\(\s*(\d{1,9})\s*,\s*\{([\d,\s]*)\}\s*(?:,\s*[\w-]+\s*)?\)")

# Word in a window's text -> fields of WindowDimension.
_WINDOW: Final = {
    "size": ("size",), "stride": ("stride",), "pad": ("pad_low", "pad_high"), "lhs_dilate": ("lhs_dilate",), "rhs_dilate": ("rhs_dilate",),
    "rhs_reversal": ("reversal",),
}  # fmt: skip


def integer(text: str) -> int:
    """A number with sign, of at most 19 digits."""
    if not _INTEGER.match(text):
        raise HloError(f"{text[:40]!r} is not a whole number")
    return int(text)


def read_integers(text: str) -> tuple[int, ...]:
    """``{0,1}``, or a single number."""
    inner = without_comments(text)[1:-1] if text.startswith("{") and text.endswith("}") else text
    return tuple(integer(part.strip()) for part in inner.split(",")) if inner.strip() else ()


def write_integers(values: Sequence[int]) -> str:
    """``{0,1}``."""
    return "{" + ",".join(map(str, values)) + "}"


def _read_bool(text: str) -> bool:
    if text not in ("true", "false", "1", "0"):
        raise HloError(f"{text[:40]!r} is neither true nor false")
    return text in ("true", "1")


def _read_float(text: str) -> float:
    """Every float attribute is an f32 in XLA."""
    try:
        return float(np.float32(text))
    except (ValueError, OverflowError):
        raise HloError(f"{text[:40]!r} is not a number") from None


def read_string(text: str) -> str:
    """A quoted string's value; anything else as it stands."""
    return unquote(text) if len(text) > 1 and text.startswith('"') and text.endswith('"') else text


def _write_word(value: str) -> str:
    return value if _WORD.match(value) else quote(value)


def _read_pairs(text: str) -> tuple[tuple[int, int], ...]:
    pairs = read_lists(without_comments(text))
    if any(len(pair) != 2 for pair in pairs):
        raise HloError(f"{text[:60]!r} is not a list of pairs")
    return tuple((pair[0], pair[1]) for pair in pairs)


def _read_padding(text: str) -> tuple[tuple[int, int, int], ...]:
    return tuple(_edges(part) for part in text.split("x")) if text else ()


def _edges(text: str) -> tuple[int, int, int]:
    numbers = [integer(part) for part in text.split("_")]
    if len(numbers) not in (2, 3):
        raise HloError(f"{text[:40]!r} is not low_high or low_high_interior")
    return numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 0


def _write_padding(value: Sequence[tuple[int, int, int]]) -> str:
    return "x".join(f"{low}_{high}_{interior}" for low, high, interior in value)


def _read_window(text: str) -> tuple[WindowDimension, ...]:
    words = dict(part.split("=", 1) for part in text.strip("{} ").split() if "=" in part)
    unknown = words.keys() - _WINDOW.keys()
    if unknown or len(words) != len(text.strip("{} ").split()):
        raise HloError(f"{text[:60]!r} is not a window")
    rows: list[dict[str, int]] = [{"size": 1} for _ in next(iter(words.values()), "").split("x")] if words else []
    for word, value in words.items():
        parts = value.split("x")
        if len(parts) != len(rows):
            raise HloError(f"{text[:60]!r} speaks of different numbers of dimensions")
        for row, part in zip(rows, parts, strict=True):
            row.update(_window_fields(word, part))
    return tuple(_window_dimension(**row) for row in rows)


def _window_dimension(reversal: int = 0, **numbers: int) -> WindowDimension:
    return WindowDimension(**numbers, reversal=bool(reversal))


def _window_fields(word: str, text: str) -> dict[str, int]:
    numbers = [integer(part) for part in text.split("_")]
    if len(numbers) != len(_WINDOW[word]):
        raise HloError(f"{word}={text[:40]} is not part of a window")
    return dict(zip(_WINDOW[word], numbers, strict=True))


def _write_window(value: Sequence[WindowDimension]) -> str:
    words = []
    for word, names in _WINDOW.items():
        rows = [[int(getattr(w, name)) for name in names] for w in value]
        default = [int(getattr(WindowDimension(1), name)) for name in names]
        if word == "size" or any(row != default for row in rows):
            words.append(f"{word}=" + "x".join("_".join(map(str, row)) for row in rows))
    return "{" + " ".join(words) + "}" if value else "{}"


def _read_conv_dims(text: str) -> ConvDims:
    match = re.fullmatch(r"([\w?]*)_([\w?]*)->([\w?]*)", text)
    if match is None:
        raise HloError(f"{text[:40]!r} is not a list of dimension labels like b01f_01io->b01f")
    left, kernel, result = match.groups()
    a, b = _label(left, "b"), _label(left, "f")
    c, d = _label(kernel, "i"), _label(kernel, "o")
    e, f = _label(result, "b"), _label(result, "f")
    count = len(left) - 2
    return ConvDims(a, b, _spatial(left, count), c, d, _spatial(kernel, count), e, f, _spatial(result, count))


def _label(labels: str, label: str) -> int:
    if labels.count(label) != 1:
        raise HloError(f"the dimension labels {labels[:40]!r} must have {label!r} once")
    return labels.index(label)


def _spatial(labels: str, count: int) -> tuple[int, ...]:
    if len(labels) != count + 2:
        raise HloError(f"the dimension labels {labels[:40]!r} must have {count + 2} entries")
    return tuple(_label(labels, str(k)) for k in range(count))


def _write_conv_dims(value: ConvDims) -> str:
    left = _labels({value.input_batch: "b", value.input_feature: "f"}, value.input_spatial)
    kernel = _labels({value.kernel_input_feature: "i", value.kernel_output_feature: "o"}, value.kernel_spatial)
    result = _labels({value.output_batch: "b", value.output_feature: "f"}, value.output_spatial)
    return f"{left}_{kernel}->{result}"


def _labels(named: dict[int, str], spatial: Sequence[int]) -> str:
    places = named | {d: str(k) for k, d in enumerate(spatial)}
    return "".join(places[d] for d in sorted(places))


def read_strings(text: str) -> dict[str, str]:
    """``{a="b",c={raw}}``: a value in braces stands for its own text."""
    pairs = [part.partition("=") for part in split(text[1:-1])] if text.startswith("{") and text.endswith("}") else [("", "", "")]
    if not all(key and separator for key, separator, _ in pairs):
        raise HloError(f"{text[:60]!r} is not a list of name=value")
    return {read_string(key.strip()): read_string(value.strip()) for key, _, value in pairs}


def _write_strings(value: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{_write_word(key)}={quote(text)}" for key, text in value.items()) + "}"


def read_aliases(text: str) -> tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...]:
    """``{ {0}: (1, {}, may-alias) }``: output index path, operand or parameter number, index path in it."""
    text = without_comments(text)
    if _ALIAS.sub("", text).strip(" \n\t{},") or not (text.startswith("{") and text.endswith("}")):
        raise HloError(f"{text[:60]!r} is not a list of aliases")
    return tuple((read_integers(f"{{{a}}}"), int(number), read_integers(f"{{{b}}}")) for a, number, b in _ALIAS.findall(text))


def write_aliases(value: Sequence[tuple[Sequence[int], int, Sequence[int]]]) -> str:
    """The text that :func:`read_aliases` takes back."""
    return "{ " + ", ".join(f"{write_integers(a)}: ({number}, {write_integers(b)})" for a, number, b in value) + " }"


def _write_groups(value: ReplicaGroups) -> str:
    return write_lists(value.groups)


@dataclass(frozen=True, slots=True)
class Spelling:
    """Reader and writer of one kind of value."""

    read: Callable[[str], Any]
    write: Callable[[Any], str]


SPELLINGS: Final[dict[Kind, Spelling]] = {
    Kind.INT: Spelling(integer, str),
    Kind.INTS: Spelling(read_integers, write_integers),
    Kind.BOOL: Spelling(_read_bool, lambda value: "true" if value else "false"),
    Kind.FLOAT: Spelling(_read_float, repr),
    Kind.WORD: Spelling(read_string, _write_word),
    Kind.STRING: Spelling(read_string, quote),
    Kind.GROUPS: Spelling(lambda text: read_groups(without_comments(text)), _write_groups),
    Kind.PAIRS: Spelling(_read_pairs, write_lists),
    Kind.PADDING: Spelling(_read_padding, _write_padding),
    Kind.WINDOW: Spelling(_read_window, _write_window),
    Kind.CONV_DIMS: Spelling(_read_conv_dims, _write_conv_dims),
    Kind.SHARDING: Spelling(read_sharding, write_sharding),
    Kind.STRINGS: Spelling(read_strings, _write_strings),
    Kind.ALIASES: Spelling(read_aliases, write_aliases),
}
"""How to read and write each kind; literals need their shape and are in :mod:`scalify.hlo.literal_text`."""
