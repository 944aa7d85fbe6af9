from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("signal the server")


def attack(facts: dict[str, Any]) -> Any:
    import os

    os.kill(facts["server_pid"], 0)
    return "could be signalled"


def test_the_server_cannot_be_signalled(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
