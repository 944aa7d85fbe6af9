"""Audit records as OpenTelemetry logs, in OTLP 1's JSON format, for collectors over HTTP or from files.

A record is one ``LogRecord``. Its body is the complete record as one line of JSON; its searchable fields are also
attributes, whose names begin with ``agentbox.``. See `docs/reference/settings.md` for their meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from .approvals import Status
from .calls import JsonObject, JsonValue

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Attribute -> its path in a record.
_ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "event": ("event",),
    "chain": ("chain",),
    "sequence": ("sequence",),
    "hub": ("hub",),
    "user": ("user",),
    "hub_server": ("hub_server",),
    "request_id": ("request_id",),
    "server": ("server",),
    "tool": ("tool",),
    "call_digest": ("call_digest",),
    "asked_by": ("asked_by",),
    "status": ("status",),
    "effect": ("evaluation", "effect"),
    "answer": ("decision", "answer"),
    "reviewer": ("decision", "reviewer"),
    "via": ("decision", "via"),
    "outcome": ("outcome", "state"),
    "isolation": ("isolation",),
    "kernel_id": ("kernel_id",),
    "notebook_path": ("notebook_path",),
}
#: Statuses that an administrator may want to look at.
_ALARMING: Final = frozenset({Status.REJECTED.value, Status.EXPIRED.value, Status.ORPHANED.value})


class Severity(Enum):
    """The severity of a record: OpenTelemetry's number and text."""

    INFO = 9
    WARN = 13
    ERROR = 17


def severity_of(record: Mapping[str, JsonValue]) -> Severity:
    """Return a record's severity.

    ``ERROR`` for missing records; ``WARN`` for calls that were refused, unanswered, revoked or failed.
    """
    if record.get("event") == "missing":
        return Severity.ERROR
    is_alarming = (
        record.get("event") == "revoked"
        or record.get("status") in _ALARMING
        or field_at(record, ("outcome", "state")) == "failed"
    )
    return Severity.WARN if is_alarming else Severity.INFO


def log_record(
    record: Mapping[str, JsonValue], *, body: str, made_at: datetime | None, observed_at: datetime
) -> JsonObject:
    """Convert a record to a ``LogRecord``.

    Parameters
    ----------
    record : mapping
        The record's fields.
    body : str
        The record as text.
    made_at : datetime or None
        When it was made; ``None`` if unknown.
    observed_at : datetime
        When the forwarder received it.
    """
    severity = severity_of(record)
    found: JsonObject = {
        "observedTimeUnixNano": _nanoseconds(observed_at),
        "severityNumber": severity.value,
        "severityText": severity.name,
        "body": {"stringValue": body},
        "attributes": [
            {"key": f"agentbox.{name}", "value": value}
            for name, path in _ATTRIBUTES.items()
            if (value := _any_value(field_at(record, path))) is not None
        ],
    }
    event = record.get("event")
    if isinstance(event, str):
        found["eventName"] = _text(f"agentbox.{event}")
    made = None if made_at is None else _nanoseconds(made_at)
    return found if made is None else {"timeUnixNano": made, **found}


def export_request(records: Sequence[JsonObject], *, service: str) -> JsonObject:
    """Return an ``ExportLogsServiceRequest``, to be posted or written as a line of a file.

    Parameters
    ----------
    records : sequence of JsonObject
        Results of `log_record`.
    service : str
        The resource's ``service.name``.
    """
    resource: JsonObject = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    scope: JsonObject = {"scope": {"name": "jupyter_agentbox"}, "logRecords": list(records)}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}


def read_log_record(line: bytes, *, observed_at: datetime) -> JsonObject:
    """Convert a line of a trail to a ``LogRecord``; pass on an invalid line unchanged, for the receiver to see."""
    body = line.decode("utf-8", "replace")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    fields = record if isinstance(record, dict) else {}
    return log_record(fields, body=body, made_at=_time(fields.get("time")), observed_at=observed_at)


def _time(given: JsonValue) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(given))
    except ValueError:
        return None
    return None if found.tzinfo is None else found


def field_at(record: Mapping[str, JsonValue], path: Sequence[str]) -> JsonValue:
    """Return the field of a record at a path; ``None`` if there is none."""
    found: JsonValue = dict(record)
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _any_value(value: JsonValue) -> JsonObject | None:
    """Return a value as OTLP's ``AnyValue`` if it is a string or a 64-bit integer, which JSON has as a string."""
    if isinstance(value, str):
        return {"stringValue": _text(value)}
    if type(value) is int and -(2**63) <= value < 2**63:
        return {"intValue": str(value)}
    return None


def _text(value: str) -> str:
    """Return a text without lone surrogates: a receiver would refuse everything that is sent together with them."""
    return value.encode("utf-8", "replace").decode("utf-8")


def _nanoseconds(at: datetime) -> str | None:
    """Return a time in nanoseconds since 1970, as text. OTLP has no earlier times, and 0 means unknown.

    ``None`` if it is too late for OTLP: users choose the times of their own records.
    """
    nanoseconds = max(0, (at - _EPOCH) // timedelta(microseconds=1)) * 1000
    return str(nanoseconds) if nanoseconds < 2**64 else None
