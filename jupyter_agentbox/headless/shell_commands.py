"""Shell commands as calls of a tool, so that they take the same way as all others: policy, approval, record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, ToolCall
from jupyter_agentbox.core.ports import ToolRunner
from jupyter_agentbox.core.tools import ConfigurationProblem, Progress, ServerStatus, ToolDescription, ToolResult
from jupyter_agentbox.exceptions import UnknownToolError
from jupyter_agentbox.protocol.shell import SHELL_MAGIC_TOOL, SHELL_SERVER, SHELL_TOOL

_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"cmd": {"type": "string"}},
    "required": ["cmd"],
    "additionalProperties": False,
}
_TOOLS: Final = {
    SHELL_TOOL: ToolDescription(name=SHELL_TOOL, description="Runs a shell command.", input_schema={**_SCHEMA}),
    SHELL_MAGIC_TOOL: ToolDescription(
        name=SHELL_MAGIC_TOOL, description="Runs a script, such as that of a `%%bash` cell.", input_schema={**_SCHEMA}
    ),
}


class ShellTools:
    """A `ToolRunner` that has the server ``shell`` besides the servers of another one.

    Its tools run nothing here: they answer with the command that was approved, and the kernel runs that.

    Parameters
    ----------
    others : ToolRunner
        Has all other servers. A configured server that is called ``shell`` cannot be reached.
    """

    def __init__(self, others: ToolRunner) -> None:
        self._others = others

    def servers(self) -> Sequence[ServerStatus]:
        """Return the configured servers."""
        return self._others.servers()

    def problems(self) -> Sequence[ConfigurationProblem]:
        """Return what is wrong with the configuration."""
        return self._others.problems()

    async def list_tools(self, server: str) -> Sequence[ToolDescription]:
        """Return a server's tools."""
        return tuple(_TOOLS.values()) if server == SHELL_SERVER else await self._others.list_tools(server)

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return one tool."""
        if server != SHELL_SERVER:
            return await self._others.describe(server, tool)
        if tool not in _TOOLS:
            raise UnknownToolError(f"there is no shell tool `{tool}`")
        return _TOOLS[tool]

    async def call_tool(self, call: ToolCall, *, on_progress: Callable[[Progress], None] | None = None) -> ToolResult:
        """Run a call; for the shell, hand the approved command to the kernel."""
        if call.server != SHELL_SERVER:
            return await self._others.call_tool(call, on_progress=on_progress)
        return ToolResult(structured={"cmd": call.arguments["cmd"]})
