"""Which of several callers a call goes to."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.ports import CallListener, ToolCaller
from jupyter_agentbox.core.tools import ToolDescription, ToolResult


class ToolRouter:
    """A `ToolCaller` that hands each call to the one of its server.

    Parameters
    ----------
    own : mapping
        Names of servers that are part of this package, and who calls their tools. A configured server of such a name
        cannot be reached.
    others : ToolCaller
        Calls the tools of all other servers.
    """

    def __init__(self, own: Mapping[str, ToolCaller], *, others: ToolCaller) -> None:
        self._own = own
        self._others = others

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return one tool."""
        return await self._caller_of(server).describe(server, tool)

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:
        """Run the call."""
        return await self._caller_of(call.server).call_tool(call, listener=listener)

    def _caller_of(self, server: str) -> ToolCaller:
        return self._own.get(server, self._others)
