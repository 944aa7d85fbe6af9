"""Where MCP servers are configured, in words for people."""

from __future__ import annotations

from typing import Final

from jupyter_agentbox.core.text import one_line

#: A whole file, to paste. The command is the Python that runs the Jupyter server, where the demo is installed.
EXAMPLE: Final = """\
{"mcpServers": {
  "shop": {"command": "python", "args": ["-m", "jupyter_agentbox.demo.shop"]}
}}"""
_LONGEST: Final = 1_000


def file_in_words(path: str) -> str:
    """Return the file that lists the MCP servers; in general terms if the server has not told its path."""
    return f"`{one_line(path, _LONGEST)}`" if path else "`mcp.json` in Jupyter's configuration directory"


def how_to_begin(path: str) -> str:
    """Return what to write where if no server is configured, with an example."""
    return f"List your servers in {file_in_words(path)}, for example:\n\n{EXAMPLE}"
