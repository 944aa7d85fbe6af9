"""The clock and the ids that the product runs on."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


class SystemClock:
    """A `Clock` that tells the machine's time."""

    def now(self) -> datetime:
        """Return the present time in UTC."""
        return datetime.now(UTC)


class RandomIds:
    """An `Ids` of almost 128 random bits each."""

    def new(self) -> str:
        """Return a new unguessable id, URL-safe, 22 characters; the first is no `-`, as of options and formulas."""
        while (id := secrets.token_urlsafe(16)).startswith("-"):
            pass
        return id
