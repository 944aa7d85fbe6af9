"""Times as they are sent."""

from __future__ import annotations

from datetime import timedelta, timezone

from jupyter_agentbox.core.times import json_time
from tests.samples import NOON


def test_times_are_sent_in_utc_with_milliseconds() -> None:
    assert json_time(None) is None
    assert json_time(NOON.astimezone(timezone(timedelta(hours=2)))) == "2026-05-01T12:00:00.000Z"
