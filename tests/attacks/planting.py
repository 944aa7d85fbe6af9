"""Leaving something in a file outside the work directory, for the files of attacks that differ in the place only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .attack import Attack
from .conftest import Stage


def plant(facts: dict[str, Any]) -> Any:
    import pathlib

    path = pathlib.Path(facts["place"])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("\n")
    return "written"


def expect_planted(stage: Stage, attack: Attack, where: str, name: str) -> None:
    """Run the attack; it succeeds if the file outside is another one afterwards."""
    path = Path(stage.world.facts[where], name)
    before = path.read_bytes() if path.exists() else None
    stage.expect(attack, plant, lambda _: (path.read_bytes() if path.exists() else None) != before, place=str(path))
