"""Delayed calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call, if it has not been made."""


#: Calls a function after a delay in seconds.
Later = Callable[[float, Callable[[], None]], Timer]


def in_a_thread(seconds: float, act: Callable[[], None]) -> Timer:
    """Call a function after a delay, in a separate thread: the one that runs cells may be blocked."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer
