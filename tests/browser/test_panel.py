"""The side panel: what waits in all notebooks, and what was."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Response, expect

from .accessibility import violations
from .lab import Lab
from .person import NEXT_FRAMES, SIZE, Person, await_letters, decide
from .pictures import faults

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
THREE_TOOLS = """import asyncio
from jupyter_agentbox import tools
waiting = [tools.shop.restock.aio(product_id=1, quantity=2), tools.shop.list_orders.aio(limit=1)]
await asyncio.gather(*waiting, tools.shop.list_products.aio())"""
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


def test_requests_after_the_first_take_two_lines_until_somebody_goes_to_them(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(THREE_TOOLS))
    person.run(0)
    expect(person.status).to_have_text(re.compile("3$"))
    person.open_panel()
    orders, products = person.item("shop.list_orders"), person.item("shop.list_products")
    compact = person.panel.locator(".jp-mod-compact")
    expect(compact).to_have_count(2)
    expect(orders).to_contain_text(re.compile(r"shop\.list_orders\(limit=1\).*read-only.*left"))
    assert orders.bounding_box()["height"] < 80  # type: ignore[index]
    if shots := os.environ.get("AGENTBOX_SHOTS"):
        person.page.screenshot(path=f"{shots}/compact.png")

    first = person.item("shop.restock").locator(".jp-AgentBox-card")
    first.click(position={"x": 5, "y": 5})
    await_letters(first)
    person.keyboard.press("j")
    expect(orders.locator(".jp-AgentBox-card")).to_be_focused()
    expect(orders.get_by_role("button", name="Allow once")).to_be_in_viewport()
    expect(compact).to_have_count(1)
    await_letters(orders.locator(".jp-AgentBox-card"))
    person.keyboard.press("a")
    expect(orders).to_have_count(0)

    decide(products, "Allow once")  # by pointer, which opens it first
    expect(products).to_have_count(0)
    decide(person.item("shop.restock"), "Allow once")
    expect(person.panel).to_contain_text("No requests are waiting.")


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


THREE = """import asyncio
from jupyter_agentbox import tools
calls = tools.shop.restock.aio(product_id=1, quantity=2), tools.shop.list_orders.aio(), tools.shop.list_products.aio()
await asyncio.gather(*calls, return_exceptions=True)"""
#: The parts of the panel that are wider than their place, or whose text is cut.
CUT = """panel => {
  const name = node => `${node.localName}.${node.className} “${node.textContent.slice(0, 40)}”`;
  const isNamed = node => node.closest('[title]') !== null; // whole when the pointer is on it
  const isCut = node => {
    const { overflowX, textOverflow } = getComputedStyle(node);
    const isWide = node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0;
    const scrolls = node.closest('pre, .jp-AgentBox-tableBox, .jp-AgentBox-codeBox, .cm-scroller');
    return isWide && overflowX !== 'visible' && !(scrolls && textOverflow !== 'ellipsis') && !isNamed(node);
  };
  const outside = node => {
    const { left, right, width } = node.getBoundingClientRect();
    const box = panel.getBoundingClientRect();
    return width > 1 && !isNamed(node) && !node.closest('pre, .jp-AgentBox-tableBox, .jp-AgentBox-codeBox') &&
      (left < box.left - 1 || right > box.right + 1);
  };
  const all = [panel, ...panel.querySelectorAll('*')].filter(node => node instanceof HTMLElement);
  return all.filter(node => node.offsetParent && (isCut(node) || outside(node))).map(name);
}"""


def test_the_toolbar_leads_to_other_pages_and_rejects_all_only_after_asking(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    person = new_person()
    path = notebook(THREE, RESTOCK)
    person.open(path)
    person.open_panel()
    toolbar = person.page.get_by_role("toolbar", name="AgentBox", exact=True)
    reject = toolbar.get_by_role("button", name=re.compile("^Reject all"))
    expect(reject).to_have_count(0)
    person.run(0)
    expect(reject).to_have_text("Reject all (3)…")
    assert violations(person.page, ".jp-AgentBox-panel") == []
    person.show_tab("Rules")
    reject.click()
    form = person.panel.get_by_role("group", name="Reject 3 requests", exact=True)
    for tool in ("restock", "list_orders", "list_products"):
        expect(form).to_contain_text(f"shop.{tool} × 1")
    expect(form.get_by_role("textbox", name="Reason (optional)")).to_be_focused()
    person.keyboard.press("Escape")
    expect(form).to_have_count(0)
    assert len(lab.approvals(path)) == 3
    reject.click()
    decide(form, "Reject 3")
    expect(person.status).to_have_text("")
    assert len(lab.approvals(path, "rejected")) == 3
    expect(reject).to_have_count(0)
    person.await_kernel()
    person.run(1)
    expect(person.status).to_have_text(re.compile("1$"))
    expect(reject).to_have_count(0)  # one request has its own button

    for button, tab in {
        "Show all history": "AgentBox history",
        "AgentBox guide": "AgentBox guide",
        "AgentBox settings": "Settings",
    }.items():
        toolbar.get_by_role("button", name=button).click()
        expect(person.page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    # None of them looks as if it were on.
    expect(person.page.locator(".jp-AgentBox-panel jp-button[aria-pressed=true]")).to_have_count(0)


def test_the_guide_is_in_the_help_menu_and_leads_to_the_demo_which_runs_nothing_by_itself(
    new_person: Callable[[], Person], lab: Lab
) -> None:
    person = new_person()
    person.visit()
    person.page.get_by_role("menuitem", name="Help", exact=True).click()
    person.page.get_by_role("menu").get_by_role("menuitem", name="AgentBox Guide").click()
    guide = person.page.get_by_role("article", name="AgentBox guide")
    expect(guide).to_be_visible()
    assert violations(person.page, ".jp-AgentBox-guide") == []
    guide.get_by_role("button", name="Show the servers").click()
    expect(person.page.get_by_role("region", name="MCP servers")).to_be_visible()
    guide.get_by_role("button", name="Open the tool demo").click()
    person.await_kernel()
    expect(person.notebook.get_by_role("heading", name="Tool demo")).to_be_visible()
    expect(person.notebook.locator(".jp-CodeCell")).to_have_count(3)
    expect(person.notebook.locator(".jp-CodeCell .jp-InputPrompt")).to_have_text(["[ ]:"] * 3)
    person.run(1, 3)
    expect(person.cell(1)).to_contain_text("shop")
    decide(person.card(3), "Allow once")
    expect(person.cell(3).locator(".jp-OutputArea-executeResult")).to_be_visible()


def saves_the_open_panel(response: Response) -> bool:
    """Whether the server has taken a layout in which the panel is open."""
    if "/lab/api/workspaces" not in response.url or response.request.method != "PUT" or not response.ok:
        return False
    layout = response.request.post_data_json["data"].get("layout-restorer:data", {})
    return bool(layout.get("right", {}).get("current") == "jupyter-agentbox-panel")


def test_going_to_a_cell_that_has_no_card_says_why_and_the_panel_still_decides(
    new_person: Callable[[], Person], notebook: Callable[..., str]
) -> None:
    person = new_person()
    person.open(notebook("'before'", RESTOCK))
    with person.page.expect_response(saves_the_open_panel):
        person.open_panel()
    person.run(1)
    expect(person.item("shop.restock")).to_be_visible()
    # The notebook was not saved with the card, and what its kernel shows from now on belongs to that card.
    person.reload()
    person.await_kernel_of_a_running_cell()
    decide(person.item("shop.restock"), "Go to cell")
    expect(person.toasts).to_contain_text("card of the request is missing")
    expect(person.cell(1)).to_be_visible()
    expect(person.card(1)).to_have_count(0)
    decide(person.item("shop.restock"), "Allow once")
    expect(person.panel).to_contain_text("No requests are waiting.")


def test_no_notification_covers_the_panel_that_shows_the_request(
    new_person: Callable[[], Person], notebook: Callable[..., str]
) -> None:
    person = new_person()
    person.open(notebook("'above'\n" * 80, RESTOCK))
    with person.page.expect_response(saves_the_open_panel):
        person.open_panel()
    person.run(1)
    item = person.item("shop.restock")
    expect(item).to_be_visible()
    person.save()
    person.reload()
    expect(item).to_be_visible()
    expect(person.card(1)).not_to_be_in_viewport()
    for name in ("Allow once", "Edit", "Reject"):
        button = item.get_by_role("button", name=name, exact=True)
        button.scroll_into_view_if_needed()
        expect(button).to_be_enabled()
        assert faults(button) == []
    # By now a notification would be there: it comes sooner than the buttons take a press.
    expect(person.toasts).to_have_count(0)


@pytest.mark.parametrize("page", ["narrow", "zoomed"])
def test_nothing_is_cut_or_scrolls_sideways_in_a_narrow_panel_or_at_twice_the_size(
    new_person: Callable[[], Person], notebook: Callable[..., str], page: str
) -> None:
    person = new_person()
    if page == "zoomed":
        # At 200 %, a window has half as many pixels of CSS each way.
        person.page.set_viewport_size({"width": SIZE["width"] // 2, "height": SIZE["height"] // 2})
    person.open(notebook(THREE, RESTOCK))
    person.run(0)
    expect(person.status).to_have_text(re.compile("3$"))
    person.open_panel()
    panel = person.page.locator(".jp-AgentBox-panel")
    box = panel.bounding_box()
    assert box
    assert 240 <= box["width"] <= 260
    expect(person.item("shop.restock").get_by_role("button", name="Allow once")).to_be_visible()
    for tab in ("Waiting", "History", "Servers", "Rules", "Agents"):
        person.show_tab(tab)
        person.page.evaluate(NEXT_FRAMES)
        assert panel.evaluate(CUT) == [], tab
    person.show_tab("Waiting")
    panel.get_by_role("button", name="Reject all (3)…").click()
    form = person.panel.get_by_role("group", name="Reject 3 requests")
    expect(form.get_by_role("textbox")).to_be_focused()
    assert panel.evaluate(CUT) == []
    decide(form, "Reject 3")
    expect(person.status).to_have_text("")
    person.show_tab("History")
    expect(person.history.get_by_role("listitem").first).to_be_visible()
    assert panel.evaluate(CUT) == []
