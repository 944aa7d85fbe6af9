"""Records as OpenTelemetry logs: the JSON of OTLP 1, as collectors take it over HTTP and read it from files.

A record is one ``LogRecord``. Its body is the record as one line of JSON, nothing left out; what one searches for is in
attributes, whose names begin with ``agentbox.``. See `docs/reference/settings.md` for what each means.
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
#: Attribute -> where it stands in a record.
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
#: What an administrator may want to look at.
_ALARMING: Final = frozenset({Status.REJECTED.value, Status.EXPIRED.value, Status.ORPHANED.value})


class Severity(Enum):
    """How much a record is worth a look: OpenTelemetry's number and text."""

    INFO = 9
    WARN = 13
    ERROR = 17


def severity_of(record: Mapping[str, JsonValue]) -> Severity:
    """Return how much a record is worth a look.

    ``ERROR`` for records that are missing, ``WARN`` for what was refused, not answered, revoked or failed.
    """
    if record.get("event") == "missing":
        return Severity.ERROR
    is_alarming = (
        record.get("event") == "revoked"
        or record.get("status") in _ALARMING
        or _at(record, ("outcome", "state")) == "failed"
    )
    return Severity.WARN if is_alarming else Severity.INFO


def log_record(
    record: Mapping[str, JsonValue], *, body: str, made_at: datetime | None, observed_at: datetime
) -> JsonObject:
    """Return a record as a ``LogRecord``.

    Parameters
    ----------
    record : mapping
        What it says.
    body : str
        The record as text.
    made_at : datetime or None
        When it was made; ``None`` if nobody knows.
    observed_at : datetime
        When it came to who hands it on.
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
            if (value := _any_value(_at(record, path))) is not None
        ],
    }
    event = record.get("event")
    if isinstance(event, str):
        found["eventName"] = f"agentbox.{event}"
    return found if made_at is None else {"timeUnixNano": _nanoseconds(made_at), **found}


def export_request(records: Sequence[JsonObject], *, service: str) -> JsonObject:
    """Return an ``ExportLogsServiceRequest``: what is posted, or one line of a file.

    Parameters
    ----------
    records : sequence of JsonObject
        As `log_record` makes them.
    service : str
        The resource's ``service.name``.
    """
    resource: JsonObject = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    scope: JsonObject = {"scope": {"name": "jupyter_agentbox"}, "logRecords": list(records)}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}


def read_log_record(line: bytes, *, observed_at: datetime) -> JsonObject:
    """Return a line of a trail as a ``LogRecord``; what is none, as it is: let the receiver see it."""
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


def _at(record: Mapping[str, JsonValue], path: Sequence[str]) -> JsonValue:
    found: JsonValue = dict(record)
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _any_value(value: JsonValue) -> JsonObject | None:
    """Return a value as OTLP's ``AnyValue``, if it is a text or a whole number of 64 bits; JSON has those as texts."""
    if isinstance(value, str):
        return {"stringValue": value.encode("utf-8", "replace").decode("utf-8")}
    if type(value) is int and -(2**63) <= value < 2**63:
        return {"intValue": str(value)}
    return None


def _nanoseconds(at: datetime) -> str:
    """Return a time in nanoseconds since 1970, as a text; OTLP has none before, and 0 is unknown."""
    return str(max(0, (at - _EPOCH) // timedelta(microseconds=1)) * 1000)
