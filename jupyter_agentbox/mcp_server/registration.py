"""What a person is asked, through the MCP client, about a server that it wants to add."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.mcp_client.registration import masked

from .questions import Question


def question(name: str, configuration: Mapping[str, JsonValue]) -> Question:
    """Return what a person is asked: everything but the values of secrets."""
    runs = "a program on this machine" if "command" in configuration else "a server on the network"
    return Question(
        headline=f"The MCP client wants to add an MCP server, which is {runs}. If you allow it, it is started now, and"
        " kept for later. Values of secrets are not shown.",
        facts={"name": name, "configuration": masked(configuration)},
    )
