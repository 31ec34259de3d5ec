"""Putting an index in place of another: one-hot sums, stacks of instances, axes of size 2.

``SubVar`` and ``SubConst`` are substitutions of a variable; they move to the leaves, where an index is replaced. Nothing moves into an operation that may
bind variables of its own.
"""

from __future__ import annotations

from scalify.prove.rule import Claim, Rule
from scalify_rules import claims
from scalify_rules.support import Pairs, assign, total

_SUBSTITUTION = "both sides are the same function of the other variables"


def _instances() -> Pairs:
    """The one-hot sums, the stacks and the axis of size 2 on small arrays."""
    x, y, z = assign(11, (3,)), assign(12, (2,)), assign(13, (3, 3))
    found: Pairs = [(total((3,), lambda v, k=k: (v == k) * x[v]), x[k]) for k in range(3)]
    found += [(total((3,), lambda v, w=w: (v == w) * z[v, w]), z[w, w]) for w in range(3)]
    found += [((v == k) * x[k], (v == k) * x[v]) for k in range(3) for v in range(3)]
    return found + [(v * y[1], v * y[v]) for v in range(2)] + [(int(v == 0), 1 - v) for v in range(2)]


def _program(name: str, left: str, right: str, *rules: tuple[str, str], claim: Claim, ruleset: str = "expand") -> Rule:
    texts = [
        f'(rule ({body}) ({head}) :ruleset {ruleset} :name "{name}{f" {number}" if number else ""}")'
        for number, (body, head) in enumerate(rules)
    ]
    return Rule(name, "one_hot", left, right, _SUBSTITUTION, claim.when, program=tuple(texts), instances=_instances, claims=(claim,))


_SUM = "(= s (Total vs p)) (= p (Mul ms)) (= m (member ms g)) (set-contains vs v) (= r (multiset-remove ms g))"


def _through(op: str, arguments: str) -> list[tuple[str, str]]:
    """Both substitutions through an operator of the given operands, written as ``S`` of each."""
    found = []
    for substitution in ("SubConst v k", "SubVar v w"):
        inner = " ".join([f"({substitution} {a})" if a.islower() else a for a in arguments.split()])
        found.append((f"(= s ({substitution} t)) (= t ({op} {arguments}))", f"(union s ({op} {inner}))"))
    return found


def _over(op: str) -> list[tuple[str, str]]:
    """Both substitutions over the operands of a commutative operator."""
    return [
        (f"(= s ({name} v k t)) (= t ({op} ms))", f'(union s ({op} (unstable-multiset-map (unstable-fn "{name}" v k) ms)))')
        for name in ("SubConst", "SubVar")
    ]


_PUSHED = [
    *_over("Add"), *_over("Mul"), *_over("Max"),
    *_through("Inv", "x"), *_through("Ge0", "x"), *_through("Eq0", "x"), *_through("Select", "x y z"),
    *[(f"(= s ({n} v k t)) (= t (Scale q x))", f"(union s (Scale q ({n} v k x)))") for n in ("SubConst", "SubVar")],
    *[(f"(= s ({n} v k t)) (= t (Fn f x))", f"(union s (Fn f ({n} v k x)))") for n in ("SubConst", "SubVar")],
    *[(f"(= s ({n} v k t)) (= a (fv t)) (set-not-contains a v)", "(union s t)") for n in ("SubConst", "SubVar")],
    *[(f"(= s ({n} v k t)) (= t (AtVar x u)) (!= u v)", f"(union s (AtVar ({n} v k x) u))") for n in ("SubConst", "SubVar")],
    *[(f"(= s ({n} v k t)) (= t (AtConst x j))", f"(union s (AtConst ({n} v k x) j))") for n in ("SubConst", "SubVar")],
    ("(= s (SubConst v k t)) (= t (AtVar x v))", "(union s (AtConst (SubConst v k x) k))"),
    ("(= s (SubVar v w t)) (= t (AtVar x v))", "(union s (AtVar (SubVar v w x) w))"),
    ("(= s (SubConst v k t)) (= t (Iota v))", "(union s (Num (bigrat (bigint k) (bigint 1))))"),
    ("(= s (SubVar v w t)) (= t (Iota v))", "(union s (Iota w))"),
    ("(= s (SubConst v k t)) (= t (Total vs x)) (set-not-contains vs v)", "(union s (Total vs (SubConst v k x)))"),
    ("(= s (SubVar v w t)) (= t (Total vs x)) (set-not-contains vs v) (set-not-contains vs w)", "(union s (Total vs (SubVar v w x)))"),
    ("(= s (SubConst v k t)) (= t (Greatest vs x)) (set-not-contains vs v)", "(union s (Greatest vs (SubConst v k x)))"),
    ("(= s (SubVar v w t)) (= t (Greatest vs x)) (set-not-contains vs v) (set-not-contains vs w)", "(union s (Greatest vs (SubVar v w x)))"),
]  # fmt: skip

RULES = (
    _program(
        "one-hot-constant", "sum_v [v = k] x(v)", "x(k)",
        (f"{_SUM} (selects g v k)", "(union s (Total (set-remove vs v) (SubConst v k (Mul r))))"), claim=claims.ONE_HOT,
    ),
    _program(
        "one-hot-variable", "sum_v [v = w] x(v)", "x(w)",
        (f"{_SUM} (equates g v w)", "(union s (Total (set-remove vs v) (SubVar v w (Mul r))))"),
        claim=claims.ONE_HOT_VARIABLE,
    ),
    _program(
        "stack-instance", "[v = k] x(k)", "[v = k] x(v)",
        ("(instance x v k y) (= s (Mul ms)) (= m (member ms x)) (= h (member ms g)) (selects g v k)",
         "(union s (Mul (multiset-insert (multiset-remove ms x) y))) (subsume (Mul ms)) (stale-Mul ms)"),
        claim=claims.INSTANCE, ruleset="simplify",
    ),
    _program("first-of-two", "[v = 0]", "1 - v", ("(selects g v 0) (= 2 (size v))", "(union g (Add (multiset-of (Num (bigrat (bigint 1) (bigint 1))) (Scale (bigrat (bigint -1) (bigint 1)) (Iota v)))))"), claim=claims.FIRST_OF_TWO),
    _program("substitution", "f(x, ..) with v = k", "f(x with v = k, ..)", *_PUSHED, claim=claims.SUBSTITUTION, ruleset="simplify"),
)  # fmt: skip
