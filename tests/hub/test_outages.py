"""What waits at a server of a real JupyterHub while the proxy is away, the Hub is frozen, or the server has ended."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.person import decide

from .hub import OWNER, TIMEOUT, Hub, frozen, pid_of_server
from .test_frozen_server import approvals, ask
from .test_page import ending_kernels, open_notebook
from .test_service import until

#: Deletes the order, and says so.
DELETE = "from jupyter_agentbox import tools\nprint('deleted', tools.shop.delete_order(order_id={}).deleted_order)"

pytestmark = pytest.mark.usefixtures("shop")


def is_reached(hub: Hub) -> bool:
    """Return whether the proxy leads to the owner's server."""
    try:
        return hub.ask(f"{hub.server()}api/status", token=hub.admin)[0] == 200
    except OSError:
        return False


def returned(page: Page) -> bool:
    """Return to the page from another tab, so that it asks at once, and not some time after it asked in vain."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    return True


def states_of(hub: Hub, request: Any) -> list[Any]:
    """Return the status and the outcome of every request of a request's kernel."""
    kernel = request["call"]["kernel_id"]
    return [(one["status"], one["outcome"]["state"]) for one in approvals(hub) if one["call"]["kernel_id"] == kernel]


@pytest.mark.browser
def test_a_card_waits_while_the_proxy_is_away_and_is_then_decided_once(hub: Hub, page: Page) -> None:
    with ending_kernels(hub):
        person = open_notebook(hub, page, DELETE.format(1201))
        # JupyterLab itself offers to start the server.
        offer = page.get_by_role("dialog", name="Server unavailable or unreachable")
        page.add_locator_handler(offer, lambda: offer.get_by_role("button", name="Dismiss").click())
        person.run(0)
        allow = person.card().get_by_role("button", name="Allow once")
        expect(allow).to_be_visible()
        (request,) = approvals(hub, "?status=pending")

        with frozen(hub.process.pid):  # so that the Hub does not start another yet
            os.kill(int(hub.proxy_file.read_text()), signal.SIGKILL)
            until(lambda: returned(page) and allow.is_hidden())
            expect(person.cell(0).get_by_role("status").filter(has_text="The server")).to_contain_text(
                "The server cannot be reached, so this cannot be decided now. It returns when the server does"
            )
        until(lambda: is_reached(hub))
        until(lambda: returned(page) and allow.is_visible())
        assert hub.read(request)["status"] == "pending"
        decide(person.card(), "Allow once")

        expect(person.card()).to_contain_text("Allowed by you. Done in")
        expect(person.cell(0)).to_contain_text("deleted 1201")
        assert states_of(hub, request) == [("approved", "succeeded")]


@pytest.mark.browser
def test_who_allows_while_the_hub_is_frozen_reads_why_nothing_happened_and_can_allow_afterwards(
    hub: Hub, page: Page
) -> None:
    with ending_kernels(hub):
        person = open_notebook(hub, page, DELETE.format(1202))
        person.run(0)
        expect(person.card().get_by_role("button", name="Allow once")).to_be_visible()
        (request,) = approvals(hub, "?status=pending")
        with frozen(hub.process.pid):
            decide(person.card(), "Allow once")
            expect(person.card().get_by_role("alert")).to_contain_text(
                "JupyterHub does not answer, so it is unknown whether you may decide. The request is unchanged:"
                " try again when the Hub is back."
            )
        assert hub.read(request) == request  # the server may have to ask the Hub whose token that is
        decide(person.card(), "Allow once")

        expect(person.card()).to_contain_text("Allowed by you. Done in")
        expect(person.cell(0)).to_contain_text("deleted 1202")
        assert states_of(hub, request) == [("approved", "succeeded")]


def kill_server(hub: Hub) -> None:
    """End the owner's default server as kill -9 does, and wait until it has ended."""
    pid = pid_of_server(hub.root / "homes" / OWNER)
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([ended], [], [], TIMEOUT)[0]
    os.close(ended)


@pytest.mark.parametrize(
    ("end", "of_registration"),
    [
        (Hub.stop_server, "cancelled"),  # it is withdrawn by the server, which still can
        (kill_server, "orphaned"),
    ],
)
def test_what_waited_at_a_server_that_has_ended_is_closed_when_it_is_started_again(
    hub: Hub, end: Callable[[Hub], None], of_registration: str
) -> None:
    with hub.kernel() as kernel:
        _, call = ask(hub, kernel, 1203)
        registration = hub.new_request()
        try:
            end(hub)
        finally:
            hub.start_servers("")

        assert [hub.read(one)["status"] for one in (call, registration)] == ["orphaned", of_registration]
        assert approvals(hub, "?status=pending") == []
