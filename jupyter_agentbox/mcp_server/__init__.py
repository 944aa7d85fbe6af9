"""``jupyter agentbox mcp``: an MCP server that runs code and asks before the code's tool calls take effect."""
