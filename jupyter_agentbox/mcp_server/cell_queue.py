"""The cells of one kernel: they run one after the other, and a waiting cell can tell what it waits for.

A client may give up on a request silently: Codex sends no cancellation when its user interrupts it, nor when its own
time limit has passed. Nothing on the connection shows that: it stays open, and answers pings. The cell then goes on
running, and the client's next request would wait behind it until the client gives up on that one, too. So a request
that has waited too long gets an answer, which says what keeps the kernel busy and how to go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from .activity import Activity
from .sessions import SessionError

#: Requests that come within this part of the time limit of one another were sent together: clients run several tools at
#: once. Their client waits for all of them, so that none is answered early.
_TOGETHER: Final = 0.1


class QueuedCell:
    """One cell's place in the queue.

    Parameters
    ----------
    activity : Activity
        What its request is doing.
    came_at : float
        When it arrived, in seconds.
    """

    def __init__(self, activity: Activity, came_at: float) -> None:
        self.activity = activity
        self.came_at = came_at
        self.began_at = came_at
        self.is_lost = False
        self.news = asyncio.Event()


class CellQueue:
    """Lets the cells of one kernel run in the order in which they arrived.

    Parameters
    ----------
    busy_timeout : float
        Seconds that a cell waits for any single earlier cell, if they were not sent together.
    now : callable
        Returns the time in seconds, as `asyncio.loop.time` does.
    """

    def __init__(self, busy_timeout: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._busy_timeout = busy_timeout
        self._now = now
        self._queued: list[QueuedCell] = []

    @asynccontextmanager
    async def enter(self, activity: Activity) -> AsyncIterator[QueuedCell]:
        """Wait until the cells before this one have ended, and keep those after it waiting.

        Raises
        ------
        SessionError
            If the kernel was reset in the meantime, or the wait was too long; nothing ran.
        """
        cell = QueuedCell(activity, self._now())
        self._queued.append(cell)
        try:
            await self._wait(cell)
            cell.began_at = self._now()
            activity.run()
            yield cell
        finally:
            self._queued.remove(cell)
            self._tell()

    def lose(self) -> None:
        """End all cells that wait, and mark the running one: the kernel is gone."""
        for cell in self._queued:
            cell.is_lost = True
        self._tell()

    async def _wait(self, cell: QueuedCell) -> None:
        while not cell.is_lost and (ahead := self._queued[0]) is not cell:
            cell.activity.wait_behind(ahead.activity)
            cell.news.clear()
            try:
                async with asyncio.timeout(self._left(cell, ahead)):
                    await cell.news.wait()
            except TimeoutError:
                raise SessionError(_busy(ahead.activity)) from None
        if cell.is_lost:
            raise SessionError(WAS_RESET)

    def _left(self, cell: QueuedCell, ahead: QueuedCell) -> float | None:
        """Return how many seconds a cell waits for the running one; ``None`` for as long as it takes."""
        if cell.came_at - ahead.came_at <= _TOGETHER * self._busy_timeout:
            return None
        return max(cell.came_at, ahead.began_at) + self._busy_timeout - self._now()

    def _tell(self) -> None:
        for cell in self._queued:
            cell.news.set()


#: What became of a cell whose kernel was reset.
WAS_RESET: Final = "the kernel was reset"


def _busy(ahead: Activity) -> str:
    return (
        f"the code did not run. The kernel is still busy with an earlier request: it has been {ahead}."
        " If that request is no longer needed, call the tool `reset` to end it and get a fresh kernel"
        " without the variables; otherwise send the code again to wait longer"
    )
