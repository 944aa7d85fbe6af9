"""The tool that trusts an MCP server of a project, or a changed one of the user's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final, Protocol

from jupyter_agentbox.core.calls import JsonObject, ToolCall
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.registration import REGISTER_TOOL
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.exceptions import ServerConfigurationError

_DESCRIPTION: Final = ToolDescription(
    name=REGISTER_TOOL,
    title="Trust an MCP server of this project",
    description="A file of this project names this MCP server. If you allow it, the server is started outside every"
    " sandbox, with your rights, now and whenever its tools are used. Its program may be a file of the project, which"
    " can change without another question. If the entry changes, you are asked again. Secret values are hidden.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "configuration": {"type": "object"},
            "file": {"type": "string"},
            "trusted_before": {"type": "object"},
        },
        "required": ["name", "configuration", "file"],
        "additionalProperties": False,
    },
)
_OWN_DESCRIPTION: Final = replace(
    _DESCRIPTION,
    title="Trust a new or changed MCP server",
    description="The file of your MCP servers has a new or changed entry, which was not added in the panel. If you"
    " allow it, the server is started outside every sandbox, with your rights, now and whenever its tools are used. If"
    " the entry changes, you are asked again. Secret values are hidden.",
)


class ProposedServer(Protocol):
    """A server in a configuration file, as shown before it is trusted."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def path(self) -> str:
        """The configuration file."""

    @property
    def key(self) -> str:
        """The key to which trust is bound."""

    @property
    def configuration(self) -> JsonObject:
        """Its entry, without secret values."""

    @property
    def trusted_before(self) -> JsonObject | None:
        """The entry previously trusted under its name, if it has changed."""

    @property
    def is_of_project(self) -> bool:
        """Whether the file is a project's, not the user's own."""


class ReviewableEntries(Protocol):
    """The MCP servers that need trust: those of a project, and perhaps the user's own."""

    def find(self, name: str) -> ProposedServer:
        """Return a server as currently configured.

        Raises
        ------
        ServerConfigurationError
        """

    def trust(self, name: str, key: str) -> None:
        """Trust a server, if its configuration still has this key.

        Raises
        ------
        ServerConfigurationError
        """

    def distrust(self, name: str) -> None:
        """Withdraw trust in a server.

        Raises
        ------
        UnknownServerError, ServerConfigurationError
        """


def arguments_of(server: ProposedServer) -> JsonObject:
    """Return the arguments that a person is shown."""
    before = {} if server.trusted_before is None else {"trusted_before": server.trusted_before}
    return {"name": server.name, "configuration": server.configuration, "file": server.path, **before}


class TrustTool:
    """The `ToolCaller` for one request to trust a server.

    Parameters
    ----------
    entries : ReviewableEntries
        Where the entry is, and where trust in it is stored.
    server : ProposedServer
        The server as shown.
    list_tools : callable
        Starts a server by name and lists its tools.
    changing : callable
        Returns a context in which the server is trusted.
    """

    def __init__(
        self,
        entries: ReviewableEntries,
        server: ProposedServer,
        list_tools: Callable[[str], Awaitable[Sequence[ToolDescription]]],
        *,
        changing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._changing = changing
        self._entries = entries
        self._server = server
        self._list_tools = list_tools

    async def describe(self, server: str, tool: str) -> ToolDescription:  # noqa: ARG002  # there is but one
        """Return the tool's description."""
        return _DESCRIPTION if self._server.is_of_project else _OWN_DESCRIPTION

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:  # noqa: ARG002  # it says nothing before its end
        """Trust the server and start it. If it does not start, it remains trusted.

        Raises
        ------
        ServerConfigurationError
            Its configuration has changed, or the arguments were edited.
        ToolServerError
            It does not start.
        """
        if dict(call.arguments) != arguments_of(self._server):
            raise ServerConfigurationError(f"edit `{self._server.path}` instead, and look at the server again")
        with self._changing():
            self._entries.trust(self._server.name, self._server.key)
        tools = await self._list_tools(self._server.name)
        return ToolResult(structured={"name": self._server.name, "tools": [tool.name for tool in tools]})
