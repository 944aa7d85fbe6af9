from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("write to an MCP server's standard input through `/proc/<pid>/fd/0`")


def attack(facts: dict[str, Any]) -> Any:
    import os

    pipe = os.open(f"/proc/{facts['victim_pid']}/fd/0", os.O_WRONLY | os.O_NONBLOCK)
    os.close(pipe)
    return "opened"


def test_another_process_cannot_be_spoken_to(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
