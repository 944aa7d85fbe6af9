"""JupyterLab's page at a server of a real JupyterHub."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from playwright.sync_api import Page, Request, Response, Route, expect

from tests.browser.lab import PATIENCE
from tests.browser.person import SIZE, Person, decide
from tests.oauth_server import OAuthServer, running_oauth_server

from .hub import ANY, API, COLLABORATOR, COLLEAGUE, OWNER, Hub, mcp_server

pytestmark = pytest.mark.browser


def log_in(page: Page, password: str, user: str, url: str) -> Person:
    """Log in at the Hub as a person does, and open JupyterLab at a server."""
    page.goto(f"{url}lab")
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    person = Person(page, lab=None)  # type: ignore[arg-type]  # it opens notebooks only
    # At a server that is not theirs the Hub asks, once, whether it may know who they are.
    authorize = page.get_by_role("button", name="Authorize")
    expect(authorize.or_(person.status)).to_be_visible()
    if authorize.is_visible():
        authorize.click()
    expect(person.status).to_be_visible()
    return person


def open_notebook(hub: Hub, page: Page, source: str, *, front: str = "lab/tree/") -> Person:
    """Log in as the owner, and open a new notebook with one cell in JupyterLab, or in another front end."""
    name = f"{secrets.token_hex(4)}.ipynb"
    cell = {"id": "c1", "cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": [cell], "metadata": spec, "nbformat": 4, "nbformat_minor": 5}
    body, token = {"type": "notebook", "content": notebook}, hub.token_of(OWNER)
    code, answer = hub.ask(f"{hub.server()}api/contents/{name}", body, token=token, method="PUT")
    assert code == 201, answer
    person = log_in(page, hub.password, OWNER, hub.server())
    page.goto(f"{hub.server()}{front}{name}?reset")  # and no notebook of an earlier test
    person.await_kernel()
    return person


@contextmanager
def ending_kernels(hub: Hub) -> Iterator[None]:
    """End the kernels of the owner's server that are started meanwhile."""
    url, token = f"{hub.server()}api/sessions", hub.token_of(OWNER)

    def sessions() -> set[str]:
        return {session["id"] for session in hub.ask(url, token=token)[1]}

    before = sessions()
    try:
        yield
    finally:
        for session in sessions() - before:
            hub.ask(f"{url}/{session}", token=token, method="DELETE")


def reject(person: Person) -> None:
    """Reject the one request that waits, in the panel."""
    person.status.click()
    item = person.item("agentbox.register_mcp_server")
    for _ in ("open the form", "send it"):
        decide(item, "Reject")
    expect(item).to_have_count(0)


def let_a_minute_pass(hub: Hub, page: Page) -> None:
    """Let the page's clock go on for a minute, in steps after which what it has asked is answered."""
    for _ in range(12):
        page.clock.run_for(5_000)
        page.evaluate("url => fetch(url).then(answer => answer.text())", f"{hub.url}hub/api/")


def test_a_person_decides_with_a_click_and_reads_which_decisions_were_programs(hub: Hub, page: Page) -> None:
    for token in (hub.token_of(OWNER), hub.token_of(COLLABORATOR), hub.robot):
        assert hub.ask(*hub.decision(hub.new_request(ANY), ANY), token=token)[0] == 200
    request = hub.new_request()
    person = log_in(page, hub.password, OWNER, hub.server())

    reject(person)

    assert hub.read(request)["decision"]["via"] == "browser"
    person.show_tab("History")
    rows = person.history.get_by_role("listitem").filter(has_text="register_mcp_server")  # changes are there, too
    expect(rows.nth(0)).to_contain_text("Rejected by you")
    for index, who in enumerate(
        ("the service “robot”", f"a program with a token of {COLLABORATOR}", "a program with your token"), start=1
    ):
        expect(rows.nth(index)).to_contain_text(f"Rejected by {who}")


def test_a_collaborator_decides_in_a_browser_of_their_own(hub: Hub, page: Page) -> None:
    request = hub.new_request(ANY)
    person = log_in(page, hub.password, COLLABORATOR, hub.server(ANY))

    reject(person)

    decision = hub.read(request, ANY)["decision"]
    assert (decision["via"], decision["reviewer"], decision["hub_server"]) == (
        "browser",
        COLLABORATOR,
        f"{OWNER}/{ANY}",
    )


def test_of_two_people_who_decide_at_once_one_does_and_the_other_reads_who(hub: Hub, page: Page) -> None:
    request = hub.new_request(ANY)
    browser = page.context.browser
    assert browser is not None
    with browser.new_context(viewport=SIZE, locale="en-GB") as context:
        context.set_default_timeout(PATIENCE)
        people = {
            name: log_in(one, hub.password, name, hub.server(ANY))
            for name, one in ((OWNER, page), (COLLABORATOR, context.new_page()))
        }
        sent: list[Route] = []
        codes: dict[str, int] = {}

        def hold(route: Route) -> None:
            sent.append(route)

        def note(name: str, answer: Response) -> None:
            if "/decision" in answer.url:
                codes[name] = answer.status

        for name, person in people.items():
            person.page.route("**/decision*", hold)
            person.page.on("response", partial(note, name))
            person.status.click()
            for _ in ("open the form", "send it"):
                decide(person.item("agentbox.register_mcp_server"), "Reject")
        while len(sent) < len(people):
            page.wait_for_timeout(20)
        for route in sent:
            route.continue_()
        for person in people.values():
            expect(person.item("agentbox.register_mcp_server")).to_have_count(0)

        assert sorted(codes.values()) == [200, 409]
        first = hub.read(request, ANY)["decision"]["reviewer"]
        assert codes[first] == 200
        for name, person in people.items():
            person.show_tab("History")
            row = person.history.get_by_role("listitem").filter(has_text="register_mcp_server").nth(0)
            expect(row).to_contain_text(f"Rejected by {'you' if name == first else first}")


def test_who_may_only_use_the_server_sees_a_request_and_reads_that_they_cannot_decide(hub: Hub, page: Page) -> None:
    request = hub.new_request()
    person = log_in(page, hub.password, COLLEAGUE, hub.server())
    person.status.click()
    item = person.item("agentbox.register_mcp_server")
    for _ in ("open the form", "send it"):
        decide(item, "Reject")

    expect(item.get_by_role("alert")).to_contain_text("only its owner, or somebody with the right to, decides here")
    assert hub.read(request) == request


@pytest.mark.usefixtures("shop")
def test_notebook_7_shows_the_card_under_the_cell_and_then_the_value(hub: Hub, page: Page) -> None:
    source = "from jupyter_agentbox import tools\nlen(tools.shop.list_orders(limit=1)) == 1"
    with ending_kernels(hub):
        person = open_notebook(hub, page, source, front="notebooks/")
        person.run(0)
        decide(person.card(), "Allow once")

        expect(person.card()).to_contain_text("Allowed by you. Done in")
        expect(person.cell(0)).to_contain_text("True")


def test_a_card_whose_server_was_stopped_has_no_buttons_and_says_what_to_do(hub: Hub, page: Page) -> None:
    hub.new_request()
    asked: list[str] = []

    def note(request: Request) -> None:
        if API in request.url and request.redirected_from is None:  # the proxy redirects to the Hub, which answers
            asked.append(request.url)

    page.on("request", note)
    page.clock.install()
    person = log_in(page, hub.password, OWNER, hub.server())
    person.status.click()
    item = person.item("agentbox.register_mcp_server")
    allow = item.get_by_role("button", name="Allow once")
    expect(allow).to_be_visible()
    let_a_minute_pass(hub, page)
    asked.clear()
    let_a_minute_pass(hub, page)
    assert len(asked) > 3
    try:
        hub.stop_server()
        asked.clear()
        let_a_minute_pass(hub, page)
        assert 1 <= len(asked) <= 3, asked

        expect(allow).to_be_hidden()
        expect(item.get_by_role("timer")).to_be_hidden()
        expect(item.get_by_role("status")).to_contain_text("it was stopped, start it again and reload the page")
    finally:
        hub.start_servers("")


@pytest.fixture
def remote(hub: Hub) -> Iterator[OAuthServer]:
    """Give the owner's server an MCP server that wants its user to sign in."""
    with running_oauth_server() as remote, mcp_server(hub, "remote", {"url": remote.url}):
        yield remote


def test_a_user_signs_in_to_a_server_of_their_own_and_comes_back_to_the_address_that_the_hub_gives_theirs(
    hub: Hub, page: Page, remote: OAuthServer
) -> None:
    person = log_in(page, hub.password, OWNER, hub.server())
    person.status.click()
    person.show_tab("Servers")
    servers = page.get_by_role("region", name="MCP servers")
    servers.get_by_role("button", name="Start remote").click()
    servers.get_by_role("button", name="Sign in to remote").click()
    with page.expect_popup() as opened:
        servers.get_by_role("button", name="Open the page").click()
    opened.value.get_by_role("link", name="Allow as ada").click()

    expect(opened.value.get_by_role("heading", name="You are signed in")).to_be_visible()
    assert opened.value.url.startswith(f"{hub.server()}jupyter-agentbox/")
    expect(servers.get_by_role("button", name="Restart remote")).to_be_visible()
    assert remote.valid[remote.bearers[-1].removeprefix("Bearer ")] == "ada"
    with page.expect_response(lambda answer: answer.request.method == "DELETE" and "/remote/sign-in" in answer.url):
        servers.get_by_role("button", name="Sign out of remote").click()
    assert remote.refreshable == {}
