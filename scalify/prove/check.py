"""Machine checks of rules: both sides are evaluated on many small instances that meet the conditions, and on instances that break exactly one.

Numbers are exact rationals as long as no transcendental function occurs. A value may be undefined (a division by 0, the logarithm of a number that is not
positive); the sides then have to be undefined together.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from scalify.prove.pattern import COMMUTATIVE, FUNCTIONS, PROPERTIES, Node

if TYPE_CHECKING:
    from scalify.prove.rule import Rule

Value = Fraction | float
Env = tuple[tuple[str, int], ...]  # index variables and their values
Function = Callable[[Env], Value]  # what a pattern variable stands for

INSTANCES = 60  #: instances of each rule that must agree
ATTEMPTS = 400  #: instances among which a broken condition must show
TOLERANCE = 1e-9


class _Undefined(Exception):
    """The expression has no value here."""


@dataclass
class _Instance:
    """What the names of a rule stand for."""

    expressions: dict[str, Function]
    rests: dict[str, list[Function]]
    constants: dict[str, Fraction]
    indices: dict[str, tuple[tuple[str, int], ...]]  # a set of index variables with their sizes

    def environments(self) -> Iterator[Env]:
        free = [("j", 2), *[pair for pairs in self.indices.values() for pair in pairs]]
        for values in itertools.product(*[range(n) for _, n in free]):
            yield tuple(zip([name for name, _ in free], values, strict=True))


def check(rule: Rule) -> str | None:
    """What is wrong with the rule, None when every instance agrees."""
    if rule.program:
        return _check_program(rule)
    source = random.Random(rule.name)  # noqa: S311 - test data; seeded, so that runs agree
    for _ in range(INSTANCES):
        found = _difference(rule, _instance(rule, source, None))
        if found is not None:
            return found
    return None


def _check_program(rule: Rule) -> str | None:
    if rule.instances is None:
        return "a rule in egglog text without instances"
    for left, right in rule.instances():
        if not _same(left, right):
            return f"the sides are {left} and {right}"
    return None


def needless(rule: Rule) -> list[str]:
    """The conditions whose violation makes no difference on any instance tried: a condition that is needed must not be among them."""
    if rule.program:
        return []
    found = []
    stated = (*rule.when, *rule.assumes)
    for number, condition in enumerate([c for c in rule.conditions if c not in rule.derived[len(rule.when) :]]):
        source = random.Random(f"{rule.name} {number}")  # noqa: S311 - test data
        if not any(_difference(rule, _instance(rule, source, condition)) for _ in range(ATTEMPTS)):
            found.append(stated[number])
    return found


def _difference(rule: Rule, instance: _Instance) -> str | None:
    for env in instance.environments():
        left, right = (_value(side, instance, env) for side in (rule.lhs, rule.rhs))
        if not _same(left, right):
            shown = {name: str(f(env)) for name, f in sorted(instance.expressions.items())}
            shown |= {f"*{name}": str([str(f(env)) for f in fs]) for name, fs in sorted(instance.rests.items())}
            shown |= {name: str(c) for name, c in sorted(instance.constants.items())}
            return f"the sides are {left} and {right} for {', '.join(f'{k} = {v}' for k, v in shown.items())}"
    return None


def _value(side: Node, instance: _Instance, env: Env) -> Value | None:
    try:
        return evaluate(side, instance, env)
    except (_Undefined, OverflowError):
        return None


def _same(left: Value | None, right: Value | None) -> bool:
    if left is None or right is None:
        return left is None and right is None
    return left == right or abs(float(left) - float(right)) <= TOLERANCE * max(1.0, abs(float(left)), abs(float(right)))


# -- evaluation --------------------------------------------------------------------------------------------------------------
def evaluate(node: Node, instance: _Instance, env: Env, hole: Value | None = None) -> Value:
    """The value of a pattern."""
    if node.op == "var":
        if node.name == "_":
            assert hole is not None
            return hole
        return instance.expressions[node.name](env)
    if node.op in COMMUTATIVE:
        return _reduced(node.op, _operands(node, instance, env, hole))
    if node.op == "num":
        return _constant(node.args[0], instance)
    if node.op == "scale":
        return _constant(node.args[0], instance) * evaluate(node.args[1], instance, env, hole)
    if node.op in ("total", "greatest"):
        return _over(node, instance, env, hole)
    args = [evaluate(a, instance, env, hole) for a in node.args]
    return _MEANING[node.op](*args)


def _operands(node: Node, instance: _Instance, env: Env, hole: Value | None) -> list[Value]:
    found: list[Value] = []
    for a in node.args:
        if a.op == "rest":
            found += [f(env) for f in instance.rests[a.name]]
        elif a.op == "each":
            function, rest = a.args
            found += [_each(function, f, instance, env) for f in instance.rests[rest.name]]
        else:
            found.append(evaluate(a, instance, env, hole))
    return found


def _each(function: Node, operand: Function, instance: _Instance, env: Env) -> Value:
    """The function of one operand; under a reduction the operand varies with the index variables."""
    if function.op in ("total", "greatest"):
        pairs = instance.indices[function.args[0].name]
        return _reduced("+" if function.op == "total" else "max", [operand(inner) for inner in _extended(env, pairs)])
    return evaluate(function, instance, env, operand(env))


def _over(node: Node, instance: _Instance, env: Env, hole: Value | None) -> Value:
    pairs = instance.indices[node.args[0].name]
    values = [evaluate(node.args[1], instance, inner, hole) for inner in _extended(env, pairs)]
    return _reduced("+" if node.op == "total" else "max", values)


def _extended(env: Env, pairs: Sequence[tuple[str, int]]) -> Iterator[Env]:
    names = [name for name, _ in pairs]
    for values in itertools.product(*[range(n) for _, n in pairs]):
        yield tuple((dict(env) | dict(zip(names, values, strict=True))).items())


def _reduced(op: str, values: Sequence[Value]) -> Value:
    if op == "max":
        if not values:
            raise _Undefined
        return max(values)
    found: Value = Fraction(0 if op == "+" else 1)
    for v in values:
        found = found + v if op == "+" else found * v
    return found


def _constant(node: Node, instance: _Instance) -> Fraction:
    if node.op == "const":
        return node.value
    if node.op == "var":
        return instance.constants[node.name]
    args = [_constant(a, instance) for a in node.args]
    if len(args) == 1:
        return -args[0]
    if node.op == "/":
        if args[1] == 0:
            raise _Undefined
        return args[0] / args[1]
    return args[0] + args[1] if node.op == "+" else args[0] - args[1] if node.op == "-" else args[0] * args[1]


def _inverse(x: Value) -> Value:
    if x == 0:
        raise _Undefined
    return 1 / x


def _log(x: Value) -> Value:
    if x <= 0:
        raise _Undefined
    return Fraction(0) if x == 1 else math.log(x)


def _sqrt(x: Value) -> Value:
    if x < 0:
        raise _Undefined
    return math.sqrt(x)


def _select(p: Value, x: Value, y: Value) -> Value:
    if p not in (0, 1):
        raise _Undefined
    return x if p else y


_MEANING: dict[str, Callable[..., Value]] = {
    "inv": _inverse,
    "log": _log,
    "sqrt": _sqrt,
    "select": _select,
    "ge0": lambda x: Fraction(x >= 0),
    "eq0": lambda x: Fraction(x == 0),
    "exp": lambda x: Fraction(1) if x == 0 else math.exp(x),
    "abs": abs,
    "sign": lambda x: Fraction((x > 0) - (x < 0)),
    "logistic": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "tan": math.tan,
    "sine": math.sin,
    "cosine": math.cos,
    "erf": math.erf,
    "cbrt": math.cbrt,
    "floor": lambda x: Fraction(math.floor(x)),
}
assert set(_MEANING) >= FUNCTIONS


# -- instances ---------------------------------------------------------------------------------------------------------------
_SAMPLES: dict[str, tuple[Fraction, ...]] = {
    "any": tuple([Fraction(a, b) for a in range(-4, 5) for b in (1, 2, 3)]),
    "positive": tuple([Fraction(a, b) for a in range(1, 6) for b in (1, 2, 3)]),
    "negative": tuple([Fraction(-a, b) for a in range(1, 6) for b in (1, 2, 3)]),
    "nonneg": tuple([Fraction(a, b) for a in range(6) for b in (1, 2)]),
    "nonzero": tuple([Fraction(a, b) for a in (-3, -2, -1, 1, 2, 3) for b in (1, 2)]),
    "boolean": (Fraction(0), Fraction(1)),
    "integer": tuple(map(Fraction, range(-4, 5))),
}
_OUTSIDE: dict[str, tuple[Fraction, ...]] = {
    "positive": (Fraction(0), Fraction(0), Fraction(-1), Fraction(-3, 2)),
    "negative": (Fraction(0), Fraction(1), Fraction(3, 2)),
    "nonneg": (Fraction(-1), Fraction(-1, 2), Fraction(-3)),
    "nonzero": (Fraction(0),),
    "boolean": (Fraction(-1), Fraction(2), Fraction(1, 2)),
    "integer": (Fraction(1, 2), Fraction(-1, 2), Fraction(-1, 3)),
}
_CONSTANTS = tuple([Fraction(a, b) for a in range(-4, 9) for b in (1, 2, 4)])


def _instance(rule: Rule, source: random.Random, broken: Node | None) -> _Instance:
    """A random instance that meets all conditions but the broken one, which it does not meet."""
    kinds = _kinds(rule)
    indices = {name: ((f"{name}0", 2), (f"{name}1", 2))[: source.randint(1, 2)] for name in sorted(kinds["indices"])}
    names = ["j", *[n for pairs in indices.values() for n, _ in pairs]]
    made = _Instance({}, {}, _constants(rule, sorted(kinds["constants"]), source, broken), indices)
    for name in sorted(kinds["vars"]):
        made.expressions[name] = _function(rule, name, names, indices, source, broken)
    for name in sorted(kinds["rests"]):
        count = source.randint(1 if broken is not None or name in _lonely(rule) else 0, 3)
        made.rests[name] = [_function(rule, name, names, indices, source, broken) for _ in range(count)]
    for condition in rule.conditions:
        if condition.op in PROPERTIES and condition.args[0].op == "+":
            _apart(condition, made, source, outside=condition is broken)
    return made


def _kinds(rule: Rule) -> dict[str, set[str]]:
    """The names of a rule by what they stand for."""
    found: dict[str, set[str]] = {"vars": set(), "rests": set(), "constants": set(), "indices": set()}
    stack = [rule.lhs]
    while stack:
        node = stack.pop()
        if node.op == "rest":
            found["rests"].add(node.name)
        elif node.op == "var":
            found["vars"].add(node.name)
        elif node.op in ("num", "scale"):
            found["constants"] |= {n.name for n in node.args[0] if n.op == "var"}
            stack += node.args[1:]
        elif node.op in ("total", "greatest"):
            found["indices"].add(node.args[0].name)
            stack += node.args[1:]
        else:
            stack += node.args
    return found


def _lonely(rule: Rule) -> set[str]:
    """Rests that may not be empty: the only operands of a ``max``."""
    return {
        a.name
        for side in (rule.lhs, rule.rhs)
        for n in side
        if n.op == "max"
        for a in n
        for a in [a]
        if a.op == "rest" and len(n.args) == 1
    }


def _constants(rule: Rule, names: Sequence[str], source: random.Random, broken: Node | None) -> dict[str, Fraction]:
    comparisons = [c for c in rule.conditions if c.op in ("<", "<=", "!=")]
    while True:
        made = _Instance({}, {}, {name: source.choice(_CONSTANTS) for name in names}, {})
        if all(_holds(c, made) == (c is not broken) for c in comparisons):
            return made.constants


def _holds(condition: Node, instance: _Instance) -> bool:
    left, right = (_constant(a, instance) for a in condition.args)
    return left < right if condition.op == "<" else left <= right if condition.op == "<=" else left != right


def _function(
    rule: Rule, name: str, names: Sequence[str], indices: dict[str, tuple[tuple[str, int], ...]], source: random.Random, broken: Node | None
) -> Function:
    """A random table over the index variables."""
    mine = [c for c in rule.conditions if c.args[-1].op in ("var", "rest") and c.args[-1].name == name]
    constant_along = {n for c in mine if c.op == "free" and c is not broken for n, _ in indices[c.args[0].name]}
    properties = [c.op for c in mine if c.op in PROPERTIES and c is not broken]
    pool = [v for v in _SAMPLES[properties[0] if properties else "any"] if all(v in _SAMPLES[p] or _meets(p, v) for p in properties)]
    if broken is not None and broken in mine and broken.op in PROPERTIES:
        pool = list(_OUTSIDE[broken.op])
    table: dict[tuple[int, ...], Fraction] = {}
    varying = [n for n in names if n not in constant_along]

    def value(env: Env) -> Fraction:
        at = dict(env)
        key = tuple([at[n] for n in varying])
        if key not in table:
            table[key] = source.choice(pool)
        return table[key]

    return value


def _meets(prop: str, value: Fraction) -> bool:
    return {
        "positive": value > 0,
        "negative": value < 0,
        "nonneg": value >= 0,
        "nonzero": value != 0,
        "boolean": value in (0, 1),
        "integer": value.denominator == 1,
    }[prop]


def _apart(condition: Node, made: _Instance, source: random.Random, *, outside: bool) -> None:
    """Makes the difference of two variables what the condition says, or what it excludes."""
    a, b = condition.args[0].args[0].name, condition.args[0].args[1].args[1].name
    pool = (_OUTSIDE if outside else _SAMPLES)[condition.op]
    base = made.expressions[b]
    table: dict[Env, Fraction] = {}

    def value(env: Env) -> Value:
        if env not in table:
            table[env] = source.choice(pool)
        return base(env) + table[env]

    made.expressions[a] = value
