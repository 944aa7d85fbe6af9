"""The tools of the configured MCP servers, for agents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from jupyter_agentbox.codegen.modules import generate_module
from jupyter_agentbox.core.names import server_names
from jupyter_agentbox.core.ports import ToolCatalog
from jupyter_agentbox.core.text import first_sentence
from jupyter_agentbox.exceptions import UnknownToolError

from .ports import ToolLine


class McpCatalog:
    """A `Catalog` of the configured MCP servers.

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
        return [ToolLine(server=server, name=tool.name, summary=first_sentence(tool.description)) for tool in found]

    async def documentation(self, server: str, tool: str) -> str:
        """Return the Python function of a tool, with its types and the server's description."""
        found = await self._catalog.list_tools(server)
        wanted = next((one for one in found if one.name == tool), None)
        if wanted is None:
            raise UnknownToolError(f"`{server}` has no tool `{tool}`: find its name with `search_tools`")
        functions = dict((await asyncio.to_thread(generate_module, server, found)).functions)
        call = f"tools.{server_names(self.names()).get(server, server)}.{functions[tool]}"
        return f"# from jupyter_agentbox import tools; {call}(…)\n{generate_module(server, [wanted]).source}"
