"""Requests outlive pages: reload, second tabs, closed notebooks, two answers at once, servers out of reach."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from .held_requests import HeldRequests
from .lab import Lab
from .person import Person, decide

ASK = "from jupyter_agentbox import tools\norders = tools.shop.list_orders(limit=1)\nlen(orders)"
VALUE = "'orders: %d' % len(orders)"


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def test_request_survives_a_reload_and_is_decided_in_the_saved_card(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(ASK, VALUE))
    person.run(0)
    expect(person.card()).to_be_visible()
    person.save()
    person.reload()
    decide(person.card(), "Allow once")
    expect(person.card()).to_contain_text("Allowed by you. Done in")
    person.await_kernel()
    person.run(1)
    expect(person.cell(1)).to_contain_text("orders: 1")


def test_request_of_a_closed_notebook_is_decided_in_the_panel(person: Person, notebook: Callable[..., str]) -> None:
    path = notebook(ASK, VALUE)
    person.open(path)
    person.run(0)
    expect(person.card()).to_be_visible()
    person.save()
    person.page.get_by_role("tab", name=path).locator(".lm-TabBar-tabCloseIcon").click()
    expect(person.notebook).to_have_count(0)
    person.open_panel()
    item = person.item("shop.list_orders")
    expect(item).to_contain_text(f"From {path}")
    decide(item, "Allow once")
    person.show_tab("History")
    expect(person.history.get_by_role("listitem").first).to_contain_text("Done in")
    person.page.get_by_role("region", name="File Browser").get_by_text(path).dblclick()
    person.await_kernel()
    expect(person.card()).to_contain_text("Allowed by you. Done in")
    person.run(1)
    expect(person.cell(1)).to_contain_text("orders: 1")


def test_answer_that_does_not_reach_the_server_is_not_lost(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ASK))
    person.run(0)
    person.page.route("**/decision*", lambda route: route.abort())
    card = person.card()
    decide(card, "Reject")
    card.get_by_role("textbox", name="Reason (optional)").fill("not now")
    decide(card, "Reject")
    expect(card.get_by_role("alert").filter(has_text="The server did not reply")).to_be_visible()
    expect(card.get_by_role("textbox", name="Reason (optional)")).to_have_value("not now")
    person.page.unroute("**/decision*")
    decide(card, "Reject")
    expect(card).to_contain_text("Rejected by you: not now")


def test_person_who_may_not_decide_is_told_so(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ASK))
    person.run(0)
    person.page.route("**/decision*", lambda route: route.fulfill(status=403, json={"message": "Forbidden"}))
    decide(person.card(), "Allow once")
    expect(person.card()).to_contain_text("The server refused your answer.")
    expect(person.card().get_by_role("button", name="Allow once")).to_be_visible()


def test_panel_says_when_the_server_is_out_of_reach_and_when_it_is_back(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(ASK))
    person.run(0)
    expect(person.card()).to_be_visible()
    person.open_panel()
    person.page.route("**/jupyter-agentbox/**", lambda route: route.abort())
    person.execute("jupyter-agentbox:refresh")
    expect(person.panel).to_contain_text("The server cannot be reached. This list may be out of date.")
    expect(person.item("shop.list_orders")).to_be_visible()
    person.page.unroute("**/jupyter-agentbox/**")
    person.execute("jupyter-agentbox:refresh")
    expect(person.panel).not_to_contain_text("The server cannot be reached.")


def test_request_of_a_kernel_that_restarts_is_closed(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path = notebook(ASK)
    person.open(path)
    person.run(0)
    person.open_panel()
    expect(person.item("shop.list_orders")).to_be_visible()
    expect(person.card()).to_be_visible()
    (session,) = lab.ask("api/sessions")
    lab.ask(f"api/kernels/{session['kernel']['id']}/restart", {})
    expect(person.card()).to_contain_text("The kernel stopped or restarted before a decision. The tool did not run.")
    expect(person.item("shop.list_orders")).to_have_count(0)


def open_two(new_person: Callable[[], Person], notebook: Callable[..., str]) -> tuple[Person, Person, str]:
    """Return one person with a notebook that asks, one with another notebook, and the path of the former."""
    first, second = new_person(), new_person()
    path, other = notebook(ASK), notebook("'another notebook'")
    first.open(path)
    second.open(other)
    return first, second, path


def test_second_tab_shows_the_request_and_can_decide_it(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    first, second, path = open_two(new_person, notebook)
    first.run(0)
    expect(second.toasts).to_contain_text(f"shop.list_orders(limit=1) needs your approval ({path})")
    second.open_panel()
    decide(second.item("shop.list_orders"), "Allow once")
    expect(first.card()).to_contain_text(re.compile(r"Allowed by Anonymous \w+\. Done in"))
    expect(first.cell(0).locator(".jp-OutputArea-executeResult")).to_contain_text("1")


def test_two_tabs_that_decide_at_once_get_one_winner_and_one_clear_message(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    first, second, path = open_two(new_person, notebook)
    second.open_panel()
    first.run(0)
    held = HeldRequests(second.page, "**/decision*")
    item = second.item("shop.list_orders")
    decide(item, "Reject")
    with second.page.expect_request("**/decision*"):
        decide(item, "Reject")
    decide(first.card(), "Allow once")
    expect(first.card()).to_contain_text("Allowed by you. Done in")
    held.release()
    expect(second.panel.get_by_role("alert").filter(has_text="Your answer was discarded.")).to_contain_text(
        re.compile(r"shop\.list_orders: Already decided by Anonymous \w+")
    )
    expect(item).to_have_count(0)
    assert [request["status"] for request in lab.approvals(path, "approved,rejected,pending")] == ["approved"]
