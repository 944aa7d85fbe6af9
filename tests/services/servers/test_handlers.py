"""The REST API of MCP servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.headless.executor.conftest import MINI
from tests.services.approvals.test_handlers import fetch

__all__ = ["fetch"]  # a fixture


@pytest.fixture
def jp_server_config(tmp_path: Path) -> Any:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"mini": MINI, "broken": {"command": 7}}}))
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
        },
    }


async def test_servers_tools_and_a_restart_come_from_the_catalogue(fetch: Any) -> None:
    code, body = await fetch("servers")
    assert code == 200
    assert {"mini": "stopped"}.items() <= {each["name"]: each["state"] for each in body["servers"]}.items()

    code, body = await fetch("servers", "mini", "tools", body={})
    assert code == 200
    assert "add" in {tool["name"] for tool in body["tools"]}

    code, body = await fetch("servers", "mini", "restart", body={})
    assert (code, body["name"], body["state"]) == (200, "mini", "running")


@pytest.mark.parametrize("action", ["tools", "restart"])
async def test_a_server_that_is_not_configured_is_404(fetch: Any, action: str) -> None:
    code, body = await fetch("servers", "other", action, body={})
    assert code == 404
    assert "`other`" in body["message"]
