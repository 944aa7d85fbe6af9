"""Who reads, decides and changes rules at a server of a real JupyterHub: a table of all who can come to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.person import decide

from .hub import (
    ANY,
    API,
    COLLABORATOR,
    COLLEAGUE,
    DECIDE,
    INSPECTOR,
    MANAGE,
    OWNER,
    READ,
    SCOPED,
    STRANGER,
    Hub,
    Session,
)
from .test_decisions import token_of_the_page, token_of_the_server
from .test_page import log_in

#: Sends a request to a server as somebody does; returns the status and the answer.
Ask = Callable[..., tuple[int, Any]]
#: What becomes of an attempt: it is allowed, or refused with one of three reasons, or not even let in.
YES, NEEDS_PERSON, NOT_A_DECIDER, NO_ACCESS = "yes", "needs_person", "not_a_decider", "no access"
NO_SCOPE = "not_authorized"


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


def with_scopes(*scopes: str) -> Callable[[Hub, str], Ask]:
    """Return how to come with a token of the owner for a server, with some of the scopes for it."""
    return token_of(OWNER, *(f"{scope}!server={{server}}" for scope in ("access:servers", *scopes)))


@dataclass(frozen=True, kw_only=True)
class Holder:
    """One who comes to the server where the Hub's scopes also say who reads and manages.

    Parameters
    ----------
    come : callable
        How.
    reads, decides, manages : str
        What becomes of reading a request and the rules, of deciding, and of changing rules.
    """

    come: Callable[[Hub, str], Ask]
    reads: str = NO_SCOPE
    decides: str = NO_SCOPE
    manages: str = NO_SCOPE


HOLDERS: Final = {
    "the owner in a browser": Holder(come=browser_of(OWNER), reads=YES, decides=YES, manages=YES),
    "a token that may only use the server": Holder(come=with_scopes()),
    "a token that may read": Holder(come=with_scopes(READ), reads=YES),
    "a token that may decide": Holder(come=with_scopes(DECIDE), decides=YES),
    "a token that may read and decide": Holder(come=with_scopes(READ, DECIDE), reads=YES, decides=YES),
    "a token that may manage but not decide": Holder(come=with_scopes(MANAGE), manages=NOT_A_DECIDER),
    "a token that may do all": Holder(come=with_scopes(READ, DECIDE, MANAGE), reads=YES, decides=YES, manages=YES),
    "a collaborator who may read, in a browser": Holder(come=browser_of(COLLABORATOR), reads=YES),
    "who may do all at servers of their own, in a browser": Holder(come=browser_of(COLLEAGUE)),
    "who may use all servers, in a browser": Holder(come=browser_of(INSPECTOR)),
    "the server's own token": Holder(come=with_token(token_of_the_server)),
    "a service that may decide at all servers": Holder(come=with_token(lambda hub, _: hub.robot), decides=YES),
    "a token of a user without access": Holder(
        come=token_of(STRANGER), reads=NO_ACCESS, decides=NO_ACCESS, manages=NO_ACCESS
    ),
}


@pytest.fixture(scope="module")
def scoped(hub: Hub) -> Iterator[str]:
    """The URL of the extension at the server where the Hub's scopes say who reads and manages."""
    hub.start_servers(SCOPED)
    yield f"{hub.server(SCOPED)}{API}"
    hub.api(f"users/{OWNER}/servers/{SCOPED}", method="DELETE")


@pytest.mark.parametrize("name", HOLDERS)
def test_each_scope_allows_what_the_table_says_and_nothing_more(hub: Hub, scoped: str, name: str) -> None:
    holder, request = HOLDERS[name], hub.new_request(SCOPED)
    rules = hub.ask(f"{scoped}policy", token=hub.admin)[1]
    ask = holder.come(hub, SCOPED)

    read = [ask(f"{scoped}approvals/{request['id']}"), ask(f"{scoped}policy"), ask(f"{scoped}audit")]
    changed = ask(f"{scoped}policy", {"rules": [RULE], "revision": rules["revision"]}, method="PUT")
    if changed[0] == 200:
        ask(
            f"{scoped}policy",
            {"rules": [], "revision": hub.ask(f"{scoped}policy", token=hub.admin)[1]["revision"]},
            method="PUT",
        )
    decided = ask(*hub.decision(request, SCOPED))

    became = [what_became(answer) for answer in (*read, changed, decided)]
    assert became == [holder.reads] * 3 + [holder.manages, holder.decides]
    assert (hub.read(request, SCOPED)["status"] == "rejected") == (holder.decides == YES)
    assert hub.ask(f"{scoped}policy", token=hub.admin)[1]["rules"] == []


def test_who_may_decide_and_not_manage_gives_no_lasting_answer_and_adds_no_server(hub: Hub, scoped: str) -> None:
    request, ask = hub.new_request(SCOPED), with_scopes(READ, DECIDE)(hub, SCOPED)
    url, decision = hub.decision(request, SCOPED)

    for answer in ("reject_always", "allow_once"):
        code, told = ask(url, {**decision, "decision": answer})
        assert (code, told["reason"], MANAGE in told["message"]) == (403, NO_SCOPE, True)
    assert hub.read(request, SCOPED) == request
    assert what_became(ask(url, decision)) == YES


def test_who_may_use_a_server_runs_code_there_without_any_scope_of_this_package(hub: Hub, scoped: str) -> None:
    ask = with_scopes()(hub, SCOPED)
    code, kernel = ask(f"{hub.server(SCOPED)}api/kernels", {"name": "python3"})
    assert code == 201
    assert ask(f"{scoped}kernels/{kernel['id']}")[1]["isolation"] == "none"
    ask(f"{hub.server(SCOPED)}api/kernels/{kernel['id']}", method="DELETE")


@pytest.mark.browser
def test_the_page_says_to_a_reader_which_right_an_answer_needs_and_shows_all_else(
    hub: Hub, scoped: str, page: Page
) -> None:
    assert hub.ask(*hub.decision(hub.new_request(SCOPED), SCOPED), token=hub.robot)[0] == 200
    request = hub.new_request(SCOPED)
    person = log_in(page, hub.password, COLLABORATOR, hub.server(SCOPED))
    person.status.click()
    item = person.item("agentbox.register_mcp_server")
    for _ in ("open the form", "send it"):
        decide(item, "Reject")

    expect(item.get_by_role("alert")).to_contain_text(f"requires the right `{DECIDE}` for this server")
    for tab in ("Servers", "Rules", "History"):
        person.show_tab(tab)
    expect(person.history.get_by_role("listitem").first).to_be_visible()
    assert hub.read(request, SCOPED) == request


@pytest.mark.browser
def test_the_page_says_to_whom_no_right_was_given_that_they_may_not_read_requests(
    hub: Hub, scoped: str, page: Page
) -> None:
    hub.new_request(SCOPED)
    person = log_in(page, hub.password, COLLEAGUE, hub.server(SCOPED))
    person.status.click()

    expect(page.get_by_text("you do not have the right to read its requests")).to_be_visible()
    expect(person.item("agentbox.register_mcp_server")).to_have_count(0)
