from __future__ import annotations

from pathlib import Path
from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("plant a kernelspec without a sandbox")
PLACE = "kernels/planted.json"


def attack(facts: dict[str, Any]) -> Any:
    import pathlib

    path = pathlib.Path(facts["data"], "kernels/planted.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("\n")
    return "written"


def test_the_file_outside_stays_as_it_was(stage: Stage) -> None:
    path = Path(stage.world.facts["data"], PLACE)
    before = path.read_bytes() if path.exists() else None
    stage.expect(ATTACK, attack, lambda _: (path.read_bytes() if path.exists() else None) != before)
