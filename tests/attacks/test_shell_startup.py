from __future__ import annotations

from .attack import Attack
from .conftest import Stage
from .planting import expect_planted

ATTACK = Attack("leave code in `~/.bashrc`")


def test_the_file_outside_stays_as_it_was(stage: Stage) -> None:
    expect_planted(stage, ATTACK, "home", ".bashrc")
