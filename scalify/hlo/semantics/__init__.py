"""What each HLO opcode computes, in NumPy, on all devices at once."""
