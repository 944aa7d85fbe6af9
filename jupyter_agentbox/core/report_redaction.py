"""Redaction of records that users' servers report: users own these servers, and could have them record secrets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from .audit_trail import sealed_again
from .calls import JsonObject, JsonValue
from .redaction import Redaction
from .reports import Report

#: The fields with arguments.
_ARGUMENTS: Final = ("arguments", "edited_arguments")


def redacted_report(report: Report, redaction: Redaction) -> Report:
    """Return a report whose line has no secrets."""
    kept = _without_secrets(report.fields, redaction)
    return report if kept == report.fields else replace(report, line=sealed_again(kept))


def redacted_line(line: bytes, redaction: Redaction) -> bytes:
    """Return a record, one line of JSON, without secrets; as it is if it has none."""
    record: JsonObject = json.loads(line)
    kept = _without_secrets(record, redaction)
    return line if kept == record else sealed_again(kept)


def _without_secrets(record: JsonObject, redaction: Redaction) -> JsonObject:
    """Return a record without secrets, where `Redaction.request` finds them in a request.

    The record is untrusted: any field may have any type.
    """
    arguments = [value for name in _ARGUMENTS if isinstance(value := record.get(name), dict)]
    secrets = frozenset[str]().union(*map(redaction.secrets, arguments))

    def hidden(value: JsonValue) -> JsonValue:
        return redaction.value(value, secrets)

    def error(value: JsonValue) -> JsonValue:
        return redaction.error(value, secrets) if isinstance(value, str) else hidden(value)

    def decision(value: JsonValue) -> JsonValue:
        return _changed(value, {"reason": hidden}) if isinstance(value, dict) else hidden(value)

    def votes(value: JsonValue) -> JsonValue:
        return [decision(vote) for vote in value] if isinstance(value, list) else hidden(value)

    def outcome(value: JsonValue) -> JsonValue:
        return _changed(value, {"error": error, "questions": hidden}) if isinstance(value, dict) else hidden(value)

    of_request = {"decision": decision, "votes": votes, "outcome": outcome}
    return _changed(record, {**dict.fromkeys(_ARGUMENTS, hidden), **of_request})


def _changed(value: JsonObject, changes: Mapping[str, Callable[[JsonValue], JsonValue]]) -> JsonObject:
    """Return an object with some of its members changed."""
    return {name: changes[name](member) if name in changes else member for name, member in value.items()}
