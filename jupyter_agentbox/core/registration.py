"""Names under which adding an MCP server is evaluated, shown and recorded."""

from __future__ import annotations

from typing import Final

#: Reserved: no MCP server that a program adds can have this name.
OWN_SERVER: Final = "agentbox"
#: The tool that adds an MCP server, and so decides what else can be called.
REGISTER_TOOL: Final = "register_mcp_server"
REGISTRATION: Final = f"{OWN_SERVER}.{REGISTER_TOOL}"
