"""From a pair of views to one small DAG of expressions with named index variables.

Free slots become ``i0, i1, ...``; a bound label is named after its size and the first leaf that it indexes, so that sums that differ by algebra
only bind the same names; no binder hides a variable that is in use below it. Terms that both sides contain are cut: they become leaves over their
variables. ``level`` says how many shared terms deep the cut is moved down.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any, ClassVar, NamedTuple

from scalify.lift.instance import OPERANDS
from scalify.lift.terms import BOUND, LimitReached, Number, Term, View
from scalify.prove.pattern import FUNCTIONS

Names = tuple[str, ...]
Use = tuple[Term, Names, int]  # a term, its labels' names, which of the sums that stand side by side

Parts = tuple[list[Use], Callable[[list[int]], int]]  # what is needed first, and the node made of it


class Expr(NamedTuple):
    """One node: operator, payload, operands by number."""

    op: str
    data: Hashable
    args: tuple[int, ...]


class Problem:
    """The expressions of one obligation, and what is known of them."""

    def __init__(self) -> None:
        self.nodes: list[Expr] = []
        self.facts: list[tuple[int, str]] = []
        self.ranges: list[tuple[int, str, Fraction]] = []
        self.free: list[tuple[int, Names]] = []
        self.sizes: dict[str, int] = {}
        self.instances: list[tuple[int, str, int, int]] = []
        self.names: dict[str, Hashable] = {}  # what each leaf stands for
        self.goal = (0, 0)
        self._known: dict[Expr, int] = {}

    def node(self, op: str, data: Hashable = None, args: Sequence[int] = ()) -> int:
        """The number of this node; equal nodes have equal numbers."""
        expr = Expr(op, data, tuple(args))
        found = self._known.get(expr)
        if found is None:
            found = self._known[expr] = len(self.nodes)
            self.nodes.append(expr)
        return found

    def number(self, value: Number) -> int:
        return self.node("num", Fraction(value))

    def scale(self, by: Number, node: int) -> int:
        if by == 1:
            return node
        expr = self.nodes[node]
        if expr.op == "num":
            return self.number(by * expr.data)  # type: ignore[operator]
        return self.node("scale", Fraction(by), (node,))

    def many(self, op: str, args: Sequence[int]) -> int:
        """A commutative operator over its operands; of one operand, that operand."""
        return args[0] if len(args) == 1 else self.node(op, None, sorted(args))

    def key(self) -> Hashable:
        """What the answer depends on: the memo's fingerprint."""
        known = (tuple(self.facts), tuple(self.ranges), tuple(self.free), tuple(self.instances), tuple(sorted(self.sizes.items())))
        return tuple(self.nodes), known, self.goal


def problem(expected: View, actual: View, level: int, most: int) -> Problem:
    """The obligation ``expected = actual`` as expressions.

    :raises LimitReached: more than ``most`` terms or nodes are needed.
    """
    return _Encoder(expected, actual, level, most).encode()


def cut(expected: Term, actual: Term, level: int, most: int) -> set[Term]:
    """The terms that stay closed. Operands are older than what uses them, so a term's uses are all seen before it is."""
    sides: dict[Term, int] = {expected: 1}
    sides[actual] = sides.get(actual, 0) | 2
    credit = dict.fromkeys(sides, level)
    heap = [(-t.id, i) for i, t in enumerate(sides)]
    order = list(sides)
    closed: set[Term] = set()
    opened = 0
    while heap:
        term = order[heappop(heap)[1]]
        shared = sides[term] == 3
        if (shared and credit[term] <= 0) or term.taint or term.kind not in OPERANDS:
            closed.add(term)
            continue
        opened += 1
        if opened > most:
            raise LimitReached("obligation-terms", most)
        left = credit[term] - shared
        for operand, _ in OPERANDS[term.kind](term):
            if operand not in sides:
                heappush(heap, (-operand.id, len(order)))
                order.append(operand)
            sides[operand] = sides.get(operand, 0) | sides[term]
            credit[operand] = max(credit.get(operand, 0), left)
    return closed


class _Encoder:
    def __init__(self, expected: View, actual: View, level: int, most: int) -> None:
        self.views = (expected, actual)
        self.most = most
        self.closed = cut(expected.term, actual.term, level, most)
        self.out = Problem()
        self.done: dict[Use, int] = {}
        self.used: dict[Term, tuple[tuple[int, int], ...]] = {}
        self.inside: dict[Term, dict[int, tuple[int, int]]] = {}
        self.numbers: dict[Hashable, int] = {}
        self.leaves: dict[int, tuple[Hashable, tuple[object, ...]]] = {}

    def encode(self) -> Problem:
        slots = sorted({s for v in self.views for s in v.at})
        names = {s: f"i{k}" for k, s in enumerate(slots)}
        for view in self.views:
            self.out.sizes.update({names[s]: n for s, n in zip(view.at, view.term.sizes, strict=True)})
        roots = [self.out.scale(v.coef, self.term(v.term, tuple([names[s] for s in v.at]))) for v in self.views]
        self.out.goal = (roots[0], roots[1])
        self._instances()
        return self.out

    # -- the walk ----------------------------------------------------------------------------------------------------------
    def term(self, term: Term, names: Names) -> int:
        """The node of a term, operands first, on an explicit stack."""
        root: Use = (term, names, 0)
        stack = [root]
        while stack:
            use = stack[-1]
            if use in self.done:
                stack.pop()
                continue
            uses, make = self._parts(use)
            missing = [u for u in uses if u not in self.done]
            if missing:
                stack.extend(reversed(missing))
                continue
            self.done[use] = node = make([self.done[u] for u in uses])
            self._describe(use[0], node)
            if len(self.out.nodes) > self.most:
                raise LimitReached("obligation-nodes", self.most)
            stack.pop()
        return self.done[root]

    def _parts(self, use: Use) -> Parts:
        term, names, _ = use
        if term in self.closed and term.kind not in ("one", "iota", "at"):
            return [], lambda _: self._leaf(("term", term.id), names)
        kind = self.KINDS.get(term.kind)
        return kind(self, use) if kind is not None else self._closed(use)

    def _closed(self, use: Use) -> Parts:
        return [], lambda _: self._leaf(("term", use[0].id), use[1])

    def _leaf(self, content: Hashable, names: Names) -> int:
        node = self.out.node("leaf", self._name(content))
        for name in names:
            node = self.out.node("at-var", name, (node,))
        return node

    def _name(self, content: Hashable) -> str:
        """A name by order of occurrence: the same obligation in another layer gets the same names."""
        name = f"x{self.numbers.setdefault(content, len(self.numbers))}"
        self.out.names[name] = content
        return name

    def _describe(self, term: Term, node: int) -> None:
        if self.out.nodes[node].op == "num":
            return
        for fact in ("positive", "integer", "boolean"):
            if getattr(term, fact):
                self.out.facts.append((node, fact))
        for end in ("low", "high"):
            value = getattr(term, end)
            if value is not None and term.integer:
                self.out.ranges.append((node, end, Fraction(value)))

    # -- bound names -------------------------------------------------------------------------------------------------------
    def uses(self, term: Term) -> tuple[tuple[int, int], ...]:
        """For each label of a term the least (leaf, position) at which it is used: the same in terms that differ by algebra only."""
        stack = [term]
        while stack:
            top = stack[-1]
            if top in self.used:
                stack.pop()
                continue
            inner = self._operands(top)
            missing = [t for t, _ in inner if t not in self.used]
            if missing:
                stack.extend(reversed(missing))
                continue
            found: dict[int, tuple[int, int]] = {}
            for label, use in self._direct(top) + [
                (label, u) for t, labels in inner for label, u in zip(labels, self.used[t], strict=True)
            ]:
                found[label] = min(found.get(label, use), use)
            self.used[top] = tuple([found.get(k, (0, 0)) for k in range(len(top.sizes))])
            self.inside[top] = found
            stack.pop()
        return self.used[term]

    def _operands(self, term: Term) -> list[tuple[Term, tuple[int, ...]]]:
        return [] if self._is_leaf(term) else OPERANDS[term.kind](term)

    def _is_leaf(self, term: Term) -> bool:
        return term.kind not in OPERANDS or (term in self.closed and (term.kind != "at" or bool(term.data[1])))

    def _direct(self, term: Term) -> list[tuple[int, tuple[int, int]]]:
        if term.kind == "at" and not self._is_leaf(term):
            number = self.numbers.setdefault(term.data[0], len(self.numbers))
            entries = [(e[1:] if type(e) is tuple else (e,)) for e in term.data[2]]
            return [(label, (number, position)) for position, entry in enumerate(entries) for label in entry if label >= 0]
        if not self._is_leaf(term):
            return [(0, (1 << 30, 0))] if term.kind == "iota" else []
        number = self.numbers.setdefault(("term", term.id), len(self.numbers))
        return [(label, (number, label)) for label in range(len(term.sizes))]

    def bound(self, term: Term, sizes: Sequence[int], use: Use) -> Names:
        """Names for the labels that a term binds, none of which is in use below it."""
        self.uses(term)
        found: list[str] = []
        for label, n in enumerate(sizes):
            leaf, position = self.inside[term].get(BOUND + label, (0, 0))
            count = use[2]
            while (name := f"b{leaf}.{position}n{n}.{count}") in use[1] or name in found:
                count += 1
            found.append(name)
        self.out.sizes.update(zip(found, sizes, strict=True))
        return tuple(found)

    # -- kinds -------------------------------------------------------------------------------------------------------------
    def _one(self, _: Use) -> Parts:
        return [], lambda _: self.out.number(1)

    def _iota(self, use: Use) -> Parts:
        return [], lambda _: self.out.node("iota", use[1][0])

    def _linear(self, use: Use) -> Parts:
        entries, constant = use[0].data

        def make(nodes: list[int]) -> int:
            parts = [self.out.scale(c, n) for (_, c, _), n in zip(entries, nodes, strict=True)]
            return self.out.many("add", parts + ([self.out.number(constant)] if constant else []))

        return self._each(use, [(t, labels) for t, _, labels in entries]), make

    def _product(self, use: Use) -> Parts:
        factors = use[0].data
        return self._each(use, [(t, labels) for t, _, labels in factors]), lambda nodes: self._powers([e for _, e, _ in factors], nodes)

    def _powers(self, exponents: Sequence[int], nodes: Sequence[int]) -> int:
        parts = []
        for e, n in zip(exponents, nodes, strict=True):
            if abs(e) > 16:
                raise LimitReached("obligation-exponent", 16)
            parts += [n if e > 0 else self.out.node("inv", None, (n,))] * abs(e)
        return self.out.many("mul", parts)

    def _sum(self, use: Use) -> Parts:
        term = use[0]
        factors, sizes = term.data
        bound = self.bound(term, sizes, use)

        def make(nodes: list[int]) -> int:
            return self.out.node("total", tuple(sorted(bound)), (self._powers([e for _, e, _ in factors], nodes),))

        return self._each(use, [(t, labels) for t, _, labels in factors], bound), make

    def _reduction(self, use: Use) -> Parts:
        term, names, _ = use
        name, sign, inner, labels, sizes = term.data
        bound = self.bound(term, sizes, use)

        def make(nodes: list[int]) -> int:
            body = self.out.scale(sign, nodes[0])
            if name == "max":
                return self.out.node("greatest", tuple(sorted(bound)), (body,))
            return self._applied((name, sizes), [body], names)

        return self._each(use, [(inner, labels)], bound), make

    def _condition(self, use: Use) -> Parts:
        term = use[0]
        sign, inner, labels = term.data if term.kind == "ge0" else (1, *term.data)
        return self._each(use, [(inner, labels)]), lambda nodes: self.out.node(term.kind, None, (self.out.scale(sign, nodes[0]),))

    def _function(self, use: Use) -> Parts:
        name, attribute, arguments = use[0].data

        def make(nodes: list[int]) -> int:
            values = [self.out.scale(c, n) for (c, _, _), n in zip(arguments, nodes, strict=True)]
            return self._call(name, attribute, values)

        return self._each(use, [(t, labels) for _, t, labels in arguments]), make

    def _call(self, name: str, attribute: Any, values: list[int]) -> int:
        if name in FUNCTIONS and attribute is None and len(values) == 1:
            return self.out.node("fn", name, values)
        if name == "max":
            return self.out.many("max", values)
        if name == "select" and attribute is None:
            return self.out.node("select", None, values)
        if name == "clamp":
            low, high = attribute
            found = values[0] if low is None else self.out.many("max", [values[0], self.out.number(low)])
            if high is None:
                return found
            return self.out.scale(-1, self.out.many("max", [self.out.scale(-1, found), self.out.number(-high)]))
        return self._applied((name, attribute, len(values)), values, None)

    def _applied(self, content: Hashable, values: Sequence[int], names: Names | None) -> int:
        """An operation that nothing is known of. ``names``: its free variables, when it binds some of its arguments' variables."""
        node = self.out.node("leaf", self._name(content))
        for value in values:
            node = self.out.node("app", None, (node, value))
        if names is not None:
            self.out.free.append((node, names))
        return node

    def _at(self, use: Use) -> Parts:
        term, names, _ = use
        base, content, where, limits = term.data
        tables = tuple([entry[0] if type(entry) is tuple else None for entry in where])
        sizes = [n for _, _, _, core in content for n in core]
        if content and (term in self.closed or len(content) > 64):
            return self._closed(use)
        bound = self.bound(term, sizes, use) if sizes else ()
        # The operation sees its core axes in order, and the names do not tell the order: it is part of what the operation is.
        key = (
            base,
            limits,
            tables,
            bound,
            tuple([(c, len(labels)) for c, _, labels, _ in content]),
            tuple([core for _, _, _, core in content]),
        )
        index = [
            ("at-var", names[entry]) if entry >= 0 else ("at-const", -1 - entry)
            for position in where
            for entry in (position[1:] if type(position) is tuple else (position,))
        ]

        def make(nodes: list[int]) -> int:
            values = [self.out.scale(c, n) for (c, _, _, _), n in zip(content, nodes, strict=True)]
            outer = tuple(sorted({names[i] for _, _, labels, _ in content for i in labels if i < BOUND}))
            node = self._applied(key, values, outer if sizes else None)
            for op, entry in index:
                node = self.out.node(op, entry, (node,))
            if not content:
                self.leaves[node] = (key, tuple([entry for _, entry in index]))
            return node

        uses = []
        start = 0
        for _, t, labels, core in content:
            mine = bound[start : start + len(core)]
            start += len(core)
            uses.append((t, tuple([mine[i - BOUND] if i >= BOUND else names[i] for i in labels]), 0))
        return uses, make

    def _each(self, use: Use, operands: Sequence[tuple[Term, tuple[int, ...]]], bound: Names = ()) -> list[Use]:
        """Operands with their names; sums that stand side by side bind different names."""
        found: list[Use] = []
        sums = 0
        for term, labels in operands:
            names = tuple([bound[i - BOUND] if i >= BOUND else use[1][i] for i in labels])
            shift = 0
            if term.kind == "sum" and use[0].kind == "sum":
                shift, sums = sums + use[2], sums + 1
            found.append((term, names, shift))
        return found

    def _instances(self) -> None:
        """Which leaves are another leaf at a fixed index."""
        fixed = [(n, k, w) for n, (k, w) in self.leaves.items() if any(isinstance(e, int) for e in w)]
        for a, key, where in fixed[:64]:
            for b, (other, there) in self.leaves.items():
                if other != key or len(there) != len(where):
                    continue
                differing = [(x, y) for x, y in zip(where, there, strict=True) if x != y]
                if len(differing) == 1 and isinstance(differing[0][0], int) and isinstance(differing[0][1], str):
                    self.out.instances.append((a, differing[0][1], differing[0][0], b))

    KINDS: ClassVar[Mapping[str, Callable[[_Encoder, Use], Parts]]] = {
        "one": _one,
        "iota": _iota,
        "lin": _linear,
        "mul": _product,
        "sum": _sum,
        "red": _reduction,
        "ge0": _condition,
        "eq0": _condition,
        "fn": _function,
        "at": _at,
    }
