"""Obligations and their proof by saturation. The only importer of egglog."""
