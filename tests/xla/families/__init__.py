"""Families of instructions: each step adds some of one kind to a program."""
