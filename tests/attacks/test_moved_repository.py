from __future__ import annotations

from typing import Any

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "move the work directory's repository away and put another in its place",
    remains=(Isolation.LANDLOCK,),
    note="Landlock cannot take back a part of the work directory",
)


def attack(facts: dict[str, Any]) -> Any:
    import os

    os.rename(".git", "moved")
    os.rename("moved", ".git")
    return "moved"


def test_the_repository_stays_where_it_is(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
