"""Prometheus metrics of the audit, exposed with the server's own at `/metrics`."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter

from .deliveries import Fate

_RECORDS: Final = Counter("agentbox_audit_records", "Records for places outside, by what became of them.", ["fate"])


def count_records(fate: Fate, records: int) -> None:
    """Count records with this fate."""
    _RECORDS.labels(fate.value).inc(records)
