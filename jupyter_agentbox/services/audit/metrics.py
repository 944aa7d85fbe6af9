"""What a Jupyter server counts of its audit, for Prometheus: it is shown at `/metrics`, with what the server counts."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter

from .deliveries import Fate

_RECORDS: Final = Counter("agentbox_audit_records", "Records for places outside, by what became of them.", ["fate"])


def count_records(fate: Fate, records: int) -> None:
    """Count what became of records."""
    _RECORDS.labels(fate.value).inc(records)
