"""The format of times for pages and programs."""

from __future__ import annotations

from datetime import UTC, datetime


def json_time(value: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC with milliseconds and ``Z``."""
    if value is None:
        return None
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
