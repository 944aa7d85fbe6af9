from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read a token in the environment (`JUPYTER_TOKEN`, `JUPYTERHUB_API_TOKEN`)")


def attack(facts: dict[str, Any]) -> Any:
    import os

    found = {name: value for name, value in os.environ.items() if "TOKEN" in name or "SECRET" in name}
    return found or None


def test_the_environment_holds_no_token(stage: Stage) -> None:
    stage.expect(ATTACK, attack, lambda found: found is not None and stage.world.hub_token in found.values())
