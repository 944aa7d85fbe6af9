"""The numbers and the health of a real Jupyter server, over HTTP."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

RAW = Path(__file__).parents[2] / "mcp_client" / "servers" / "raw.py"


@pytest.fixture
def jp_server_config(tmp_path: Path) -> Any:
    entry = {"command": sys.executable, "args": [str(RAW)]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"secret-name": entry, "other": entry}}))
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'store' / 'approvals.sqlite'}",
        },
    }


async def scraped(jp_fetch: Any) -> dict[str, float]:
    """Return the numbers of this package."""
    page = (await jp_fetch("metrics")).body.decode()
    found = re.findall(r"^(agentbox_\S+) (\S+)$", page, flags=re.MULTILINE)
    return {name: float(value) for name, value in found if "_created" not in name}


async def has_ended(jp_fetch: Any, request_id: str) -> bool:
    request = json.loads((await jp_fetch("jupyter-agentbox", "approvals", request_id)).body)
    return request["status"] == "rejected" or request["outcome"]["state"] != "running"


async def test_calls_change_the_numbers_and_no_label_has_what_a_user_wrote(jp_fetch: Any) -> None:
    before = await scraped(jp_fetch)
    calls = ("jupyter-agentbox", "servers", "secret-name", "calls")
    for number in range(20):
        body = json.dumps({"tool": "echo", "arguments": {"planted-argument": number}})
        request = json.loads((await jp_fetch(*calls, method="POST", body=body)).body)
        if number == 0:
            assert (await scraped(jp_fetch))["agentbox_pending"] == 1
        answer = {"decision": "allow_once" if number % 2 else "reject_once", "digest": request["call"]["digest"]}
        where = ("jupyter-agentbox", "approvals", request["id"], "decision")
        await jp_fetch(*where, method="POST", body=json.dumps(answer))
        while not await has_ended(jp_fetch, request["id"]):
            pass  # each look is a request that the server answers in its turn

    after = await scraped(jp_fetch)

    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    assert grown['agentbox_requests_total{effect="ask"}'] == 20
    assert grown['agentbox_settled_total{status="approved"}'] == 10
    assert grown['agentbox_settled_total{status="rejected"}'] == 10
    assert grown["agentbox_wait_seconds_count"] == 20
    assert grown['agentbox_store_seconds_count{operation="write"}'] >= 20
    assert grown['agentbox_store_seconds_count{operation="durable_write"}'] >= 20
    assert grown['agentbox_store_seconds_count{operation="read"}'] > 0
    assert grown["agentbox_tool_seconds_count"] == 10
    assert grown['agentbox_calls_total{outcome="succeeded"}'] == 10
    assert sum(value for name, value in grown.items() if name.startswith("agentbox_decisions_total")) == 20
    assert after["agentbox_pending"] == 0
    assert after['agentbox_servers{state="running"}'] == 1
    assert after['agentbox_servers{state="stopped"}'] == 1
    assert not [name for name in after if re.search("secret-name|echo|planted|other", name)]


async def test_who_may_not_log_in_reads_no_numbers_and_no_health(jp_fetch: Any) -> None:
    for path in (("metrics",), ("jupyter-agentbox", "health")):
        with pytest.raises(HTTPClientError) as refused:
            await jp_fetch(*path, headers={"Authorization": ""}, follow_redirects=False)
        assert refused.value.code in (302, 403)


async def test_health_counts_servers_by_state_and_starts_none(jp_fetch: Any) -> None:
    answer = await jp_fetch("jupyter-agentbox", "health")

    assert json.loads(answer.body) == {"is_healthy": True, "store": "ok", "audit": "ok", "servers": {"stopped": 2}}


async def test_a_store_that_cannot_be_written_is_no_health(jp_fetch: Any, tmp_path: Path) -> None:
    await jp_fetch("jupyter-agentbox", "health")
    store = tmp_path / "store"
    store.rename(tmp_path / "away")
    store.write_text("a file where the directory was")

    with pytest.raises(HTTPClientError) as failed:
        await jp_fetch("jupyter-agentbox", "health")

    assert failed.value.code == 503
    report = json.loads(failed.value.response.body)
    assert (report["is_healthy"], "the approval store" in report["store"]) == (False, True)
