"""Machine proofs of rewrite rules, of the normal forms' laws and of transfer functions.

A statement is proved for arbitrary sizes with z3 where that can be had, else checked exhaustively over all small sizes with symbolic elements; each
side condition is shown to be needed by a counterexample that appears when it is dropped. :mod:`scalify.prove.proof.axioms` lists what is believed.
"""
