"""Opaque cursors for pages of newest-first lists."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """Return a time as whole microseconds since 1970 UTC, exactly.

    Raises
    ------
    TypeError
        If the time has no time zone.
    """
    return (time - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """Return the UTC time that is this many microseconds after 1970."""
    return _EPOCH + count * _MICROSECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The position after the last row of a page.

    Parameters
    ----------
    created_at : int
        In microseconds since 1970 UTC.
    id : str
        The row's id, which breaks ties.
    """

    created_at: int
    id: str

    def encode(self) -> str:
        """Return the cursor as URL-safe text."""
        return base64.urlsafe_b64encode(json.dumps([self.created_at, self.id]).encode("ascii")).decode("ascii")

    @classmethod
    def decode(cls, text: str) -> Cursor:
        """Read the result of `encode`.

        Raises
        ------
        ValueError
            If the text is not a valid cursor.
        """
        try:
            created_at, id = json.loads(base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True))
        except (binascii.Error, ValueError, TypeError, RecursionError):
            raise ValueError(f"{text!r:.80} is not a cursor of this list") from None
        if type(created_at) is not int or abs(created_at) >= 2**63 or not isinstance(id, str):
            raise ValueError(f"{text!r:.80} is not a cursor of this list")
        return cls(created_at=created_at, id=id)
