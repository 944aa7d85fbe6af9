"""Who reads, decides and changes rules at a server of a real JupyterHub: a table of all who can come to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from .hub import ANY, API, COLLABORATOR, COLLEAGUE, DECIDE, INSPECTOR, OWNER, STRANGER, Hub, Session
from .test_decisions import token_of_the_page, token_of_the_server

#: Sends a request to a server as somebody does; returns the status and the answer.
Ask = Callable[..., tuple[int, Any]]
#: What becomes of an attempt: it is allowed, or refused with one of two reasons, or not even let in.
YES, NEEDS_PERSON, NOT_A_DECIDER, NO_ACCESS = "yes", "needs_person", "not_a_decider", "no access"


def with_token(find: Callable[[Hub, str], str]) -> Callable[[Hub, str], Ask]:
    """Return how to come with a token."""

    def come(hub: Hub, server: str) -> Ask:
        token = find(hub, server)
        return lambda path, body=None, method=None: hub.ask(path, body, token=token, method=method)

    return come


def token_of(user: str, *scopes: str) -> Callable[[Hub, str], Ask]:
    """Return how to come with a token of a user, with all of their rights or only some of them.

    In a scope, `{server}` stands for the server.
    """

    def find(hub: Hub, server: str) -> str:
        said = [scope.format(server=f"{OWNER}/{server}") for scope in scopes]
        return hub.token_of(user, **({"scopes": said} if said else {}))

    return with_token(find)


def browser_of(user: str) -> Callable[[Hub, str], Ask]:
    """Return how to come as a user with a browser."""

    def come(hub: Hub, server: str) -> Ask:
        session = Session(hub, user)
        session.open_lab(hub.server(server))
        return lambda path, body=None, method=None: session.ask(path, body, method=method)

    return come


def outsider(hub: Hub, server: str) -> Ask:
    """Come with the browser of a user whom the Hub does not let in, so that no page opens."""
    session = Session(hub, STRANGER)
    with pytest.raises(OSError, match="403"):
        session.open_lab(hub.server(server))
    return lambda path, body=None, method=None: session.ask(path, body, method=method)


@dataclass(frozen=True, kw_only=True)
class Principal:
    """One who can come to a server, and what becomes of it.

    Parameters
    ----------
    come : callable
        How.
    reads : str
        What becomes of reading a request and the rules, at both servers.
    decides : str
        What becomes of deciding and of changing rules at the server with default settings.
    decides_at_any : str
        The same where the scope says who decides, also with a token.
    has_share : bool
        Whether the owner shares the server with them.
    """

    come: Callable[[Hub, str], Ask]
    reads: str = YES
    decides: str = NOT_A_DECIDER
    decides_at_any: str = NOT_A_DECIDER
    has_share: bool = False


PRINCIPALS: Final = {
    "the owner in a browser": Principal(come=browser_of(OWNER), decides=YES, decides_at_any=YES),
    "a token of the owner": Principal(come=token_of(OWNER), decides=NEEDS_PERSON, decides_at_any=YES),
    "a token of the owner for this server": Principal(
        come=token_of(OWNER, "access:servers!server={server}"), decides=NEEDS_PERSON
    ),
    "a token of the owner for this server that may decide there": Principal(
        come=token_of(OWNER, "access:servers!server={server}", DECIDE + "!server={server}"),
        decides=NEEDS_PERSON,
        decides_at_any=YES,
    ),
    "the token of the owner's page": Principal(
        come=with_token(token_of_the_page), decides=NEEDS_PERSON, decides_at_any=YES
    ),
    "the server's own token": Principal(come=with_token(token_of_the_server), decides=NEEDS_PERSON, decides_at_any=YES),
    "a token of the owner without the right to use servers": Principal(
        come=token_of(OWNER, f"read:users:name!user={OWNER}"),
        reads=NO_ACCESS,
        decides=NO_ACCESS,
        decides_at_any=NO_ACCESS,
    ),
    "a collaborator in a browser": Principal(come=browser_of(COLLABORATOR), decides_at_any=YES),
    "a token of a collaborator": Principal(come=token_of(COLLABORATOR), decides_at_any=YES),
    "a token of a collaborator for this server": Principal(
        come=token_of(COLLABORATOR, "access:servers!server={server}")
    ),
    "who may use the server and decide at servers of their own, in a browser": Principal(come=browser_of(COLLEAGUE)),
    "who may use all servers, in a browser": Principal(come=browser_of(INSPECTOR)),
    "a token of who may use all servers": Principal(come=token_of(INSPECTOR)),
    "who was given a share, in a browser": Principal(come=browser_of(STRANGER), has_share=True),
    "a token of who was given a share": Principal(come=token_of(STRANGER), has_share=True),
    "a service that may use all servers": Principal(come=with_token(lambda hub, _: hub.admin)),
    "a service that may decide at all servers": Principal(
        come=with_token(lambda hub, _: hub.robot), decides_at_any=YES
    ),
    "a service without rights at servers": Principal(
        come=with_token(lambda hub, _: hub.culler), reads=NO_ACCESS, decides=NO_ACCESS, decides_at_any=NO_ACCESS
    ),
    "a user without access, in a browser": Principal(
        come=outsider, reads=NO_ACCESS, decides=NO_ACCESS, decides_at_any=NO_ACCESS
    ),
    "a token of a user without access": Principal(
        come=token_of(STRANGER), reads=NO_ACCESS, decides=NO_ACCESS, decides_at_any=NO_ACCESS
    ),
    "a token that the Hub does not know": Principal(
        come=with_token(lambda _hub, _server: "0" * 32), reads=NO_ACCESS, decides=NO_ACCESS, decides_at_any=NO_ACCESS
    ),
}


#: A rule about no call of these tests.
RULE: Final = {"effect": "ask", "server": "warehouse", "tool": "*"}


@contextmanager
def share(hub: Hub, server: str) -> Iterator[None]:
    """Share a server of the owner's with the stranger."""
    path, scope = f"shares/{OWNER}/{server}", f"access:servers!server={OWNER}/{server}"
    hub.api(path, {"user": STRANGER, "scopes": [scope]})
    try:
        yield
    finally:
        hub.api(path, {"user": STRANGER}, method="PATCH")


def what_became(answer: tuple[int, Any]) -> str:
    code, told = answer
    if code == 200:
        return YES
    assert code == 403, answer
    reason = told.get("reason") if isinstance(told, dict) else None
    return reason or NO_ACCESS


@pytest.mark.parametrize("server", ["", ANY], ids=["by default", "where the scope decides"])
@pytest.mark.parametrize("name", PRINCIPALS)
def test_each_principal_reads_decides_and_changes_rules_as_the_table_says(hub: Hub, name: str, server: str) -> None:
    principal = PRINCIPALS[name]
    decides = principal.decides_at_any if server == ANY else principal.decides
    base, request = f"{hub.server(server)}{API}", hub.new_request(server)
    rules = hub.ask(f"{base}policy", token=hub.admin)[1]
    with ExitStack() as stack:
        if principal.has_share:
            stack.enter_context(share(hub, server))
        ask = principal.come(hub, server)

        read = [ask(f"{base}approvals/{request['id']}"), ask(f"{base}policy")]
        changed = ask(f"{base}policy", {"rules": [RULE], "revision": rules["revision"]}, method="PUT")
        if changed[0] == 200:
            ask(f"{base}policy", {"rules": [], "revision": changed[1]["revision"]}, method="PUT")
        decided = ask(*hub.decision(request, server))

    assert [what_became(answer) for answer in (*read, changed, decided)] == [principal.reads] * 2 + [decides] * 2
    if decides != YES:
        assert hub.read(request, server) == request
        assert hub.ask(f"{base}policy", token=hub.admin)[1] == rules
    assert (hub.read(request, server)["status"] == "rejected") == (decides == YES)
