"""The page of all calls."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Download, Locator, Response, expect

from .accessibility import violations
from .lab import Lab
from .person import NEXT_FRAMES, Person, decide

RESTOCK = "from jupyter_agentbox import tools\ntools.shop.restock(product_id=3, quantity=25).stock > 0"
MANY = """import asyncio
from jupyter_agentbox import tools
await asyncio.gather(*(tools.shop.list_orders.aio(limit=1 + number) for number in range(120)))
'done'"""
ALLOW_LISTS = {"rules": [{"effect": "allow", "server": "shop", "tool": "list_orders"}]}
REJECTED = "from jupyter_agentbox import tools\ntools.shop.get_order(order_id=4711)"

#: Scrolls the panel's history to its end, and tells whether an item is in view there. The box grows while items that
#: come near the view are measured.
SHOWS_ITEM = """position => {
    const box = [...document.querySelectorAll('.jp-AgentBox-tabPanel')].find(one => one.clientHeight > 0);
    box.scrollTop = box.scrollHeight;
    const item = box.querySelector(`[aria-posinset='${position}']`)?.getBoundingClientRect();
    const view = box.getBoundingClientRect();
    return item && item.top < view.bottom && item.bottom > view.top;
}"""


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def open_history(person: Person) -> Locator:
    """Open the page with the keyboard alone."""
    person.choose_command("AgentBox History")
    page = person.page.get_by_role("region", name="AgentBox history")
    expect(page.get_by_role("table")).to_be_visible()
    return page


def a_day(person: Person, path: str) -> None:
    """Allow a call and reject another."""
    person.open(path)
    person.run(0)
    decide(person.card(0), "Allow once")
    expect(person.cell(0)).to_contain_text("True")
    person.run(1)
    decide(person.card(1), "Reject")
    person.card(1).get_by_role("textbox").fill("not this month")
    person.keyboard.press("Enter")
    expect(person.card(1)).to_have_attribute("data-status", "rejected")


def test_the_page_says_what_ran_who_allowed_it_and_what_became_of_it(
    person: Person, notebook: Callable[..., str], tmp_path: Path
) -> None:
    path = notebook(RESTOCK, REJECTED)
    a_day(person, path)
    page = open_history(person)
    page.get_by_label("Notebook").fill(path)
    rows = page.get_by_role("row").filter(has=page.page.locator("time"))
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("get_order(order_id=4711)")
    expect(rows.nth(0)).to_contain_text("Rejected")
    expect(rows.nth(1)).to_contain_text("restock(product_id=3, quantity=25)")
    expect(rows.nth(1)).to_contain_text("Allowed")
    expect(rows.nth(1).get_by_role("cell", name="you", exact=True)).to_be_visible()

    page.get_by_label("Search").fill("4711 month")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="get_order(order_id=4711)").press("Enter")
    expect(page.get_by_role("group", name="Approval request")).to_contain_text("not this month")
    assert page.inner_text().count("get_order(order_id=4711)") == 1  # the card does not repeat its row
    assert violations(person.page) == []
    page.get_by_label("Search").fill("")
    expect(rows).to_have_count(2)  # it is searched for once nobody types any more
    page.get_by_label("Decision").select_option("Allowed")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("restock")

    with person.page.expect_download() as table:
        page.get_by_role("link", name="CSV").click()
    table.value.save_as(tmp_path / "history.csv")
    [line] = list(csv.DictReader((tmp_path / "history.csv").read_text("utf-8").splitlines()))
    assert (line["call"], line["notebook_path"]) == ("restock(product_id=3, quantity=25)", path)
    with person.page.expect_download() as lines:
        page.get_by_role("link", name="JSON Lines").click()
    lines.value.save_as(tmp_path / "history.jsonl")
    assert json.loads((tmp_path / "history.jsonl").read_text("utf-8"))["call"]["tool"] == "restock"

    page.get_by_label("Search").fill("nothing like it")
    expect(page).to_contain_text("No call matches.")


def saves_the_page(response: Response) -> bool:
    """Whether the server has taken a layout with the page of the history."""
    is_saved = "/lab/api/workspaces" in response.url and response.request.method == "PUT" and response.ok
    return is_saved and "jupyter-agentbox-history:" in (response.request.post_data or "")


def test_the_panel_leads_to_the_page(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(RESTOCK))
    person.run(0)
    decide(person.card(0), "Allow once")
    person.open_panel()
    with person.page.expect_response(saves_the_page):
        person.page.locator(".jp-AgentBox-panel").get_by_role("button", name="Show all history").click()
    tab = person.page.get_by_role("tab", name="AgentBox history")
    expect(tab).to_have_attribute("aria-selected", "true")
    person.reload()
    expect(tab).to_have_attribute("aria-selected", "true")
    # Beside the panel, in a window of 1280 pixels, a call is in two lines: what was called, and who, when and where.
    row = person.page.get_by_role("region", name="AgentBox history").get_by_role("row", name="shop.restock(").first
    expect(row).to_be_visible()
    call, who = (row.get_by_role("cell").nth(n).bounding_box() for n in (1, 3))
    assert call
    assert who
    assert call["width"] >= 400
    assert who["y"] >= call["y"] + call["height"]
    assert (row.bounding_box() or call)["height"] < 50
    assert violations(person.page) == []


def test_the_page_says_that_it_could_not_be_loaded_and_tries_again(
    person: Person, notebook: Callable[..., str]
) -> None:
    a_day(person, notebook(RESTOCK, REJECTED))
    person.page.route("**/jupyter-agentbox/audit*", lambda route: route.fulfill(status=503, body="{}"))
    person.choose_command("AgentBox History")
    page = person.page.get_by_role("region", name="AgentBox history")
    expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    person.page.unroute("**/jupyter-agentbox/audit*")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("table")).to_be_visible()


def rows_of(page: Locator) -> Locator:
    """The calls of the page that are rendered."""
    return page.get_by_role("row").filter(has=page.page.locator("time"))


def text_of(download: Download, place: Path) -> str:
    download.save_as(place)
    return place.read_text("utf-8")


def test_the_page_follows_what_happens_and_moves_nothing_that_somebody_reads(
    person: Person, new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(RESTOCK, REJECTED, RESTOCK)
    a_day(person, path)
    person.page.set_viewport_size({"width": 1280, "height": 500})
    page = open_history(person)
    page.get_by_label("Notebook").fill(path)
    rows = rows_of(page)
    expect(rows).to_have_count(2)
    # An opened row shows its content at once.
    opened = page.get_by_role("button", name="get_order(order_id=4711)")
    opened.press("Enter")
    card = page.get_by_role("group", name="Approval request")
    expect(card).to_contain_text("not this month")
    expect(card.get_by_text("order_id", exact=True)).to_be_visible()
    # To its end, so that there is something above the view; the row in which the person is stays in its place.
    opened.evaluate("row => row.closest('.jp-AgentBox-historyContent').scrollBy(0, 1000)")
    opened.focus()
    before = opened.bounding_box()
    other = new_person()
    other.open(path)
    other.run(2)
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("Waiting")
    person.page.evaluate(NEXT_FRAMES)
    after = opened.bounding_box()
    assert before
    assert after
    assert abs(after["y"] - before["y"]) < 2
    expect(opened).to_be_focused()
    lab.decide(lab.approvals(path)[0])
    expect(rows.first).to_contain_text("✓ Allowed")
    expect(opened).to_be_focused()
    expect(card).to_be_visible()


def test_every_filter_narrows_the_page_and_what_is_downloaded_and_more_is_loaded_on_demand(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab, tmp_path: Path
) -> None:
    person = new_person()  # how much the panel has of the history is counted
    path = notebook(RESTOCK, REJECTED, MANY)
    rules = lab.root / "config" / "agentbox_rules.json"
    a_day(person, path)
    rules.write_text(json.dumps(ALLOW_LISTS))
    try:
        person.await_kernel()
        person.run(2)
        expect(person.cell(2).locator(".jp-OutputArea-executeResult")).to_contain_text("done")
    finally:
        rules.unlink()
    page = open_history(person)
    table, rows = page.get_by_role("table"), rows_of(page)
    with person.page.expect_response(lambda response: f"notebook_path={path}" in response.url):
        page.get_by_label("Notebook").fill(path)
    expect(table).to_have_attribute("aria-rowcount", "102")  # a page, the day and the head
    assert rows.count() < 102  # those far from the view are not rendered
    page.get_by_role("button", name="Load more").click()
    expect(table).to_have_attribute("aria-rowcount", "124")
    expect(page.get_by_role("button", name="Load more")).to_have_count(0)
    rows.last.scroll_into_view_if_needed()
    last = page.get_by_role("button", name="restock(product_id=3, quantity=25)")
    page.evaluate("page => { const box = page.parentElement; box.scrollTop = box.scrollHeight; }")
    expect(last).to_be_in_viewport()

    # By keyboard, too, every call is reached: what is not rendered is rendered before the focus comes to it.
    page.evaluate("page => { page.parentElement.scrollTop = 0; }")
    expect(rows.first).to_contain_text("limit=120")
    rows.first.get_by_role("button").focus()
    for _ in range(22):
        for _ in range(5):  # as many rows as are always rendered ahead: nobody presses more keys before the next frame
            person.keyboard.press("Tab")
        person.page.evaluate(NEXT_FRAMES)
    at = page.evaluate("() => Number(document.activeElement.closest('tr').getAttribute('aria-rowindex'))")
    assert at == 113  # below the head and the day, and 110 calls further down

    when, decision = page.get_by_label("When"), page.get_by_label("Decision")
    when.select_option("Yesterday")
    expect(page).to_contain_text("No call matches.")
    for period in ("Today", "Last 7 days", "Any time"):
        when.select_option(period)
        expect(table).to_have_attribute("aria-rowcount", "102")
    for choice, count in {"Rejected": 1, "Allowed and failed": 0, "Waiting": 0, "Never answered": 0}.items():
        decision.select_option(choice)
        expect(rows).to_have_count(count)
    decision.select_option("Allowed")
    expect(table).to_have_attribute("aria-rowcount", "102")

    page.get_by_label("Tool").fill("restock")
    expect(rows).to_have_count(1)
    with person.page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    [line] = csv.DictReader(text_of(download.value, tmp_path / "restock.csv").splitlines())
    assert line["call"] == "restock(product_id=3, quantity=25)"
    page.get_by_label("Who").fill("rule")
    expect(page).to_contain_text("No call matches.")  # a person allowed that one
    page.get_by_label("Tool").fill("")
    expect(table).to_have_attribute("aria-rowcount", "102")
    expect(rows.first).to_contain_text("rule")
    # Everything that matches, loaded or not.
    with person.page.expect_download() as download:
        page.get_by_role("link", name="JSON Lines").click()
    lines = text_of(download.value, tmp_path / "rule.jsonl").splitlines()
    assert {json.loads(line)["call"]["tool"] for line in lines} == {"list_orders"}
    assert len(lines) == 120

    page.get_by_label("Who").fill("you")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("restock")
    decision.select_option("Any")
    expect(rows).to_have_count(2)
    page.get_by_label("Search").fill("4711")
    expect(rows).to_have_count(1)
    page.get_by_label("Notebook").fill("another.ipynb")
    expect(page).to_contain_text("No call matches.")

    # The panel, too, renders what is near the view.
    person.open_panel()
    person.show_tab("History")
    items = person.history.get_by_role("listitem")
    expect(items.first).to_have_attribute("aria-setsize", "50")
    person.history.get_by_role("button", name="Load more").press("Enter")
    expect(items.first).to_have_attribute("aria-setsize", "100")
    person.history.get_by_role("button", name="Load more").press("Enter")
    expect(items.first).not_to_have_attribute("aria-setsize", "100")
    count = int(items.first.get_attribute("aria-setsize") or 0)
    assert count > 120
    assert items.count() < 80
    person.page.wait_for_function(SHOWS_ITEM, arg=count)
