from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from jupyter_agentbox.core.isolation import Isolation
from tests.browser.conftest import CHROMIUM, CHROMIUM_OPTIONS

from .attack import LEVELS, Attack
from .page import expect_decision

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
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.value)
def test_click_by_a_script_decides_nothing(level: Isolation, tmp_path: Path) -> None:
    expect_decision(ATTACK, CODE, level, tmp_path, does_run=level is Isolation.NONE)


@pytest.mark.browser
def test_the_same_script_presses_a_button_that_takes_any_click() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        page = browser.new_page()
        page.set_content("<button class='jp-AgentBox-button' onclick='window.decided = true'>Allow once</button>")
        page.evaluate(CLICK)
        page.wait_for_function("window.decided === true")
        browser.close()
