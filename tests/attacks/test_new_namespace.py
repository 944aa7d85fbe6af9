from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("make a new user namespace, to have every capability in it", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import subprocess

    return "made" if subprocess.run(["unshare", "--user", "--map-root-user", "true"]).returncode == 0 else None


def test_no_namespace_can_be_made(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
