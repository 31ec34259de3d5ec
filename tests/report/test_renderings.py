"""Each rendering shows what matters, and nothing in a graph can steer the medium that it is shown in."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from scalify.report import html, markdown, sarif, terminal
from scalify.report.model import Counterexample, Difference, Kind, Report, Stopped, StopReason, Verdict
from scalify.report.text import LONGEST, ranges, seconds, stopped, visible
from tests.support.reports import HOSTILE, unverified, verified

if TYPE_CHECKING:
    from collections.abc import Callable

RENDERINGS: list[Callable[[Report], str]] = [terminal.render, markdown.render, sarif.render, html.render]
READABLE: list[Callable[[Report], str]] = [terminal.render, markdown.render, html.render]


@pytest.mark.parametrize("render", RENDERINGS)
def test_verdict_line_and_kind_are_shown(render: Callable[[Report], str]) -> None:
    assert "verified" in render(verified()).lower()
    text = render(unverified()).replace("\\", "")
    for part in ("unverified", "missing-reduction", "modeling_llama.py", "312", "multiply.214", "frame8.py"):
        if not (part == "frame8.py" and render is terminal.render):
            assert part in text.lower()


@pytest.mark.parametrize("render", READABLE)
def test_readers_see_repeats_limit_and_assumptions(render: Callable[[Report], str]) -> None:
    text = render(unverified("int32 ids"))
    assert "same in 32 places" in text
    assert "nodes=40000" in text
    assert text.count("int32 ids") >= 3


@pytest.mark.parametrize("render", RENDERINGS)
def test_no_control_or_format_character_gets_through(render: Callable[[Report], str]) -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", render(unverified(HOSTILE)))


def test_console_markup_of_a_graph_is_text() -> None:
    assert "[bold]b[/bold]" in terminal.render(unverified(HOSTILE), width=400)


def test_colours_only_on_request() -> None:
    assert "\x1b" not in terminal.render(unverified())
    assert "\x1b[" in terminal.render(unverified(), color=True)


def test_terminal_keeps_to_its_width_in_details() -> None:
    text = terminal.render(unverified("word " * 60), width=80)
    assert all(len(line) <= 80 for line in text.splitlines() if line.startswith("    "))


def test_long_lists_are_cut_unless_verbose() -> None:
    report = unverified()
    many = dataclasses.replace(report, findings=report.findings * 30)
    assert "40 more findings" in terminal.render(many)
    assert "frame8.py" not in terminal.render(report)
    assert "more findings" not in terminal.render(many, verbose=True)
    assert "frame8.py" in terminal.render(report, verbose=True)


def test_markdown_of_a_graph_is_text() -> None:
    plain = re.sub(r"(`+) ?.*?[^`]\1(?!`)", "", markdown.render(unverified(HOSTILE)))
    for markup in ("<script", "](http", "@someone", " #12", "\n# head"):
        assert markup not in plain


@pytest.mark.parametrize(
    ("text", "span"), [("a", "`a`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("", "`  `"), ("``a", "``` ``a ```"), ("a|b", "`a|b`")]
)
def test_code_spans_hold_any_text(text: str, span: str) -> None:
    assert markdown.code(text) == span


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onclick", "onerror"}


def test_html_holds_no_script_and_no_link() -> None:
    parser = Tags()
    parser.feed(html.render(unverified(HOSTILE)))
    assert "article" in parser.seen
    assert not parser.seen & {"script", "a", "img", "link", "iframe"}


def test_sarif_is_complete() -> None:
    log = json.loads(sarif.render(unverified()))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(Kind)
    first = run["results"][0]
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == first["ruleId"] == "missing-reduction"
    physical = first["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "modeling_llama.py"}, "region": {"startLine": 312}}
    assert len(first["stacks"][0]["frames"]) == 9
    assert first["occurrenceCount"] == 32


def test_sarif_locates_a_finding_without_a_file_by_its_instruction() -> None:
    second = json.loads(sarif.render(unverified("add.1")))["runs"][0]["results"][1]
    assert second["locations"] == [{"logicalLocations": [{"name": "add.1", "kind": "element"}]}]


def test_visible_cuts_and_escapes() -> None:
    assert visible("a\nb\u2028\x00") == "a\\x0ab\\u2028\\x00"
    assert visible("é漢") == "é漢"
    assert len(visible("x" * 10 * LONGEST)) == LONGEST


@pytest.mark.parametrize(("value", "text"), [(0.0123, "12 ms"), (3.4142, "3.41 s"), (61.26, "61.3 s"), (12345.6, "12346 s")])
def test_seconds(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 4, 6, 7], "0-2, 4, 6-7")])
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


def test_only_limits_that_can_be_raised_are_said_to_be() -> None:
    report = unverified()
    assert "the limit nodes=40000 was reached; raise it with --limit" in stopped(report)
    fixed = stopped(dataclasses.replace(report, stopped=Stopped(StopReason.LIMIT, limit="obligation-nodes")))
    assert fixed == "the fixed limit obligation-nodes was reached"


@pytest.mark.parametrize("render", READABLE)
def test_a_counterexample_is_shown_with_both_values(render: Callable[[Report], str]) -> None:
    values = Difference(3, 1, (13, 0), (-0.103136, -0.103137), (0.5126252, 0.5126254), 0.02)
    unbounded = Difference(4, 0, (), (None, None), (1.0, None))
    report = dataclasses.replace(
        unverified(), verdict=Verdict.REFUTED, stopped=None, counterexample=Counterexample(0, "wide", (values, unbounded))
    )
    text = render(report).replace("\\", "").replace("\n", " ")
    for part in (
        "output 3[13, 0] on device 1 is 0.5126253",
        "-0.1031365",
        "0.02",
        "output 4[] on device 0 is above 1",
        "unbounded",
        "assume",
    ):
        assert part in text
    again = Report.from_json(report.to_json())
    assert again.counterexample == report.counterexample
