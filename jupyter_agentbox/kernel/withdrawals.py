"""Tells the server that nobody waits for calls any more; of many that end together, in one message.

A message of the kernel costs the server and every page that has the notebook open some work, and an interrupt ends all
calls of a cell in a moment. So the first is told of at once, and those of the moment after it together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

from jupyter_agentbox.protocol.messages import Cancel

from .later import Later, Timer, in_a_thread

#: Seconds after a message in which others wait for each other.
TOLD_WITHIN: Final = 0.05


class Withdrawals:
    """Gathers the ids of withdrawn calls.

    Parameters
    ----------
    send : callable
        Sends a message, from any thread.
    later : callable, optional
        Does something after a time, in any thread.
    """

    def __init__(self, send: Callable[[Cancel], None], *, later: Later = in_a_thread) -> None:
        self._send = send
        self._later = later
        # What is collected as garbage meanwhile may be a call that waits, in this thread.
        self._lock = threading.RLock()
        self._ids: list[str] = []
        self._timer: Timer | None = None

    def add(self, ids: Iterable[str]) -> None:
        """Tell of some; if others were told of a moment ago, soon."""
        with self._lock:
            self._ids += ids
            if not self._ids or self._timer is not None:
                return
            self._timer = self._later(TOLD_WITHIN, self._in_time)
        self.tell()

    def tell(self) -> None:
        """Tell now of those that wait for others."""
        with self._lock:
            ids, self._ids = self._ids, []
        if ids:
            self._send(Cancel(ids=ids))

    def _in_time(self) -> None:
        with self._lock:
            self._timer = None
        self.tell()
