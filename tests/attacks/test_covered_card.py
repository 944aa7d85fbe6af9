from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.person import Person

from .attack import Attack
from .page import View, click_into

ATTACK = Attack(
    "lay something else over the card's buttons or arguments, so that a click on it allows the call",
    plain=False,
    control="test_click_goes_through_what_covers_a_button",
)

#: The two ways to cover what stands below in a box: above it, as a kernel lays out boxes, or as JupyterLab's own class,
#: which lets clicks through.
COVERS = {
    "over the arguments": "<div style='position:relative;z-index:9999999;background:white;height:100px'>harmless</div>",
    "over the buttons": "<div class='lm-DockPanel-overlay' style='position:absolute;z-index:9999999;background:white;"
    "top:0px;left:0px;width:700px;height:700px'>Show plot</div>",
}

#: Puts `TARGET` into a box, and something over it.
ATTACKING = """
import threading, ipywidgets as w
from jupyter_agentbox import tools
from jupyter_agentbox.kernel import runtime
from jupyter_agentbox.kernel.card import ApprovalCard
cover = w.HTML(COVER, layout=w.Layout(margin="0 0 -100px 0"))
TARGET
display(w.VBox([cover, target]))
THEN
"""
#: What is in the box, and what the kernel does when the box is on the page.
AS_OUTPUT = ("target = w.Output()", "with target: tools.shop.restock(product_id=1, quantity=2)")
AS_WIDGET = (
    """
threading.Thread(target=lambda: tools.shop.restock(product_id=1, quantity=2), daemon=True).start()
waiting = []
while not waiting:
    waiting = runtime.link().list_pending(within=60)
target = ApprovalCard(request_id=waiting[0]["id"])
""",
    "",
)
AS_PLAIN_BUTTON = ("target = w.Button(description='Allow once', layout=w.Layout(margin='120px 0'))", "")


def attack(person: Person, index: int, cover: str, parts: tuple[str, str]) -> None:
    """Cover a target, and let a person click where its first button is once that takes clicks."""
    target, then = parts
    source = ATTACKING.replace("COVER", repr(cover)).replace("TARGET", target).replace("THEN", then)
    person.cell(index).locator(".cm-content").fill(source)
    person.run(index)
    box = person.cell(index).locator(".jp-OutputArea .widget-vbox").first
    button = box.locator("button:not([aria-disabled=true])").first
    button.wait_for()
    expect(box.locator(".widget-html-content > div")).to_be_visible()
    click_into(person, button)


@pytest.mark.browser
def test_click_goes_through_what_covers_a_button(plain_view: View) -> None:
    plain_view.open("", "")
    for index, cover in enumerate(COVERS.values()):
        attack(plain_view.person, index, cover, AS_PLAIN_BUTTON)
        button = plain_view.person.cell(index).get_by_role("button", name="Allow once")
        expect(button).to_be_focused()


@pytest.mark.browser
def test_click_on_what_covers_a_card_decides_nothing(view: View) -> None:
    view.open("", "")
    for index, (cover, target) in enumerate(zip(COVERS.values(), (AS_WIDGET, AS_OUTPUT), strict=True)):
        attack(view.person, index, cover, target)
        expect(view.person.panel).to_be_visible()
        assert len(view.lab.approvals(view.path)) == index + 1
