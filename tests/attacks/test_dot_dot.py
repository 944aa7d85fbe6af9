from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("leave the work directory by `..`")


def attack(facts: dict[str, Any]) -> Any:
    return open("../.ssh/id_ed25519").read()


def test_the_directory_above_is_empty(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
