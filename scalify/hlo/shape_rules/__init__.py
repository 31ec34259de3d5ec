"""Shape rules: what the shape of an instruction must be, given its operands.

A rule takes the instruction, its operands' shapes and the module. It returns the shape that it inferred, or None when the declared
shape is free or has been compared already, and raises :class:`HloError` (without a place) when operands or attributes contradict
each other. Arity, the number of called computations and the presence of required attributes are checked before a rule runs.
Layout is never looked at, and a dynamic dimension counts with its bound.

Source: XLA's HLO semantics page, ``xla/service/shape_inference.cc`` and ``hlo_verifier.cc`` (strict element types).
"""
