"""Answers kernels' messages, and owns the tasks that run their calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.askers import Asker
from jupyter_agentbox.core.calls import JsonObject, JsonValue, Origin, ToolCall, TurnRef
from jupyter_agentbox.core.ports import KernelChannel, NotebookFinder, ToolCatalog
from jupyter_agentbox.core.rates import Rate
from jupyter_agentbox.core.times import json_time
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    AgentConfigurationError,
    ToolArgumentsError,
    ToolCallRejectedError,
    TooManyRequestsError,
    UnknownServerError,
)
from jupyter_agentbox.protocol import messages
from jupyter_agentbox.protocol.messages import COMM_PREFIX, MAX_ID, MessageError
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER
from jupyter_agentbox.protocol.sizes import weight_of
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.calls.manager import CallManager
from jupyter_agentbox.services.grants.manager import GrantManager
from jupyter_agentbox.services.policies.manager import PolicyManager

from .agent_cells import AgentCells, TurnCell
from .call_status import CallStatusSender
from .records import record_of

log = logging.getLogger(__name__)

#: Generates a server's Python module, with the function name of each tool.
GenerateModule = Callable[[str, Sequence[ToolDescription]], JsonObject]

#: Maximum number of one kernel's messages that await answers: more than a person would answer, and all are kept.
MOST_WAITING: Final = 5_000
#: How many refused messages of a kernel are logged per period; below, the period in seconds.
_MOST_WARNINGS: Final = 5
_WARN_AGAIN: Final = 60.0
#: Smaller calls are accepted whenever their own kernel has room, whatever other kernels hold.
SMALL: Final = 65_536
#: Seconds after which a kernel with a lossy connection is reminded of unfinished calls: well below the minute after
#: which a kernel considers a silent server lost.
_TELL_AGAIN: Final = 5.0
#: How many ids of answered messages are remembered. A kernel repeats a message for seconds at most.
MOST_ANSWERED: Final = 10_000
#: How many of a kernel's modules are told of changes. A kernel has one side, and a module for each MCP server.
MOST_MODULES: Final = 1_000


@dataclass(slots=True)
class _Connection:
    """An attached kernel: its channel, the tasks answering its messages, recently answered ids, and what it was sent.

    `modules` has the comm id and the MCP server of each module, and `stale` of those that it knows, or is to know, to
    be old.
    """

    channel: KernelChannel
    tasks: dict[tuple[str, str], asyncio.Task[None]] = field(default_factory=dict)
    answered: dict[tuple[str, str], None] = field(default_factory=dict)
    weights: dict[tuple[str, str], int] = field(default_factory=dict)
    warnings: Rate = field(default_factory=lambda: Rate(_MOST_WARNINGS, _WARN_AGAIN))
    weight: int = 0
    is_lost: bool = False
    telling: asyncio.Task[None] | None = None
    modules: dict[tuple[str, str], None] = field(default_factory=dict)
    stale: dict[tuple[str, str], None] = field(default_factory=dict)

    def begin(self, key: tuple[str, str], task: asyncio.Task[None], weight: int) -> None:
        """Register a message that is being answered."""
        self.tasks[key] = task
        self.weights[key] = weight
        self.weight += weight

    def end(self, key: tuple[str, str]) -> None:
        """Mark a message as answered."""
        del self.tasks[key]
        self.weight -= self.weights.pop(key)
        self.remember(key)

    def withdraw(self, keys: Iterable[tuple[str, str]]) -> None:
        """Stop answering messages whose sender no longer waits."""
        for key in keys:
            if (task := self.tasks.get(key)) is not None:
                task.cancel()

    def remember(self, key: tuple[str, str]) -> None:
        """Remember an answered message: the kernel may have repeated it meanwhile."""
        self.answered[key] = None
        _keep_latest(self.answered, MOST_ANSWERED)

    def has_module(self, comm_id: str, server: str) -> None:
        """Remember that a kernel side has a server's module."""
        self.stale.pop((comm_id, server), None)
        self.modules[comm_id, server] = None
        _keep_latest(self.modules, MOST_MODULES)

    def forget_modules(self, server: str) -> Sequence[str]:
        """Return the comm ids of the kernel sides that have a server's module, each only once until it asks again."""
        found = [comm_id for comm_id, known in self.modules if known == server]
        for comm_id in found:
            del self.modules[comm_id, server]
            self.stale[comm_id, server] = None
            _keep_latest(self.stale, MOST_MODULES)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    """Approximate memory limits for unanswered calls, in bytes; ``None`` for no limit.

    Parameters
    ----------
    kernel : int or None
        Per kernel. A single call is accepted whatever its size, which is limited separately.
    total : int or None
        For all kernels. A small call is accepted anyway, so that no kernel can block others.
    """

    kernel: int | None = 128_000_000
    total: int | None = 512_000_000


class KernelConnectionManager:
    """The server's end of all kernel links. Implements the bridge's `KernelListener`.

    Parameters
    ----------
    calls : CallManager
        Runs calls.
    approvals : ApprovalManager
        Manages pending requests.
    policies : PolicyManager
        Has the problems in rules files.
    grants : GrantManager
        Ends a kernel's grants with the kernel.
    catalog : ToolCatalog
        The servers and tools.
    notebooks : NotebookFinder
        Looks up a kernel's document.
    generate : callable
        Generates a server's Python module.
    welcome : callable
        Creates the reply to a kernel's greeting.
    status_delay : float
        Seconds after which a kernel is told that its call is still pending or running. Less than the second after which
        it would ask again; 0 to show a card at once.
    limits : MemoryLimits, optional
        Memory limits for unanswered messages.
    turn_of : callable, optional
        Returns the agent's turn that is using a kernel, given its id; ``None`` if there is none.
    agents : callable, optional
        Returns what works on turns that cells start; called on first use.
    saves_arguments : bool
        Whether a call's saved line in a notebook may contain its arguments.
    askers_of : callable, optional
        Returns who has run code in a kernel, given its id.
    servers_file : str
        The path of the file that lists the user's MCP servers, for messages; empty if unknown.
    tell_again : float
        Seconds after which a kernel with a lossy connection is reminded of unfinished calls.
    """

    def __init__(
        self,
        *,
        calls: CallManager,
        approvals: ApprovalManager,
        policies: PolicyManager,
        grants: GrantManager,
        catalog: ToolCatalog,
        notebooks: NotebookFinder,
        generate: GenerateModule,
        welcome: Callable[[], messages.Welcome],
        status_delay: float = 0.0,
        limits: MemoryLimits | None = None,
        turn_of: Callable[[str], TurnRef | None] = lambda _: None,
        agents: Callable[[], AgentCells] | None = None,
        saves_arguments: bool = True,
        askers_of: Callable[[str], tuple[Asker, ...]] = lambda _: (),
        servers_file: str = "",
        tell_again: float = _TELL_AGAIN,
    ) -> None:
        self._servers_file = servers_file
        self._tell_again = tell_again
        self._askers_of = askers_of
        self._saves_arguments = saves_arguments
        self._calls = calls
        self._turn_of = turn_of
        self._agents = agents
        self._approvals = approvals
        self._policies = policies
        self._grants = grants
        self._catalog = catalog
        self._notebooks = notebooks
        self._generate = generate
        self._welcome = welcome
        self._status_delay = status_delay
        self._limits = limits or MemoryLimits()
        self._connections: dict[str, _Connection] = {}
        self._tools: dict[str, Sequence[ToolDescription]] = {}  # of the servers whose modules kernels have

    def kernel_started(self, kernel_id: str, channel: KernelChannel) -> None:
        """Attach a kernel that started."""
        self._connections[kernel_id] = connection = _Connection(channel)
        if channel.is_lossy:
            what = f"telling kernel {kernel_id} what is unfinished"
            connection.telling = in_background(self._tell_unfinished(connection), what=what)

    async def kernel_lost(self, kernel_id: str) -> None:
        """Orphan the kernel's pending requests and cancel its running calls."""
        connection = self._connections.pop(kernel_id, None)
        if connection is not None:
            connection.is_lost = (
                True  # first: a call that is still being prepared must not start while the rest is orphaned
            )
        await self._approvals.orphan(kernel_id)
        if connection is not None:
            telling = [] if connection.telling is None else [connection.telling]
            await _cancel([*connection.tasks.values(), *telling])
        # Last: by now, any grant that was being stored is in force.
        await self._grants.forget(kernel_id)

    async def withdrawn(self, kernel_id: str) -> None:
        """Wait until the calls that the kernel has withdrawn so far have ended."""
        connection = self._connections.get(kernel_id)
        ending = [task for task in connection.tasks.values() if task.cancelling()] if connection is not None else []
        if ending:
            await asyncio.wait(ending)

    async def aclose(self) -> None:
        """Detach all kernels."""
        await asyncio.gather(*(self.kernel_lost(kernel_id) for kernel_id in self._connections))

    def message_received(self, kernel_id: str, comm_id: str, data: JsonValue, *, weight: int | None = None) -> None:
        """Answer a message. Never raises: the kernel runs the code under review and may send anything.

        Parameters
        ----------
        kernel_id, comm_id : str
            The sender.
        data : JSON
            The message.
        weight : int, optional
            Its approximate size in memory, in bytes, if known.
        """
        connection = self._connections.get(kernel_id)
        if connection is None or not comm_id.startswith(COMM_PREFIX) or len(comm_id) > MAX_ID:
            return
        try:
            message = messages.from_kernel(data)
        except MessageError as error:
            self._refuse(connection, comm_id, data, error)
            return
        self._dispatch(connection, kernel_id, comm_id, message, weight)

    def _dispatch(
        self, connection: _Connection, kernel_id: str, comm_id: str, message: messages.FromKernel, weight: int | None
    ) -> None:
        if connection.stale and connection.channel.is_lossy:
            self._repeat_changes(connection, comm_id)
        if isinstance(message, messages.Hello):
            self._send(connection, comm_id, self._welcome())
        elif isinstance(message, messages.Ping):
            unknown = [id for id in message.ids[:MOST_WAITING] if (comm_id, id) not in connection.tasks]
            self._send(connection, comm_id, messages.Pong(unknown=unknown))
        elif isinstance(message, messages.Cancel):
            connection.withdraw((comm_id, id) for id in message.ids[:MOST_WAITING])
        elif isinstance(message, messages.CodeRan):
            if self._agents is not None and connection.tasks:
                self._agents().code_ran(kernel_id, comm_id, message)
        else:
            key = (comm_id, message.id)
            if key in connection.tasks or key in connection.answered:
                return  # a repeated id is the same message: act once
            if weight is None:
                weight = weight_of(message.arguments) if isinstance(message, messages.Call) else 0
            if (refusal := self._refusal(connection, message, weight)) is not None:
                connection.remember(key)
                self._send(connection, comm_id, _failure(message.id, refusal))
                return
            task = asyncio.create_task(self._answer(connection, kernel_id, comm_id, message))
            connection.begin(key, task, weight)
            task.add_done_callback(lambda _: connection.end(key))

    def _refuse(self, connection: _Connection, comm_id: str, data: JsonValue, error: MessageError) -> None:
        if connection.warnings.allows(asyncio.get_running_loop().time()):
            log.warning("a kernel sent a message that is not part of this protocol: %s", error)
        id = data.get("id") if isinstance(data, dict) else None
        if isinstance(id, str) and len(id) <= MAX_ID:
            self._send(connection, comm_id, messages.Failure(id=id, code=AgentBoxError.code, message=str(error)))

    def _refusal(self, connection: _Connection, message: messages.Question, weight: int) -> TooManyRequestsError | None:
        """Return why a message is not accepted now, if it is not."""
        what = f"`{message.server}.{message.tool}`" if isinstance(message, messages.Call) else "this"
        if len(connection.tasks) >= MOST_WAITING:
            return TooManyRequestsError(
                f"this kernel already has {MOST_WAITING:,} waiting calls: nobody was asked about {what}"
            )
        total = sum(each.weight for each in self._connections.values())
        if connection.tasks and _is_over(connection.weight + weight, self._limits.kernel):
            taken, most, whose = connection.weight, self._limits.kernel, "this kernel"
        elif weight > SMALL and _is_over(total + weight, self._limits.total):
            taken, most, whose = total, self._limits.total, "all kernels"
        else:
            return None
        return TooManyRequestsError(
            f"the unfinished calls of {whose} take {taken:,} bytes of memory and this one would take {weight:,} more;"
            f" at most {most:,} are allowed. Nobody was asked about {what}, and it did not run. Wait until some have"
            " ended, or pass large data by file name."
        )

    async def _answer(self, connection: _Connection, kernel_id: str, comm_id: str, message: messages.Question) -> None:
        """Answer a message, with an error if necessary. The root of its task."""
        try:
            self._send(connection, comm_id, await self._reply(connection, kernel_id, comm_id, message))
        except AgentBoxError as error:
            failure = _failure(message.id, error)
            if error.request_id is not None:
                failure.details["record"] = await self._record(error.request_id)
            self._send(connection, comm_id, failure)
        except Exception:
            # Whatever went wrong, the cell must not wait for ever.
            log.exception("a message from a kernel could not be answered")
            text = "the agentbox server failed; see its log"
            self._send(connection, comm_id, messages.Failure(id=message.id, code=AgentBoxError.code, message=text))

    async def _reply(
        self, connection: _Connection, kernel_id: str, comm_id: str, message: messages.Question
    ) -> messages.Reply:
        match message:
            case messages.Call():
                return await self._run(connection, kernel_id, comm_id, message)
            case messages.GetModule(server=server):
                content = await self._module(connection, comm_id, server)
            case messages.ListServers():
                content = self._servers()
            case messages.ListPending():
                content = self._pending(kernel_id)
            case messages.StartTurn():
                cell = await self._turn_cell(connection, kernel_id, comm_id, message.cell_id)
                content = await self._agents_here().run_turn(cell, message)
            case messages.AgentCommand():
                cell = await self._turn_cell(connection, kernel_id, comm_id, None)
                content = await self._agents_here().command(cell, message)
        return messages.Reply(id=message.id, content=content)

    async def _module(self, connection: _Connection, comm_id: str, server: str) -> JsonObject:
        tools = await self._catalog.list_tools(server)
        connection.modules.pop((comm_id, server), None)  # it gets the new one, and need not be told of it
        self._note_tools(server, tools)
        connection.has_module(comm_id, server)
        return await asyncio.to_thread(self._generate, server, tools)

    def servers_changed(self) -> None:
        """Tell kernels of MCP servers whose tools are no longer those in their modules."""
        for server in list(self._tools):
            try:
                tools = self._catalog.known_tools(server)
            except UnknownServerError:
                continue
            if tools is not None:
                self._note_tools(server, tools)

    def _repeat_changes(self, connection: _Connection, comm_id: str) -> None:
        """Tell a kernel side once more, since it speaks, of what it may have missed."""
        for known, server in connection.stale:
            if known == comm_id:
                self._send(connection, comm_id, messages.ToolsChanged(server=server))

    def _note_tools(self, server: str, tools: Sequence[ToolDescription]) -> None:
        before = self._tools.get(server)
        self._tools[server] = tools
        if before is None or before == tools:
            return
        for connection in self._connections.values():
            for comm_id in connection.forget_modules(server):
                self._send(connection, comm_id, messages.ToolsChanged(server=server))

    async def _run(
        self, connection: _Connection, kernel_id: str, comm_id: str, message: messages.Call
    ) -> messages.Reply:
        if message.server == NOTEBOOK_SERVER:
            raise UnknownServerError(
                f"code cannot call `{message.server}.{message.tool}`: only the program that runs the code may use it"
            )
        asked_at = self._approvals.now()
        turn = self._turn_of(kernel_id)
        origin = Origin(
            kernel_id=kernel_id,
            notebook_path=await self._notebooks.path_of(kernel_id),
            cell_id=message.cell_id,
            thread_id=turn.thread_id if turn is not None else None,
            turn_id=turn.turn_id if turn is not None else None,
            isolation=connection.channel.isolation,
            has_own_settings=connection.channel.has_own_settings,
            askers=self._askers_of(kernel_id),
        )
        call = ToolCall(server=message.server, tool=message.tool, arguments=message.arguments, origin=origin)
        with CallStatusSender(message.id, partial(self._send, connection, comm_id), delay=self._status_delay) as status:
            finished = await self._calls.run(
                call,
                on_waiting=status.waiting,
                on_running=status.running,
                on_asked=status.asked,
                is_wanted=lambda: not connection.is_lost,
                asked_at=asked_at,
            )
        content = finished.result.to_json()
        content["record"] = record_of(
            finished.request, with_arguments=self._saves_arguments, review=finished.result.review
        )
        return messages.Reply(id=message.id, content=content, request_id=finished.request.id)

    async def _record(self, request_id: str) -> JsonObject | None:
        """Return the saved line of a request that did not succeed; ``None`` if it cannot be read."""
        try:
            request = await self._approvals.get(request_id)
        except AgentBoxError:
            return None
        review = None if request.outcome is None else request.outcome.review
        return record_of(request, with_arguments=self._saves_arguments, review=review)

    async def _turn_cell(self, connection: _Connection, kernel_id: str, comm_id: str, cell_id: str | None) -> TurnCell:
        return TurnCell(
            kernel_id=kernel_id,
            comm_id=comm_id,
            cell_id=cell_id,
            notebook_path=await self._notebooks.path_of(kernel_id),
            isolation=connection.channel.isolation,
            has_own_settings=connection.channel.has_own_settings,
            askers=self._askers_of(kernel_id),
            send=partial(self._send, connection, comm_id),
        )

    def _agents_here(self) -> AgentCells:
        if self._agents is None:
            raise AgentConfigurationError("no agent can be asked from this kernel")
        return self._agents()

    def _servers(self) -> JsonObject:
        servers: list[JsonValue] = [
            {"name": status.name, "state": status.state.value, "error": status.error, "tool_count": status.tool_count}
            for status in self._catalog.servers()
        ]
        problems: list[JsonValue] = [
            problem.to_json() for problem in (*self._catalog.problems(), *self._policies.problems())
        ]
        return {"servers": servers, "problems": problems, "file": self._servers_file}

    def _pending(self, kernel_id: str) -> JsonObject:
        return {
            "approvals": [
                {
                    "id": request.id,
                    "server": request.call.server,
                    "tool": request.call.tool,
                    "created_at": json_time(request.created_at),
                    "expires_at": json_time(request.expires_at),
                }
                for request in self._approvals.requests.pending_of(kernel_id)
            ]
        }

    async def _tell_unfinished(self, connection: _Connection) -> None:
        while True:
            await asyncio.sleep(self._tell_again)
            unfinished: dict[str, list[str]] = {}
            for comm_id, id in connection.tasks:
                unfinished.setdefault(comm_id, []).append(id)
            for comm_id, ids in unfinished.items():
                self._send(connection, comm_id, messages.Unfinished(ids=ids))

    def _send(self, connection: _Connection, comm_id: str, message: messages.FromServer) -> None:
        connection.channel.send(comm_id, messages.to_json(message))


def _keep_latest(found: dict[tuple[str, str], None], most: int) -> None:
    if len(found) > most:
        del found[next(iter(found))]


def _is_over(weight: int, limit: int | None) -> bool:
    return limit is not None and weight > limit


def _failure(id: str, error: AgentBoxError) -> messages.Failure:
    details: JsonObject = {}
    if isinstance(error, ToolCallRejectedError):
        details["reason"] = error.reason
    if isinstance(error, ToolArgumentsError):
        details["parameter"] = error.parameter
    return messages.Failure(id=id, code=error.code, message=str(error), request_id=error.request_id, details=details)


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    waiting = list(tasks)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
