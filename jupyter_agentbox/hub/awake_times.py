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
        """Return for how many seconds each of these ids has been there. Others are forgotten.

        What passed before a late look counts from the next look on: if the process was stopped, those who were cut off
        have until then to come back.
        """
        now = self._clock()
        passed = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        before = {id: self._seconds.get(id) for id in ids}
        counted = min(passed, self._longest)
        self._seconds = {id: 0.0 if seconds is None else seconds + counted for id, seconds in before.items()}
        if passed > self._longest:
            return {id: seconds or 0.0 for id, seconds in before.items()}
        return self._seconds
