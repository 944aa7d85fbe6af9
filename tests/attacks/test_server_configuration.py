from __future__ import annotations

from .attack import Attack
from .conftest import Stage
from .planting import expect_planted

ATTACK = Attack("leave a `jupyter_server_config.py` in Jupyter's configuration directory")


def test_the_file_outside_stays_as_it_was(stage: Stage) -> None:
    expect_planted(stage, ATTACK, "config", "jupyter_server_config.py")
