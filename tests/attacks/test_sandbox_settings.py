from __future__ import annotations

import json
import sys
from typing import Any

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.sandbox.install import kernelspec

from .attack import Attack
from .conftest import Stage, write_spec

ATTACK = Attack(
    "change a sandbox's settings (`sandbox_config`) or an `envFile` in the work directory, so that the next start runs"
    " another program (Landlock: no kernel is started there)"
)


def attack(facts: dict[str, Any]) -> Any:
    import os
    import pathlib

    def write(file: pathlib.Path) -> None:
        file.write_text("{}")

    def replace(file: pathlib.Path) -> None:
        pathlib.Path("other").write_text("{}")
        os.replace("other", file)

    def exchange_directory(file: pathlib.Path) -> None:
        os.rename(file.parent, "moved")
        os.rename("moved", file.parent)

    done = []
    for file in map(pathlib.Path, facts["files"]):
        for attempt in (write, replace, exchange_directory):
            try:
                attempt(file)
                done.append(str(file))
            except OSError:
                continue
    return done or None


def test_the_settings_of_a_sandbox_stay_as_they_were(stage: Stage) -> None:
    level, root = stage.level, stage.world.root
    name = f"settings-{level.value}"
    conf = root / "home" / name / "conf"
    conf.mkdir(parents=True)
    (conf / "sandbox.json").write_text(json.dumps({"process_limit": 100}))
    config = {"levels": [level.value], "sandbox_config": str(conf / "sandbox.json")}
    spec = kernelspec(sys.executable, display_name=name, config=config)
    if level is Isolation.NONE:
        del spec["metadata"]
    write_spec(root, name, spec)
    # What another kernel's settings are, and what an MCP server is started with, is as little this one's to change.
    (conf / "other.json").write_text("{}")
    other = kernelspec(sys.executable, display_name=name, config={"sandbox_config": str(conf / "other.json")})
    write_spec(root, f"other-{name}", other)
    (conf / "shop.env").write_text("SHOP=1\n")
    servers = json.loads((root / "config" / "mcp.json").read_text())
    servers["mcpServers"][name] = {"command": "true", "envFile": str(conf / "shop.env")}
    (root / "config" / "mcp.json").write_text(json.dumps(servers))
    if level is Isolation.LANDLOCK:
        assert stage.world.is_refused("POST", "api/kernels", {"name": name, "path": name})
        return
    with stage.of(name, name) as kernel:
        files = [str(conf / one) for one in ("sandbox.json", "other.json", "shop.env")]
        kernel.expect(ATTACK, attack, files=files)
