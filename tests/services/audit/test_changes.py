"""Changes of rules, servers and grants in the record: over HTTP against a real Jupyter server, with a place outside."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.changes import Facts
from jupyter_agentbox.core.grants import GrantTerms
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.services.approvals.verdicts import Verdict
from jupyter_agentbox.services.audit.changes import ChangeRecorder
from jupyter_agentbox.services.handlers import SETTINGS_KEY, Services
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.testing import FakeClock, FakeIds, MemoryApprovalStore
from tests.collectors import Collector, collecting

SHOP = {"command": sys.executable, "args": ["-m", "jupyter_agentbox.demo.shop"], "env": {"API_KEY": "${SHOP_KEY}"}}
DENY = {"rules": [{"effect": "deny", "server": "shop", "tool": "*"}]}


@pytest.fixture
def collector(jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Collector]:
    listening = collecting()
    yield jp_asyncio_loop.run_until_complete(listening.__aenter__())
    jp_asyncio_loop.run_until_complete(listening.__aexit__(None, None, None))


@pytest.fixture
def jp_server_config(
    jp_server_config: Any, tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.setenv("SHOP_KEY", "hunter2-secret")
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "rules_path": str(tmp_path / "rules.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
            "audit_sinks": [collector.url],
        },
    }


async def records(jp_fetch: Any) -> list[tuple[str, dict[str, Any], str]]:
    """Return what was changed and by whom."""
    answer = await jp_fetch("jupyter-agentbox", "audit", params={"server": "agentbox"})
    found = reversed(json.loads(answer.body)["records"])
    return [(one["call"]["tool"], one["call"]["arguments"], one["decided_by"]) for one in found]


async def test_every_change_is_found_exported_verified_and_sent_with_who_made_it(
    jp_fetch: Any, jp_serverapp: Any, collector: Collector, tmp_path: Path
) -> None:
    await jp_serverapp.extension_manager.start_all_extensions()
    services: Services = jp_serverapp.web_app.settings[SETTINGS_KEY]
    rules = tmp_path / "rules.json"

    async def put(*path: str, body: Any) -> None:
        await jp_fetch("jupyter-agentbox", *path, method="PUT", body=json.dumps(body))

    await put("policy", body=DENY)
    written = hashlib.sha256(rules.read_bytes()).hexdigest()
    rules.write_text('{"rules": []}')  # in an editor
    emptied = hashlib.sha256(rules.read_bytes()).hexdigest()
    assert services.policies.book.user is not None  # somebody looks: a page, or a call
    await put(
        "servers",
        "shop",
        body={"configuration": SHOP, "revision": services.servers_file.preview("shop", SHOP).revision},
    )
    key = services.grants.trust_key("shop")
    await jp_fetch("jupyter-agentbox", "servers", "shop", "stop", method="POST", body="")
    grant = await a_grant(services)
    await jp_fetch("jupyter-agentbox", "grants", grant, method="DELETE")

    found = await records(jp_fetch)
    me = "a program with the server's token"
    assert found == [
        ("change_rules", {"file": str(rules), "from": None, "to": written}, me),
        ("change_rules", {"file": str(rules), "from": written, "to": emptied}, "whoever can write the file"),
        ("add_server", {"name": "shop", "from": None, "to": key}, me),
        ("stop_server", {"name": "shop"}, me),
        ("revoke_grant", {"grant": grant}, me),
    ]
    exported = (await jp_fetch("jupyter-agentbox", "audit", params={"format": "jsonl"})).body.decode()
    assert exported.count('"agentbox"') >= len(found)
    verified = await SqlAuditLog(f"sqlite:///{tmp_path / 'approvals.sqlite'}").verify()
    assert verified.broken is None
    assert verified.records >= len(found)
    async with asyncio.timeout(60):
        sent = [one for one in await collector.has("configured", len(found)) if one["event"] == "configured"]
    assert [(one["tool"], one["arguments"]) for one in sent] == [(tool, about) for tool, about, _ in found]
    assert "hunter2-secret" not in exported + "".join(collector.lines)


async def a_grant(services: Services) -> str:
    call = ToolCall(server="shop", tool="restock", arguments={}, origin=Origin(kernel_id="k1"))
    request = await services.approvals.open(call, ToolDescription(name="restock"), Evaluation(effect=Effect.ASK))
    verdict = Verdict(answer=Answer.ALLOW_ALWAYS, digest=call.digest, grant=GrantTerms())
    await services.decisions.decide(request.id, verdict, reviewer=Reviewer(name="ada", via=Via.BROWSER))
    [grant] = await services.grants.list()
    return grant.id


async def test_a_change_that_cannot_be_recorded_is_an_error_for_who_made_it() -> None:
    store = MemoryApprovalStore()
    digests = {"shop": "k1"}
    changes = ChangeRecorder(store=store, clock=FakeClock(), ids=FakeIds(), look=lambda: facts(digests))
    changes.start()
    store.failure = StorageError("the disk is full")

    with pytest.raises(StorageError, match="could not be recorded"):
        async with changes.by(Reviewer(name="ada")):
            digests["shop"] = "k2"


def facts(servers: dict[str, str]) -> Facts:
    return Facts(servers=dict(servers))


async def test_of_two_who_change_something_at_once_each_is_named_for_what_they_changed() -> None:
    store = MemoryApprovalStore()
    digests = {"shop": "k1"}
    changes = ChangeRecorder(store=store, clock=FakeClock(), ids=FakeIds(), look=lambda: facts(digests))
    changes.start()
    go = {name: asyncio.Event() for name in ("ada", "bob")}

    async def change(name: str) -> None:
        async with changes.by(Reviewer(name=name)):
            await go[name].wait()
            digests[f"of-{name}"] = "k2"

    ada, bob = (asyncio.create_task(change(name)) for name in go)
    await asyncio.sleep(0)  # both have begun
    go["ada"].set()
    await ada
    go["bob"].set()
    await bob

    found = (await store.list(ApprovalQuery())).approvals
    authors = {one.call.arguments["name"]: one.decision.reviewer.name for one in found if one.decision is not None}
    assert authors == {"of-ada": "ada", "of-bob": "bob"}


async def test_what_a_recorded_call_changes_is_not_recorded_twice() -> None:
    store = MemoryApprovalStore()
    digests = {"shop": "k1"}
    changes = ChangeRecorder(store=store, clock=FakeClock(), ids=FakeIds(), look=lambda: facts(digests))
    changes.start()

    with changes.recorded_elsewhere():
        digests["added"] = "k2"
    changes.notice()
    await changes.aclose()

    assert (await store.list(ApprovalQuery())).approvals == ()
