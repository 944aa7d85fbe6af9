from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read `~/.ssh`")


def attack(facts: dict[str, Any]) -> Any:
    import pathlib

    return pathlib.Path(facts["home"], ".ssh", "id_ed25519").read_text()


def test_the_key_cannot_be_read(stage: Stage) -> None:
    stage.expect(ATTACK, attack, lambda found: found == stage.world.ssh_key)
