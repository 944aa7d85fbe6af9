"""Names, descriptions, arguments and results that try to be more than text, and scripts that try to be a person."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from .lab import STRANGE_NAME, Lab
from .person import Person, decide
from .servers.hostile import BACKWARDS, HOSTILE

CALL = f"""from jupyter_agentbox import tools
server = tools[{STRANGE_NAME!r}]
call = getattr(server, next(name for name in dir(server) if "delete" in name))
call(**{{"path": {HOSTILE + BACKWARDS!r}, "mode": "keep"}})"""
ASK = "from jupyter_agentbox import tools\ntools.shop.list_orders(limit=1)"

#: Presses every button that a script can find, again and again, in the ways that scripts have.
PRESS = """
window.presses = 0;
setInterval(() => {
  for (const button of document.querySelectorAll('.jp-AgentBox-card button:not(.jp-AgentBox-link)')) {
    button.click();
    button.focus();
    for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']) {
      button.dispatchEvent(new MouseEvent(type, {bubbles: true, cancelable: true, detail: 1, view: window}));
    }
    for (const type of ['keydown', 'keypress', 'keyup']) {
      button.dispatchEvent(new KeyboardEvent(type, {bubbles: true, key: 'Enter', code: 'Enter'}));
    }
    window.presses += 1;
  }
  for (const field of document.querySelectorAll('.jp-AgentBox-card textarea')) {
    field.dispatchEvent(new KeyboardEvent('keydown', {bubbles: true, cancelable: true, key: 'Enter'}));
  }
}, 50);
"""


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def test_hostile_text_is_shown_as_text_and_runs_nothing(person: Person, notebook: Callable[..., str], lab: Lab) -> None:
    path = notebook(CALL)
    person.open(path)
    person.run(0)
    expect(person.card(0)).to_be_visible()
    person.open_panel()
    (name,) = {f"{request['call']['server']}.{request['call']['tool']}" for request in lab.approvals(path)}
    assert name == f"{STRANGE_NAME}.<b>delete</b>_all"
    for place in (person.card(0), person.panel.get_by_role("group", name="Approval request")):
        expect(place).to_contain_text("<b>odd</b>\\u202eserver.<b>delete</b>_all")
        expect(place).to_contain_text(f"{HOSTILE}\\u202etxt.exe\\u202c")
        place.get_by_text("Server’s description").click()
        expect(place).to_contain_text("[link](javascript:alert(1)) **bold** \\u202etxt.exe\\u202c")
        expect(place.get_by_role("note")).to_contain_text("invisible or direction-changing characters")
        decide(place, "Edit")
        expect(place.get_by_role("textbox", name="path")).to_be_visible()
        assert place.locator("img, script, b, a, iframe").count() == 0
        assert "\u202e" not in place.inner_text()
    decide(person.card(0), "Cancel")
    decide(person.card(0), "Allow once")
    expect(person.card(0)).to_contain_text(f"It failed: broken {HOSTILE}")
    person.show_tab("History")
    expect(person.history).to_contain_text(f"It failed: broken {HOSTILE}")
    assert person.page.evaluate("window.hacked") is None


def test_letter_that_is_not_what_it_looks_like_is_named(person: Person, notebook: Callable[..., str]) -> None:
    call = f"runtime.link().call({STRANGE_NAME!r}, '<b>delete</b>_all', {{'m\u043ede': 'ex\u0430mple.org'}})"
    person.open(notebook(f"from jupyter_agentbox.kernel import runtime\n{call}"))
    person.run(0)
    expect(person.card(0)).to_be_visible()
    person.open_panel()
    for place in (person.card(0), person.panel.get_by_role("group", name="Approval request")):
        note = place.get_by_role("note").filter(has_text="look-alike")
        expect(note.get_by_role("listitem")).to_have_text(
            [
                "Argument: U+043E CYRILLIC SMALL LETTER O looks like “o”",
                "Value: U+0430 CYRILLIC SMALL LETTER A looks like “a”",
            ]
        )
    decide(person.card(0), "Reject")


def test_script_cannot_press_the_buttons(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab
) -> None:
    person = new_person()
    path = notebook(
        f"from IPython.display import Javascript\ndisplay(Javascript({json.dumps(PRESS)}))\n{ASK}",
    )
    person.open(path)
    person.open_panel()
    person.run(0)
    expect(person.card().get_by_role("button", name="Allow once")).to_be_enabled()
    presses = person.page.evaluate("window.presses")
    person.page.wait_for_function("count => window.presses > count + 40", arg=presses)
    (request,) = lab.approvals(path)
    assert request["status"] == "pending"
    decide(person.card(), "Allow once")
    expect(person.card()).to_contain_text("Done in")


@pytest.mark.parametrize("form", ["Edit", "Reject"])
def test_script_cannot_answer_in_a_form(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab, form: str
) -> None:
    person = new_person()
    path = notebook(ASK)
    person.open(path)
    person.open_panel()
    person.run(0)
    for place in (person.card(), person.item("shop.list_orders")):
        decide(place, form)
        expect(place.get_by_role("button", name="Cancel")).to_have_attribute("aria-disabled", "false")
    person.page.evaluate(f"() => {{ {PRESS} }}")
    person.page.wait_for_function("window.presses > 80")
    (request,) = lab.approvals(path)
    assert request["status"] == "pending"
    for place in (person.card(), person.item("shop.list_orders")):
        expect(place.get_by_role("button", name="Cancel")).to_be_visible()
