from __future__ import annotations

import json
import sys
from typing import Any

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.sandbox.install import kernelspec

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("get the tokens of the server by a kernelspec that passes every variable, or names one in its own")


def attack(facts: dict[str, Any]) -> Any:
    import os

    found = {name: text for name, text in os.environ.items() if text in facts["tokens"]}
    return sorted(found) or None


def test_a_pattern_passes_no_token(stage: Stage) -> None:
    world, name = stage.world, f"loose-{stage.level.value}"
    config = {"levels": [stage.level.value], "environment": ["*", "JUPYTER*", "JPY_*"]}
    spec = kernelspec(sys.executable, display_name=name, config=config)
    if stage.level is Isolation.NONE:
        del spec["metadata"]
    spec["env"] = {"MINE": "${JUPYTERHUB_API_TOKEN}"}
    # In the home directory, where the kernelspec is the user's own, also for root.
    directory = world.root / "home" / ".ipython" / "kernels" / name
    directory.mkdir(parents=True)
    (directory / "kernel.json").write_text(json.dumps(spec))
    with stage.of(name) as kernel:
        kernel.expect(ATTACK, attack, tokens=[world.token, world.hub_token])
