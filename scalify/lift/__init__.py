"""Both programs as terms over labelled axes in one hash-consed store."""
