"""Approval requests: storage, announcement, decisions."""
