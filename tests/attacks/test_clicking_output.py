from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_agentbox.core.isolation import Isolation

from .attack import LEVELS, Attack
from .page import expect_decision

ATTACK = Attack("JavaScript output that clicks on the card's buttons", plain=False)

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
