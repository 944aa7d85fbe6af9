"""MCP servers, as people see them."""
