"""Grants: given, counted, listed and ended."""
