from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_agentbox.core.isolation import Isolation
from tests.browser.outputs import POST_AS_ANYWIDGET

from .attack import LEVELS, Attack
from .page import expect_decision

ATTACK = Attack("anywidget output that posts a decision with the session of the person at the page")


@pytest.mark.browser
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.value)
def test_output_decides_nothing(level: Isolation, tmp_path: Path) -> None:
    expect_decision(ATTACK, POST_AS_ANYWIDGET, level, tmp_path)
