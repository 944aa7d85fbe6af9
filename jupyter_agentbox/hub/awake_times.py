"""How long requests have been kept, not counting the time in which the process was stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

#: The most that counts of what passes between two looks, as a multiple of the usual time: for the rest, the process was
#: stopped.
_LATE: Final = 1.5


class AwakeTimes:
    """Counts the time in which callers could come back: a process that is stopped or suspended answers nobody.

    Parameters
    ----------
    look_every : float
        Seconds after which `look` is usually called again.
    clock : callable
        Returns monotonic seconds.
    """

    def __init__(self, *, look_every: float, clock: Callable[[], float]) -> None:
        self._longest = look_every * _LATE
        self._clock = clock
        self._looked_at: float | None = None
        self._seconds: dict[str, float] = {}

    def look(self, ids: Iterable[str]) -> Mapping[str, float]:
        """Return for how many seconds each of these ids has been there. Others are forgotten."""
        now = self._clock()
        passed = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        counted = min(passed, self._longest)
        self._seconds = {id: self._seconds[id] + counted if id in self._seconds else 0.0 for id in ids}
        return self._seconds
