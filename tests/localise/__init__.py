"""Tests of scalify.localise."""
