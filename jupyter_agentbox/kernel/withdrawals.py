"""Reports withdrawn calls to the server, batching those that end together.

Each kernel message costs the server, and all pages with the notebook, some work, and an interrupt ends all calls of a
cell at once. So the first is reported immediately, and those shortly after it together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

from jupyter_agentbox.protocol.messages import Cancel

from .timers import Later, Timer, in_a_thread

#: Seconds after a report within which further ones are batched.
TOLD_WITHIN: Final = 0.05


class Withdrawals:
    """Collects the ids of withdrawn calls.

    Parameters
    ----------
    send : callable
        Sends a message, from any thread.
    later : callable, optional
        Calls a function after a delay, in any thread.
    """

    def __init__(self, send: Callable[[Cancel], None], *, later: Later = in_a_thread) -> None:
        self._send = send
        self._later = later
        # Reentrant: garbage collection in this thread may meanwhile withdraw a call.
        self._lock = threading.RLock()
        self._ids: list[str] = []
        self._timer: Timer | None = None

    def add(self, ids: Iterable[str]) -> None:
        """Report some ids; soon if others were just reported."""
        with self._lock:
            self._ids += ids
            if not self._ids or self._timer is not None:
                return
            self._timer = self._later(TOLD_WITHIN, self._in_time)
        self.tell()

    def tell(self) -> None:
        """Report the collected ids now."""
        with self._lock:
            ids, self._ids = self._ids, []
        if ids:
            self._send(Cancel(ids=ids))

    def _in_time(self) -> None:
        with self._lock:
            self._timer = None
        self.tell()
