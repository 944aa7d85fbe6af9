"""A small shop behind an MCP server, and ``python -m jupyter_agentbox.demo``, which opens a notebook on it."""
