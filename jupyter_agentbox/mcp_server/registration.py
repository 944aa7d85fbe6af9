"""The question that a person is asked, through the MCP client, about a server that the client wants to add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.core.look_alikes import look_alikes
from jupyter_agentbox.core.registration import OWN_SERVER, REGISTER_TOOL, REGISTRATION

from .consent import Question

#: Said where nobody can be asked.
HOW_A_RULE_ALLOWS: Final = f"a rule allows it only if it names `{REGISTRATION}` in full; `*` does not"


def question(arguments: Mapping[str, JsonValue]) -> Question:
    """Return the question, made from what the request shows: everything but the values of secrets."""
    configuration = arguments.get("configuration")
    is_program = isinstance(configuration, dict) and "command" in configuration
    runs = "a program on this machine" if is_program else "a server on the network"
    return Question(
        headline=f"The MCP client wants to add an MCP server, which is {runs}. If you allow it, it is started now, and"
        " kept for later. Values of secrets are not shown.",
        facts=arguments,
        odd=look_alikes(server=OWN_SERVER, tool=REGISTER_TOOL, arguments=arguments),
    )
