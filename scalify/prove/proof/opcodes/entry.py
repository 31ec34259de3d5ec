"""Transfer functions as entries of the table of proofs."""

from __future__ import annotations

from scalify.lift import transfer
from scalify.prove.proof.entry import Proof
from scalify.prove.proof.opcodes.table import KIND, TRANSFERS
from scalify.prove.proof.table import Row

WHY = "the definition of the opcode, written apart from the lifter"


def rows() -> list[Row]:
    """The transfer functions that have a definition to be checked against, in the order of the table."""
    return [Row("transfer", t.opcode, t.family, t.statement, "", WHY, KIND) for t in TRANSFERS.values()]


def missing() -> list[Row]:
    """Opcodes that are lifted and have no definition: their proof fails."""
    return [Row("transfer", o, "none", "nothing is stated", "", "", "") for o in transfer.TRANSFERS if o not in TRANSFERS]


def prove(opcode: str, every: int = 1) -> Proof:
    """The check of a transfer function, on every n-th operation only where asked."""
    if opcode not in TRANSFERS:
        return Proof("", "the opcode is lifted, but there is no definition of it to check that against")
    found = TRANSFERS[opcode].check(every)
    return Proof("", found.wrong) if found.wrong else Proof(KIND)
