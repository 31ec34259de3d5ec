"""Tests of scalify.refute."""
