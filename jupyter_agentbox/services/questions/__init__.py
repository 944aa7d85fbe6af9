"""Questions that MCP servers ask people during tool calls."""
