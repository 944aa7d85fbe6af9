"""Many requests of one tool: a table in the panel, decided together, by mouse and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from .accessibility import violations
from .held_requests import HeldRequests
from .lab import Lab
from .person import NEXT_FRAMES, Person, await_letters, await_true, decide, press

#: What a page sends to decide many requests at once.
DECISIONS = re.compile(r"/approvals/decisions\b")

LOOP = """import asyncio
from jupyter_agentbox import tools
async def ask(product_id, quantity):
    try:
        return (await tools.shop.restock.aio(product_id=product_id, quantity=quantity)).stock
    except Exception as error:
        return type(error).__name__
results = await asyncio.gather(*(ask(1 + index % 8, 25 if index != 7 else 2500) for index in range({count})))
print(len(results), sum(isinstance(one, int) for one in results), "ran")"""
LONG = """import asyncio
from jupyter_agentbox import tools
texts = ["Ada", "x" * 300, "Grace"]
results = await asyncio.gather(*(tools.shop.list_orders.aio(customer=text) for text in texts))
print(len(results), "ran")"""

#: The outputs of a cell can be cleared while it runs: the next call is shown all the same.
STEPS = """from IPython.display import clear_output
from jupyter_agentbox import ToolCallRejectedError, tools
tools.shop.list_orders(limit=1)
clear_output()
try:
    for limit in range(2, 7):
        tools.shop.list_orders(limit=limit)
except ToolCallRejectedError as error:
    print("rejected:", error.reason)
    tools.shop.list_orders(limit=6)"""

#: Requests of two tools, more than are listed without a filter.
TWO_TOOLS = """import asyncio
from jupyter_agentbox import tools
async def ask(call):
    try:
        await call
        return "ran"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
calls = [tools.shop.restock.aio(product_id=number, quantity=25) for number in range(1, 6)]
calls += [tools.shop.set_price.aio(product_id=number, price=9.5) for number in range(1, 4)]
print(*sorted(await asyncio.gather(*map(ask, calls))), sep="\\n")"""


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def table_of(person: Person, name: str = "shop.restock") -> Locator:
    """The table of a tool in the panel."""
    return person.panel.get_by_role("group", name=re.compile(rf"(approval|Decided) requests? of {name}$"))


def rows_of(table: Locator) -> Locator:
    """The requests of a table."""
    return table.locator("[data-row-id]")


def open_table(person: Person, path: str, count: int) -> Locator:
    """Run the first cell of a notebook and wait for its requests in the panel."""
    person.open(path)
    person.run(0)
    expect(person.status).to_have_text(re.compile(f"{count}$"))
    person.open_panel()
    table = table_of(person)
    expect(rows_of(table)).to_have_count(count)
    return table


def test_sixty_calls_of_a_loop_are_allowed_with_two_clicks_in_the_panel(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(f"{LOOP.format(count=60)}\n1 / 0")
    table = open_table(person, path, 60)
    expect(table.get_by_role("timer")).to_have_text(re.compile(r"^\d+:\d\d left$"))
    expect(table.locator(".jp-mod-unusual")).to_have_text(["2500"])
    expect(table.get_by_role("button", name=re.compile("^(Allow|Reject)"))).to_have_count(0)
    table.get_by_role("checkbox", name="All of this cell (60)").click()
    assert violations(person.page) == []
    table.get_by_role("button", name="Allow 60", exact=True).click()
    expect(person.status).to_have_text("")
    assert len(lab.approvals(path, "approved")) == 60
    # What was decided keeps its place while the pointer is there.
    expect(rows_of(table)).to_have_count(60)
    expect(rows_of(table).first).to_have_accessible_name(re.compile("Allowed by you"))
    person.page.mouse.move(1, 1)
    expect(person.panel).to_contain_text("No requests are waiting.")
    # One output for all of them, which leaves the result and the error in view; it and the file say what ran.
    outputs = person.cell(0).locator(".jp-OutputArea-output")
    expect(outputs).to_have_text(["60 calls, 60 allowed", "60 60 ran", re.compile("ZeroDivisionError")])
    expect(outputs.nth(2)).to_be_in_viewport()
    expect(person.cell(0).get_by_text("Show more outputs")).to_have_count(0)
    outputs.nth(0).get_by_text("60 calls").click()
    lines = outputs.nth(0).get_by_role("listitem")
    expect(lines).to_have_count(60)
    expect(lines.nth(59)).to_contain_text("restock(product_id=4, quantity=25) Allowed by you. Done in")
    person.await_kernel()
    person.edit(0)
    person.save()
    calls, *_ = lab.read_notebook(path)["cells"][0]["outputs"]
    saved = calls["data"]["text/plain"].splitlines()
    assert len(saved) == 60
    assert saved[59].startswith("✓ shop.restock(product_id=4, quantity=25) — allowed by ")


def test_the_calls_of_a_loop_are_decided_one_by_one_in_one_place(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(STEPS))
    person.run(0)
    cell = person.cell(0)
    for step in range(6):  # the sixth is asked for after the rejection
        waiting = cell.locator(".jp-AgentBox-card[data-status='pending']").filter(has_text=f"limit{step + 1}")
        decide(waiting, "Reject" if step == 4 else "Allow once")
        if step == 4:
            expect(waiting.get_by_role("textbox")).to_be_focused()
            person.keyboard.type("enough")
            person.keyboard.press("Enter")
    expect(cell.locator(".jp-OutputArea-output")).to_have_text(["5 calls, 4 allowed, 1 rejected", "rejected: enough"])
    expect(cell.get_by_role("group", name="Calls of this cell")).to_be_visible()


def test_of_hundreds_of_calls_only_rows_near_the_view_are_rendered_and_keys_lead_to_all(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(LOOP.format(count=300))
    person.open(path)
    person.run(0)
    expect(person.status).to_have_text(re.compile("300$"))
    person.open_panel()
    table = table_of(person)
    rows = rows_of(table)
    expect(rows.first).to_have_attribute("aria-posinset", "1")
    expect(rows.first).to_have_attribute("aria-setsize", "300")
    assert rows.count() < 150
    rows.first.focus()
    person.keyboard.press("End")
    last = table.locator("[aria-posinset='300']")
    expect(last).to_be_focused()
    expect(last).to_be_in_viewport()
    # The rows around it are there, one below the other, and nothing is left blank.
    for place in range(285, 301):
        expect(table.locator(f"[aria-posinset='{place}']")).to_be_in_viewport()
    assert rows.count() < 150
    assert violations(person.page) == []
    person.keyboard.press("ArrowUp")
    above = table.locator("[aria-posinset='299']")
    expect(above).to_be_focused()
    # Those before it become higher, as they do when they are measured for the first time.
    style = person.page.add_style_tag(content=".jp-AgentBox-rows > [data-window-key] { min-height: 60px }")
    expect(rows.first).not_to_be_in_viewport()
    person.page.evaluate(NEXT_FRAMES)
    expect(above).to_be_in_viewport()
    style.evaluate("style => style.remove()")
    person.page.evaluate(NEXT_FRAMES)
    expect(above).to_be_in_viewport()
    person.keyboard.press("Home")
    expect(table.locator("[aria-posinset='1']")).to_be_focused()
    person.keyboard.press("Control+a")
    table.get_by_role("button", name="Allow 300", exact=True).click()
    expect(person.status).to_have_text("")
    assert {len(lab.approvals(path, status)) for status in ("pending", "rejected")} == {0}


def test_sixty_calls_of_a_loop_are_decided_by_keyboard(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path = notebook(LOOP.format(count=60))
    table = open_table(person, path, 60)
    person.choose_command("Go to Next Approval Request")
    expect(table).to_be_focused()
    rows = rows_of(table)
    person.keyboard.press("ArrowDown")
    expect(rows.nth(0)).to_be_focused()
    person.keyboard.press("Space")
    person.keyboard.press("ArrowDown")
    person.keyboard.press("ArrowDown")
    person.keyboard.press("Shift+ArrowDown")
    person.keyboard.press("Shift+ArrowDown")
    person.keyboard.press("Shift+ArrowUp")
    selected = table.get_by_role("row", selected=True)
    expect(selected).to_have_count(3)
    expect(rows.nth(1)).to_have_attribute("aria-selected", "false")
    unwanted = [
        int(re.findall(r"product_id=(\d+)", row.get_attribute("aria-label") or "")[0]) for row in selected.all()
    ]
    reject = table.get_by_role("button", name="Reject 3…", exact=True)
    expect(reject).to_be_enabled()
    person.keyboard.press("Tab")
    expect(table.get_by_role("button", name="Allow 3", exact=True)).to_be_focused()
    person.keyboard.press("Tab")
    press(reject, "Enter")
    expect(table.get_by_role("textbox", name="Reason (optional)")).to_be_focused()
    person.keyboard.type("too many")
    person.keyboard.press("Enter")
    expect(person.status).to_have_text(re.compile("57$"))
    expect(table).to_be_focused()
    person.keyboard.press("Alt+Shift+A")
    person.press_letter_for_table(person.cell(0))
    expect(table).to_be_focused()
    person.keyboard.press("Control+a")
    expect(rows.nth(0)).to_be_focused()
    allow = table.get_by_role("button", name="Allow 57", exact=True)
    expect(allow).to_be_enabled()
    person.keyboard.press("Tab")
    press(allow, "Enter")
    expect(person.status).to_have_text("")
    assert len(lab.approvals(path, "approved")) == 57
    rejected = lab.approvals(path, "rejected")
    assert [one["decision"]["reason"] for one in rejected] == ["too many"] * 3
    assert sorted(one["call"]["arguments"]["product_id"] for one in rejected) == sorted(unwanted)


def test_a_row_that_is_not_wholly_shown_is_selected_only_after_it_was_opened(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(LONG))
    person.run(0)
    expect(person.status).to_have_text(re.compile("3$"))
    person.open_panel()
    table = table_of(person, "shop.list_orders")
    table.get_by_role("checkbox", name="All of this cell (2)").click()
    expect(table.get_by_role("button", name="Allow 2", exact=True)).to_be_visible()
    row = rows_of(table).filter(has_text="xxx")
    row.click()
    expect(row).to_have_attribute("aria-selected", "false")
    row.get_by_role("button", name=re.compile("^Open ")).click()
    expect(table.get_by_role("group", name="Approval request: shop.list_orders")).to_be_visible()
    assert violations(person.page) == []
    row.locator(".jp-AgentBox-rowCheck").click()
    table.get_by_role("button", name="Allow 3", exact=True).click()
    expect(person.cell(0)).to_contain_text("3 ran")


def test_the_card_of_a_row_that_is_opened_at_the_edge_is_in_view_and_can_be_decided(
    person: Person, notebook: Callable[..., str]
) -> None:
    table = open_table(person, notebook(LOOP.format(count=60)), 60)
    bar = table.locator(".jp-AgentBox-batchBar")
    edge = (bar.bounding_box() or {})["y"]
    last = max(row for row in range(60) if (rows_of(table).nth(row).bounding_box() or {})["y"] < edge - 40)
    rows_of(table).nth(last).get_by_role("button").click()
    card = table.get_by_role("group", name="Approval request: shop.restock")
    allow = card.get_by_role("button", name="Allow once")
    expect(allow).to_be_in_viewport(ratio=1)
    await_true(allow, f"button => button.getBoundingClientRect().bottom < {edge}")
    # A card of which a part is under the bar is not covered.
    person.page.mouse.move(*head_of(card))
    person.page.mouse.wheel(0, -100)
    await_true(allow, f"button => button.getBoundingClientRect().bottom > {edge}")
    expect(card).not_to_contain_text("Something covers part of this card")
    person.page.mouse.click(*head_of(card))
    await_letters(card)
    person.keyboard.press("a")
    expect(card.get_by_role("status").filter(has_text="its button was out of view")).to_be_visible()
    await_true(allow, f"button => button.getBoundingClientRect().bottom < {edge}")
    person.keyboard.press("a")
    expect(person.status).to_have_text(re.compile("59$"))


def test_a_bar_that_a_kernel_lays_over_a_card_is_no_edge_of_the_view(
    person: Person, notebook: Callable[..., str]
) -> None:
    table = open_table(person, notebook(LOOP.format(count=3)), 3)
    rows_of(table).first.get_by_role("button").click()
    card = table.get_by_role("group", name="Approval request: shop.restock")
    allow = card.get_by_role("button", name="Allow once")
    expect(allow).not_to_have_attribute("aria-disabled", "true")
    place = card.bounding_box() or {}
    person.page.mouse.move(*head_of(card))
    # As the style of an output would: the bar over the middle of the card, with its buttons below.
    bar = table.locator(".jp-AgentBox-batchBar")
    up = (bar.bounding_box() or {})["y"] - place["y"] - 40
    style = f"position: relative; top: -{up}px; bottom: auto; height: 30px; overflow: hidden; z-index: 9;"
    style = style.replace(";", " !important;")
    covering = person.page.add_style_tag(content=f".jp-AgentBox-batchBar {{ {style} }}")
    person.page.mouse.move(place["x"] + 30, place["y"] + 20)
    expect(allow).to_have_attribute("aria-disabled", "true")
    expect(card).to_contain_text("Something covers part of this card")
    covering.evaluate("style => style.remove()")


def head_of(card: Locator) -> tuple[float, float]:
    """A point of a card that is a little below its upper edge."""
    box = card.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + 20


def test_two_pages_that_decide_overlapping_rows_decide_each_once(
    person: Person, new_person: Callable[[], Person], notebook: Callable[..., str]
) -> None:
    other = new_person()
    other.visit()
    other.open_panel()  # what comes is on screen there, and needs no notification, which would cover a part of it
    path = notebook(LOOP.format(count=12))
    table = open_table(person, path, 12)
    theirs = table_of(other)
    expect(rows_of(theirs)).to_have_count(12)
    rows_of(table).nth(0).locator(".jp-AgentBox-rowCheck").click()
    rows_of(table).nth(7).locator(".jp-AgentBox-rowCheck").click(modifiers=["Shift"])
    rows_of(theirs).nth(4).locator(".jp-AgentBox-rowCheck").click()
    rows_of(theirs).nth(11).locator(".jp-AgentBox-rowCheck").click(modifiers=["Shift"])
    mine = table.get_by_role("button", name="Allow 8", exact=True)
    expect(mine).to_be_enabled()
    expect(theirs.get_by_role("button", name="Allow 8", exact=True)).to_be_enabled()
    # No answer leaves before both are given: neither page has heard of the other's.
    held = [HeldRequests(page, DECISIONS) for page in (person.page, other.page)]
    with other.page.expect_request(DECISIONS) as sent, person.page.expect_request(DECISIONS):
        theirs.get_by_role("button", name="Allow 8", exact=True).click(no_wait_after=True)
        mine.click(no_wait_after=True)
    for requests in held:
        requests.release()
    assert len(sent.value.post_data_json["decisions"]) == 8
    expect(person.cell(0)).to_contain_text("12 12 ran")


@pytest.mark.parametrize("way", ["checkbox", "button"])
def test_a_script_selects_and_decides_nothing(person: Person, notebook: Callable[..., str], lab: Lab, way: str) -> None:
    path = notebook(LOOP.format(count=3))
    table = open_table(person, path, 3)
    everything = table.get_by_role("checkbox", name="All of this cell (3)")
    if way == "checkbox":
        everything.evaluate("box => box.click()")
        rows_of(table).first.evaluate("row => row.click()")
        expect(table.get_by_role("row", selected=True)).to_have_count(0)
    else:
        everything.click()
        allow = table.get_by_role("button", name="Allow 3", exact=True)
        expect(allow).to_be_enabled()
        allow.evaluate("button => button.click()")
    assert len(lab.approvals(path)) == 3


def test_requests_are_filtered_and_decided_by_keyboard_and_what_is_hidden_keeps_waiting(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(LOOP.format(count=12))
    table = open_table(person, path, 12)
    rows = rows_of(table)
    filter_field = person.panel.get_by_role("searchbox", name="Filter")
    table.get_by_role("checkbox", name="All of this cell (12)").click()
    expect(table.get_by_role("button", name="Allow 12", exact=True)).to_be_visible()
    filter_field.focus()
    person.keyboard.type("PRODUCT_ID=3")
    expect(rows).to_have_count(2)
    expect(person.panel.get_by_role("status").filter(has_text="2 of 12 shown")).to_be_visible()
    # What was selected and is hidden is not decided, and the count of what waits is that of all.
    expect(table.get_by_role("button", name="Allow 2", exact=True)).to_be_visible()
    expect(person.status).to_have_text(re.compile("12$"))
    assert violations(person.page) == []
    person.keyboard.press("Escape")
    expect(filter_field).to_be_focused()
    expect(rows).to_have_count(12)
    expect(table.get_by_role("row", selected=True)).to_have_count(2)
    person.page.mouse.move(1, 1)
    person.keyboard.type("product_id=8")
    expect(rows).to_have_count(1)
    expect(table.get_by_role("row", selected=True)).to_have_count(0)
    person.keyboard.press("ArrowDown")
    expect(rows.nth(0)).to_be_focused()
    person.keyboard.press("Control+a")
    allow = table.get_by_role("button", name="Allow 1", exact=True)
    expect(allow).to_be_enabled()
    person.keyboard.press("Tab")
    press(allow, "Enter")
    expect(person.status).to_have_text(re.compile("11$"))
    [allowed] = lab.approvals(path, "approved")
    assert allowed["call"]["arguments"]["product_id"] == 8
    assert len(lab.approvals(path)) == 11
    expect(person.panel).to_contain_text("No request matches. 0 of 11 shown")
    assert violations(person.page) == []
    clear = person.panel.get_by_role("button", name="Clear the filter")
    clear.focus()
    person.keyboard.press("Enter")
    expect(filter_field).to_be_focused()
    expect(rows).to_have_count(11)
    expect(table.get_by_role("row", selected=True)).to_have_count(0)


def test_the_filter_keeps_the_focus_and_its_text_while_requests_arrive_and_buttons_wait_anew(
    person: Person, new_person: Callable[[], Person], notebook: Callable[..., str]
) -> None:
    table = open_table(person, notebook(LOOP.format(count=6)), 6)
    row = table.locator("[aria-label='restock(product_id=2, quantity=25)']")
    row.locator(".jp-AgentBox-rowCheck").click()
    allow = table.get_by_role("button", name="Allow 1", exact=True)
    expect(allow).to_be_enabled()
    filter_field = person.panel.get_by_role("searchbox", name="Filter")
    filter_field.focus()
    # The button stays where it is, and its time starts again with what is shown.
    person.page.evaluate(
        """() => { window.states = []; new MutationObserver(changes => {
          for (const { target } of changes) window.states.push(target.getAttribute('aria-disabled'));
        }).observe(document.querySelector('.jp-AgentBox-batchBar button'), { attributeFilter: ['aria-disabled'] }); }"""
    )
    person.keyboard.type("product_id=2")
    expect(rows_of(table)).to_have_count(1)
    expect(allow).to_be_enabled()
    assert "true" in person.page.evaluate("window.states")
    other = new_person()
    other.open(notebook(LOOP.format(count=12)))
    other.run(0)
    expect(person.panel.get_by_role("status").filter(has_text="3 of 18 shown")).to_be_visible()
    expect(person.status).to_have_text(re.compile("18$"))
    expect(filter_field).to_be_focused()
    person.keyboard.type("5")
    expect(filter_field).to_have_value("product_id=25")


def test_all_that_are_shown_are_rejected_by_keyboard_and_nothing_that_came_later(
    person: Person, new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(TWO_TOOLS)
    person.open(path)
    person.run(0)
    expect(person.status).to_have_text(re.compile("8$"))
    person.open_panel()
    button = person.panel.get_by_role("button", name=re.compile("^Reject all shown"))
    filter_field = person.panel.get_by_role("searchbox", name="Filter")
    filter_field.focus()
    person.keyboard.type("product_id=")
    expect(button).to_have_accessible_name("Reject all shown (8)…")
    person.keyboard.type("3")
    expect(button).to_have_accessible_name("Reject all shown (2)…")
    person.keyboard.press("Tab")
    expect(person.panel.get_by_role("button", name="Clear the filter")).to_be_focused()
    person.keyboard.press("Tab")
    expect(button).to_be_focused()
    person.keyboard.press("Enter")
    form = person.panel.get_by_role("group", name=re.compile(r"^Reject \d requests$"))
    reason = form.get_by_role("textbox", name="Reason (optional)")
    expect(reason).to_be_focused()
    expect(form).to_have_accessible_name("Reject 2 requests")
    expect(form).to_contain_text("shop.restock × 1")
    expect(form).to_contain_text("shop.set_price × 1")
    person.keyboard.type("not")
    assert violations(person.page) == []
    # What was shown and is hidden is not rejected, also when it is shown again; nor is what arrives now.
    other = new_person()
    theirs = notebook(TWO_TOOLS)
    other.open(theirs)
    other.run(0)
    expect(form).to_contain_text("2 other requests are shown now, and are not included.")
    expect(reason).to_be_focused()
    person.keyboard.press("Escape")
    expect(button).to_be_focused()
    expect(button).to_have_accessible_name("Reject all shown (4)…")
    person.keyboard.press("Enter")
    expect(reason).to_have_value("not")
    person.keyboard.type(" three")
    person.keyboard.press("Tab")
    reject = form.get_by_role("button", name="Reject 4", exact=True)
    with person.page.expect_request(DECISIONS) as sent:
        press(reject, "Enter")
    assert len(sent.value.post_data_json["decisions"]) == 4
    expect(person.status).to_have_text(re.compile("12$"))
    expect(person.panel).to_contain_text("No request matches. 0 of 12 shown")
    rejected = [*lab.approvals(path, "rejected"), *lab.approvals(theirs, "rejected")]
    assert [one["call"]["arguments"]["product_id"] for one in rejected] == [3] * 4
    assert {one["decision"]["reason"] for one in rejected} == {"not three"}
    # There is no button that allows what is shown of several tools.
    person.page.evaluate(NEXT_FRAMES)
    expect(person.panel.get_by_role("button", name=re.compile("^Allow all"))).to_have_count(0)


def test_everything_is_rejected_by_the_mouse_and_a_filter_hides_no_typed_reason(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(TWO_TOOLS)
    person.open(path)
    person.run(0)
    expect(person.status).to_have_text(re.compile("8$"))
    person.open_panel()
    table = table_of(person)
    filter_field = person.panel.get_by_role("searchbox", name="Filter")
    table.get_by_role("checkbox", name="All of this cell (5)").click()
    decide(table, "Reject 5…")
    expect(table.get_by_role("textbox")).to_be_focused()
    person.keyboard.type("too many")
    filter_field.fill("set_price")
    expect(table).to_have_count(0)
    filter_field.fill("")
    rows_of(table).first.locator(".jp-AgentBox-rowCheck").click()
    decide(table, "Reject 1…")
    expect(table.get_by_role("textbox")).to_have_value("too many")
    person.keyboard.press("Escape")
    person.page.locator(".jp-AgentBox-panel").get_by_role("button", name="Reject all (8)…").click()
    form = person.panel.get_by_role("group", name="Reject 8 requests", exact=True)
    decide(form, "Reject 8")
    expect(person.status).to_have_text("")
    assert len(lab.approvals(path, "rejected")) == 8
    expect(person.cell(0).locator(".jp-OutputArea-output").first).to_have_text("8 calls, 8 rejected")


def test_after_the_last_row_of_a_table_is_decided_by_the_mouse_the_focus_is_on_what_waits(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(TWO_TOOLS))
    person.run(0)
    expect(person.status).to_have_text(re.compile("8$"))
    person.open_panel()
    table = table_of(person)
    table.get_by_role("checkbox", name="All of this cell (5)").click()
    decide(table, "Reject 5…")
    expect(table.get_by_role("textbox")).to_be_focused()
    decide(table, "Reject 5")
    expect(person.status).to_have_text(re.compile("3$"))
    expect(rows_of(table)).to_have_count(5)  # the pointer is there
    expect(table_of(person, "shop.set_price")).to_be_focused()
