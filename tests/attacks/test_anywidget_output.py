from __future__ import annotations

import pytest

from tests.browser.outputs import POST_AS_ANYWIDGET

from .attack import Attack
from .page import View, expect_decision

ATTACK = Attack("anywidget output that posts a decision with the session of the person at the page")


@pytest.mark.browser
def test_output_decides_nothing(view: View) -> None:
    expect_decision(ATTACK, POST_AS_ANYWIDGET, view)
