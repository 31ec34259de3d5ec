"""Sums and greatest values over index variables: einsum form, and what moves in and out of a reduction."""

from __future__ import annotations

from scalify.prove.rule import Claim, Rule
from scalify_rules import claims
from scalify_rules.support import Pairs, assign, greatest, total

_FINITE = "a finite sum; "


def _rule(name: str, left: str, right: str, *when: str, why: str, phase: str = "expand") -> Rule:
    return Rule(name, "einsum", left, right, why, when, phase=phase)


def _program(name: str, left: str, right: str, why: str, body: str, head: str, instances: str, claim: Claim) -> Rule:
    text = f'(rule ({body}) ({head}) :ruleset expand :name "{name}")'
    return Rule(name, "einsum", left, right, why, claim.when, program=(text,), instances=_INSTANCES[instances], claims=(claim,))


def _unused() -> Pairs:
    """sum_{v,w} x(w) against size(v) times sum_w x(w), and the same for the greatest value."""
    x = assign(1, (3,))
    return [(total((2, 3), lambda v, w: x[w]), 2 * total((3,), lambda w: x[w]))]


def _unused_greatest() -> Pairs:
    x = assign(2, (3,))
    return [(greatest((2, 3), lambda v, w: x[w]), greatest((3,), lambda w: x[w]))]


def _nested() -> Pairs:
    x = assign(3, (2, 3))
    return [
        (total((2,), lambda v: total((3,), lambda w: x[v, w])), total((2, 3), lambda v, w: x[v, w])),
        (greatest((2,), lambda v: greatest((3,), lambda w: x[v, w])), greatest((2, 3), lambda v, w: x[v, w])),
    ]


def _inline() -> Pairs:
    x, y = assign(4, (2,)), assign(5, (2, 3))
    return [(total((2,), lambda v: x[v] * total((3,), lambda w: y[v, w])), total((2, 3), lambda v, w: x[v] * y[v, w]))]


def _part() -> Pairs:
    x, y = assign(6, (2,)), assign(7, (2, 3))
    return [(total((2, 3), lambda v, w: x[v] * y[v, w]), total((2,), lambda v: x[v] * total((3,), lambda w: y[v, w])))]


def _empty() -> Pairs:
    return [(total((), lambda: 5), 5), (greatest((), lambda: 5), 5)]


_INSTANCES = {"unused": _unused, "unused-greatest": _unused_greatest, "nested": _nested, "inline": _inline, "part": _part, "empty": _empty}
_FREE = "(= f (fv x)) (= k (size v)) (set-contains vs v) (set-not-contains f v)"

RULES = (
    _rule("total-sum", "(total v (+ *r))", "(+ (each (total v _) *r))", why=_FINITE + "addition is commutative and associative"),
    _rule("total-scale", "(total v (scale q x))", "(scale q (total v x))", why=_FINITE + "distributivity", phase="simplify"),
    _rule("total-factor", "(total v (* x *r))", "(* x (total v (* *r)))", "(free v x)", why=_FINITE + "distributivity"),
    _program(
        "total-unused", "sum_{v,w} x", "size(v) sum_w x", _FINITE + "all its summands along v are equal",
        f"(= s (Total vs x)) {_FREE}", "(union s (Scale (bigrat (bigint k) (bigint 1)) (Total (set-remove vs v) x)))", "unused", claims.UNUSED,
    ),
    _program("total-none", "sum_{} x", "x", "a sum of one summand", "(= s (Total vs x)) (= 0 (set-length vs))", "(union s x)", "empty", claims.NO_AXIS),
    _program(
        "total-total", "sum_v sum_w x", "sum_{v,w} x", _FINITE + "addition is commutative and associative",
        "(= s (Total vs t)) (= t (Total ws x)) (= 0 (set-length (set-intersect vs ws)))", "(union s (Total (set-union vs ws) x))", "nested", claims.NESTED,
    ),
    _program(
        "total-inline", "sum_v (r.. sum_w x)", "sum_{v,w} (r.. x)", _FINITE + "distributivity",
        "(= s (Total vs p)) (= p (Mul ms)) (= t (Total ws x)) (= k (member ms t)) (= 0 (set-length (set-intersect vs ws))) (= r (multiset-remove ms t)) "
        "(= f (fvm r)) (= 0 (set-length (set-intersect f ws)))",
        "(union s (Total (set-union vs ws) (Mul (multiset-insert r x))))", "inline", claims.INLINE,
    ),
    _program(
        "total-part", "sum_{v,w} (x r..)", "sum_v (x sum_w r..)", _FINITE + "distributivity",
        "(= s (Total vs p)) (= p (Mul ms)) (= k (member ms x)) (= f (fv x)) (= w (set-diff vs f)) (> (set-length w) 0) (> (set-length vs) (set-length w)) "
        "(= r (multiset-remove ms x))",
        "(union s (Total (set-intersect vs f) (Mul (multiset-of x (Total w (Mul r))))))", "part", claims.PART,
    ),
    _rule("greatest-max", "(greatest v (max *r))", "(max (each (greatest v _) *r))", why="max is commutative, associative and idempotent"),
    _rule("greatest-scale", "(greatest v (scale q x))", "(scale q (greatest v x))", "(< 0 q)", why="x -> q x is increasing"),
    _rule("greatest-shift", "(greatest v (+ x *r))", "(+ x (greatest v (+ *r)))", "(free v x)", why="y -> x + y is increasing"),
    _program(
        "greatest-unused", "max_{v,w} x", "max_w x", "all values along v are equal",
        f"(= s (Greatest vs x)) {_FREE}", "(union s (Greatest (set-remove vs v) x))", "unused-greatest", claims.UNUSED_GREATEST,
    ),
    _program("greatest-none", "max_{} x", "x", "the greatest of one value", "(= s (Greatest vs x)) (= 0 (set-length vs))", "(union s x)", "empty", claims.NO_AXIS),
    _program(
        "greatest-greatest", "max_v max_w x", "max_{v,w} x", "max is associative and idempotent",
        "(= s (Greatest vs t)) (= t (Greatest ws x))", "(union s (Greatest (set-union vs ws) x))", "nested",
        claims.NESTED_GREATEST,
    ),
)  # fmt: skip
