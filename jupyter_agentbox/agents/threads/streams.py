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
        Approximate size of the events in memory, in bytes.
    """

    def __init__(self) -> None:
        self.weight = 0
        self._events: list[TurnEvent] = []
        self._came = asyncio.Event()

    def __len__(self) -> int:
        """Return the number of events so far."""
        return len(self._events)

    @property
    def has_ended(self) -> bool:
        """Whether no further event will come."""
        return bool(self._events) and isinstance(self._events[-1], TurnCompleted)

    def put(self, event: TurnEvent) -> None:
        """Add an event. `TurnCompleted` is the last one."""
        self._events.append(event)
        self.weight += _weight_of(event)
        came, self._came = self._came, asyncio.Event()
        came.set()

    async def read(self, after: int = 0) -> AsyncIterator[TurnEvent]:
        """Yield the events, including later ones as they come, until the turn's end.

        Parameters
        ----------
        after : int
            The number of events that the reader already has.
        """
        position = after
        while batch := await self.batch(position):
            for event in batch:
                yield event
            position += len(batch)

    async def batch(self, after: int) -> Sequence[TurnEvent]:
        """Return the next events, or some of them if there are many; wait until there is one.

        Parameters
        ----------
        after : int
            The number of events that the reader already has.

        Returns
        -------
        sequence of TurnEvent
            Empty if the turn has ended and the reader has all events.
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
