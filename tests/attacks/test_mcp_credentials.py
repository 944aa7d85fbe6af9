from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read the credentials of an MCP server in `mcp.json`")


def attack(facts: dict[str, Any]) -> Any:
    import json
    import pathlib

    return json.loads(pathlib.Path(facts["config"], "mcp.json").read_text())["mcpServers"]["shop"]["env"][
        "SHOP_PASSWORD"
    ]


def test_the_credentials_cannot_be_read(stage: Stage) -> None:
    stage.expect(ATTACK, attack, lambda found: found == stage.world.credential)
