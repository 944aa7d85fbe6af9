"""Requests without a mouse, and keys that were meant for something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from .accessibility import violations
from .lab import Lab
from .person import Person, await_letters, decide, press

ASK = "from jupyter_agentbox import tools\ntools.shop.list_orders(limit=1)[0].status"
DELETE = "from jupyter_agentbox import tools\ntools.shop.delete_order(order_id=1051)"


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def test_request_is_reached_read_and_allowed_in_the_panel_by_keys(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ASK))
    person.run(0)
    expect(person.card()).to_be_visible()
    person.choose_command("Go to Next Approval Request")
    card = person.item("shop.list_orders").get_by_role("group", name="Approval request: shop.list_orders")
    expect(card).to_be_focused()
    allow = card.get_by_role("button", name="Allow once")
    expect(allow).to_be_enabled()
    for name in ("Go to cell", "Details"):
        person.keyboard.press("Tab")
        expect(card.get_by_text(name)).to_be_focused()
    person.keyboard.press("Enter")
    expect(card).to_contain_text("Digest")
    person.keyboard.press("Tab")
    press(allow, "Enter")
    expect(person.cell(0).locator(".jp-OutputArea-executeResult")).to_be_visible()
    expect(person.cell(0)).to_be_focused()


def test_request_is_edited_and_rejected_by_keys(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(DELETE, ASK))
    person.run(0)
    expect(person.card()).to_be_visible()
    person.choose_command("Go to Next Approval Request")
    card = person.item("shop.delete_order").get_by_role("group", name="Approval request: shop.delete_order")
    expect(card).to_be_focused()
    expect(card.get_by_role("button", name="Edit")).to_be_enabled()
    card.get_by_text("Details").focus()
    for _ in range(3):  # the arrow beside "Allow once" is between the two
        person.keyboard.press("Tab")
    press(card.get_by_role("button", name="Edit"), "Space")
    expect(card.get_by_role("textbox", name="order_id")).to_be_focused()
    person.keyboard.press("Escape")
    expect(card.get_by_role("button", name="Edit")).to_be_focused()
    person.keyboard.press("Tab")
    press(card.get_by_role("button", name="Reject"), "Enter")
    expect(card.get_by_role("textbox", name="Reason (optional)")).to_be_focused()
    person.keyboard.type("not that one")
    person.keyboard.press("Enter")
    expect(person.cell(0)).to_contain_text("not that one")


def test_card_under_the_cell_is_reached_by_tab(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ASK))
    person.run(0)
    allow = person.card().get_by_role("button", name="Allow once")
    expect(allow).to_be_enabled()
    person.keyboard.press("Escape")
    for _ in range(15):
        person.keyboard.press("Tab")
        if allow.evaluate("node => node === document.activeElement"):
            break
    press(allow, "Space")
    expect(person.card()).to_contain_text("Done in")
    expect(person.cell(0)).to_be_focused()


COUNT = "count = globals().get('count', 0) + 1\n"

#: Notes each cell of the notebook in front that becomes the active one.
WATCH_ACTIVE_CELL = """() => {
  const { content } = window.jupyterapp.shell.currentWidget;
  window.activeCells = [content.activeCellIndex];
  content.activeCellChanged.connect(() => window.activeCells.push(content.activeCellIndex));
}"""


def watch_active_cell(person: Person) -> Callable[[], list[int]]:
    """Begin to note the active cell; the result tells the present one and all that came after it."""
    person.page.evaluate(WATCH_ACTIVE_CELL)
    return lambda: list(person.page.evaluate("window.activeCells"))


def test_shift_enter_after_allow_runs_the_next_cell_by_mouse(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(COUNT + ASK, "f'runs: {count}'"))
    person.edit(0)
    person.keyboard.press("Shift+Enter")
    active = watch_active_cell(person)
    person.card().get_by_text("Details").click()
    decide(person.card(), "Allow once")
    expect(person.cell(1)).to_be_focused()
    assert active() == [1]
    person.keyboard.press("Shift+Enter")
    expect(person.cell(1)).to_contain_text("'runs: 1'")


def test_shift_enter_after_allow_runs_the_next_cell_by_keys(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(COUNT + ASK, "f'runs: {count}'"))
    person.edit(0)
    person.keyboard.press("Shift+Enter")
    active = watch_active_cell(person)
    allow = person.card().get_by_role("button", name="Allow once")
    expect(allow).to_be_enabled()
    expect(person.cell(1)).to_be_focused()
    for _ in range(5):  # its buttons, and the arrows beside two of them
        person.keyboard.press("Shift+Tab")
    press(allow, "Enter")
    expect(person.cell(1)).to_be_focused()
    assert active() == [1]
    person.keyboard.press("Shift+Enter")
    expect(person.cell(1)).to_contain_text("'runs: 1'")


def test_shift_enter_after_edit_runs_the_next_cell(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(COUNT + ASK, "f'runs: {count}'"))
    person.edit(0)
    person.keyboard.press("Shift+Enter")
    active = watch_active_cell(person)
    decide(person.card(), "Edit")
    limit = person.card().get_by_role("textbox", name="limit")
    limit.click()
    expect(limit).to_be_focused()
    person.keyboard.press("Control+a")
    person.keyboard.type("2")
    expect(limit).to_have_value("2")
    person.card().get_by_text("Details").click()
    decide(person.card(), "Allow once with edits")
    expect(person.cell(1)).to_be_focused()
    assert active() == [1]
    person.keyboard.press("Shift+Enter")
    expect(person.cell(1)).to_contain_text("'runs: 1'")


def test_shift_enter_after_a_link_led_to_the_card_runs_the_cell_where_the_person_was(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(ASK, "print('mine')", "print('next')"))
    person.open_panel()
    person.run(0)
    expect(person.card()).to_be_visible()
    person.edit(1)
    decide(person.item("shop.list_orders"), "Go to cell")
    expect(person.card()).to_be_focused()
    decide(person.card(), "Allow once")
    expect(person.card()).to_contain_text("Done in")
    expect(person.page.locator("[data-windowed-list-index='1']:focus-within")).to_have_count(1)
    person.keyboard.press("Shift+Enter")
    expect(person.cell(1).locator(".jp-OutputArea-output")).to_have_text("mine")
    expect(person.cell(0).locator(".jp-InputPrompt").first).to_have_text("[1]:")


def test_someone_who_writes_in_another_cell_writes_on_after_a_decision(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(ASK, ""))
    person.run(0)
    person.edit(1)
    person.keyboard.type("before")
    decide(person.card(), "Allow once")
    expect(person.cell(1).locator(".cm-content")).to_be_focused()
    person.keyboard.type(" after")
    expect(person.cell(1).locator(".cm-line")).to_have_text("before after")


def test_new_request_takes_neither_focus_nor_keys_from_someone_who_types(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(ASK, ASK, "")
    person.open(path)
    person.open_panel()
    person.run(0, 1)
    expect(person.card(0)).to_be_visible()
    person.edit(2)
    person.keyboard.type("before")
    lab.decide(lab.approvals(path)[0])
    expect(person.card(1).get_by_role("button", name="Allow once")).to_be_enabled()
    expect(person.cell(2).locator(".cm-content")).to_be_focused()
    person.keyboard.type(" A R E Y")
    person.keyboard.press("Enter")
    person.keyboard.press("Space")
    person.keyboard.type("after")
    expect(person.cell(2).locator(".cm-line")).to_have_text(["before A R E Y", " after"])
    assert len(lab.approvals(path)) == 1


def test_keys_without_a_button_decide_nothing(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path = notebook(ASK)
    person.open(path)
    person.run(0)
    person.open_panel()
    cards = (person.card(0), person.item("shop.list_orders").get_by_role("group", name="Approval request"))
    for card in cards:
        expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
        card.focus()
        for key in (
            "Enter",
            "Space",
            "y",
            "o",
            "Control+A",
            "Shift+A",
            "Control+Enter",
            "Shift+Enter",
            "Alt+Enter",
            "Escape",
        ):
            person.keyboard.press(key)
    person.edit(0)
    person.keyboard.press("Escape")
    for key in ("y", "Enter", "Escape", "Space"):
        person.keyboard.press(key)
    assert len(lab.approvals(path)) == 1
    assert person.cell(0).locator(".cm-content").inner_text() == ASK


def test_held_key_does_not_decide_the_request_that_comes_next(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(f"{ASK}\n{ASK}")
    person.open(path)
    person.run(0)
    allow = person.card().get_by_role("button", name="Allow once")
    expect(allow).to_be_enabled()
    allow.focus()
    expect(allow).to_be_enabled()
    person.keyboard.down("Enter")
    for _ in range(20):
        person.keyboard.down("Enter")  # as a held key repeats
    second = person.cell(0).get_by_role("group", name="Approval request").nth(1)
    expect(second.get_by_role("button", name="Allow once")).to_be_enabled()
    person.keyboard.down("Enter")
    person.keyboard.up("Enter")
    assert len(lab.approvals(path)) == 1
    assert person.cell(0).locator(".cm-content").inner_text() == f"{ASK}\n{ASK}"


def ready_for_letters(person: Person, card: Locator) -> None:
    """Go to a card by the shortcut, and wait until its letters count."""
    person.keyboard.press("Alt+Shift+A")
    expect(card).to_be_focused()
    await_letters(card)


def test_one_letter_allows_edits_or_rejects_the_card_that_has_the_focus(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(DELETE, COUNT + ASK, "f'runs: {count}'"))
    person.run(0)
    card = person.card()
    expect(card).to_be_visible()
    letters = card.locator(".jp-AgentBox-button u")
    expect(letters).to_have_text(["A", "E", "R"])
    for letter in letters.all():
        expect(letter).to_have_css("text-decoration-line", "underline")
    ready_for_letters(person, card)
    for letter in letters.all():
        expect(letter).to_have_css("text-decoration-thickness", "2px")
    person.keyboard.press("e")
    expect(card.get_by_role("textbox", name="order_id")).to_be_focused()
    person.keyboard.press("Escape")
    expect(card.get_by_role("button", name="Edit")).to_be_focused()
    await_letters(card)
    person.keyboard.press("r")
    expect(card.get_by_role("textbox", name="Reason (optional)")).to_be_focused()
    person.keyboard.type("a rare eel")
    person.keyboard.press("Enter")
    expect(card).to_have_attribute("data-status", "rejected")  # the focus has gone on from the card
    expect(person.cell(0)).to_contain_text("ToolCallRejectedError")
    person.await_kernel()
    person.edit(1)
    expect(person.cell(1).locator(".cm-content")).to_be_focused()
    person.keyboard.press("Shift+Enter")
    expect(person.card(1)).to_be_visible()
    ready_for_letters(person, person.card(1))
    person.keyboard.press("a")
    expect(person.card(1)).to_contain_text("Done in")
    expect(person.cell(2)).to_be_focused()
    person.keyboard.press("Shift+Enter")
    expect(person.cell(2)).to_contain_text("'runs: 1'")


def test_the_key_to_the_oldest_request_is_another_one_if_settings_say_so_and_decides_nothing(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(GATHERED, "")
    go = {"command": "jupyter-agentbox:go-to-oldest", "selector": "body"}
    shortcuts = [{**go, "keys": ["Alt Shift A"], "disabled": True}, {**go, "keys": ["Ctrl Alt G"]}]
    with lab.settings("@jupyterlab/shortcuts-extension:shortcuts", {"shortcuts": shortcuts}):
        person = new_person()
        person.open(path)
        person.run(0)
        expect(person.status).to_have_text("4")
        person.edit(1)
        person.keyboard.press("Alt+Shift+A")
        person.keyboard.press("Control+Alt+g")
        oldest = lab.approvals(path)[-1]["id"]
        focused = person.page.locator(".jp-AgentBox-card:focus")
        expect(focused).to_have_attribute("data-request-id", oldest)
        await_letters(focused)
        person.edit(1)
        person.keyboard.press("Alt+Shift+A")
        expect(person.cell(1).locator(".cm-content")).to_be_focused()
        for _ in range(3):
            person.keyboard.press("Control+Alt+g")
        expect(focused).to_have_attribute("data-request-id", oldest)
        assert len(lab.approvals(path)) == 4


def test_what_somebody_types_decides_nothing_while_a_program_moves_the_focus(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path = notebook(ASK, "")
    person.open(path)
    person.run(0)
    expect(person.card().get_by_role("button", name="Allow once")).to_be_enabled()
    person.edit(1)
    person.keyboard.type("b = ")
    for command in ("jupyter-agentbox:go-to-oldest", "jupyter-agentbox:next-request"):
        person.execute(command)
        expect(person.page.locator(".jp-AgentBox-card:focus")).to_have_count(1)
        for _ in range(3):
            person.keyboard.press("a")
    assert len(lab.approvals(path)) == 1


#: Letters count some time after the focus came (`GUARD_TIME` in `guardTime.ts`), and never while `window.held` is set.
HOLD_LETTERS = """
const later = window.setTimeout;
window.setTimeout = (run, delay, ...more) => later(run, window.held && delay === 500 ? 600_000 : delay, ...more);
"""


def test_j_and_k_go_between_requests_in_the_panel_and_a_second_a_comes_too_early(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    source = (
        "from concurrent.futures import ThreadPoolExecutor\nfrom jupyter_agentbox import tools\n"
        "calls = (tools.shop.list_orders, tools.shop.list_products, lambda: tools.shop.get_order(order_id=1042))\n"
        "with ThreadPoolExecutor() as pool:\n"
        "    list(pool.map(lambda call: call(), calls))"
    )
    path = notebook(source)
    person = new_person()  # this test is the last: a second page would notify of its requests, too
    person.page.add_init_script(HOLD_LETTERS)
    person.open(path)
    person.run(0)
    expect(person.cell(0).get_by_role("group", name="Approval request")).to_have_count(3)
    person.open_panel()
    cards = person.panel.get_by_role("group", name="Approval request")
    expect(cards).to_have_count(3)
    person.choose_command("Go to Next Approval Request")
    expect(cards.nth(0)).to_be_focused()
    person.keyboard.press("j")
    person.keyboard.press("j")
    expect(cards.nth(2)).to_be_focused()
    person.keyboard.press("k")
    expect(cards.nth(1)).to_be_focused()
    await_letters(cards.nth(1))
    person.page.evaluate("window.held = true")
    person.keyboard.press("a")
    person.keyboard.press("a")
    expect(cards).to_have_count(2)
    expect(cards.nth(1)).to_be_focused()
    person.keyboard.press("a")
    expect(cards.nth(1).get_by_role("status").filter(has_text="That did not count")).to_be_visible()
    assert len(lab.approvals(path)) == 2
    person.keyboard.press("?")
    expect(cards.nth(1)).to_contain_text("Next request")


def test_each_call_of_a_loop_takes_one_key_and_a_key_too_many_changes_no_cell(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    calls = "for limit in range(1, 4):\n    tools.shop.list_orders(limit=limit)"
    path = notebook(f"from jupyter_agentbox import tools\n{calls}\n'done'", "'next'")
    person.open(path)
    person.edit(0)
    person.keyboard.press("Shift+Enter")
    waiting = person.cell(0).locator(".jp-AgentBox-card[data-status='pending']")
    expect(waiting).to_be_visible()
    ready_for_letters(person, waiting)
    for left in (2, 1, 0):
        id = waiting.get_attribute("data-request-id")
        person.keyboard.press("a")
        person.keyboard.press("a")
        if left:
            following = person.cell(0).locator(
                f".jp-AgentBox-card[data-status='pending']:not([data-request-id='{id}'])"
            )
            expect(following).to_be_focused()
            await_letters(following)
    expect(person.cell(0)).to_contain_text("'done'")
    expect(person.cell(1)).to_be_focused()
    person.keyboard.press("Shift+Enter")
    expect(person.cell(1)).to_contain_text("'next'")
    assert len(lab.approvals(path, "approved")) == 3
    assert person.cell(0).locator(".cm-content").inner_text().startswith("from jupyter_agentbox")


def test_after_a_reload_the_key_to_the_oldest_request_leads_to_its_buttons_and_the_focus_stays_there(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    above = ["x = 1\n" * 12] * 15
    path = notebook(*above, ASK)
    person.open(path)
    person.page.evaluate("window.jupyterapp.shell.currentWidget.content.scrollToItem(15).then(() => null)")
    person.run(15)
    expect(person.card(15)).to_be_visible()
    person.save()
    person.reload()
    person.await_kernel_of_a_running_cell()
    expect(person.status).to_have_text("1")
    person.keyboard.press("Alt+Shift+A")
    card = person.card(15)
    expect(card).to_be_focused()
    card.evaluate("card => card.addEventListener('focusout', () => { window.left = true; })")
    # As JupyterLab does with the notebook of the address, some time after the page is laid out: it gets the focus.
    person.execute("docmanager:open", path=path)
    person.page.wait_for_function("window.left")
    expect(card).to_be_focused()
    await_letters(card)
    expect(card.get_by_role("button", name="Allow once")).to_be_in_viewport(ratio=1)
    person.keyboard.press("a")
    expect(card).to_have_attribute("data-status", "approved")
    assert len(lab.approvals(path, "approved")) == 1


@pytest.mark.parametrize("place", ["card", "panel"])
def test_a_letter_too_many_after_the_last_request_inserts_no_cell(
    person: Person, notebook: Callable[..., str], lab: Lab, place: str
) -> None:
    path = notebook(ASK, "'next'")
    decided = len(lab.approvals(path, "approved"))
    person.open(path)
    person.edit(0)
    person.keyboard.press("Shift+Enter")
    expect(person.card()).to_be_visible()
    if place == "card":
        ready_for_letters(person, person.card())
    else:
        person.choose_command("Go to Next Approval Request")
        card = person.item("shop.list_orders").get_by_role("group", name="Approval request: shop.list_orders")
        expect(card).to_be_focused()
        await_letters(card)
    person.keyboard.press("a")
    expect(person.cell(1)).to_be_focused()
    person.keyboard.press("a")
    person.keyboard.press("r")
    person.keyboard.press("a")
    assert person.notebook.locator(".jp-Cell").count() == 2
    assert person.notebook.locator(".jp-RawCell").count() == 0
    person.keyboard.press("Shift+Enter")
    expect(person.cell(1)).to_contain_text("'next'")
    assert len(lab.approvals(path, "approved")) == decided + 1


GATHERED = """import asyncio
from jupyter_agentbox import tools
runs = globals().get("runs", 0) + 1
stock = await asyncio.gather(*(tools.shop.restock.aio(product_id=id, quantity=25) for id in range(1, 5)))"""


@pytest.mark.parametrize("way", ["keys", "mouse"])
def test_shift_enter_after_a_decision_in_the_panel_runs_the_next_cell(
    person: Person, notebook: Callable[..., str], way: str
) -> None:
    person.open(notebook(GATHERED, "f'runs: {runs}'"))
    person.edit(0)
    person.keyboard.press("Shift+Enter")
    expect(person.cell(0).locator(".jp-AgentBox-card[data-status='pending']").first).to_be_visible()
    table = person.panel.get_by_role("group", name="4 approval requests of shop.restock")
    if way == "keys":
        person.keyboard.press("Alt+Shift+A")
        person.press_letter_for_table(person.cell(0))
        expect(table).to_be_focused()
        person.keyboard.press("Control+a")
        person.keyboard.press("Tab")
        press(table.get_by_role("button", name="Allow 4", exact=True), "Enter")
    else:
        person.open_panel()
        table.get_by_label("All of this cell (4)").check()
        decide(table, "Allow 4")
    expect(person.status).to_have_text("")
    expect(person.cell(1)).to_be_focused()
    person.keyboard.press("Shift+Enter")
    expect(person.cell(1)).to_contain_text("'runs: 1'")


def test_someone_who_writes_goes_on_writing_after_a_decision_in_the_panel(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(ASK, "# text"))
    person.run(0)
    expect(person.card()).to_be_visible()
    person.open_panel()
    person.edit(1)
    expect(person.cell(1).locator(".cm-content")).to_be_focused()
    decide(person.item("shop.list_orders"), "Allow once")
    expect(person.cell(1).locator(".cm-content")).to_be_focused()
    person.keyboard.type("!")
    expect(person.cell(1).locator(".cm-content")).to_contain_text("!")


def test_the_keys_are_in_the_help_menu_and_a_search_for_mcp_finds_the_commands(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(ASK))
    page = person.page
    page.get_by_role("menuitem", name="Help").click()
    page.get_by_role("menuitem", name="AgentBox Keys").click()
    dialog = page.get_by_role("dialog").filter(has_text="AgentBox Keys")
    expect(dialog).to_contain_text("goes to the request or the server’s question that has waited longest")
    expect(dialog).to_contain_text("Alt+Shift+A")
    assert violations(page) == []
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    person.keyboard.press("Control+Shift+C")
    expect(page.locator(".lm-CommandPalette-input")).to_be_focused()
    person.keyboard.type("mcp")
    expect(page.locator(".lm-CommandPalette-header").first).to_contain_text("AgentBox (MCP)", ignore_case=True)
    expect(page.locator(".lm-CommandPalette-item").first).to_contain_text("Show Approval Requests of MCP Tools")
    expect(page.locator(".lm-CommandPalette-item").filter(has_text="AgentBox Keys")).to_have_count(1)
    person.keyboard.press("Escape")
