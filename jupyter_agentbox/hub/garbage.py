"""Python's garbage collector, kept from stopping the service again and again for objects that stay."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

#: Seconds that a collection of all objects may take. With 2,000 requests that wait, it takes half a second.
LONG: Final = 0.05
#: Seconds until what was set aside is looked at again: what has become garbage there is freed then.
AGAIN: Final = 600.0

_OLDEST: Final = 2


class LongCollections:
    """Sets aside, after a collection of all objects that took long, those that are left.

    While nothing is set aside Python looks through all that a waiting request keeps in memory each time that a quarter
    as many objects were made, as for some lists of what waits. Nobody gets an answer meanwhile.

    Parameters
    ----------
    now : callable
        Seconds that only grow.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._began = 0.0
        self._set_aside_at = now()

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        """Take what `gc.callbacks` are told at the beginning and at the end of a collection."""
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
    """Keep collections short meanwhile; the clock is that of `LongCollections`."""
    collections = LongCollections(now)
    gc.callbacks.append(collections)
    try:
        yield
    finally:
        gc.callbacks.remove(collections)
        gc.unfreeze()
