"""Runs the calls of users: as the policy of the site has it, with the servers and credentials of the service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.reported_origins import ReportedOrigin
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import TooManyRequestsError
from jupyter_agentbox.services.approvals.kept_requests import KeptRequests
from jupyter_agentbox.services.calls.manager import CallManager, FinishedCall

from .callers import Caller
from .central_servers import CentralServers


class CentralCalls:
    """Runs calls of central tools, each under the name of the user whose token came with it.

    Parameters
    ----------
    calls : CallManager
        Puts the policy and persons between a call and its effect.
    servers : CentralServers
        The central servers.
    most_calls : int
        The largest number of calls of one user that wait or run.
    kept : KeptRequests
        Keeps what waited when the service ended.
    patience : float
        Seconds that it is kept until its caller is back.
    clock : callable
        Returns seconds, monotonic.
    """

    def __init__(
        self,
        *,
        calls: CallManager,
        servers: CentralServers,
        most_calls: int,
        kept: KeptRequests,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = calls
        self._kept = kept
        self._patience = patience
        self._clock = clock
        self._kept_since: dict[str, float] = {}
        self._left: frozenset[str] = frozenset()
        self._servers = servers
        self._most_calls = most_calls
        self._running: dict[str, set[asyncio.Task[FinishedCall]]] = {}

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the central servers."""
        return self._servers.names

    async def list_tools(self, server: str, caller: Caller) -> Sequence[ToolDescription]:
        """Return a server's tools.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        """
        return await self._servers.list_tools(server, caller)

    def start(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, JsonValue],
        *,
        caller: Caller,
        on_waiting: Callable[[ApprovalRequest], None],
        reported: ReportedOrigin | None = None,
    ) -> asyncio.Task[FinishedCall]:
        """Begin a call. Cancelling the task withdraws its request, or cancels the tool; its errors are `CallManager`'s.

        Parameters
        ----------
        server, tool, arguments
            The call.
        caller : Caller
            Whose it is.
        on_waiting : callable
            Called with its request if it waits.
        reported : ReportedOrigin, optional
            Where the caller's server says that it came from.

        Raises
        ------
        TooManyRequestsError
            If too many calls of that user wait or run; nothing is stored.
        """
        running = self._running.get(caller.name, ())
        if len(running) >= self._most_calls:
            raise TooManyRequestsError(
                f"{len(running)} calls of yours wait or run, the most that are allowed: `{server}.{tool}` did not run"
            )
        origin = replace(caller.origin, reported=reported)
        call = ToolCall(server=server, tool=tool, arguments=dict(arguments), origin=origin)
        tools = self._servers.of(caller)
        return self._begin(caller, self._calls.run(call, on_waiting=on_waiting, on_running=_ignore, own=tools))

    def resume(
        self, request_id: str, *, caller: Caller, on_waiting: Callable[[ApprovalRequest], None]
    ) -> asyncio.Task[FinishedCall]:
        """Go on with a call that waited when the service ended, by `CallManager.resume`; the task is as of `start`."""
        tools = self._servers.of(caller)

        async def run() -> FinishedCall:
            request = await self._kept.take(request_id)
            return await self._calls.resume(request, on_waiting=on_waiting, on_running=_ignore, own=tools)

        return self._begin(caller, run())

    def _begin(self, caller: Caller, run: Coroutine[Any, Any, FinishedCall]) -> asyncio.Task[FinishedCall]:
        task = asyncio.ensure_future(run)
        self._running.setdefault(caller.name, set()).add(task)
        task.add_done_callback(lambda done: self._forget(caller.name, done))
        return task

    async def withdraw_lost(self) -> None:
        """Close what was kept and nobody has come back for in time. To be called now and then.

        Raises
        ------
        StorageError
        """
        now = self._clock()
        self._kept_since = {request.id: self._kept_since.get(request.id, now) for request in self._kept.all()}
        for request_id, since in self._kept_since.items():
            if now - since >= self._patience:
                await self._kept.give_up(request_id)

    def is_left(self, request_id: str) -> bool:
        """Whether the request waits for the next process, as this one ends."""
        return request_id in self._left

    async def leave(self) -> None:
        """Leave what waits for the next process, where it can be; withdraw the rest, and cancel what runs."""
        self._left = self._kept.leave()
        await self.aclose()

    async def aclose(self) -> None:
        """Withdraw what waits and cancel what runs."""
        tasks = [task for running in self._running.values() for task in running]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _forget(self, user: str, task: asyncio.Task[FinishedCall]) -> None:
        running = self._running[user]
        running.discard(task)
        if not running:
            del self._running[user]
        if not task.cancelled():
            task.exception()  # looks at the error, should nobody be left who waits


def _ignore(_request: ApprovalRequest) -> None:
    """Tell nobody."""
