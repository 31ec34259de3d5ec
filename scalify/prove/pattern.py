"""The language of rule patterns: s-expressions over real-valued expressions.

    x               any expression
    *r              in ``+``, ``*`` and ``max``: all other operands, also none
    2, -1/3         a constant
    (+ a b *r)      sum, product ``*`` and greatest ``max`` of operands in any order
    (scale q x)     q times x for a constant; (num q) a constant as an expression; q may be a calculation such as (+ p q)
    (inv x)         reciprocal; (exp x), (log x), (tanh x) ...: the functions of FUNCTIONS
    (select p x y)  x where the 0/1 value p is 1, else y; (ge0 x) is [x >= 0], (eq0 x) is [x = 0]
    (total v x)     sum of x over the index variables v; (greatest v x) the greatest value
    (each (f _) *r) in ``+``, ``*`` and ``max``: f of every operand of r
    (- a b), (- a), (/ a b), (min a b) are short for the above.

Conditions: (positive x), (negative x), (nonneg x), (nonzero x), (boolean x), (integer x), (free v x): x does not depend on v; (< p q), (<= p q), (!= p q) of constants.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from scalify.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST = 40  #: nesting of a pattern
LONGEST = 4000  #: characters of a pattern
LARGEST = 10**18  #: of numerator and denominator of a constant in a pattern

FUNCTIONS = frozenset({
    "exp", "log", "sqrt", "abs", "sign", "logistic", "tanh", "tan", "sine", "cosine", "erf", "cbrt", "floor",
})  # fmt: skip
ARITY = {"inv": 1, "ge0": 1, "eq0": 1, "select": 3, "scale": 2, "num": 1, "total": 2, "greatest": 2, "each": 2} | dict.fromkeys(
    FUNCTIONS, 1
)
COMMUTATIVE = frozenset({"+", "*", "max"})
SUGAR = frozenset({"-", "/", "min"})
PROPERTIES = ("positive", "negative", "nonneg", "nonzero", "boolean", "integer")
COMPARISONS = ("<", "<=", "!=")

_TOKEN = re.compile(
    r"\s*(?:(?P<open>\()|(?P<close>\))|(?P<number>-?\d+(?:/\d+)?)(?=[\s()]|$)|(?P<rest>\*[a-z]\w*)|(?P<name>[a-z_]\w*|[-+*/<!]=?))"
)


@dataclass(frozen=True, slots=True)
class Node:
    """A pattern: ``op`` is an operator, or ``var``, ``rest`` (``name`` set) or ``const`` (``value`` set)."""

    op: str
    args: tuple[Node, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)

    def __iter__(self) -> Iterator[Node]:
        """This node and all below, parents first."""
        stack = [self]
        while stack:
            top = stack.pop()
            yield top
            stack.extend(reversed(top.args))

    def __str__(self) -> str:
        if self.op == "var":
            return self.name
        if self.op == "rest":
            return f"*{self.name}"
        if self.op == "const":
            return str(self.value)
        return f"({' '.join([self.op, *map(str, self.args)])})"


HOLE = Node("var", name="_")


def constant(value: Fraction | int) -> Node:
    """A constant as a node."""
    return Node("const", value=Fraction(value))


def parse(text: str) -> Node:
    """The pattern that a text spells. :raises ConfigError: with what is wrong and where in the text."""
    if len(text) > LONGEST:
        raise ConfigError(f"a pattern of more than {LONGEST} characters")
    tree, end = _read(text, 0, 0)
    if text[end:].strip():
        raise ConfigError(f"unexpected {text[end:].strip()[:20]!r} after the pattern {text[:end].strip()[:40]!r}")
    return tree


def parse_pattern(text: str) -> Node:
    """An expression, with shorthands spelled out."""
    return _spelled(parse(text), text)


def parse_condition(text: str) -> Node:
    """A condition: a property of an expression, independence of index variables, or a comparison of constants."""
    tree = parse(text)
    known = {**dict.fromkeys(PROPERTIES, 1), "free": 2, **dict.fromkeys(COMPARISONS, 2)}
    if tree.op not in known or len(tree.args) != known[tree.op]:
        raise ConfigError(f"unknown condition {text!r}; conditions are {', '.join(known)}")
    if tree.op in COMPARISONS:
        return Node(tree.op, tuple([_calculation(a, text) for a in tree.args]))
    found = Node(tree.op, tuple([_spelled(a, text) for a in tree.args]))
    subject = found.args[-1]
    plain = subject.op in ("var", "rest")
    loose = found.args[0].op != "var" if tree.op == "free" else not _is_difference(subject)
    if (not plain and (tree.op == "free" or loose)) or (tree.op == "free" and loose):
        raise ConfigError(f"a condition speaks of a variable, or of a difference (- x y) of variables, not of {text!r}")
    return found


def _is_difference(tree: Node) -> bool:
    return (
        tree.op == "+"
        and len(tree.args) == 2
        and tree.args[0].op == "var"
        and str(tree.args[1]).startswith("(scale -1 ")
        and tree.args[1].args[1].op == "var"
    )


def _read(text: str, start: int, depth: int) -> tuple[Node, int]:
    match = _TOKEN.match(text, start)
    if match is None or match.lastgroup == "close":
        raise ConfigError(f"expected an expression at {text[start : start + 20]!r} in {text[:60]!r}")
    if depth > DEEPEST:
        raise ConfigError(f"a pattern nested deeper than {DEEPEST}")
    if match.lastgroup == "number":
        return constant(_number(match["number"])), match.end()
    if match.lastgroup == "rest":
        return Node("rest", name=match["rest"][1:]), match.end()
    if match.lastgroup == "name":
        if not re.fullmatch(r"[a-z_]\w*", match["name"]):
            raise ConfigError(f"operator {match['name']!r} without parentheses in {text[:60]!r}")
        return Node("var", name=match["name"]), match.end()
    return _list(text, match.end(), depth)


def _list(text: str, start: int, depth: int) -> tuple[Node, int]:
    head = _TOKEN.match(text, start)
    if head is None or head.lastgroup != "name":
        raise ConfigError(f"expected an operator at {text[start : start + 20]!r} in {text[:60]!r}")
    args = []
    end = head.end()
    while (close := re.compile(r"\s*\)").match(text, end)) is None:
        if not text[end:].strip():
            raise ConfigError(f"missing ) in {text[:60]!r}")
        arg, end = _read(text, end, depth + 1)
        args.append(arg)
    return Node(head["name"], tuple(args)), close.end()


def _number(text: str) -> Fraction:
    if len(text) > 40 or text.endswith("/0") or re.search(r"/0+$", text):
        raise ConfigError(f"{text[:40]!r} is not a constant")
    value = Fraction(text)
    if abs(value.numerator) > LARGEST or value.denominator > LARGEST:
        raise ConfigError(f"the constant {text!r} is too large")
    return value


def _spelled(tree: Node, text: str) -> Node:
    """The tree over the basic operators: constants wrapped, shorthands replaced, constant factors as ``scale``."""
    if tree.op in ("var", "rest"):
        return tree
    if tree.op == "const":
        return Node("num", (tree,))
    if tree.op in ("scale", "num") and len(tree.args) == ARITY[tree.op]:
        return Node(tree.op, (_calculation(tree.args[0], text), *[_spelled(a, text) for a in tree.args[1:]]))
    args = tuple([_spelled(a, text) for a in tree.args])
    if tree.op in COMMUTATIVE and (args or tree.op != "max"):
        return _product(args) if tree.op == "*" and args else Node(tree.op, args)
    if tree.op in SUGAR and 1 <= len(args) <= 2 and (tree.op == "-" or len(args) == 2):
        return _sugar(tree.op, args)
    if ARITY.get(tree.op) != len(args) or any(a.op == "rest" for a in args[: 1 if tree.op == "each" else None]):
        raise ConfigError(f"unknown operator or wrong number of operands: ({tree.op} ...) with {len(args)} in {text[:60]!r}")
    return Node(tree.op, args)


def _product(args: tuple[Node, ...]) -> Node:
    """A product whose constant factors are one ``scale``, as in the normal form of expressions."""
    by = Fraction(1)
    rest = []
    for a in args:
        if a.op == "num" and a.args[0].op == "const":
            by *= a.args[0].value
        else:
            rest.append(a)
    if by == 1 and len(rest) == len(args):
        return Node("*", args)
    inner = rest[0] if len(rest) == 1 and rest[0].op != "rest" else Node("*", tuple(rest))
    return Node("scale", (constant(by), inner)) if rest else Node("num", (constant(by),))


def _negative(a: Node) -> Node:
    if a.op == "num" and a.args[0].op == "const":
        return Node("num", (constant(-a.args[0].value),))
    if a.op == "scale" and a.args[0].op == "const":
        return Node("scale", (constant(-a.args[0].value), a.args[1]))
    return Node("scale", (constant(-1), a))


def _sugar(op: str, args: tuple[Node, ...]) -> Node:
    if op == "min":
        return _negative(Node("max", tuple([_negative(a) for a in args])))
    if op == "/":
        return _product((args[0], Node("inv", (args[1],))))
    return _negative(args[0]) if len(args) == 1 else Node("+", (args[0], _negative(args[1])))


def _calculation(tree: Node, text: str) -> Node:
    """A calculation with constants: a number, a variable, or + - * / of calculations."""
    if tree.op in ("const", "var"):
        return tree
    if tree.op not in ("+", "-", "*", "/") or len(tree.args) not in ((1, 2) if tree.op == "-" else (2,)):
        raise ConfigError(f"{tree} is not a calculation with constants in {text[:60]!r}")
    return Node(tree.op, tuple([_calculation(a, text) for a in tree.args]))
