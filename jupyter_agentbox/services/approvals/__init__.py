"""Approval requests: kept, announced, decided."""
