from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jupyter_agentbox.times import parse_time

NOW = datetime(2026, 11, 22, 14, 30, tzinfo=UTC).astimezone()


def test_days_begin_at_midnight_where_the_person_is() -> None:
    today, yesterday = parse_time("today", NOW), parse_time("yesterday", NOW)
    assert (today.date(), today.hour, today.minute) == (NOW.date(), 0, 0)
    assert yesterday.date() == NOW.date() - timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "ago"), [("7d", timedelta(days=7)), ("12h", timedelta(hours=12)), ("30m", timedelta(minutes=30))]
)
def test_how_long_ago_is_counted_from_now(text: str, ago: timedelta) -> None:
    assert parse_time(text, NOW) == NOW - ago


def test_a_time_in_iso_8601_is_local_unless_it_says_its_zone() -> None:
    assert parse_time("2026-11-22T08:00:00+00:00", NOW) == datetime(2026, 11, 22, 8, tzinfo=UTC)
    assert parse_time("2026-11-22T08:00", NOW) == datetime(2026, 11, 22, 8).astimezone()  # local


@pytest.mark.parametrize("text", ["", "soon", "7w", "-1d", "999999d", "2026-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_time(text, NOW)
