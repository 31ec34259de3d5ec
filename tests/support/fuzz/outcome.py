"""What a pair of graphs and a relation give, end to end, and within which bounds."""

from __future__ import annotations

import re
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalify.api import Options, verify
from scalify.errors import InputError
from scalify.hlo.load import load_bytes
from scalify.hlo.shapes import check
from scalify.relation.parse import parse
from scalify.relation.resolve import resolve
from scalify.report import html, markdown, sarif, terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from scalify.hlo.module import Module

SECONDS = 10.0  #: of processor time, for one input
LONGEST_MESSAGE = 2000


class TooSlowError(BaseException):
    """Not an Exception, so that nothing on the way catches it."""


@dataclass(frozen=True)
class Input:
    """Graphs as modules or as the bytes of files; the relation as text."""

    baseline: Module | bytes
    distributed: Sequence[Module | bytes]
    relation: str
    exact: bool = False


def outcome(given: Input) -> str:
    """The verdict with the reason why the search stopped, or ``input`` with the kind of a mistake that was told in one line.

    :raises AssertionError: the message is no line for a user. Every other exception is a defect of Scalify.
    """
    try:
        modules = [load_bytes(m, "file") if isinstance(m, bytes) else m for m in (given.baseline, *given.distributed)]
        for module in modules:
            check(module)
        relation = resolve(parse(given.relation, "relation.yaml"), modules[0], modules[1:])
        report = verify(modules[0], modules[1:], relation, Options(precision="exact" if given.exact else "real"))
    except InputError as error:
        text = str(error)
        assert "\n" not in text
        assert len(text) < LONGEST_MESSAGE
        return f"input {type(error).__name__}"
    for rendering in (terminal, markdown, html, sarif):
        rendering.render(report)
    report.to_json()
    return f"{report.verdict.value} {report.stopped.reason.value if report.stopped else ''}".strip()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises :class:`TooSlowError` in the block after so much processor time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def timed(given: Input) -> tuple[str, float]:
    """The outcome and the processor time that it took."""
    start = time.process_time()
    with within(SECONDS):
        found = outcome(given)
    return found, time.process_time() - start


def same(module: Module, mesh: str = "{x: 1}", *, baseline: Module | None = None, more: str = "") -> Input:
    """A module against itself (or against ``baseline``), everything replicated and all results compared."""
    lines = ["version: 1", f"mesh: {mesh}"] + ([more] if more else [])
    for name, shapes in (("inputs", module.parameter_shapes), ("outputs", module.output_shapes)):
        rows = [f"  - {{baseline: {n}, distributed: {n}}}" for n, shape in enumerate(shapes) if shape.is_array]
        lines += [f"{name}:", *rows] if rows else [f"{name}: []"]
    return Input(baseline or module, [module], "\n".join(lines))


def place(error: BaseException) -> str:
    """Where in Scalify an exception was raised, for a summary."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if re.search(r"[/\\]scalify[/\\]", code.co_filename):
            frames.append(f"{code.co_filename.rpartition('scalify')[2]}:{code.co_name}")
        trace = trace.tb_next
    return f"{type(error).__name__} in {' < '.join(frames[:-4:-1])}"
