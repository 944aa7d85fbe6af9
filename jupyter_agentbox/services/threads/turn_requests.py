"""`TurnRequests`: forwards changes of requests to the agent's turn concerned, and to pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.ports import Announcer


class TurnRequests:
    """An `Announcer` that also forwards the requests of a turn's code to the turn.

    Parameters
    ----------
    announcer : Announcer
        Notifies pages.
    """

    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer
        self._listeners: dict[str, Callable[[ApprovalRequest], None]] = {}

    def approval_changed(self, request: ApprovalRequest) -> None:
        """Announce a new or changed request."""
        self._announcer.approval_changed(request)
        turn_id = request.call.origin.turn_id
        listener = self._listeners.get(turn_id) if turn_id is not None else None
        if listener is not None:
            listener(request)

    def servers_changed(self) -> None:
        """Announce that an MCP server's status, or the configuration, changed."""
        self._announcer.servers_changed()

    def questions_changed(self) -> None:
        """Announce that an MCP server's question was asked or has ended."""
        self._announcer.questions_changed()

    def grants_changed(self) -> None:
        """Announce that a grant was given, used or ended."""
        self._announcer.grants_changed()

    @contextmanager
    def of_turn(self, turn_id: str, listener: Callable[[ApprovalRequest], None]) -> Iterator[None]:
        """Call `listener` with each new or changed request of a turn while the block runs."""
        self._listeners[turn_id] = listener
        try:
            yield
        finally:
            del self._listeners[turn_id]
