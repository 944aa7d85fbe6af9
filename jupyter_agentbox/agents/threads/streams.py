"""`TurnStream`: the events of one turn, for any number of readers, each of whom sees all of them in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from .events import AgentMessageDelta, ItemCompleted, TurnCompleted, TurnEvent

#: How many events `TurnStream.batch` returns at most.
MOST_AT_ONCE: Final = 200

#: Bytes of memory that an event takes besides its texts, about.
_EVENT: Final = 500


class TurnStream:
    """Keeps the events of a turn, and hands them out.

    Attributes
    ----------
    weight : int
        Bytes of memory that they take, about.
    """

    def __init__(self) -> None:
        self.weight = 0
        self._events: list[TurnEvent] = []
        self._came = asyncio.Event()

    def __len__(self) -> int:
        """Return how many events there are until now."""
        return len(self._events)

    @property
    def has_ended(self) -> bool:
        """Whether no event comes any more."""
        return bool(self._events) and isinstance(self._events[-1], TurnCompleted)

    def put(self, event: TurnEvent) -> None:
        """Add an event. `TurnCompleted` is the last one."""
        self._events.append(event)
        self.weight += _weight_of(event)
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
        while batch := await self.batch(position):
            for event in batch:
                yield event
            position += len(batch)

    async def batch(self, after: int) -> Sequence[TurnEvent]:
        """Return the next events, some of them if there are many; wait until there is one.

        Parameters
        ----------
        after : int
            How many events the reader has already.

        Returns
        -------
        sequence of TurnEvent
            Empty if the turn has ended, and the reader has all.
        """
        while len(self._events) <= after:
            if self.has_ended:
                return ()
            await self._came.wait()
        return self._events[after : after + MOST_AT_ONCE]


def _weight_of(event: TurnEvent) -> int:
    if isinstance(event, AgentMessageDelta):
        return _EVENT + len(event.delta)
    if isinstance(event, ItemCompleted):  # the turn's end has the same texts once more, and not twice in memory
        return _EVENT + sum(len(getattr(event.item, name, "")) for name in ("text", "code", "error"))
    return _EVENT
