from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import Stage, make_world

ATTACK = Attack(
    "read a token in the environment (`JUPYTER_TOKEN`, `JUPYTERHUB_API_TOKEN`)",
    plain=False,
    control="test_the_token_is_there_where_a_setting_leaves_it",
)


def attack(facts: dict[str, Any]) -> Any:
    import os

    found = {name: value for name, value in os.environ.items() if "TOKEN" in name or "SECRET" in name}
    return found or None


def test_the_environment_holds_no_token(stage: Stage) -> None:
    stage.expect(ATTACK, attack, lambda found: found is not None and stage.world.hub_token in found.values())


def test_the_token_is_there_where_a_setting_leaves_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    world = make_world(tmp_path_factory.mktemp("tokens"), "--AgentBoxApp.kernel_credentials=JUPYTERHUB_API_TOKEN")
    try:
        assert Stage(world, Isolation.NONE).run(attack)["JUPYTERHUB_API_TOKEN"] == world.hub_token
    finally:
        world.close()
