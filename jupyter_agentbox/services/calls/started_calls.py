"""Calls started over HTTP, whose outcomes are recorded without an open connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.exceptions import AgentBoxError

from .manager import FinishedCall

log = logging.getLogger(__name__)


class StartedCalls:
    """Starts calls, and tracks those that have not ended.

    Parameters
    ----------
    what : str
        What each is, for the log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._running: dict[str, asyncio.Task[FinishedCall]] = {}

    def __contains__(self, request_id: str) -> bool:
        """Whether this request's call was started and has not ended."""
        return request_id in self._running

    async def begin(
        self,
        run: Callable[..., Coroutine[Any, Any, FinishedCall]],
        *,
        on_end: Callable[[str, FinishedCall | AgentBoxError | None], None] = lambda _id, _end: None,
    ) -> ApprovalRequest:
        """Start a call and return its request, pending or running.

        Parameters
        ----------
        run : callable
            Runs the call; called with `on_waiting` and `on_running`, as for `CallManager.run`.
        on_end : callable
            Called with the request's id and the result of the call; ``None`` if it was cancelled.

        Raises
        ------
        AgentBoxError
            Raised by `run`, if no request was opened.
        """
        opened: asyncio.Future[ApprovalRequest] = asyncio.get_running_loop().create_future()

        def note(request: ApprovalRequest) -> None:
            if not opened.done():
                opened.set_result(request)

        task = asyncio.create_task(run(on_waiting=note, on_running=note))
        task.add_done_callback(lambda _: opened.cancel())  # a no-op if it was opened
        try:
            await asyncio.wait([opened])
        except asyncio.CancelledError:
            task.cancel()
            raise
        if opened.cancelled():
            await task  # raises why no request was opened
        request = opened.result()
        self._running[request.id] = task
        task.add_done_callback(lambda ended: on_end(request.id, self._end(request.id, ended)))
        return request

    async def cancel(self, request_id: str) -> bool:
        """Withdraw or cut off a call. Return whether there was one."""
        task = self._running.get(request_id)
        if task is None:
            return False
        task.cancel()
        await asyncio.wait([task])
        return True

    async def aclose(self) -> None:
        """Cancel all calls."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, request_id: str, task: asyncio.Task[FinishedCall]) -> FinishedCall | AgentBoxError | None:
        self._running.pop(request_id, None)
        if task.cancelled():
            return None
        error = task.exception()
        if error is None:
            return task.result()
        if isinstance(error, AgentBoxError):
            return error
        log.error("%s %s failed", self._what, request_id, exc_info=error)
        return AgentBoxError("the call failed; see the server's log")
