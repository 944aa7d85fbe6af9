from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.person import CARD, Person

from .attack import Attack
from .page import View, move_to

ATTACK = Attack(
    "show another request in a card's output just before the person presses its button",
    plain=False,
    control="test_click_counts_for_what_a_plain_button_has_become",
)

#: Makes two requests, whose own cards stand under the cell.
REQUESTS = """
import threading
from jupyter_agentbox import tools
for product in (1, 2):
    threading.Thread(target=tools.shop.restock, kwargs=dict(product_id=product, quantity=2), daemon=True).start()
"""
#: Shows one of them once more, so that a person looks at it and moves to its button.
CARDS = """
from jupyter_agentbox.kernel import runtime
MIME = "application/vnd.jupyter-agentbox.request+json"
waiting = runtime.link().list_pending(within=60)
one, two = ({MIME: {"request_id": request["id"]}, "text/plain": "a request"} for request in waiting)
handle = display(one, raw=True, display_id="shown")
"""
BUTTONS = """
import ipywidgets as w
one, two = w.Button(description="one"), w.Button(description="two")
handle = display(one, display_id="shown")
"""
EXCHANGE = "handle.update(two, raw=isinstance(two, dict))"


def attack(person: Person, shown: str, name: str) -> Locator:
    """Press a button of what is shown, as soon as something else is in its place."""
    person.cell(1).locator(".cm-content").fill(shown)
    person.run(1)
    output = person.cell(1).locator(".jp-OutputArea-output").last
    person.edit(2)
    # Once it can be pressed: until a card is in view, another button is in its place.
    button = output.get_by_role("button", name=name, exact=True, disabled=False)
    output.scroll_into_view_if_needed()
    button.wait_for()
    before = button.element_handle()
    move_to(person, button)
    person.keyboard.press("Control+Enter")
    person.page.wait_for_function("button => !button.isConnected", arg=before)
    # At once: who clicks half a second later could have seen what is there by then.
    person.page.mouse.down()
    person.page.mouse.up()
    return output


@pytest.mark.browser
def test_click_counts_for_what_a_plain_button_has_become(plain_view: View) -> None:
    plain_view.open("", "", EXCHANGE)
    output = attack(plain_view.person, BUTTONS, "one")
    expect(output.get_by_role("button", name="two")).to_be_focused()


@pytest.mark.browser
def test_click_decides_nothing_of_a_request_that_was_just_put_there(view: View) -> None:
    view.open(REQUESTS, "", EXCHANGE)
    view.person.run(0)
    expect(view.person.cell(0).get_by_role("group", name=CARD)).to_have_count(2)
    output = attack(view.person, CARDS, "Allow once")
    allow = output.get_by_role("group", name=CARD).get_by_role("button", name="Allow once", exact=True)
    expect(allow).to_be_enabled()
    assert len(view.lab.approvals(view.path)) == 2
