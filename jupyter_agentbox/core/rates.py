"""Rate limits."""

from __future__ import annotations


class Rate:
    """A rate limit: a maximum number of events per period.

    Parameters
    ----------
    most : int
        Maximum number of events.
    seconds : float
        Length of the period, which begins with its first event.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._count = 0
        self._began: float | None = None

    def allows(self, now: float) -> bool:
        """Count an event at `now`, in seconds, and return whether it is within the limit."""
        if self._began is None or now - self._began >= self._seconds:
            self._began, self._count = now, 0
        self._count += 1
        return self._count <= self._most
