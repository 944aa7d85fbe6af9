"""Records as OpenTelemetry logs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from jupyter_agentbox.core.otlp import Severity, export_request, log_record, read_log_record, severity_of

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("record", "severity"),
    [
        ({"event": "ended", "status": "approved", "outcome": {"state": "succeeded"}}, Severity.INFO),
        ({"event": "ended", "status": "approved", "outcome": {"state": "failed"}}, Severity.WARN),
        ({"event": "decided", "status": "rejected", "outcome": None}, Severity.WARN),
        ({"event": "ended", "status": "expired"}, Severity.WARN),
        ({"event": "revoked"}, Severity.WARN),
        ({"event": "missing"}, Severity.ERROR),
    ],
)
def test_what_was_refused_or_is_missing_is_worth_a_look(record: dict[str, Any], severity: Severity) -> None:
    assert severity_of(record) is severity


def test_only_texts_and_numbers_of_64_bits_are_attributes() -> None:
    record = {"event": None, "sequence": 2**63, "user": "a\ud800", "tool": ["x"], "server": True, "status": "approved"}
    made = log_record(record, body="b", made_at=datetime(1, 1, 1, tzinfo=UTC), observed_at=NOON)
    assert made["attributes"] == [
        {"key": "agentbox.user", "value": {"stringValue": "a?"}},
        {"key": "agentbox.status", "value": {"stringValue": "approved"}},
    ]
    assert (made["timeUnixNano"], made["observedTimeUnixNano"]) == ("0", "1777636800000000000")
    assert "eventName" not in made


@pytest.mark.parametrize(
    "line", [b"no JSON", b"[]", b'{"time": "2026-05-01T12:00:00"}', b'{"time": 3}', b"[" * 100_000]
)
def test_what_is_no_record_is_handed_on_as_it_is(line: bytes) -> None:
    made = read_log_record(line, observed_at=NOON)
    assert made["body"] == {"stringValue": line.decode()}
    assert made["attributes"] == []
    assert "timeUnixNano" not in made


def test_a_record_has_its_time_its_event_and_its_number() -> None:
    made = read_log_record(b'{"time": "2026-05-01T12:00:00Z", "event": "asked", "sequence": 7}', observed_at=NOON)
    assert (made["timeUnixNano"], made["eventName"]) == ("1777636800000000000", "agentbox.asked")
    assert {"key": "agentbox.sequence", "value": {"intValue": "7"}} in made["attributes"]  # type: ignore[operator]


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59.999999-23:59", "2554-07-21T23:34:33.709552Z"])
def test_a_time_for_which_the_protocol_has_no_number_is_left_out(time: str) -> None:
    assert "timeUnixNano" not in read_log_record(json.dumps({"time": time}).encode(), observed_at=NOON)


def test_the_last_time_of_the_protocol_and_the_times_before_its_first_are_numbers() -> None:
    times = ["2554-07-21T23:34:33.709551Z", "0001-01-01T00:00:00+23:59"]
    found = [read_log_record(json.dumps({"time": time}).encode(), observed_at=NOON)["timeUnixNano"] for time in times]
    assert found == ["18446744073709551000", "0"]


def test_the_name_of_an_event_has_only_whole_characters() -> None:
    assert read_log_record(b'{"event": "\\ud800x"}', observed_at=NOON)["eventName"] == "agentbox.?x"


def test_a_request_names_the_service() -> None:
    made: Any = export_request([{"body": {"stringValue": "x"}}], service="s")
    (resource,) = made["resourceLogs"]
    assert resource["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "s"}}]
    assert resource["scopeLogs"][0]["logRecords"] == [{"body": {"stringValue": "x"}}]
