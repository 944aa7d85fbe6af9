"""Keeps Python's garbage collector from repeatedly stopping the service to examine long-lived objects."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

#: Seconds that a full collection may take. With 2,000 waiting requests, it takes half a second.
LONG: Final = 0.05
#: Seconds until frozen objects are examined again, which frees those that have become garbage.
AGAIN: Final = 600.0

_OLDEST: Final = 2


class LongCollections:
    """Freezes the surviving objects after a full collection that took long.

    Otherwise Python examines every object that waiting requests keep in memory each time the number of objects has
    grown by a quarter, which a few lists of waiting requests are enough for. Nobody gets an answer meanwhile.

    Parameters
    ----------
    now : callable
        Returns monotonic seconds.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._began = 0.0
        self._set_aside_at = now()

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        """Handle the start or the end of a collection, as an entry of `gc.callbacks`."""
        if info["generation"] != _OLDEST:
            return
        if phase == "start":
            if self._now() - self._set_aside_at > AGAIN:
                self._set_aside_at = self._now()
                gc.unfreeze()
            self._began = self._now()
        elif self._now() - self._began > LONG:
            gc.freeze()


@contextmanager
def kept_short(now: Callable[[], float] = time.perf_counter) -> Iterator[None]:
    """Keep collections short in this context. `now` is passed to `LongCollections`."""
    collections = LongCollections(now)
    gc.callbacks.append(collections)
    try:
        yield
    finally:
        gc.callbacks.remove(collections)
        gc.unfreeze()
