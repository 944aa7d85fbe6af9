"""Parsing of times as people write them on a command line."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes"}


def parse_time(text: str, now: datetime) -> datetime:
    """Return the time that a text describes.

    Parameters
    ----------
    text : str
        ``today``, ``yesterday``, an age (``7d``, ``12h``, ``30m``), or ISO 8601; without a time zone, in that of `now`.
    now : datetime
        The present time, with time zone.

    Raises
    ------
    ValueError
        If it is not a time.
    """
    days = {"today": 0, "yesterday": 1}.get(text)
    if days is not None:
        # By the calendar: a day on which the clocks change does not have 24 hours.
        midnight = (now.replace(tzinfo=None) - timedelta(days=days)).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight.astimezone()
    try:
        if ago := re.fullmatch("([0-9]{1,6})([dhm])", text):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        time = datetime.fromisoformat(text)
    except (OverflowError, ValueError):
        raise ValueError(
            f"{text!r:.80} is not a time: give today, yesterday, 7d, 12h, 30m, or 2026-11-22T08:00"
        ) from None
    return time if time.tzinfo is not None else time.astimezone()
