"""Compares this package with others on the same work, in turn."""
