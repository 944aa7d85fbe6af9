"""MCP servers: status, tools, configuration, sign-ins."""
