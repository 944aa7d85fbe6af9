from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read the credentials of a running MCP server through `/proc/<pid>/environ`")


def attack(facts: dict[str, Any]) -> Any:
    import pathlib

    return (pathlib.Path("/proc") / str(facts["victim_pid"]) / "environ").read_bytes().decode()


def test_the_environment_of_another_process_cannot_be_read(stage: Stage) -> None:
    stage.expect(ATTACK, attack, lambda found: found is not None and stage.world.credential in found)
