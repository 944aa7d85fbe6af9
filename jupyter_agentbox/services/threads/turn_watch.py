"""`TurnWatch`: follows a turn, and reports when it waits for a person, resumes, and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jupyter_agentbox.agents.threads.events import ApprovalRequested
from jupyter_agentbox.agents.threads.ports import PendingApproval
from jupyter_agentbox.agents.threads.running_turns import RunningTurn
from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.threads import ThreadState


class TurnWatch:
    """Follows a turn.

    Parameters
    ----------
    running : RunningTurn
        The turn.
    on_change : callable
        Called when `state` has changed.
    on_end : callable
        Called when the turn has ended, once.

    Attributes
    ----------
    running : RunningTurn
        The turn.
    """

    def __init__(
        self, running: RunningTurn, *, on_change: Callable[[], None], on_end: Callable[[RunningTurn], None]
    ) -> None:
        self.running = running
        self._on_change = on_change
        self._on_end = on_end
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._task = in_background(self._follow(), what=f"following turn {running.id}")

    @property
    def state(self) -> ThreadState:
        """Whether the turn is working, or waiting for a person."""
        return ThreadState.WAITING if self._waiting else ThreadState.WORKING

    async def wait(self) -> None:
        """Wait until `on_end` was called."""
        await asyncio.wait([self._task])

    async def _follow(self) -> None:
        try:
            async for event in self.running.stream.read():
                if isinstance(event, ApprovalRequested):
                    self._begin_to_wait(event.request)
        finally:
            for waiting in self._waiting.values():
                waiting.cancel()
            self._waiting.clear()
            self._on_end(self.running)

    def _begin_to_wait(self, request: PendingApproval) -> None:
        waiting = in_background(self._await_decision(request), what=f"waiting for the decision of {request.id}")
        is_first = not self._waiting
        self._waiting[request.id] = waiting
        if is_first:
            self._on_change()

    async def _await_decision(self, request: PendingApproval) -> None:
        try:
            await request.response()
        finally:
            if self._waiting.pop(request.id, None) is not None and not self._waiting:
                self._on_change()
