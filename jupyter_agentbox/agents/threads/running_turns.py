"""Turns in progress, and what can be done with one until it ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jupyter_agentbox.core.threads import Turn
from jupyter_agentbox.exceptions import ThreadBusyError

from .streams import TurnStream

if TYPE_CHECKING:
    from .turns import TurnRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTurn:
    """A turn in progress.

    Parameters
    ----------
    id, thread_id : str
        The turn's and its thread's id.
    stream : TurnStream
        Its events.
    """

    id: str
    thread_id: str
    stream: TurnStream
    _runner: TurnRunner
    _task: asyncio.Task[None]
    _started: asyncio.Event
    _interrupted: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def turn(self) -> Turn:
        """The turn in its present state."""
        return self._runner.record.turn

    def steer(self, text: str) -> None:
        """Send the agent a message while it works.

        Raises
        ------
        ThreadError
            The turn has ended.
        """
        if self._task.done():
            raise ThreadBusyError(f"turn `{self.id}` has ended: start another one")
        self._runner.steer(text)

    async def interrupt(self) -> Turn:
        """End the turn now, whatever it waits for. What ran is not undone. Does nothing if the turn has ended."""
        await self._started.wait()  # a task that is cancelled before it starts says nothing of its end
        if not self._interrupted.is_set():  # a second time would break off what the first one tidies up
            self._interrupted.set()
            self._task.cancel()
        return await self.wait()

    async def wait(self) -> Turn:
        """Wait for the turn's end."""
        await asyncio.wait([self._task])
        return self.turn
