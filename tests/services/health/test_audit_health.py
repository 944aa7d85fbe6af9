"""The numbers and the health of a server whose audit sink does not accept records."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the directory of the sink's file, without which it accepts nothing."""
    return tmp_path / "planted-directory"


@pytest.fixture
def when_down() -> str:
    return "deny"


@pytest.fixture
def jp_server_config(tmp_path: Path, directory: Path, when_down: str) -> Any:
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
            "audit_sinks": [f"file://{directory}/records.jsonl"],
            "audit_when_down": when_down,
        },
    }


async def health(jp_fetch: Any) -> tuple[int, dict[str, Any]]:
    answer = await jp_fetch("jupyter-agentbox", "health", raise_error=False)
    return answer.code, json.loads(answer.body)


async def waiting(jp_fetch: Any) -> dict[str, float]:
    """Return how many records wait, by the labels."""
    page = (await jp_fetch("metrics")).body.decode()
    assert "planted" not in page
    return {
        labels: float(count)
        for labels, count in re.findall(r"^agentbox_audit_waiting_records\{(.*)\} (\S+)$", page, flags=re.MULTILINE)
    }


async def test_a_sink_that_accepts_nothing_is_no_health_where_no_call_runs_without_it(
    jp_fetch: Any, jp_serverapp: Any, directory: Path
) -> None:
    await jp_serverapp.extension_manager.start_all_extensions()
    async with asyncio.timeout(30):
        while (found := await health(jp_fetch))[0] == 200:
            pass  # each look is a request that the server answers in its turn
    code, report = found
    assert (code, report["is_healthy"], report["store"]) == (503, False, "ok")
    assert report["audit"] == f"the file `{directory}/records.jsonl` accepts no records"
    assert await waiting(jp_fetch) == {'sink="1"': 1.0}

    directory.mkdir()
    async with asyncio.timeout(30):
        while (found := await health(jp_fetch))[0] == 503:
            pass
    assert (found[1]["is_healthy"], found[1]["audit"]) == (True, "ok")
    assert await waiting(jp_fetch) == {'sink="1"': 0.0}


@pytest.mark.parametrize("when_down", ["spool"])
async def test_records_that_wait_are_counted_where_calls_run_without_their_sink(
    jp_fetch: Any, jp_serverapp: Any, when_down: str
) -> None:
    await jp_serverapp.extension_manager.start_all_extensions()
    async with asyncio.timeout(30):
        while await waiting(jp_fetch) != {'sink="1"': 1.0}:
            pass
    assert (await health(jp_fetch))[1]["audit"] == "ok"
