"""Checks of the transfer functions: what each makes of an opcode, against the opcode's definition, for all small shapes and attributes.

``specification`` defines each opcode element by element and shares nothing with the lifter; ``meaning`` reads lifted terms; ``cases`` enumerates shapes
and attributes; ``checks`` compares. Elements are symbols, so that two results are equal only if they are the same function of the operands.
"""
