"""An obligation's expressions as the rows that an e-graph reads."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from scalify.prove.theory import ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalify.prove.expression import Expr, Problem

Row = tuple[object, ...]
LARGEST_INDEX = 1 << 40  #: a constant that may be an index


def rows(problem: Problem) -> dict[str, list[Row]]:
    """Relation name -> rows. Lists of operands and of names are chains of rows that end with a negative number."""
    return _Rows(problem).found


class _Rows:
    def __init__(self, problem: Problem) -> None:
        self.found: dict[str, list[Row]] = {name: [] for name in ROWS}
        self._lists: dict[tuple[object, ...], int] = {}
        for number, node in enumerate(problem.nodes):
            self._node(number, node)
        self.found["row-fact"] = list(problem.facts)
        self.found["row-free"] = [(n, self._chain("row-name", names)) for n, names in problem.free]
        self.found["row-free"] += [(n, -1) for n, node in enumerate(problem.nodes) if node.op == "leaf"]
        for n, end, value in problem.ranges:
            self.found[f"row-{end}"].append((n, *_pair(value)))
        self.found["row-size"] = list(problem.sizes.items())
        self.found["row-instance"] = list(problem.instances)
        numbers = [node.data for node in problem.nodes if node.op == "num" and isinstance(node.data, Fraction)]
        self.found["row-index"] = [(k,) for k in sorted({abs(q.numerator) for q in numbers if q.denominator == 1}) if k < LARGEST_INDEX]
        self.found["row-goal"] = [problem.goal]

    def _node(self, number: int, node: Expr) -> None:
        op, data, args = node
        if op in ("add", "mul", "max"):
            self.found[f"row-{op}"].append((number, self._chain("row-list", args)))
        elif op in ("total", "greatest"):
            self.found[f"row-{op}"].append((number, self._chain("row-name", data), *args))  # type: ignore[arg-type]
        elif op in ("num", "scale"):
            self.found[f"row-{op}"].append((number, *_pair(data), *args))  # type: ignore[arg-type]
        elif op in ("at-var", "at-const"):
            self.found[f"row-{op}"].append((number, *args, data))
        else:
            self.found[f"row-{op}"].append((number, *([] if data is None else [data]), *args))

    def _chain(self, relation: str, items: Sequence[object]) -> int:
        below = -1
        for depth in range(len(items), 0, -1):
            key = (relation, *items[depth - 1 :])
            at = self._lists.get(key)
            if at is None:
                at = self._lists[key] = len(self._lists)
                item = items[depth - 1]
                self.found[relation].append((at, item, below) if relation == "row-list" else (at, below, item))
            below = at
        return below


def _pair(value: Fraction) -> tuple[str, str]:
    return str(value.numerator), str(value.denominator)
