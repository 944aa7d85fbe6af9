"""Routes calls to one of several callers."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.ports import CallListener, ToolCaller
from jupyter_agentbox.core.tools import ToolDescription, ToolResult


class ToolRouter:
    """A `ToolCaller` that passes each call to the caller for its server.

    Parameters
    ----------
    own : mapping
        Callers for the servers that are part of this package, by name. They shadow configured servers of the same
        name.
    others : ToolCaller
        Calls the tools of all other servers.
    """

    def __init__(self, own: Mapping[str, ToolCaller], *, others: ToolCaller) -> None:
        self._own = own
        self._others = others

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return a tool's description."""
        return await self._caller_of(server).describe(server, tool)

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:
        """Run the call."""
        return await self._caller_of(call.server).call_tool(call, listener=listener)

    def _caller_of(self, server: str) -> ToolCaller:
        return self._own.get(server, self._others)
