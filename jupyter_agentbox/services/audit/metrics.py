"""Prometheus metrics of the audit trail, exposed with the server's own at `/metrics`."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter

from .senders import DeliveryResult

_RECORDS: Final = Counter("agentbox_audit_records", "Records for audit sinks, by what became of them.", ["result"])


def count_records(result: DeliveryResult, records: int) -> None:
    """Count records that were delivered, rejected or lost."""
    _RECORDS.labels(result.value).inc(records)
