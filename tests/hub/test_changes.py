"""What the record says of who starts and stops MCP servers at a server of a real JupyterHub."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from .hub import API, COLLABORATOR, OWNER, Hub, Session, mcp_server

#: What somebody does to a server, and its name in the record.
ACTIONS = {"start": "start_server", "stop": "stop_server", "restart": "restart_server"}

Ask = Callable[[str], int]


@pytest.fixture
def name(hub: Hub) -> Iterator[str]:
    """Give the name of an MCP server that the owner has."""
    with mcp_server(hub, "idle", {"command": "/bin/false"}):
        yield "idle"


def browser(hub: Hub, user: str) -> Ask:
    session = Session(hub, user)
    session.open_lab(hub.server())
    return lambda path: session.ask(path, {})[0]


def program(hub: Hub, user: str) -> Ask:
    token = hub.token_of(user, note="cleans up")
    return lambda path: hub.ask(path, {}, token=token)[0]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    ("as_what", "user", "via", "words"),
    [
        (browser, OWNER, "browser", OWNER),
        (browser, COLLABORATOR, "browser", COLLABORATOR),  # who may use the server, and not decide there
        (program, COLLABORATOR, "api_token", f"a program with a token of {COLLABORATOR} (“cleans up”)"),
    ],
)
def test_the_record_says_which_user_of_the_hub_did_it_and_how_they_came(
    hub: Hub, name: str, action: str, as_what: Callable[[Hub, str], Ask], user: str, via: str, words: str
) -> None:
    assert as_what(hub, user)(f"{hub.server()}{API}servers/{name}/{action}") == 200

    code, answer = hub.ask(f"{hub.server()}{API}audit?server=agentbox&limit=1", token=hub.admin)
    assert code == 200
    (record,) = answer["records"]
    decision = record["decision"]
    assert (record["call"]["tool"], record["call"]["arguments"]) == (ACTIONS[action], {"name": name})
    assert (decision["reviewer"], decision["via"], decision["hub_server"]) == (user, via, f"{OWNER}/")
    assert len(decision["credential"]) == 64
    assert record["decided_by"] == words
