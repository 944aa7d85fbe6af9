"""Programs that ask to add an MCP server: each is a call that waits for a person like all others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import JsonObject, JsonValue, Origin, ToolCall
from jupyter_agentbox.core.ports import ArgumentChecker
from jupyter_agentbox.core.tools import ConfigurationProblem, Progress, ServerStatus, ToolDescription, ToolResult
from jupyter_agentbox.exceptions import AgentBoxError, ServerConfigurationError, UnknownApprovalError, UnknownToolError
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.calls.manager import CallManager, FinishedCall
from jupyter_agentbox.services.policies.manager import PolicyManager

log = logging.getLogger(__name__)

#: How a registration is named where calls are shown and recorded. No MCP server that is added can be called so.
SERVER: Final = "agentbox"
TOOL: Final = "register_mcp_server"

_DESCRIPTION: Final = ToolDescription(
    name=TOOL,
    title="Add an MCP server",
    description="A program asks to add this MCP server to those that code can call here. If you allow it, the server is"
    " started now, with the rights of your Jupyter server, and kept for later. Values of secrets are not shown.",
    input_schema={
        "type": "object",
        "properties": {"name": {"type": "string"}, "configuration": {"type": "object"}},
        "required": ["name", "configuration"],
        "additionalProperties": False,
    },
)


class Registry(Protocol):
    """Where servers are added."""

    def check(self, name: str, configuration: Mapping[str, JsonValue]) -> None:
        """Refuse what cannot be added.

        Raises
        ------
        ServerConfigurationError
        """

    def shown(self, configuration: Mapping[str, JsonValue]) -> JsonObject:
        """Return the configuration as a person sees it: without the values of secrets."""

    def restored(self, shown: Mapping[str, JsonValue], given: Mapping[str, JsonValue]) -> JsonObject:
        """Return what a person saw, and may have edited, with the secrets that were given for it.

        Raises
        ------
        ServerConfigurationError
        """

    async def try_out(self, name: str, configuration: Mapping[str, JsonValue]) -> Sequence[ToolDescription]:
        """Start the server, list its tools, and stop it.

        Raises
        ------
        ToolServerError
        """

    def keep(self, name: str, configuration: Mapping[str, JsonValue]) -> None:
        """Add the server.

        Raises
        ------
        ServerConfigurationError
        """


class RegistrationManager:
    """Asks about servers to add, and adds them.

    Parameters
    ----------
    approvals : ApprovalManager
        Who asks.
    checker : ArgumentChecker
        Refuses edited arguments that do not fit.
    registry : Registry or None
        Where they are added; ``None`` if none may be.
    """

    def __init__(self, *, approvals: ApprovalManager, checker: ArgumentChecker, registry: Registry | None) -> None:
        self._approvals = approvals
        self._checker = checker
        self._registry = registry
        self._running: dict[str, asyncio.Task[FinishedCall]] = {}

    async def begin(self, name: str, configuration: JsonObject, origin: Origin) -> ApprovalRequest:
        """Ask a person, whatever the rules say, and return the request. What becomes of it is recorded there.

        Raises
        ------
        ServerConfigurationError
            If no such server can be added; nobody was asked.
        TooManyRequestsError, StorageError
        """
        if self._registry is None:
            raise ServerConfigurationError(
                "no server can be added: `AgentBoxApp.mcp_config_path` names the file of the MCP servers, and only a"
                " person adds servers there"
            )
        self._registry.check(name, configuration)
        arguments: JsonObject = {"name": name, "configuration": self._registry.shown(configuration)}
        call = ToolCall(server=SERVER, tool=TOOL, arguments=arguments, origin=origin)
        calls = CallManager(
            approvals=self._approvals,
            policies=PolicyManager(),  # without rules: a person decides
            tools=_Registration(self._registry, configuration),
            checker=self._checker,
        )
        opened: asyncio.Future[ApprovalRequest] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(calls.run(call, on_waiting=opened.set_result, on_running=lambda _: None))
        task.add_done_callback(lambda _: opened.cancel())  # does nothing if somebody was asked
        try:
            await asyncio.wait([opened])
        except asyncio.CancelledError:
            task.cancel()
            raise
        if opened.cancelled():
            await task  # raises why nobody could be asked
        request = opened.result()
        self._running[request.id] = task
        task.add_done_callback(lambda ended: self._end(request.id, ended))
        return request

    async def withdraw(self, request_id: str) -> None:
        """Take a registration back: it is not asked about any more, or its start is cancelled.

        Raises
        ------
        UnknownApprovalError
            If there is none of that id that is not final.
        """
        task = self._running.get(request_id)
        if task is None:
            raise UnknownApprovalError(f"no registration `{request_id}` waits or runs", request_id=request_id)
        task.cancel()
        await asyncio.wait([task])

    async def aclose(self) -> None:
        """Take all of them back."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, request_id: str, task: asyncio.Task[FinishedCall]) -> None:
        self._running.pop(request_id, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, AgentBoxError):
            log.error("registration %s failed", request_id, exc_info=error)


class _Registration:
    """A `ToolRunner` with one tool, which adds one server."""

    def __init__(self, registry: Registry, given: Mapping[str, JsonValue]) -> None:
        self._registry = registry
        self._given = given

    def servers(self) -> Sequence[ServerStatus]:
        return ()

    def problems(self) -> Sequence[ConfigurationProblem]:
        return ()

    async def list_tools(self, _server: str) -> Sequence[ToolDescription]:
        return (_DESCRIPTION,)

    async def describe(self, server: str, tool: str) -> ToolDescription:
        if (server, tool) != (SERVER, TOOL):
            raise UnknownToolError(f"there is no tool `{server}.{tool}`")
        return _DESCRIPTION

    async def call_tool(self, call: ToolCall, *, on_progress: Callable[[Progress], None] | None = None) -> ToolResult:  # noqa: ARG002
        name, shown = call.arguments["name"], call.arguments["configuration"]
        if not isinstance(name, str) or not isinstance(shown, dict):
            raise ServerConfigurationError("a name and a configuration are needed")
        configuration = self._registry.restored(shown, self._given)
        self._registry.check(name, configuration)  # it may be edited, and a person may have added it meanwhile
        tools = await self._registry.try_out(name, configuration)
        self._registry.check(name, configuration)
        self._registry.keep(name, configuration)
        return ToolResult(structured={"name": name, "tools": [tool.name for tool in tools]})
