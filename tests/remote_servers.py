"""A remote MCP server in a configuration, and as whom its tools act."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.mcp_client.configuration_files import ConfigurationFiles
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.mcp_client.servers import McpServers
from jupyter_agentbox.mcp_client.sign_ins import LocalSignInStore

REDIRECT: Final = "http://127.0.0.1:8888/jupyter-agentbox/oauth/callback/remote"


@asynccontextmanager
async def configured(url: str, directory: Path, sign_ins: LocalSignInStore) -> AsyncIterator[McpServers]:
    """Run the servers of a configuration that has one, `remote`."""
    path = directory / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"remote": {"url": url}}}))
    servers = McpServers(source=ConfigurationFiles([path], {}), limits=ServerLimits(), sign_ins=sign_ins)
    try:
        yield servers
    finally:
        await servers.aclose()


async def account_of(servers: McpServers) -> str:
    """Return whom the server takes for the one who asks."""
    return (await servers.call_tool(ToolCall(server="remote", tool="whoami", arguments={}))).text
