"""Topological order without recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def topological_order(predecessors: Sequence[Sequence[int]]) -> list[int] | None:
    """Positions in an order where each comes after its ``predecessors``; None if there is a cycle.

    Depth first from each position in turn, so that an order that is already valid is returned unchanged. Linear time.
    """
    order: list[int] = []
    state = bytearray(len(predecessors))  # 0 new, 1 on the path, 2 done
    for start in range(len(predecessors)):
        path = [(start, iter(predecessors[start]))] if not state[start] else []
        state[start] = state[start] or 1
        while path:
            node, waiting = path[-1]
            nxt = next((p for p in waiting if state[p] != 2), None)
            if nxt is None:
                path.pop()
                state[node] = 2
                order.append(node)
            elif state[nxt] == 1:
                return None
            else:
                state[nxt] = 1
                path.append((nxt, iter(predecessors[nxt])))
    return order
