from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("make a hard link to a secret in the work directory")


def attack(facts: dict[str, Any]) -> Any:
    import os

    os.link(facts["home"] + "/.ssh/id_ed25519", "hard-link")
    os.unlink("hard-link")
    return "linked"


def test_no_hard_link_can_be_made(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
