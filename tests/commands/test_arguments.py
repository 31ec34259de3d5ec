from __future__ import annotations

import argparse

import pytest

from scalify.commands.arguments import assignments, merged


def test_assignments_keep_their_order() -> None:
    assert list(assignments("dp=2, tp=4").items()) == [("dp", 2), ("tp", 4)]


@pytest.mark.parametrize("text", ["", "tp", "tp=", "=4", "tp=0", "tp=-1", "tp=1.5", "tp=4,tp=4", "tp=4;dp=2", "tp=" + "9" * 20, "tp=٤"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        assignments(text)


def test_the_last_of_a_name_counts() -> None:
    assert merged([{"nodes": 1, "steps": 2}, {"nodes": 3}]) == {"nodes": 3, "steps": 2}
    assert merged(None) == {}
