"""MCP servers that programs ask to add."""
