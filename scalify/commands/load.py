"""Graphs and their relation from files, checked, ready for the prover. Every error names the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scalify.commands.files import LARGEST_GRAPH
from scalify.errors import InputError
from scalify.hlo.load import load as read_module
from scalify.hlo.shapes import check

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scalify.hlo.module import Module
    from scalify.relation.model import Relation


def load(path: Path) -> Module:
    """The module in the file, its shapes checked.

    Raises:
        HloError: it cannot be read, or contradicts itself.
    """
    module = read_module(path, LARGEST_GRAPH)
    try:
        check(module)
    except InputError as error:
        raise error.at(str(path)) from None
    return module


def load_relation(path: Path, baseline: Module, distributed: Sequence[Module]) -> Relation:
    """The relation in the file, as it applies to these modules.

    Raises:
        RelationError: it is malformed, or contradicts them.
    """
    from scalify.relation.parse import read
    from scalify.relation.resolve import resolve

    return resolve(read(path), baseline, distributed)
