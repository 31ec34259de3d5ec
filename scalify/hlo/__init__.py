"""The immutable HLO module: readers, printer, opcode table, shape check, reference interpreter."""
