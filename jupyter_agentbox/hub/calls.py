"""Runs users' calls of central tools under the site's policy, and asks approvers about calls of users' own tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.local_calls import APPROVE_TOOL, LOCAL_CALLS, is_local, read_question
from jupyter_agentbox.core.ports import ToolCaller
from jupyter_agentbox.core.reported_origins import ReportedOrigin
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import TooManyRequestsError, UnknownToolError
from jupyter_agentbox.services.approvals.kept_requests import KeptRequests
from jupyter_agentbox.services.calls.manager import CallManager, FinishedCall

from .awake_times import AwakeTimes
from .callers import Caller
from .central_servers import CentralServers
from .local_calls import APPROVAL, LocalTool

#: Seconds after which `CentralCalls.withdraw_lost` is called again.
LOOK_EVERY: Final = 60.0


class CentralCalls:
    """Runs calls of central tools, each in the name of the user whose token came with it.

    A call of a user's own tool is not run here: it waits for its approvers, and its result says that it was approved.

    Parameters
    ----------
    calls : CallManager
        Applies the policy and asks people before a call runs.
    servers : CentralServers
        The central servers.
    most_calls : int
        The largest number of one user's calls that may wait or run at a time.
    kept : KeptRequests
        Keeps the requests that were waiting when the service ended.
    patience : float
        Seconds that such a request is kept for its caller to come back.
    clock : callable
        Returns monotonic seconds.
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
        self._kept_times = AwakeTimes(look_every=LOOK_EVERY, clock=clock)
        self._left: frozenset[str] = frozenset()
        self._servers = servers
        self._most_calls = most_calls
        self._running: dict[str, set[asyncio.Task[FinishedCall]]] = {}

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the endpoints: the central servers, and that for calls of users' own tools."""
        return (*self._servers.names, LOCAL_CALLS)

    async def list_tools(self, server: str, caller: Caller) -> Sequence[ToolDescription]:
        """Return a server's tools.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        """
        return (APPROVAL,) if server == LOCAL_CALLS else await self._servers.list_tools(server, caller)

    def start(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, JsonValue],
        *,
        caller: Caller,
        on_waiting: Callable[[ApprovalRequest], None],
        on_running: Callable[[ApprovalRequest], None] = lambda _: None,
        reported: ReportedOrigin | None = None,
    ) -> asyncio.Task[FinishedCall]:
        """Start a call. Cancelling the task withdraws the request or cancels the tool. Errors are as in `CallManager`.

        Parameters
        ----------
        server, tool, arguments
            The call.
        caller : Caller
            The user who makes it.
        on_waiting : callable
            Called with its request if it has to wait.
        on_running : callable, optional
            Called with its request when the tool runs.
        reported : ReportedOrigin, optional
            The origin that the caller's server reported.

        Raises
        ------
        TooManyRequestsError
            If too many of the user's calls are waiting or running. Nothing is stored.
        UnknownToolError, ToolArgumentsError
            If what the user's server asks about one of its own tools cannot be understood.
        """
        running = self._running.get(caller.name, ())
        if len(running) >= self._most_calls:
            raise TooManyRequestsError(
                f"`{server}.{tool}` did not run: {len(running)} of your calls wait or run already, which is the limit"
            )
        origin = replace(caller.origin, reported=reported)
        call = ToolCall(server=server, tool=tool, arguments=dict(arguments), origin=origin)
        tools: ToolCaller = self._servers.of(caller)
        if server == LOCAL_CALLS:
            call, tools = _local_call(call)
        return self._begin(caller, self._calls.run(call, on_waiting=on_waiting, on_running=on_running, own=tools))

    def resume(
        self,
        request_id: str,
        *,
        caller: Caller,
        on_waiting: Callable[[ApprovalRequest], None],
        on_running: Callable[[ApprovalRequest], None],
    ) -> asyncio.Task[FinishedCall]:
        """Resume a call that was waiting when the service ended. The task behaves like that of `start`."""

        async def run() -> FinishedCall:
            request = await self._kept.take(request_id)
            tools: ToolCaller = LocalTool(request.tool) if is_local(request.call) else self._servers.of(caller)
            return await self._calls.resume(request, on_waiting=on_waiting, on_running=on_running, own=tools)

        return self._begin(caller, run())

    def _begin(self, caller: Caller, run: Coroutine[Any, Any, FinishedCall]) -> asyncio.Task[FinishedCall]:
        task = asyncio.ensure_future(run)
        self._running.setdefault(caller.name, set()).add(task)
        task.add_done_callback(lambda done: self._forget(caller.name, done))
        return task

    async def withdraw_lost(self) -> None:
        """Close the kept requests whose callers did not come back in time. Must be called every `LOOK_EVERY` seconds.

        Time in which the service was stopped does not count.

        Raises
        ------
        StorageError
        """
        for request_id, seconds in self._kept_times.look(request.id for request in self._kept.all()).items():
            if seconds >= self._patience:
                await self._kept.give_up(request_id)

    def is_left(self, request_id: str) -> bool:
        """Whether this process left the request to the next one as it ended."""
        return request_id in self._left

    async def leave(self) -> None:
        """Leave waiting requests to the next process where possible; withdraw the others and cancel running calls."""
        self._left = self._kept.leave()
        await self.aclose()

    async def aclose(self) -> None:
        """Withdraw waiting requests and cancel running calls."""
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
            task.exception()  # marks it as retrieved, in case nobody awaits the task any more


def _local_call(call: ToolCall) -> tuple[ToolCall, LocalTool]:
    """Return the call of a user's own tool that a user's server asks about, and that tool."""
    if call.tool != APPROVE_TOOL:
        raise UnknownToolError(f"there is no tool `{call.tool:.80}`, only `{APPROVE_TOOL}`")
    local, tool = read_question(call.arguments, call)
    return local, LocalTool(tool)
