"""Rewrite rules of Scalify: one module a family, one declaration a rule."""
