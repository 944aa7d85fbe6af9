from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.sandbox.install import kernelspec

from .attack import Attack
from .conftest import Stage, World, make_world

ATTACK = Attack(
    "get the tokens of the server by a kernelspec that passes every variable, or names one in its own",
    plain=False,
    control="test_it_gets_the_token_where_a_setting_leaves_it_to_kernels",
)


def attack(facts: dict[str, Any]) -> Any:
    import os

    found = {name: text for name, text in os.environ.items() if text in facts["tokens"]}
    return sorted(found) or None


def install(world: World, level: Isolation) -> str:
    """Install a kernelspec that passes what it can, as the user's own; return its name."""
    name = f"loose-{level.value}"
    config = {"levels": [level.value], "environment": ["*", "JUPYTER*", "JPY_*"]}
    spec = kernelspec(sys.executable, display_name=name, config=config)
    if level is Isolation.NONE:
        del spec["metadata"]
    spec["env"] = {"MINE": "${JUPYTERHUB_API_TOKEN}"}
    # In the home directory, where the kernelspec is the user's own, also for root.
    directory = world.root / "home" / ".ipython" / "kernels" / name
    directory.mkdir(parents=True)
    (directory / "kernel.json").write_text(json.dumps(spec))
    return name


def test_a_pattern_passes_no_token(stage: Stage) -> None:
    with stage.of(install(stage.world, stage.level)) as kernel:
        kernel.expect(ATTACK, attack, tokens=[stage.world.token, stage.world.hub_token])


def test_it_gets_the_token_where_a_setting_leaves_it_to_kernels(tmp_path_factory: pytest.TempPathFactory) -> None:
    world = make_world(tmp_path_factory.mktemp("loose"), "--AgentBoxApp.kernel_credentials=JUPYTERHUB_API_TOKEN")
    try:
        stage = Stage(world, Isolation.NONE)
        with stage.of(install(world, Isolation.NONE)) as kernel:
            assert kernel.run(attack, tokens=[world.hub_token]) == ["JUPYTERHUB_API_TOKEN", "MINE"]
    finally:
        world.close()
