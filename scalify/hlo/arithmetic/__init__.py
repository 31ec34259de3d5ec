"""What numbers are to the reference interpreter: one :class:`~scalify.hlo.arithmetic.domain.Domain` for each way to compute with floats."""
