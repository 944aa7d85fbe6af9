from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.core.pagination import Cursor, microseconds
from tests.samples import texts


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@given(st.integers(min_value=-(2**62), max_value=2**62), texts)
def test_a_cursor_reads_back(created_at: int, id: str) -> None:
    cursor = Cursor(created_at=created_at, id=json.loads(json.dumps(id)))

    assert Cursor.decode(cursor.encode()) == cursor


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "ø",
        "%%%%",
        encoded(None),
        encoded([1]),
        encoded([1, "a", "b"]),
        encoded(["1", "a"]),
        encoded([True, "a"]),
        encoded([1.5, "a"]),
        encoded([2**63, "a"]),
        encoded([1, 2]),
        encoded({"a": 1, "b": 2}),
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    ],
)
def test_what_is_no_cursor_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        Cursor.decode(text)


@given(st.text())
def test_any_text_is_a_cursor_or_a_value_error(text: str) -> None:
    try:
        Cursor.decode(text)
    except ValueError:
        return


def test_times_count_exactly_and_in_every_zone() -> None:
    time = datetime(2026, 5, 1, 12, 0, 0, 1, tzinfo=UTC)

    assert microseconds(time) == 1_777_636_800_000_001
    assert microseconds(time.astimezone(timezone(timedelta(hours=-8)))) == microseconds(time)


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(TypeError):
        microseconds(datetime(2026, 5, 1))  # noqa: DTZ001 - that is the point
