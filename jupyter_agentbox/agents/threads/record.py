"""`TurnRecord`: the present state of a turn. Each change is an event in its stream."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from jupyter_agentbox.core.ports import Ids
from jupyter_agentbox.core.threads import Item, Notice, Turn, TurnError, TurnStatus, Usage

from .events import (
    AgentMessageDelta,
    ApprovalRequested,
    ItemCompleted,
    ItemStarted,
    TurnCompleted,
    TurnStarted,
    UsageUpdated,
)
from .ports import PendingApproval
from .streams import TurnStream


class TurnRecord:
    """Keeps the state of a turn, and sends each change to its stream.

    Parameters
    ----------
    turn : Turn
        The turn at its beginning.
    stream : TurnStream
        Receives the events.
    ids : Ids
        Creates the ids of items.

    Attributes
    ----------
    turn : Turn
        The turn in its present state.
    """

    def __init__(self, turn: Turn, *, stream: TurnStream, ids: Ids) -> None:
        self.turn = turn
        self._stream = stream
        self._ids = ids
        stream.put(TurnStarted(turn=turn))

    def new_id(self) -> str:
        """Return an id for an item."""
        return self._ids.new()

    def start(self, item: Item) -> None:
        """Add an item that has just started."""
        self.turn = self.turn.with_item(item)
        self._stream.put(ItemStarted(turn_id=self.turn.id, item=item))

    def change(self, item: Item) -> None:
        """Record a change to an item that has not ended; another event tells the readers."""
        self.turn = self.turn.with_item(item)

    def delta(self, item_id: str, text: str) -> None:
        """Send the readers the next part of a message."""
        self._stream.put(AgentMessageDelta(turn_id=self.turn.id, item_id=item_id, delta=text))

    def complete(self, item: Item) -> None:
        """Add an item that has ended. It replaces the one with its id, if there is one."""
        if all(one.id != item.id for one in self.turn.items):
            self._stream.put(ItemStarted(turn_id=self.turn.id, item=item))
        self.turn = self.turn.with_item(item)
        self._stream.put(ItemCompleted(turn_id=self.turn.id, item=item))

    def notice(self, code: str, text: str) -> None:
        """Add a notice to the turn."""
        self.complete(Notice(id=self.new_id(), code=code, text=text))

    def ask(self, item_id: str, request: PendingApproval) -> None:
        """Tell the readers that a call is waiting for a person."""
        self._stream.put(ApprovalRequested(turn_id=self.turn.id, item_id=item_id, request=request))

    def use(self, usage: Usage) -> None:
        """Record the turn's cost so far."""
        if usage != self.turn.usage:
            self.turn = replace(self.turn, usage=usage)
            self._stream.put(UsageUpdated(turn_id=self.turn.id, usage=usage))

    def end(self, status: TurnStatus, *, at: datetime, error: TurnError | None = None) -> None:
        """End the turn. It can be stored then; `close` tells its readers."""
        self.turn = self.turn.end(status, at=at, error=error)

    def close(self) -> None:
        """Tell the readers that the turn ended."""
        self._stream.put(TurnCompleted(turn=self.turn))
