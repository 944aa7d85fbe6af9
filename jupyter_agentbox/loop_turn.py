"""Whether the event loop is still in the same turn, for results that are reused within a turn."""

from __future__ import annotations

import asyncio


class LoopTurn:
    """Tells whether the event loop is still in the turn in which something was done.

    Everything done in a turn was caused by messages that arrived before or during it: a message is read in one turn,
    and its task begins in the next. A file that is checked once per turn is therefore checked after all messages
    handled in that turn have arrived, so a change made before a call takes effect for that call.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_same(self) -> bool:
        """Whether this is the turn of the last `begin`. ``False`` without a running event loop and in other threads."""
        return self._loop is not None and self._loop is _running_loop()

    def begin(self) -> None:
        """Record that it is being done in this turn."""
        loop = _running_loop()
        if loop is not None and loop is not self._loop:
            self._loop = loop
            loop.call_soon(self.end)

    def end(self) -> None:
        """Treat it as done in an earlier turn."""
        self._loop = None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
