"""Runs code in a kernel of this process, whose calls are decided by rules and through the MCP client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.look_alikes import look_alikes
from jupyter_agentbox.core.ports import ToolCatalog
from jupyter_agentbox.core.reviewers import Via
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    InvalidTransitionError,
    SandboxRefusedError,
    ServerConfigurationError,
    ToolCallRejectedError,
)
from jupyter_agentbox.headless.executor import CodeExecutor
from jupyter_agentbox.headless.reports import LONGEST, ServerLogMessage, ToolProgress
from jupyter_agentbox.headless.requests import ApprovalRequest
from jupyter_agentbox.headless.results import CodeExecutionChunk, CodeExecutionError, CodeExecutionResult

from . import registration
from .cell_queue import WAS_RESET, CellQueue
from .consent import ConsentSource, Question, Refuser
from .sessions import CellRequest, Executed, SessionError
from .settings import CodeServerSettings

log = logging.getLogger(__name__)


class LocalSession:
    """A `CodeSession` over a `CodeExecutor`.

    Parameters
    ----------
    make_executor : callable
        Makes it; it starts with the first cell.
    can_register : bool
        Whether the executor reads the file of registered servers.
    busy_timeout : float
        Seconds that a cell waits for an earlier one.
    """

    def __init__(self, make_executor: Callable[[], CodeExecutor], *, can_register: bool, busy_timeout: float) -> None:
        self._make_executor = make_executor
        self._cells = CellQueue(busy_timeout)
        self._can_register = can_register
        self._executor: CodeExecutor | None = None
        self._starting = asyncio.Lock()

    async def execute(self, cell: CellRequest) -> Executed:
        """Run a cell."""
        executor = await self._started()
        async with self._cells.enter(cell.activity) as queued:
            run = _Run(executor, cell)
            try:
                done = await run.execute()
            finally:
                await run.end()
        return replace(done, error=WAS_RESET) if queued.is_lost else done

    async def reset(self) -> None:
        """Start again with a fresh kernel, and stop the MCP servers."""
        if self._executor is None:
            await self._started()
            return
        self._cells.lose()
        try:
            await self._executor.reset()
        except (CodeExecutionError, SandboxRefusedError, TimeoutError) as error:
            raise SessionError(f"the kernel could not be started: {error}") from None

    async def servers(self) -> Sequence[JsonObject]:
        """Return the configured MCP servers."""
        catalog = await self._catalog()
        problems = [str(problem) for problem in catalog.problems()]
        if problems and not catalog.servers():
            raise SessionError("; ".join(problems))
        return [
            {"name": status.name, "state": status.state.value, "error": status.error} for status in catalog.servers()
        ]

    async def list_tools(self, server: str) -> Sequence[ToolDescription]:
        """Return a server's tools."""
        try:
            return await (await self._catalog()).list_tools(server)
        except AgentBoxError as error:
            raise SessionError(str(error)) from None

    async def register(self, name: str, configuration: JsonObject, consents: ConsentSource) -> Sequence[str]:
        """Add an MCP server, if a person approves."""
        if not self._can_register:
            raise SessionError("this server was started with `--mcp-config`: only a person adds servers, in that file")
        executor = await self._started()

        async def decide(request: ApprovalRequest) -> None:
            await _ask(consents, registration.question(request.tool_args), request)

        try:
            return await executor.register_mcp_server(name, configuration, decide=decide)
        except ServerConfigurationError as error:
            raise SessionError(str(error)) from None
        except ToolCallRejectedError as error:
            hint = registration.HOW_A_RULE_ALLOWS if isinstance(consents, Refuser) else ""
            what = f"`{name}` was not registered and not started: it was not approved"
            raise SessionError(": ".join(filter(None, [what, error.reason, hint]))) from None
        except AgentBoxError as error:
            raise SessionError(f"`{name}` was not registered: {error}") from None

    async def aclose(self) -> None:
        """End the kernel and the MCP servers."""
        executor, self._executor = self._executor, None
        if executor is not None:
            await executor.stop()

    async def _catalog(self) -> ToolCatalog:
        executor = await self._started()
        try:
            return await executor.servers()
        except AgentBoxError as error:
            raise SessionError(str(error)) from None

    async def _started(self) -> CodeExecutor:
        async with self._starting:
            if self._executor is None:
                try:
                    executor = self._make_executor()
                    await executor.start()
                except (CodeExecutionError, SandboxRefusedError, TimeoutError, OSError, ValueError) as error:
                    raise SessionError(f"the kernel could not be started: {error}") from None
                self._executor = executor
            return self._executor


def open_local_session(settings: CodeServerSettings, images_dir: Path) -> LocalSession:
    """Return a session with the settings of the command line; images are written into that directory."""

    def make_executor() -> CodeExecutor:
        return CodeExecutor(
            policy=settings.policy,
            working_dir=settings.working_dir,
            images_dir=images_dir,
            approve_shell_cmds=settings.approve_shell_cmds,
            approval_timeout=settings.approval_timeout,
            mcp_config_path=settings.mcp_config,
            sandbox=settings.sandbox,
            sandbox_config=settings.sandbox_config,
            log_level=settings.log_level,
            via=Via.MCP_CLIENT,
        )

    return LocalSession(make_executor, can_register=settings.mcp_config is None, busy_timeout=settings.busy_timeout)


class _Run:
    """A running cell, and the questions about its calls."""

    def __init__(self, executor: CodeExecutor, cell: CellRequest) -> None:
        self._executor = executor
        self._cell = cell
        self._chunks: list[str] = []
        self._deciding: set[asyncio.Task[None]] = set()
        self._failure: str | None = None

    async def execute(self) -> Executed:
        try:
            async for item in self._executor.stream(
                self._cell.code, timeout=self._cell.timeout, chunks=True, progress=True
            ):
                if isinstance(item, ApprovalRequest):
                    self._start_deciding(item)
                elif isinstance(item, ToolProgress | ServerLogMessage):
                    self._cell.report(one_line(str(item), LONGEST))
                elif isinstance(item, CodeExecutionChunk):
                    self._chunks.append(item.text)
                elif isinstance(item, CodeExecutionResult):
                    return Executed(text=item.text or "", bundles=item.mime_bundles)
        except CodeExecutionError as error:
            bundles = error.result.mime_bundles if error.result is not None else ()
            return Executed(text="".join(self._chunks), bundles=bundles, error=str(error))
        except TimeoutError as error:
            return Executed(text="".join(self._chunks), error=str(error))
        return Executed(text="".join(self._chunks), error=self._failure or "the cell was cancelled")

    async def end(self) -> None:
        """Withdraw the questions that are still open."""
        for task in self._deciding:
            task.cancel()
        await asyncio.gather(*self._deciding, return_exceptions=True)

    def _start_deciding(self, request: ApprovalRequest) -> None:
        task = asyncio.create_task(self._decide(request))
        self._deciding.add(task)
        task.add_done_callback(self._deciding.discard)

    async def _decide(self, request: ApprovalRequest) -> None:
        self._cell.activity.wait_for_decision(request.id, f"{request.server_name}.{request.tool_name}")
        try:
            await _ask(self._cell.consents, _question(request), request)
        except Exception as error:
            # The root of a task. A request that cannot be decided must not hold up its cell for ever.
            log.exception("request %s could not be decided", request.id)
            self._failure = f"{request.server_name}.{request.tool_name} could not be decided: {error}"
            self._executor.cancel()
        finally:
            self._cell.activity.decided(request.id)


async def _ask(consents: ConsentSource, question: Question, request: ApprovalRequest) -> None:
    """Ask a question and decide the request by the answer, unless the request ends first."""
    asking = asyncio.ensure_future(consents.ask(question))
    settled = asyncio.ensure_future(request.response())
    try:
        await asyncio.wait([asking, settled], return_when=asyncio.FIRST_COMPLETED)
        if settled.done():
            return  # expired, or withdrawn
        answer = asking.result()
        if answer.allowed:
            await request.accept()
        elif answer.is_anybody_there:
            await request.reject(answer.reason)
        else:
            await request.reject_unasked(answer.reason)
    except InvalidTransitionError as error:
        log.info("a decision came too late: %s", error)
    finally:
        for waiting in (asking, settled):
            waiting.cancel()
        await asyncio.gather(asking, settled, return_exceptions=True)


def _question(request: ApprovalRequest) -> Question:
    return Question(
        headline="The code asks to call a tool.",
        facts={"server": request.server_name, "tool": request.tool_name, "arguments": request.tool_args},
        odd=look_alikes(server=request.server_name, tool=request.tool_name, arguments=request.tool_args),
    )
