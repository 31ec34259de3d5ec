"""The map language: ``"(kv d) h -> [tp=(kv rep)] d h"``.

Left: the dimensions of the source; parentheses group the factors of one dimension, major to minor; ``1`` is a dimension of size 1.
Right: in brackets what each mesh axis is made of, then the dimensions of the result. ``...`` on the left stands for dimensions without
names; on the right for the left's dimensions as far as no other place of the right names their factors.
Source: einops (Rogozhnikov, ICLR 2022) for the notation, extended by mesh axes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scalify.errors import RelationError

ELLIPSIS = "..."
Group = tuple[str, ...]
"""Factors of one dimension or mesh axis, major to minor; empty for size 1."""

_TOKEN = re.compile(r"\s*(->|\.\.\.|[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[()\[\]=+]|\S)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MAX_LENGTH = 4_000


@dataclass(frozen=True, slots=True)
class Map:
    """A parsed map. ``axes`` are the mesh axes in brackets, in the order written; ``partial`` those marked ``+``.

    A ``...`` is the group ``("...",)`` until :meth:`expand` replaces it.
    """

    text: str
    left: tuple[Group, ...]
    right: tuple[Group, ...]
    axes: tuple[tuple[str, Group], ...] = ()
    partial: tuple[str, ...] = ()
    bracket: bool = False

    def expand(self, rank: int) -> Map:
        """The map without ``...`` for a source of ``rank`` dimensions.

        Raises:
            RelationError: the map's left side does not have ``rank`` dimensions.
        """
        left = self._expand_left(rank)
        named = {name for group in (*self.right, *(g for _, g in self.axes)) for name in group}
        rest = tuple(kept for group in left if (kept := tuple(n for n in group if n not in named)) or not group)
        right = tuple(g for group in self.right for g in (rest if group == (ELLIPSIS,) else (group,)))
        expanded = Map(self.text, left, right, self.axes, self.partial, self.bracket)
        _check_factors(expanded)
        return expanded

    def _expand_left(self, rank: int) -> tuple[Group, ...]:
        fixed = len(self.left) - ((ELLIPSIS,) in self.left)
        if fixed > rank or (fixed < rank and (ELLIPSIS,) not in self.left):
            raise RelationError(
                f"the left side has {fixed} dimension{'s' * (fixed != 1)}, but {rank} {'are' if rank != 1 else 'is'} to be mapped"
            )
        rest = tuple((f"dim {i}",) for i in range(rank - fixed))
        return tuple(g for group in self.left for g in (rest if group == (ELLIPSIS,) else (group,)))


def show(group: Group) -> str:
    """A group as written."""
    return group[0] if len(group) == 1 else f"({' '.join(group)})" if group else "1"


def is_name(text: str) -> bool:
    """Whether ``text`` can name a factor or a mesh axis."""
    return bool(_NAME.match(text))


def parse_map(text: str) -> Map:
    """Parse a map.

    Raises:
        RelationError: a syntax error, with its column; the place is left to the caller.
    """
    if len(text) > MAX_LENGTH:
        raise RelationError(f"longer than {MAX_LENGTH} characters")
    return _Parser(text).parse()


class _Parser:
    """One token of look-ahead; no recursion, since groups do not nest."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [(m.group(1), m.start(1) + 1) for m in _TOKEN.finditer(text)]
        self.next = 0

    @property
    def word(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def error(self, message: str) -> RelationError:
        if self.next < len(self.tokens):
            return RelationError(f"{message} at column {self.tokens[self.next][1]} of {self.text!r}")
        return RelationError(f"{message} at the end of {self.text!r}")

    def take(self, expected: str) -> None:
        if self.word != expected:
            raise self.error(f"expected `{expected}`, found {f'`{self.word}`' if self.word else 'nothing'}")
        self.next += 1

    def parse(self) -> Map:
        left = self.dimensions(stop="->")
        self.take("->")
        bracket = self.word == "["
        axes, partial = self.brackets() if bracket else ((), ())
        right = self.dimensions(stop="")
        for side in (left, right):
            if side.count((ELLIPSIS,)) > 1:
                raise RelationError(f"`...` stands twice on one side of {self.text!r}")
        return Map(self.text, left, right, axes, partial, bracket)

    def dimensions(self, stop: str) -> tuple[Group, ...]:
        groups = []
        while self.word != stop:
            if not self.word:
                raise self.error("expected `->`, found nothing")
            groups.append(self.dimension())
        return tuple(groups)

    def dimension(self) -> Group:
        if self.word == "[":
            raise self.error("brackets stand once, first on the right side; found `[`")
        if self.word == "...":
            self.next += 1
            return (ELLIPSIS,)
        return self.group()

    def group(self) -> Group:
        if self.word != "(":
            return self.factor()
        self.next += 1
        names: Group = ()
        while self.word != ")":
            names += self.factor()
        self.next += 1
        return names

    def factor(self) -> Group:
        word = self.word
        if word.isdigit() and word != "1":
            raise self.error(f"found the number {word}; name the factor and give its size under `sizes`")
        if word != "1" and not is_name(word):
            raise self.error(f"expected a factor name, `1` or a group, found {f'`{word}`' if word else 'nothing'}")
        self.next += 1
        return () if word == "1" else (word,)

    def brackets(self) -> tuple[tuple[tuple[str, Group], ...], tuple[str, ...]]:
        self.take("[")
        axes: list[tuple[str, Group]] = []
        partial: list[str] = []
        while self.word != "]":
            plus = self.word == "+"
            self.next += plus
            if not is_name(self.word):
                raise self.error(f"expected a mesh axis or `]`, found {f'`{self.word}`' if self.word else 'nothing'}")
            axis, group = self.axis()
            if axis in partial or axis in dict(axes):
                raise RelationError(f"mesh axis {axis} stands twice in the brackets of {self.text!r}")
            if plus and group != (axis,):
                raise RelationError(f"a partial axis is written +{axis} alone; {axis}={show(group)} cannot be summed over")
            if plus:
                partial.append(axis)
            else:
                axes.append((axis, group))
        self.next += 1
        return tuple(axes), tuple(partial)

    def axis(self) -> tuple[str, Group]:
        axis = self.word
        self.next += 1
        if self.word != "=":
            return axis, (axis,)
        self.next += 1
        return axis, self.group()


def _check_factors(parsed: Map) -> None:
    """Every factor of the left goes to exactly one place; nothing is named twice."""
    left = [name for group in parsed.left for name in group]
    right = [name for group in (*(g for _, g in parsed.axes), *parsed.right) for name in group]
    for side, names in (("left", left), ("right", right)):
        twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
        if twice is not None:
            raise RelationError(f"factor {twice} stands twice on the {side} side of {parsed.text!r}")
    lost = [name for name in left if name not in set(right)]
    if lost:
        raise RelationError(
            f"factor {lost[0]} of the left side is lost on the right side of {parsed.text!r}; name it there, or in the brackets"
        )
