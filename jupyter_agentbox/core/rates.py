"""How often something may happen."""

from __future__ import annotations


class Rate:
    """So many times in so many seconds.

    Parameters
    ----------
    most : int
        How many times.
    seconds : float
        In which time; it begins with the first of them.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._count = 0
        self._began: float | None = None

    def allows(self, now: float) -> bool:
        """Count one more time, at `now` in seconds, and return whether it may happen."""
        if self._began is None or now - self._began >= self._seconds:
            self._began, self._count = now, 0
        self._count += 1
        return self._count <= self._most
