"""Turns the tools of an MCP server into the source of a Python module. Pure text work, on the server's side."""
