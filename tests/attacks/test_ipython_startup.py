from __future__ import annotations

from pathlib import Path
from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("leave code in `~/.ipython`, to be run by the next plain kernel")
PLACE = ".ipython/profile_default/startup/00.py"


def attack(facts: dict[str, Any]) -> Any:
    import pathlib

    path = pathlib.Path(facts["home"], ".ipython/profile_default/startup/00.py")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("\n")
    return "written"


def test_the_file_outside_stays_as_it_was(stage: Stage) -> None:
    path = Path(stage.world.facts["home"], PLACE)
    before = path.read_bytes() if path.exists() else None
    stage.expect(ATTACK, attack, lambda _: (path.read_bytes() if path.exists() else None) != before)
