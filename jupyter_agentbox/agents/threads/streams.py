"""`TurnStream`: the events of one turn, for any number of readers, each of whom sees all of them in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from .events import TurnCompleted, TurnEvent


class TurnStream:
    """Keeps the events of a turn, and hands them out."""

    def __init__(self) -> None:
        self._events: list[TurnEvent] = []
        self._came = asyncio.Event()

    def put(self, event: TurnEvent) -> None:
        """Add an event. `TurnCompleted` is the last one."""
        self._events.append(event)
        came, self._came = self._came, asyncio.Event()
        came.set()

    async def read(self, after: int = 0) -> AsyncIterator[TurnEvent]:
        """Yield the events, those that come later as they come, until the turn's end.

        Parameters
        ----------
        after : int
            How many events the reader has already.
        """
        position = after
        while True:
            came = self._came
            while position < len(self._events):
                event = self._events[position]
                position += 1
                yield event
                if isinstance(event, TurnCompleted):
                    return
            await came.wait()
