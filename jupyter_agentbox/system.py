"""The system clock and random ids."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


class SystemClock:
    """A `Clock` with the machine's time."""

    def now(self) -> datetime:
        """Return the present time in UTC."""
        return datetime.now(UTC)


class RandomIds:
    """An `Ids` with almost 128 random bits per id."""

    def new(self) -> str:
        """Return a new unguessable, URL-safe id of 22 characters, the first of which is never `-`, as in an option."""
        while (id := secrets.token_urlsafe(16)).startswith("-"):
            pass
        return id
