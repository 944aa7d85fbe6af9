"""How adding an MCP server is called where calls are decided, shown and recorded."""

from __future__ import annotations

from typing import Final

#: No MCP server that a program asks for can have this name.
OWN_SERVER: Final = "agentbox"
#: The tool that adds an MCP server, and so decides what else can be called.
REGISTER_TOOL: Final = "register_mcp_server"
REGISTRATION: Final = f"{OWN_SERVER}.{REGISTER_TOOL}"
