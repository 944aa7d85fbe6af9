from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read a file of another user or project")


def attack(facts: dict[str, Any]) -> Any:
    return open(facts["root"] + "/neighbor/diary").read()


def test_what_is_not_named_cannot_be_read(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
