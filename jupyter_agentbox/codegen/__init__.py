"""Generates the source of Python modules for the tools of MCP servers. Runs in the server, without side effects."""
