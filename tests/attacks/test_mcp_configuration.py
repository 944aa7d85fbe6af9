from __future__ import annotations

from .attack import Attack
from .conftest import Stage
from .planting import expect_planted

ATTACK = Attack("replace `mcp.json`, so that a tool is another program")


def test_the_file_outside_stays_as_it_was(stage: Stage) -> None:
    expect_planted(stage, ATTACK, "config", "mcp.json")
