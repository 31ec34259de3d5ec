"""Scanning of HLO text: white space, names, strings, balanced brackets. Nesting is counted, never recursed into.

Source: ``xla/hlo/parser/hlo_lexer.cc``.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from scalify.errors import HloError

_STRING: Final = r'"(?:[^"\\]++|\\.)*+"'
_COMMENT: Final = r"/\*.*?\*/|//[^\n]*"

SPACE: Final = re.compile(rf"(?:\s++|{_COMMENT})*+", re.DOTALL)
STRING: Final = re.compile(_STRING, re.DOTALL)
NAME: Final = re.compile(rf"%?(?:([\w.\-]+)|({_STRING}))", re.DOTALL)

# One level of braces, with strings: most attribute values, taken in one step.
_FLAT: Final = re.compile(rf'\{{(?:[^{{}}\[\]()"/]++|{_STRING})*+\}}', re.DOTALL)
_PIECE: Final = re.compile(rf'[^"(){{}}\[\]/]++|{_STRING}|{_COMMENT}|[(){{}}\[\]/]', re.DOTALL)
_BARE: Final = re.compile(r'[^\s,{}()\[\]"]+')
_CLOSER: Final = {"(": ")", "[": "]", "{": "}"}

_ESCAPE: Final = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_UNSAFE: Final = re.compile(r"""[\\"'\x00-\x1f\x7f]""")
_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def unquote(text: str) -> str:
    r"""The value of a string with its quotes, C escapes resolved; bytes that are not UTF-8 are written ``\\xNN``."""
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    return _ESCAPE.sub(_unescape, inner.encode("utf-8", "surrogatepass")).decode("utf-8", "backslashreplace")


def _unescape(match: re.Match[bytes]) -> bytes:
    hexadecimal, octal, letter = match.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    return bytes([int(hexadecimal, 16) if hexadecimal else int(octal, 8) & 255])


def quote(text: str) -> str:
    """``text`` as a string that :func:`unquote` takes back."""
    return '"' + _UNSAFE.sub(lambda match: _SHORT.get(match[0], f"\\{ord(match[0]):03o}"), text) + '"'


class Scanner:
    """A position in a text, and what can be read from there. ``where`` names the file in errors."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        self.position = 0

    def error(self, message: str, position: int | None = None) -> HloError:
        """An error at ``position``, else here. What it quotes of the text may have line ends; the message has none."""
        return HloError(" ".join(message.splitlines()), self.place(self.position if position is None else position))

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        raise self.error(message, position)

    def place(self, position: int) -> str:
        return f"{self.where}: line {self.text.count(chr(10), 0, position) + 1}"

    def skip(self) -> str:
        """Moves over white space and comments; returns the character there, or an empty string at the end."""
        symbol = self.text[self.position : self.position + 1]
        if symbol > " " and symbol != "/":  # the usual case
            return symbol
        match = SPACE.match(self.text, self.position)
        self.position = match.end() if match else self.position
        return self.text[self.position : self.position + 1]

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Matches ``pattern`` here and moves past it."""
        match = pattern.match(self.text, self.position)
        if match is None:
            self._unexpected(what)
        self.position = match.end()
        return match

    def expect(self, symbol: str) -> None:
        self.skip()
        if not self.text.startswith(symbol, self.position):
            self._unexpected(repr(symbol))
        self.position += len(symbol)

    def _unexpected(self, what: str) -> NoReturn:
        found = self.text[self.position : self.position + 30].split("\n", 1)[0]
        self.fail(f"expected {what}, found {found!r}" if found else f"expected {what}")

    def name(self) -> str:
        """A name, with or without ``%``; names with unusual characters stand in quotes."""
        match = self.take(NAME, "a name")
        return match[1] or unquote(match[2])

    def balanced(self) -> str:
        """The text from the bracket here to its partner, both included."""
        start = self.position
        flat = _FLAT.match(self.text, start)
        if flat is not None:
            self.position = flat.end()
            return flat[0]
        expected: list[str] = []
        while True:
            piece = _PIECE.match(self.text, self.position)
            if piece is None:
                self.fail(f"the bracket {self.text[start]!r} is not closed", start)
            self.position = piece.end()
            symbol = piece[0]
            if symbol in _CLOSER:
                expected.append(_CLOSER[symbol])
            elif symbol in (")", "]", "}"):
                if expected.pop() != symbol:
                    self.fail(f"{symbol!r} closes no bracket", piece.start())
                if not expected:
                    return self.text[start : self.position]

    def value(self) -> str:
        """The text of an attribute's value: up to a comma, white space or closing bracket outside of brackets and strings."""
        start = self.position
        while True:
            symbol = self.text[self.position : self.position + 1]
            if symbol in _CLOSER:
                self.balanced()
            elif symbol == '"':
                self.take(STRING, "a closing quote")
            else:
                bare = _BARE.match(self.text, self.position)
                if bare is None:
                    return self.text[start : self.position]
                self.position = bare.end()


def without_comments(text: str) -> str:
    """``text`` without ``/* */`` and ``//`` comments outside of strings."""
    if "/*" not in text and "//" not in text:
        return text
    return "".join(piece for piece in _PIECE.findall(text) if not piece.startswith(("/*", "//")))


def split(text: str, separator: str = ",") -> list[str]:
    """``text`` cut at each ``separator`` outside of brackets and strings, stripped; no part for an empty text."""
    parts, depth, current = [], 0, ""
    for piece in re.findall(rf'{_STRING}|[(){{}}\[\]]|{re.escape(separator)}|[^"(){{}}\[\]{re.escape(separator)}]+|"', text, re.DOTALL):
        if piece == separator and not depth:
            parts.append(current.strip())
            current = ""
            continue
        depth += (piece in "([{") - (piece in ")]}") if len(piece) == 1 else 0
        current += piece
    return [*parts, current.strip()] if parts or current.strip() else []
