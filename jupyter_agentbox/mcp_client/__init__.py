"""MCP client: server configuration, processes, sessions, and calls."""
