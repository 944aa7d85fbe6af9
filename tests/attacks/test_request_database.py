from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("edit the database of approval requests")


def attack(facts: dict[str, Any]) -> Any:
    import pathlib
    import sqlite3

    path = pathlib.Path(facts["data"], "agentbox", "approvals.sqlite")
    with sqlite3.connect(f"file:{path}?mode=rw", uri=True) as database:
        database.execute("create table if not exists planted (x)")
    database.close()
    return "edited"


def test_the_database_cannot_be_edited(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
