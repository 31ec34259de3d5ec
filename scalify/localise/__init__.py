"""From what could not be proved to the instruction that broke it."""
