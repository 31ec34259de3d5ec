"""Rewrite rules of Scalify: one module a family, one declaration a rule."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

from scalify.prove.rule import Entry, Record
from scalify_rules import exponential, functions, indexing, laws, order, ring, sums

RECORD = "proofs.json"  #: of each entry the digest of its declaration, the kind of its proof and how long that took


def catalogue() -> tuple[Entry, ...]:
    """All rules, in the order in which families build on one another, then the laws that the term constructors apply by themselves."""
    entries: tuple[Entry, ...] = (*ring.RULES, *sums.RULES, *indexing.RULES, *order.RULES, *exponential.RULES, *functions.RULES, *laws.LAWS)
    known = json.loads(files(__name__).joinpath(RECORD).read_text(encoding="utf-8"))
    return tuple([_with_proof(entry, known.get(entry.name)) for entry in entries])


def _with_proof(entry: Entry, found: dict[str, str | int] | None) -> Entry:
    if found is None:
        return entry
    return replace(entry, proof=Record(str(found["digest"]), str(found["proof"]), int(found["milliseconds"])))
