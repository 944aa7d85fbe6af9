"""`EventReader`: a turn's events as text of a server-sent event stream.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from jupyter_agentbox.agents.threads.event_json import event_to_json
from jupyter_agentbox.agents.threads.events import TurnCompleted, TurnEvent
from jupyter_agentbox.agents.threads.streams import TurnStream
from jupyter_agentbox.services.json_answers import answer_text

#: Seconds without events after which a heartbeat is sent, so that no proxy closes the stream.
HEARTBEAT: Final = 15.0
#: A comment, which clients ignore.
_STILL_HERE: Final = ": still here\n\n"


class EventReader:
    """Reads the events of a turn without buffering, so that a slow client costs no memory.

    Parameters
    ----------
    stream : TurnStream
        The events.
    after : int
        How many events to skip.
    first : int
        The number of the stream's first event.

    Raises
    ------
    ValueError
        The turn is in progress, and has fewer events than `after`.
    """

    def __init__(self, stream: TurnStream, *, after: int = 0, first: int = 1) -> None:
        if after > len(stream) and not stream.has_ended:
            raise ValueError(f"`after` is {after}, but the turn has only {len(stream)} events so far")
        self._stream = stream
        self._after = after
        self._first = first

    @property
    def is_at_end(self) -> bool:
        """Whether all events were read."""
        return self._stream.has_ended and self._after >= len(self._stream)

    async def read(self) -> str:
        """Return the next events; a comment after `HEARTBEAT` seconds without any; empty after the last."""
        try:
            async with asyncio.timeout(HEARTBEAT):
                batch = await self._stream.batch(self._after)
        except TimeoutError:
            return _STILL_HERE
        start = self._first + self._after
        self._after += len(batch)
        if batch and isinstance(batch[-1], TurnCompleted):
            # In a thread: serializing all items of the turn would block the loop.
            return await asyncio.to_thread(_texts_of, batch, start)
        return _texts_of(batch, start)


def _texts_of(events: Sequence[TurnEvent], first: int) -> str:
    return "".join(_text_of(event, number) for number, event in enumerate(events, first))


def _text_of(event: TurnEvent, number: int) -> str:
    return f"id: {number}\ndata: {answer_text(event_to_json(event))}\n\n"
