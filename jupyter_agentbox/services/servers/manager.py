"""What people and pages may know and do about MCP servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jupyter_agentbox.core.ports import ToolRunner
from jupyter_agentbox.core.tools import ConfigurationProblem, ServerStatus, ToolDescription


class RestartableToolRunner(ToolRunner, Protocol):
    """A `ToolRunner` whose servers can be started anew."""

    async def restart(self, name: str) -> ServerStatus:
        """Stop the server, if it runs, and start it."""


class ServerManager:
    """The configured MCP servers.

    Parameters
    ----------
    tools : RestartableToolRunner
        Who runs them.
    """

    def __init__(self, *, tools: RestartableToolRunner) -> None:
        self._tools = tools

    def servers(self) -> Sequence[ServerStatus]:
        """Return all configured servers."""
        return self._tools.servers()

    def problems(self) -> Sequence[ConfigurationProblem]:
        """Return what is wrong with the configuration."""
        return self._tools.problems()

    async def list_tools(self, name: str) -> Sequence[ToolDescription]:
        """Return a server's tools; starts it if need be.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        """
        return await self._tools.list_tools(name)

    async def restart(self, name: str) -> ServerStatus:
        """Start a server anew; its running calls are cut off.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        """
        return await self._tools.restart(name)
