"""Times as they are sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from jupyter_agentbox.core.times import json_time, time_from_json
from tests.samples import NOON


def test_times_are_sent_in_utc_with_milliseconds() -> None:
    assert json_time(None) is None
    assert json_time(NOON.astimezone(timezone(timedelta(hours=2)))) == "2026-05-01T12:00:00.000Z"


def test_a_time_is_read_with_its_zone_and_nothing_else_is_one() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert time_from_json("2026-05-01T12:00:00Z") == time_from_json("2026-05-01T14:00:00+02:00") == noon
    assert [time_from_json(value) for value in ("2026-05-01T12:00:00", "soon", "", None, 5, ["2026"])] == [None] * 6


def test_a_time_that_utc_cannot_express_is_none() -> None:
    assert time_from_json("9999-12-31T23:59:59-01:00") is None
    assert time_from_json("0001-01-01T00:00:00+01:00") is None
