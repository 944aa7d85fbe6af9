from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .page import View, expect_decision

ATTACK = Attack(
    "JavaScript output that clicks on the card's buttons",
    plain=False,
    control="test_the_same_script_presses_a_button_that_takes_any_click",
)

#: Clicks on every button that allows, in the ways that scripts have.
CLICK = """
setInterval(() => {
  for (const button of document.querySelectorAll('.jp-AgentBox-button')) {
    button.click();
    for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']) {
      button.dispatchEvent(new MouseEvent(type, {bubbles: true, cancelable: true, detail: 1, view: window}));
    }
    window.clicks = (window.clicks ?? 0) + 1;
  }
}, 50);
"""
CODE = f"from IPython.display import Javascript\ndisplay(Javascript({CLICK!r}))"


@pytest.mark.browser
def test_click_by_a_script_decides_nothing(view: View) -> None:
    expect_decision(ATTACK, CODE, view, does_run=view.level is Isolation.NONE)


@pytest.mark.browser
def test_the_same_script_presses_a_button_that_takes_any_click(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content("<button class='jp-AgentBox-button' onclick='window.decided = true'>Allow once</button>")
    page.evaluate(CLICK)
    page.wait_for_function("window.decided === true")
    page.close()
