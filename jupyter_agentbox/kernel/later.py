"""Does something after a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Something that will be done after a time."""

    def cancel(self) -> None:
        """Do it no more, if it was not done yet."""


#: Does something after so many seconds.
Later = Callable[[float, Callable[[], None]], Timer]


def in_a_thread(seconds: float, act: Callable[[], None]) -> Timer:
    """Do something after a time, in a thread of its own: the one that runs cells may be blocked meanwhile."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer
