"""What holds for a turn of the event loop: what the files said that were looked at in it."""

from __future__ import annotations

import asyncio


class LoopTurn:
    """Knows whether the event loop is still in the turn in which something was done.

    What a turn does follows from what had come before it, or came in it: a message is read in one turn, and its task
    begins in the next. So who looks at a file once in a turn has looked after everything came that the turn does, and a
    change that was made before a call counts for the call.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_same(self) -> bool:
        """Whether it is the turn of the last `begin`. Never without a running event loop, and not in other threads."""
        return self._loop is not None and self._loop is _running_loop()

    def begin(self) -> None:
        """Note that it is done now."""
        loop = _running_loop()
        if loop is not None and loop is not self._loop:
            self._loop = loop
            loop.call_soon(self.end)

    def end(self) -> None:
        """Let it count as done in an earlier turn."""
        self._loop = None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
