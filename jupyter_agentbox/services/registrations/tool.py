"""The tool that adds an MCP server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

from jupyter_agentbox.core.calls import JsonObject, JsonValue, ToolCall
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.registration import REGISTER_TOOL
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.exceptions import ServerConfigurationError

_DESCRIPTION: Final = ToolDescription(
    name=REGISTER_TOOL,
    title="Add an MCP server",
    description="A program asks to add this MCP server, whose tools code can then call. If you allow "
    "it, the server is started now, with the rights of your Jupyter server, and saved for"
    " later. Secret values are hidden.",
    input_schema={
        "type": "object",
        "properties": {"name": {"type": "string"}, "configuration": {"type": "object"}},
        "required": ["name", "configuration"],
        "additionalProperties": False,
    },
)


class Registry(Protocol):
    """The registry to which servers are added."""

    def check(self, name: str, configuration: Mapping[str, JsonValue]) -> None:
        """Check that a server can be added.

        Raises
        ------
        ServerConfigurationError
        """

    def shown(self, configuration: Mapping[str, JsonValue]) -> JsonObject:
        """Return the configuration as shown to a person, without secret values."""

    def restored(self, shown: Mapping[str, JsonValue], given: Mapping[str, JsonValue]) -> JsonObject:
        """Return a shown and possibly edited configuration with its original secrets restored.

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


class RegistrationTool:
    """The `ToolCaller` for one registration. Its call has the configuration without secret values.

    Parameters
    ----------
    registry : Registry
        The registry to which the server is added.
    given : mapping
        The configuration with its secrets, which are neither shown nor recorded.
    changing : callable
        Returns a context in which the server is added.
    """

    def __init__(
        self,
        registry: Registry,
        given: Mapping[str, JsonValue],
        *,
        changing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._changing = changing
        self._registry = registry
        self._given = given

    async def describe(self, server: str, tool: str) -> ToolDescription:  # noqa: ARG002  # there is but one
        """Return the tool's description."""
        return _DESCRIPTION

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:  # noqa: ARG002  # it says nothing before its end
        """Start the server to list its tools, and add it if that succeeds.

        Raises
        ------
        ServerConfigurationError
            It cannot be added.
        ToolServerError
            It does not start.
        """
        name, shown = call.arguments["name"], call.arguments["configuration"]
        if not isinstance(name, str) or not isinstance(shown, dict):
            raise ServerConfigurationError("a name and a configuration are needed")
        configuration = self._registry.restored(shown, self._given)
        self._registry.check(name, configuration)  # it may have been edited, or added by a person meanwhile
        tools = await self._registry.try_out(name, configuration)
        self._registry.check(name, configuration)
        with self._changing():
            self._registry.keep(name, configuration)
        return ToolResult(structured={"name": name, "tools": [tool.name for tool in tools]})
