"""An edit rule that meets what its opcode does not have ends the search for edits of that operation, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scalify.localise.edits import _sound

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_rule_that_fails_gives_what_it_gave_before() -> None:
    def rule(operands: list[int]) -> Iterator[Any]:
        yield 1
        a, b = operands
        yield a + b

    right: list[Any] = list(_sound(rule([2, 3])))
    wrong: list[Any] = list(_sound(rule([2, 3, 4])))
    assert (right, wrong) == ([1, 5], [1])
