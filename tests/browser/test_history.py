"""The page of all calls."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, expect

from .accessibility import violations
from .person import Person, decide

RESTOCK = "from jupyter_agentbox import tools\ntools.shop.restock(product_id=3, quantity=25).stock > 0"
REJECTED = "from jupyter_agentbox import tools\ntools.shop.get_order(order_id=4711)"


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


def test_the_panel_leads_to_the_page(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(RESTOCK))
    person.run(0)
    decide(person.card(0), "Allow once")
    person.open_panel()
    person.show_tab("History")
    person.history.get_by_role("button", name="Show all history").click()
    expect(person.page.get_by_role("tab", name="AgentBox history")).to_have_attribute("aria-selected", "true")
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
