"""Where JupyterLab's users look: status bar, panel title, notifications, palette and menus."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from .lab import Lab
from .person import SIZE, Person, decide

ASK = "from jupyter_agentbox import tools\ntools.shop.list_orders(limit=1)"
#: It asks after a second, in which somebody can do something else.
SOON = ASK.replace("\n", "; import time; time.sleep(1)\n")
#: Its card is below the edge of a low window.
LATE = f"for line in range(40):\n    print('line', line)\nimport time\ntime.sleep(1)\n{ASK}"
COMMANDS = [
    "jupyter-agentbox:go-to-oldest",
    "jupyter-agentbox:next-request",
    "jupyter-agentbox:open-panel",
    "jupyter-agentbox:previous-request",
    "jupyter-agentbox:refresh",
]
OTHER_COMMANDS = [
    "jupyter-agentbox:make-rule",
    "jupyter-agentbox:open-guide",
    "jupyter-agentbox:open-history",
    "jupyter-agentbox:new-tool-demo",
    "jupyter-agentbox:insert-agent-code",
    "jupyter-agentbox:new-agent-notebook",
    "jupyter-agentbox:show-keys",
]

#: What the extension's commands say of their arguments.
DESCRIBED = """() => {
  const { commands } = window.jupyterapp;
  const own = commands.listCommands().filter(id => id.startsWith('jupyter-agentbox:'));
  return Promise.all(own.map(async id => [id, (await commands.describedBy(id)).args]));
}"""


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def test_status_bar_and_panel_title_count_what_waits(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ASK))
    tab = person.page.locator(".jp-SideBar .lm-TabBar-tab[data-id=jupyter-agentbox-panel]")
    expect(person.status).to_have_accessible_name("0 requests awaiting approval")
    expect(tab).to_have_attribute("title", "Approval requests")
    person.run(0)
    expect(person.status).to_have_accessible_name("1 request awaiting approval")
    expect(tab).to_have_attribute("title", "Approval requests (1 waiting)")
    expect(tab).to_have_accessible_name("Approval requests (1 waiting)")
    expect(tab).to_have_attribute("data-agentbox-count", "1")
    expect(person.page).to_have_title(re.compile(r"^\(1\) [^(]"))
    expect(person.page.locator("head link.jp-AgentBox-tabIcon")).to_have_attribute(
        "href", re.compile("^data:image/png")
    )
    tab.click()
    decide(person.item("shop.list_orders"), "Allow once")
    expect(person.status).to_have_accessible_name("0 requests awaiting approval")
    expect(tab).to_have_attribute("title", "Approval requests")
    expect(person.page).to_have_title(re.compile(r"^[^(]"))
    expect(person.page.locator("head link.jp-AgentBox-tabIcon")).to_have_count(0)


def test_request_in_view_needs_no_notification(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ASK))
    person.run(0)
    # The buttons come to life later than a notification would come.
    expect(person.card().get_by_role("button", name="Allow once")).to_be_enabled()
    expect(person.toasts).to_have_count(0)


def test_card_of_a_cell_that_somebody_has_just_run_comes_into_view_and_stays_where_it_is_after_they_scroll(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.open(notebook(LATE, *["1"] * 30))
    person.page.set_viewport_size({"width": 1280, "height": 560})
    button = person.card().get_by_role("button", name="Allow once")
    for scrolls in (False, True):
        person.edit(0)
        person.keyboard.press("Control+Enter")
        expect(person.cell(0)).to_contain_text("line 39")
        if scrolls:
            person.page.mouse.move(600, 300)
            person.page.mouse.wheel(0, -5000)
            expect(person.toasts.filter(has_text="list_orders(limit=1) needs your approval")).to_have_count(1)
            expect(button).not_to_be_in_viewport()
        else:
            expect(button).to_be_in_viewport()
            expect(person.toasts).to_have_count(0)
        decide(person.card(), "Allow once")
        expect(person.card()).to_contain_text("Done in")


def test_notification_comes_while_only_the_head_of_a_card_is_in_view_and_again_when_its_notebook_is_closed(
    person: Person, notebook: Callable[..., str]
) -> None:
    path = notebook(SOON)
    person.open(path)
    person.page.set_viewport_size({"width": 1280, "height": 330})
    person.run(0)
    toast = person.toasts.filter(has_text="shop.list_orders(limit=1) needs your approval")
    person.page.mouse.wheel(0, -1)  # so that the notebook does not scroll to the card
    expect(person.card()).to_be_in_viewport()
    expect(person.card().get_by_role("button", name="Allow once")).not_to_be_in_viewport()
    expect(toast).to_have_count(1)
    person.page.set_viewport_size(SIZE)
    expect(person.card().get_by_role("button", name="Allow once")).to_be_enabled()
    expect(toast).to_have_count(0)
    person.page.evaluate("window.jupyterapp.shell.currentWidget.dispose()")
    toast.get_by_role("button", name="Show").click()  # it was not saved, so that only the panel has the card
    decide(person.item("shop.list_orders"), "Allow once")
    expect(toast).to_have_count(0)
    expect(person.status).to_have_accessible_name("0 requests awaiting approval")


def test_notification_of_a_request_out_of_view_shows_it(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path, other = notebook(ASK, ASK), notebook("'another notebook'")
    person.open(path)
    person.run(0, 1)
    expect(person.card(0)).to_be_visible()
    person.execute("docmanager:open", path=other)
    expect(person.cell(0)).to_contain_text("another notebook")
    lab.decide(lab.approvals(path)[0])
    # one for the first request may come, and go, before it
    toast = person.toasts.filter(has_text=f"shop.list_orders(limit=1) needs your approval ({path}, cell 2)")
    # the request's card comes another way than its notification, which would show the panel in its stead
    expect(person.page.locator(".jp-NotebookPanel .jp-AgentBox-card[data-request-id]")).to_have_count(2)
    toast.get_by_role("button", name="Show").click()
    expect(person.page.get_by_role("tab", name=path)).to_have_attribute("aria-selected", "true")
    expect(person.card(1)).to_be_focused()
    expect(person.toasts).to_have_count(0)
    decide(person.card(1), "Allow once")
    expect(person.card(1)).to_contain_text("Done in")


def test_notification_goes_when_the_panel_shows_the_request(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    path, other = notebook(ASK, ASK), notebook("'another notebook'")
    person.open(path)
    person.run(0, 1)
    expect(person.card(0)).to_be_visible()
    person.execute("docmanager:open", path=other)
    expect(person.cell(0)).to_contain_text("another notebook")
    lab.decide(lab.approvals(path)[0])
    expect(person.toasts.filter(has_text=f"({path}, cell 2)")).to_have_count(1)
    person.open_panel()
    expect(person.toasts).to_have_count(0)


def test_palette_and_menu_lead_to_requests(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(ASK))
    person.page.get_by_role("menuitem", name="View", exact=True).click()
    menu = person.page.get_by_role("menu")
    expect(menu.get_by_role("menuitem", name="Go to Next Approval Request")).to_be_visible()
    menu.get_by_role("menuitem", name="Show Approval Requests").click()
    person.await_panel()
    person.edit(0)
    person.keyboard.press("Control+Shift+C")
    person.page.locator(".lm-CommandPalette-input").fill("agentbox")
    items = person.page.locator(".lm-CommandPalette-item[data-command^=jupyter-agentbox]")
    others = {*OTHER_COMMANDS} - {"jupyter-agentbox:make-rule"}  # it needs a request
    expect(items).to_have_count(len(COMMANDS) + len(others))
    found = {item.get_attribute("data-command") for item in items.all()}
    assert found == {*COMMANDS, *others}


def test_no_command_decides(new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab) -> None:
    person = new_person()
    path = notebook(ASK)
    person.open(path)
    person.run(0)
    expect(person.card()).to_be_visible()
    ours = sorted(id for id in person.commands() if re.search("agentbox|approv", id, re.IGNORECASE))
    assert ours == sorted([*COMMANDS, *OTHER_COMMANDS])
    (request,) = lab.approvals(path)
    for arguments in ({}, {"id": request["id"], "decision": "allow_once", "digest": request["call"]["digest"]}):
        for command in ours:
            person.execute(command, **arguments)
    assert lab.approvals(path) == [request]


def test_settings_turn_notifications_off_and_open_the_panel_by_itself(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    person = new_person()
    with (
        lab.settings("jupyter-agentbox:panel", {"openPanelAutomatically": True}),
        lab.settings("jupyter-agentbox:notifications", {"notifications": False}),
    ):
        person.open(notebook("'first'\n" * 60, ASK))
        person.edit(1)
        person.keyboard.press("Control+Enter")
        person.cell(0).locator(".cm-content").scroll_into_view_if_needed()
        expect(person.item("shop.list_orders").get_by_role("button", name="Allow once")).to_be_enabled()
        expect(person.toasts).to_have_count(0)


#: Counts the tones that the page plays, which nobody hears here.
COUNT_TONES = """window.tones = 0;
const { createOscillator } = AudioContext.prototype;
AudioContext.prototype.createOscillator = function () {
  window.tones += 1;
  return createOscillator.call(this);
};"""


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
def test_a_request_out_of_view_sounds_only_if_the_settings_say_so(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab, is_on: bool
) -> None:
    person = new_person()
    person.page.add_init_script(COUNT_TONES)
    path, other = notebook(ASK, ASK), notebook("'another notebook'")
    with lab.settings("jupyter-agentbox:notifications", {"sound": is_on}):
        person.open(path)
        person.run(0, 1)
        expect(person.card(0).get_by_role("button", name="Allow once")).to_be_enabled()
        assert person.page.evaluate("window.tones") == 0  # its card is in view
        person.execute("docmanager:open", path=other)
        expect(person.cell(0)).to_contain_text("another notebook")
        lab.decide(lab.approvals(path)[0])
        expect(person.toasts.filter(has_text=f"({path}, cell 2)")).to_have_count(1)
        # the tones come no later than the notification: both wait equally long for the card
        assert person.page.evaluate("window.tones") == (2 if is_on else 0)


def test_every_command_describes_its_arguments(person: Person) -> None:
    person.visit()
    described = dict(person.page.evaluate(DESCRIBED))

    assert described.keys() >= {*COMMANDS, *OTHER_COMMANDS}
    assert [name for name, arguments in described.items() if arguments is None] == []
    assert set(described["jupyter-agentbox:new-agent-notebook"]["properties"]) == {"cwd"}
