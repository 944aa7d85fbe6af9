"""Times as JSON has them: ISO 8601."""

from __future__ import annotations

from datetime import UTC, datetime


def json_time(value: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC with milliseconds and ``Z``."""
    if value is None:
        return None
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_from_json(value: object) -> datetime | None:
    """Return a time in ISO 8601 with a time zone, in UTC; ``None`` if the value is anything else."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
        return time.astimezone(UTC) if time is not None and time.tzinfo is not None else None
    except (ValueError, OverflowError):  # the latter: in UTC, it is before the year 1 or after the year 9999
        return None
