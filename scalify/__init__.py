"""Scalify proves that a distributed HLO graph computes what a single-device HLO graph computes."""

__version__ = "0.1.0"
