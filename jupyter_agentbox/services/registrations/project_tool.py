"""The tool that trusts an MCP server of a project."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
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


class ProposedServer(Protocol):
    """A server that a project names, as it is shown before it is trusted."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def key(self) -> str:
        """What trust is bound to."""

    @property
    def configuration(self) -> JsonObject:
        """Its entry, without the values of secrets."""

    @property
    def trusted_before(self) -> JsonObject | None:
        """What was trusted under its name, if that was something else."""


class Project(Protocol):
    """The servers of a project."""

    def find(self, name: str) -> ProposedServer:
        """Return a server as the file has it now.

        Raises
        ------
        ServerConfigurationError
        """

    def trust(self, name: str, key: str) -> None:
        """Trust a server, if the file still says what has this key.

        Raises
        ------
        ServerConfigurationError
        """

    def distrust(self, name: str) -> None:
        """Trust a server no longer.

        Raises
        ------
        UnknownServerError, ServerConfigurationError
        """


def arguments_of(server: ProposedServer) -> JsonObject:
    """Return what a person is shown."""
    before = {} if server.trusted_before is None else {"trusted_before": server.trusted_before}
    return {"name": server.name, "configuration": server.configuration, "file": server.path, **before}


class ProjectTool:
    """The `ToolCaller` of one question of trust.

    Parameters
    ----------
    project : Project
        Whose server it is.
    server : ProposedServer
        What was shown.
    list_tools : callable
        Starts a server by its name and lists its tools.
    changing : callable
        Returns a context in which the server is trusted.
    """

    def __init__(
        self,
        project: Project,
        server: ProposedServer,
        list_tools: Callable[[str], Awaitable[Sequence[ToolDescription]]],
        *,
        changing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._changing = changing
        self._project = project
        self._server = server
        self._list_tools = list_tools

    async def describe(self, server: str, tool: str) -> ToolDescription:  # noqa: ARG002  # there is but one
        """Return the tool."""
        return _DESCRIPTION

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:  # noqa: ARG002  # it says nothing before its end
        """Trust the server and start it. One that does not start stays trusted.

        Raises
        ------
        ServerConfigurationError
            The file says something else by now, or the arguments were edited.
        ToolServerError
            It does not start.
        """
        if dict(call.arguments) != arguments_of(self._server):
            raise ServerConfigurationError(f"edit `{self._server.path}` instead, and look at the server again")
        with self._changing():
            self._project.trust(self._server.name, self._server.key)
        tools = await self._list_tools(self._server.name)
        return ToolResult(structured={"name": self._server.name, "tools": [tool.name for tool in tools]})
