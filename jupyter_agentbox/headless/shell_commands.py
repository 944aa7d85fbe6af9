"""Shell commands as tool calls, which go through policy, approval and record like all others."""

from __future__ import annotations

from typing import Final

from jupyter_agentbox.core.calls import JsonObject, ToolCall
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.exceptions import UnknownToolError
from jupyter_agentbox.protocol.shell import SHELL_MAGIC_TOOL, SHELL_TOOL

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
    """The `ToolCaller` of the server ``shell``.

    Its tools run nothing here: they answer with the command that was approved, and the kernel runs that.
    """

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return one tool."""
        if tool not in _TOOLS:
            raise UnknownToolError(f"there is no tool `{server}.{tool}`")
        return _TOOLS[tool]

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:  # noqa: ARG002  # it is over at once
        """Send the approved command to the kernel."""
        return ToolResult(structured={"cmd": call.arguments["cmd"]})
