"""The kernel of an agent's thread: a `CodeExecutor` that asks about code, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from jupyter_agentbox.agents.threads.ports import (
    ApprovalAsked,
    Catalog,
    CodeEnded,
    KernelEvent,
    ToolCallEnded,
    ToolLine,
)
from jupyter_agentbox.codegen.modules import generate_module
from jupyter_agentbox.core.names import server_names
from jupyter_agentbox.core.ports import ToolCatalog
from jupyter_agentbox.core.threads import ItemStatus
from jupyter_agentbox.exceptions import (
    ApprovalCancelledError,
    ApprovalExpiredError,
    ToolCallRejectedError,
    UnknownToolError,
)
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER

from .executor import CodeExecutor
from .requests import ApprovalRequest
from .results import CodeExecutionError, CodeExecutionResult


class ExecutorKernel:
    """An `AgentKernel` on a `CodeExecutor`.

    Parameters
    ----------
    executor : CodeExecutor
        Runs, and approves code.
    """

    def __init__(self, executor: CodeExecutor) -> None:
        self._executor = executor

    async def run(self, code: str, *, thread_id: str) -> AsyncGenerator[KernelEvent]:
        """Ask whether the code may run, and run it."""
        self._executor.thread_id = thread_id
        asked: list[ApprovalRequest] = []
        ended = CodeEnded(code=code, status=ItemStatus.INTERRUPTED, error="it was interrupted")
        try:
            async with aclosing(self._executor.stream(code)) as items:
                async for item in items:
                    if isinstance(item, ApprovalRequest):
                        asked.append(item)
                        yield ApprovalAsked(request=item)
                    elif isinstance(item, CodeExecutionResult):
                        ended = CodeEnded(
                            code=code, status=ItemStatus.COMPLETED, text=item.text or "", images=len(item.images)
                        )
        except CodeExecutionError as error:
            text = error.result.text if error.result is not None else None
            ended = CodeEnded(code=code, status=ItemStatus.FAILED, text=text or "", error=str(error))
        except (ToolCallRejectedError, ApprovalExpiredError, ApprovalCancelledError) as error:
            ended = CodeEnded(code=code, status=ItemStatus.DECLINED, error=str(error))
        for event in _calls_ended(asked):
            yield event
        yield _as_it_ran(ended, asked)

    async def variables(self) -> str:
        """Return the names, types and shapes of the variables."""
        try:
            return await self._executor.variables()
        except CodeExecutionError as error:
            return str(error)

    async def catalog(self) -> Catalog:
        """Return the tools of the executor's MCP servers."""
        return ExecutorCatalog(await self._executor.servers())

    async def cells(self) -> str | None:
        """Return ``None``: there is no notebook."""
        return None


def _calls_ended(asked: Sequence[ApprovalRequest]) -> Sequence[ToolCallEnded]:
    calls = [request for request in asked if request.server_name != NOTEBOOK_SERVER]
    return [
        ToolCallEnded(request_id=one.id, status=ItemStatus.COMPLETED if one.is_accepted else ItemStatus.DECLINED)
        for one in calls
    ]


def _as_it_ran(ended: CodeEnded, asked: Sequence[ApprovalRequest]) -> CodeEnded:
    """Put the code in that ran: a person may have edited it."""
    edited = next((one.decided_args["code"] for one in asked if one.server_name == NOTEBOOK_SERVER), ended.code)
    return CodeEnded(code=str(edited), status=ended.status, text=ended.text, error=ended.error, images=ended.images)


class ExecutorCatalog:
    """A `Catalog` of the MCP servers that an executor's code may call.

    Parameters
    ----------
    catalog : ToolCatalog
        The servers.
    """

    def __init__(self, catalog: ToolCatalog) -> None:
        self._catalog = catalog

    def names(self) -> Sequence[str]:
        """Return the names of the configured servers."""
        return [status.name for status in self._catalog.servers()]

    async def tools(self, server: str) -> Sequence[ToolLine]:
        """Return the server's tools."""
        found = await self._catalog.list_tools(server)
        return [ToolLine(server=server, name=tool.name, summary=_first_sentence(tool.description)) for tool in found]

    async def documentation(self, server: str, tool: str) -> str:
        """Return the Python function of a tool, with its types and what the server says of it."""
        found = await self._catalog.list_tools(server)
        wanted = next((one for one in found if one.name == tool), None)
        if wanted is None:
            raise UnknownToolError(f"`{server}` has no tool `{tool}`: find its name with `search_tools`")
        functions = dict((await asyncio.to_thread(generate_module, server, found)).functions)
        call = f"tools.{server_names(self.names()).get(server, server)}.{functions[tool]}"
        return f"# from jupyter_agentbox import tools; {call}(…)\n{generate_module(server, [wanted]).source}"


def _first_sentence(text: str) -> str:
    return text.strip().partition("\n")[0].partition(". ")[0]
