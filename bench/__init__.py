"""Compares this package with ipybox on the same work, in turn."""
