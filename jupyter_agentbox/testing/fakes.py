"""Fakes of everything external, for tests of the services and of your own extensions.

None of them uses threads, files or the clock. `FakeTools`, `MemoryApprovalStore`, `FakeAnnouncer` and
`FakeKernelChannel` implement the Protocols of `jupyter_agentbox.core.ports`; waits are limited by `TIMEOUT`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, Generic, TypeAlias, TypeVar

from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.calls import JsonObject, JsonValue, ToolCall
from jupyter_agentbox.core.grant_uses import GrantUse, Void
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.pagination import Cursor, microseconds
from jupyter_agentbox.core.ports import ApprovalPage, ApprovalQuery, CallListener
from jupyter_agentbox.core.tools import (
    ConfigurationProblem,
    Progress,
    ServerState,
    ServerStatus,
    ToolDescription,
    ToolResult,
)
from jupyter_agentbox.exceptions import StorageError, UnknownApprovalError, UnknownServerError, UnknownToolError

#: Maximum time that a fake waits for something that should happen at once, in seconds.
TIMEOUT: Final = 60

T = TypeVar("T")
Report: TypeAlias = Callable[[Progress], None]
ScriptedTool: TypeAlias = Callable[[ToolCall, Report], Awaitable[ToolResult | JsonValue]]


class FakeClock:
    """A `Clock` that stands still until it is advanced.

    Parameters
    ----------
    now : datetime or None
        Its initial time, with time zone; 1 May 2026, 12:00 UTC by default.
    """

    def __init__(self, now: datetime | None = None) -> None:
        self._now = now or datetime(2026, 5, 1, 12, tzinfo=UTC)

    def now(self) -> datetime:
        """Return the current time."""
        return self._now

    def advance(self, seconds: float) -> datetime:
        """Advance by some seconds, and return the new time."""
        self._now += timedelta(seconds=seconds)
        return self._now


class FakeIds:
    """Predictable `Ids`: ``r1``, ``r2`` and so on.

    Parameters
    ----------
    prefix : str
        Prefix of the ids.
    """

    def __init__(self, prefix: str = "r") -> None:
        self._prefix = prefix
        self._count = 0

    def new(self) -> str:
        """Return the next id."""
        self._count += 1
        return f"{self._prefix}{self._count}"


class FakeTools:
    """A `ToolCatalog` and `ToolCaller` whose tools are the test's own coroutine functions.

    ::

        async def delete_order(call, report):
            report(Progress(progress=1, total=2))
            return {"deleted": call.arguments["id"]}

        runner = FakeTools({"shop.delete_order": delete_order})

    Parameters
    ----------
    tools : dict
        ``"server.tool"`` (split at the first dot) mapped to a coroutine function, which takes the call and a function
        that reports progress. It returns the result: a `ToolResult`, or any other value as structured content.
    descriptions : dict
        ``"server.tool"`` mapped to the tool's description, if the default, with only a name, does not suffice.

    Attributes
    ----------
    calls : list of ToolCall
        The calls that were run, in order.
    listener : CallListener or None
        The listener of the most recent call.
    """

    def __init__(
        self,
        tools: Mapping[str, ScriptedTool] | None = None,
        *,
        descriptions: Mapping[str, ToolDescription] | None = None,
    ) -> None:
        self.tools = dict(tools or {})
        self.descriptions = dict(descriptions or {})
        self.calls: list[ToolCall] = []
        self.listener: CallListener | None = None

    def servers(self) -> Sequence[ServerStatus]:
        """Return the servers in the tools' names, all running."""
        counts: dict[str, int] = {}
        for name in self.tools:
            server = name.partition(".")[0]
            counts[server] = counts.get(server, 0) + 1
        return [
            ServerStatus(
                name=server,
                state=ServerState.RUNNING,
                transport="stdio",
                protocol_version="2025-11-25",
                tool_count=count,
            )
            for server, count in counts.items()
        ]

    def problems(self) -> Sequence[ConfigurationProblem]:
        """Return nothing: there is no configuration file."""
        return ()

    def known_tools(self, server: str) -> Sequence[ToolDescription]:
        """Return the descriptions of the server's tools."""
        if server not in {name.partition(".")[0] for name in self.tools}:
            raise UnknownServerError(f"no MCP server `{server}`")
        return [self._description(name) for name in self.tools if name.partition(".")[0] == server]

    async def list_tools(self, server: str) -> Sequence[ToolDescription]:
        """Return the descriptions of the server's tools."""
        return self.known_tools(server)

    async def start(self, name: str) -> ServerStatus:
        """Return the server's status: there is nothing to start."""
        return await self.restart(name)

    async def stop(self, name: str) -> ServerStatus:
        """Return the server's status; there is nothing to stop."""
        return await self.restart(name)

    async def restart(self, name: str) -> ServerStatus:
        """Return the server's status: there is nothing to start."""
        for status in self.servers():
            if status.name == name:
                return status
        raise UnknownServerError(f"no MCP server `{name}`")

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return one tool's description."""
        for description in await self.list_tools(server):
            if description.name == tool:
                return description
        raise UnknownToolError(f"MCP server `{server}` has no tool `{tool}`")

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:
        """Run the test's function, and return its result or raise its exception."""
        await self.describe(call.server, call.tool)
        self.calls.append(call)
        self.listener = listener
        value = await self.tools[call.qualified_name](call, listener.progressed if listener else _ignore)
        if isinstance(value, ToolResult):
            return value
        wrapped = not isinstance(value, dict)
        text: JsonObject = {"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}
        return ToolResult(content=(text,), structured={"result": value} if wrapped else value, wrapped=wrapped)

    def _description(self, name: str) -> ToolDescription:
        return self.descriptions.get(name) or ToolDescription(name=name.partition(".")[2])


def _ignore(progress: Progress) -> None:
    pass


class MemoryApprovalStore:
    """An `ApprovalStore` and a `GrantStore` in memory.

    Parameters
    ----------
    turns : int
        How many turns of the event loop each method takes before its work, and again after it, to simulate a disk in
        tests of concurrency.

    Attributes
    ----------
    failure : StorageError or None
        While set, every method raises it, and nothing is written.
    abandoned : list of str
        Ids of the requests that the next `adopt_abandoned` returns, as if their server process were gone.
    writes : list of ApprovalRequest
        Everything that was written, in order.
    """

    def __init__(self, *, turns: int = 0) -> None:
        self.turns = turns
        self.failure: StorageError | None = None
        self.abandoned: list[str] = []
        self.writes: list[ApprovalRequest] = []
        self._requests: dict[str, ApprovalRequest] = {}
        self._grants: dict[str, Grant] = {}

    async def add(self, request: ApprovalRequest) -> bool:
        """Store a new request, unless the grant that answered it is used up."""
        async with self._work():
            if request.id in self._requests:
                raise StorageError(f"approval request `{request.id}` is already stored", request_id=request.id)
            grant = request.evaluation.grant
            if grant is not None and not self._use(grant, request.created_at):
                return False
            self._write(request)
            return True

    async def get(self, request_id: str) -> ApprovalRequest:
        """Return a request."""
        async with self._work():
            try:
                return self._requests[request_id]
            except KeyError:
                raise UnknownApprovalError(f"no approval request `{request_id}`", request_id=request_id) from None

    async def replace_if(
        self, request: ApprovalRequest, *, status: Status, outcome: OutcomeState | None, grant: Grant | None = None
    ) -> bool:
        """Write the request, and a grant that it creates or uses, if the stored one is in this state."""
        async with self._work():
            stored = self._requests.get(request.id)
            if stored is None or (stored.status, stored.outcome_state) != (status, outcome):
                return False
            if status is Status.PENDING and not _voters(stored) <= _voters(request):
                return False
            decision = request.decision if status is Status.PENDING else None
            if grant is not None:
                self._grants[grant.id] = grant
            elif decision is not None and decision.grant and not self._use(decision.grant, decision.decided_at):
                return False
            self._write(request)
            return True

    async def grants(self) -> Sequence[Grant]:
        """Return the grants."""
        async with self._work():
            return [*self._grants.values()]

    async def end_grants(self, ids: Sequence[str]) -> None:
        """Delete grants."""
        async with self._work():
            for id in ids:
                self._grants.pop(id, None)

    async def void_grant(self, grant_id: str, void: Void) -> None:
        """Mark a grant as void."""
        async with self._work():
            if grant_id in self._grants:
                self._grants[grant_id] = replace(self._grants[grant_id], void=void)

    def _use(self, use: GrantUse, at: datetime) -> bool:
        grant = self._grants.get(use.id)
        if grant is None or grant.void is not None or (grant.uses is not None and grant.used >= grant.uses):
            return False
        self._grants[use.id] = grant.used_at(at)
        return True

    async def list(self, query: ApprovalQuery) -> ApprovalPage:
        """Return a page of requests, newest first."""
        after = Cursor.decode(query.cursor) if query.cursor is not None else None
        async with self._work():
            found = [(_position(request), request) for request in self._requests.values() if _matches(request, query)]
        rows = sorted(found, key=lambda row: row[0], reverse=True)
        if after is not None:
            rows = [row for row in rows if row[0] < (after.created_at, after.id)]
        page = rows[: query.page_size]
        cursor = Cursor(created_at=page[-1][0][0], id=page[-1][0][1]).encode() if len(rows) > len(page) else None
        return ApprovalPage(approvals=tuple(request for _, request in page), next=cursor)

    async def adopt_abandoned(self) -> Sequence[ApprovalRequest]:
        """Return the requests named in `abandoned` that are still open."""
        async with self._work():
            ids, self.abandoned = self.abandoned, []
            return [self._requests[id] for id in ids if self._requests[id].is_open]

    @asynccontextmanager
    async def _work(self) -> AsyncIterator[None]:
        await self._turn()
        if self.failure is not None:
            raise self.failure
        yield
        await self._turn()

    async def _turn(self) -> None:
        for _ in range(self.turns):
            await asyncio.sleep(0)

    def _write(self, request: ApprovalRequest) -> None:
        self._requests[request.id] = request
        self.writes.append(request)


def _position(request: ApprovalRequest) -> tuple[int, str]:
    return microseconds(request.created_at), request.id


def _matches(request: ApprovalRequest, query: ApprovalQuery) -> bool:
    origin = request.call.origin
    return (
        (not query.statuses or request.status in query.statuses)
        and (not query.ids or request.id in query.ids)
        and query.kernel_id in (None, origin.kernel_id)
        and query.notebook_path in (None, origin.notebook_path)
    )


class _Record(Generic[T]):
    """Values in order of arrival, and the waiters for one."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._waiting: list[tuple[Callable[[T], bool], asyncio.Future[T]]] = []

    def append(self, value: T) -> None:
        self.values.append(value)
        for matches, future in self._waiting:
            if not future.done() and matches(value):
                future.set_result(value)

    async def until(self, matches: Callable[[T], bool]) -> T:
        for value in self.values:
            if matches(value):
                return value
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((matches, future))
        async with asyncio.timeout(TIMEOUT):
            return await future


class FakeAnnouncer:
    """An `Announcer` that records its announcements.

    Attributes
    ----------
    servers, grants, questions : int
        How often changes of servers, grants, and servers' questions were announced.
    """

    def __init__(self) -> None:
        self.servers = 0
        self.grants = 0
        self.questions = 0
        self._record: _Record[ApprovalRequest] = _Record()

    @property
    def approvals(self) -> list[ApprovalRequest]:
        """The announced requests, as they were then, in order."""
        return self._record.values

    def approval_changed(self, request: ApprovalRequest) -> None:
        """Record the request, and wake its waiters."""
        self._record.append(request)

    def servers_changed(self) -> None:
        """Count the change."""
        self.servers += 1

    def grants_changed(self) -> None:
        """Count the change."""
        self.grants += 1

    def questions_changed(self) -> None:
        """Count the change."""
        self.questions += 1

    async def until(self, matches: Callable[[ApprovalRequest], bool]) -> ApprovalRequest:
        """Return the first announced request that matches, waiting for one if necessary.

        Raises
        ------
        TimeoutError
            After `TIMEOUT` seconds.
        """
        return await self._record.until(matches)


class FakeKernelChannel:
    """A `KernelChannel` that records what was sent."""

    isolation = Isolation.NONE
    has_own_settings = False
    is_lossy = False

    def __init__(self) -> None:
        self._record: _Record[tuple[str, JsonObject]] = _Record()

    @property
    def sent(self) -> list[tuple[str, JsonObject]]:
        """Comm id and message of each sent message, in order."""
        return self._record.values

    def send(self, comm_id: str, message: JsonObject) -> None:
        """Record the message, and wake its waiters."""
        self._record.append((comm_id, message))

    async def until(self, matches: Callable[[JsonObject], bool]) -> JsonObject:
        """Return the first message that matches, waiting for one if necessary.

        Raises
        ------
        TimeoutError
            After `TIMEOUT` seconds.
        """
        return (await self._record.until(lambda sent: matches(sent[1])))[1]


class FakeNotebookFinder:
    """A `NotebookFinder` with given paths.

    Parameters
    ----------
    paths : dict
        Kernel ids mapped to paths; other kernels have no document.
    """

    def __init__(self, paths: Mapping[str, str] | None = None) -> None:
        self.paths = dict(paths or {})

    async def path_of(self, kernel_id: str) -> str | None:
        """Return the kernel's path."""
        return self.paths.get(kernel_id)


def _voters(request: ApprovalRequest) -> set[str]:
    return {vote.reviewer.name for vote in request.votes}
