from __future__ import annotations

from typing import Any

from jupyter_agentbox.core.isolation import Isolation

from .attack import LEVELS, Attack
from .conftest import Stage

ATTACK = Attack(
    "leave a new repository, `jupyter_server_config.py` or module in the work directory, for a program outside to obey",
    remains=tuple(level for level in LEVELS if level is not Isolation.NONE),
    note="the work directory is the kernel's: do not run programs there",
)


def attack(facts: dict[str, Any]) -> Any:
    import pathlib

    planted = pathlib.Path("jupyter_lab_config.py")
    planted.write_text("")
    planted.unlink()
    return "written"


def test_the_work_directory_is_the_kernels(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
