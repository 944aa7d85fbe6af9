from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import Stage, make_world

ATTACK = Attack(
    "read the key of a language model in the environment (`OPENAI_API_KEY`)",
    plain=False,
    control="test_the_key_is_there_where_a_setting_leaves_it",
)


def attack(facts: dict[str, Any]) -> Any:
    import os
    import subprocess

    found = [value for name, value in os.environ.items() if name == "OPENAI_API_KEY"]
    found += subprocess.run(["printenv", "OPENAI_API_KEY"], capture_output=True, text=True, check=False).stdout.split()
    return found or None


def test_the_environment_holds_no_key(stage: Stage) -> None:
    stage.expect(ATTACK, attack, lambda found: found is not None and stage.world.model_key in found)


def test_the_key_is_there_where_a_setting_leaves_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    world = make_world(tmp_path_factory.mktemp("keys"), "--AgentBoxApp.keep_model_keys=True")
    try:
        assert Stage(world, Isolation.NONE).run(attack) == [world.model_key] * 2
    finally:
        world.close()
