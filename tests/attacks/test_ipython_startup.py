from __future__ import annotations

from .attack import Attack
from .conftest import Stage
from .planting import expect_planted

ATTACK = Attack("leave code in `~/.ipython`, to be run by the next plain kernel")


def test_the_file_outside_stays_as_it_was(stage: Stage) -> None:
    expect_planted(stage, ATTACK, "home", ".ipython/profile_default/startup/00.py")
