"""MCP client sessions: the servers' configuration, their processes, and the calls that run on them."""
