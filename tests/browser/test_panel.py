"""The side panel: what waits in all notebooks, and what was."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Response, expect

from .accessibility import violations
from .lab import Lab
from .person import Person, decide

THREADS = """import threading
from jupyter_agentbox import tools
def ask(name):
    try:
        getattr(tools.shop, name)()
    except Exception as error:
        print(type(error).__name__)
first = threading.Thread(target=ask, args=["list_products"])
first.start()"""
MORE = "second = threading.Thread(target=ask, args=['list_orders'])\nsecond.start()"
MANY = """import asyncio
from jupyter_agentbox import tools
await asyncio.gather(*(tools.shop.list_orders.aio(limit=1 + number) for number in range(120)))"""
RESTOCK = "from jupyter_agentbox import tools\ntools.shop.restock(product_id=1, quantity=2).stock > 0"


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def test_panel_and_card_show_the_same_request_and_a_decision_in_one_closes_the_other(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(RESTOCK, RESTOCK.replace("=2", "=3")))
    person.open_panel()
    expect(person.panel).to_contain_text("No requests are waiting.")
    person.run(0)
    item = person.item("shop.restock")
    expect(item).to_contain_text("Restock a product")
    expect(item).to_contain_text("quantity2")
    decide(item, "Allow once")
    expect(person.card(0)).to_contain_text("Allowed by you. Done in")
    expect(person.cell(0)).to_contain_text("True")
    person.run(1)
    expect(item).to_contain_text("quantity3")
    decide(person.card(1), "Allow once")
    expect(item).to_have_count(0)
    expect(person.panel).to_contain_text("No requests are waiting.")
    person.show_tab("History")
    expect(person.history.get_by_role("listitem").first).to_contain_text("shop.restock Allowed by you. Done in")


def test_requests_are_grouped_by_notebook_oldest_first_and_lead_to_their_cells(
    person: Person, notebook: Callable[..., str]
) -> None:
    one = notebook(*["1 + 1\n" * 30] * 3, RESTOCK)
    two = notebook(THREADS, MORE)
    person.open(one)
    person.run(3)
    expect(person.card(3)).to_be_visible()
    person.page.get_by_role("region", name="File Browser").get_by_text(two).dblclick()
    person.await_kernel()
    person.run(0)
    expect(person.status).to_have_text(re.compile("2$"))
    person.run(1)
    expect(person.status).to_have_text(re.compile("3$"))
    person.open_panel()
    expect(person.panel.get_by_role("heading", level=4)).to_have_text([one, two])
    group = person.panel.get_by_role("list", name=two)
    expect(group.get_by_role("group", name="Approval request")).to_have_count(2)
    names = group.get_by_role("listitem").evaluate_all("items => items.map(item => item.ariaLabel)")
    assert [name for name in names if name] == ["shop.list_products", "shop.list_orders"]
    decide(person.item("shop.restock"), "Go to cell")
    expect(person.page.get_by_role("tab", name=one)).to_have_attribute("aria-selected", "true")
    expect(person.card(3)).to_be_in_viewport()
    expect(person.card(3)).to_be_focused()


def test_history_tells_what_became_of_requests(person: Person, notebook: Callable[..., str]) -> None:
    path = notebook(RESTOCK, RESTOCK, "from jupyter_agentbox import tools\ntools.shop.get_order(order_id=1)")
    person.open(path)
    person.open_panel()
    person.run(0, 1, 2)
    decide(person.card(0), "Allow once")
    decide(person.card(1), "Reject")
    person.card(1).get_by_role("textbox").fill("enough of it")
    person.keyboard.press("Enter")
    # The error of a rejected call ends the run; what was queued is not executed.
    expect(person.cell(1)).to_contain_text("ToolCallRejectedError")
    expect(person.cell(2).locator(".jp-InputPrompt").first).to_have_text("[ ]:")
    person.await_kernel()  # until then the kernel refuses to run more
    person.run(2)
    decide(person.card(2), "Allow once")
    person.show_tab("History")
    history = person.history.get_by_role("listitem")
    expect(history.nth(0)).to_contain_text(re.compile("shop.get_order Allowed by you. It failed: .*1"))
    expect(history.nth(1)).to_contain_text("shop.restock Rejected by you: enough of it")
    expect(history.nth(2)).to_contain_text("shop.restock Allowed by you. Done in")
    history.nth(1).get_by_text("Rejected by you").click()
    expect(history.nth(1)).to_contain_text("quantity2")
    expect(history.nth(1).get_by_role("button", name="Allow once")).to_have_count(0)


def saves_the_open_tab(response: Response) -> bool:
    """Whether the server has taken a layout in which the panel's rules are open: those before it are saved too."""
    if "/lab/api/workspaces" not in response.url or response.request.method != "PUT" or not response.ok:
        return False
    data = response.request.post_data_json["data"]
    panel = data.get("layout-restorer:data", {}).get("right", {}).get("current")
    return panel == "jupyter-agentbox-panel" and data.get(panel) == {"tab": "rules"}


def test_panel_shows_servers_and_what_is_wrong_with_their_configuration(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(RESTOCK))
    person.open_panel()
    person.show_tab("Servers")
    servers = person.page.get_by_role("region", name="MCP servers")
    # Which of them makes sense depends on whether another test has used it.
    expect(servers.get_by_role("button", name=re.compile("^(Start|Restart) shop$"))).to_be_visible()
    expect(servers).to_contain_text(re.compile(r"needy.*needs configuration", re.DOTALL))
    expect(servers).to_contain_text("AGENTBOX_TEST_UNSET")


def test_panel_and_its_tab_are_restored_with_the_layout_and_who_opens_it_sees_what_waits(
    new_person: Callable[[], Person], notebook: Callable[..., str]
) -> None:
    person = new_person()
    person.open(notebook(RESTOCK))
    with person.page.expect_response(saves_the_open_tab):
        person.open_panel()
        person.show_tab("Rules")
    person.run(0)
    expect(person.card()).to_be_visible()
    person.reload()
    expect(person.page.get_by_role("region", name="Rules")).to_be_visible()
    expect(person.page.get_by_role("tab", name="Waiting 1")).to_have_attribute("aria-selected", "false")
    person.open_panel()
    expect(person.item("shop.restock")).to_be_visible()
    tabs = person.page.get_by_role("tablist", name="Approvals")
    expect(tabs.get_by_role("tab")).to_have_text(["Waiting", "History", "Servers", "Rules", "Agents"])


def test_the_tabs_stand_in_one_row_however_much_waits_and_whatever_is_wrong(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab, theme: str
) -> None:
    person = new_person()
    rules = lab.root / "config" / "agentbox_rules.json"
    rules.write_text('{"rules": [')
    try:
        person.open(notebook(MANY))
        person.run(0)
        expect(person.status).to_have_accessible_name("120 requests awaiting approval")
        person.open_panel()
        tabs = person.page.locator(".jp-AgentBox-tabs .lm-TabBar-tab")
        expect(tabs.nth(0)).to_have_attribute("data-agentbox-badge", "99+")
        expect(tabs.nth(3)).to_have_attribute("data-agentbox-problem", "!")
        boxes = [box for tab in tabs.all() if (box := tab.bounding_box())]
        assert {box["y"] for box in boxes} == {boxes[0]["y"]}
        assert len(boxes) == 5
        assert violations(person.page, ".jp-AgentBox-tabs") == []
    finally:
        rules.unlink()
