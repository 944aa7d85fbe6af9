"""`TurnRelay`: sends a turn's events to the cell that started it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from jupyter_agentbox.agents.threads.event_json import event_to_json
from jupyter_agentbox.agents.threads.events import AgentMessageDelta, TurnCompleted, TurnEvent
from jupyter_agentbox.agents.threads.streams import TurnStream
from jupyter_agentbox.protocol.messages import TurnEvent as TurnEventMessage
from jupyter_agentbox.services.kernel_connections.agent_cells import TurnCell

#: Seconds for which message deltas are batched: a page redraws the message for each one.
GATHER: Final = 0.1


class TurnRelay:
    """Sends events, each once and in order.

    Parameters
    ----------
    cell : TurnCell
        The recipient.
    message_id : str
        The id of its `StartTurn`.
    stream : TurnStream
        The source of the events.
    """

    def __init__(self, cell: TurnCell, message_id: str, stream: TurnStream) -> None:
        self._cell = cell
        self._message_id = message_id
        self._stream = stream
        self._position = 0

    async def run(self) -> None:
        """Send events until the turn ends."""
        while await self._stream.batch(self._position):
            if await self.send_new():
                await asyncio.sleep(GATHER)

    async def send_new(self) -> bool:
        """Send the new events; return whether the last one was a message delta."""
        last: TurnEvent | None = None
        while len(self._stream) > self._position:
            batch = await self._stream.batch(self._position)
            self._position += len(batch)
            for last in _joined(batch):
                self._send(last)
        return isinstance(last, AgentMessageDelta)

    def _send(self, event: TurnEvent) -> None:
        if isinstance(event, TurnCompleted):
            event = replace(event, turn=replace(event.turn, items=()))  # each of them was already sent
        self._cell.send(TurnEventMessage(id=self._message_id, event=event_to_json(event)))


def _joined(events: Sequence[TurnEvent]) -> Iterator[TurnEvent]:
    """Yield the events, merging consecutive deltas of the same message."""
    held: AgentMessageDelta | None = None
    for event in events:
        if held is not None and isinstance(event, AgentMessageDelta) and event.item_id == held.item_id:
            held = replace(held, delta=held.delta + event.delta)
            continue
        if held is not None:
            yield held
        held = event if isinstance(event, AgentMessageDelta) else None
        if held is None:
            yield event
    if held is not None:
        yield held
