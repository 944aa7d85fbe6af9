"""The REST API of lasting answers, over HTTP against a real Jupyter server."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.times import json_time
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.services.handlers import SETTINGS_KEY, Services
from jupyter_agentbox.system import SystemClock

TOOL = ToolDescription(name="restock", description="Orders more.")
ASK = Evaluation(effect=Effect.ASK)


@pytest.fixture
def jp_server_config(jp_server_config: Any, request: pytest.FixtureRequest) -> Any:
    return {**jp_server_config, "AgentBoxApp": {**jp_server_config["AgentBoxApp"], **getattr(request, "param", {})}}


@pytest.fixture
def services(jp_serverapp: Any) -> Services:
    found: Services = jp_serverapp.web_app.settings[SETTINGS_KEY]
    return found


async def asked(services: Services) -> Any:
    call = ToolCall(
        server="shop", tool="restock", arguments={"id": 7}, origin=Origin(kernel_id="k1", notebook_path="a")
    )
    return await services.approvals.open(call, TOOL, ASK)


async def test_a_grant_is_given_listed_and_revoked(services: Services, fetch: Any) -> None:
    first, second = await asked(services), await asked(services)
    until = json_time(SystemClock().now() + timedelta(hours=1))
    terms = {"scope": "user", "until": until, "uses": 5}
    body = {"decision": "allow_always", "digest": first.call.digest, "reason": "fine", "grant": terms}

    code, decided = await fetch("approvals", first.id, "decision", body=body)
    assert code == 200
    use = decided["decision"]["grant"]
    assert {name: use[name] for name in ("scope", "via", "reviewer_kind")} == {
        "scope": "user",
        "via": "api_token",
        "reviewer_kind": "user",
    }
    _, settled = await fetch("approvals", second.id)
    assert (settled["status"], settled["decision"]["grant"]) == ("approved", use)

    code, listed = await fetch("grants")
    [grant] = listed["grants"]
    assert code == 200
    assert grant.pop("last_used_at").endswith("Z")
    assert grant == {
        **use,
        "effect": "allow",
        "server": "shop",
        "tool": "restock",
        "tools": ["restock"],
        "kernel_id": None,
        "notebook_path": "a",
        "thread_id": None,
        "request_id": first.id,
        "arguments_digest": None,
        "reason": "fine",
        "until": until,
        "uses": 5,
        "used": 2,
        "void": None,
    }
    assert (await fetch("grants", use["id"], method="DELETE"))[0] == 204
    assert (await fetch("grants", use["id"], method="DELETE"))[1]["reason"] == "unknown_grant"
    assert (await fetch("grants"))[1] == {"grants": []}


@pytest.mark.parametrize(
    "change",
    [
        {"grant": "user"},
        {"grant": {}},
        {"grant": {"scope": "everything"}},
        {"grant": {"scope": "kernel", "server": "shop"}},
        {"grant": {"scope": "kernel", "tool": "*"}},
        {"grant": {"scope": "kernel", "definitions": {}}},
        {"grant": {"scope": "kernel", "uses": 0}},
        {"grant": {"scope": "kernel", "uses": True}},
        {"grant": {"scope": "kernel", "uses": 1.5}},
        {"grant": {"scope": "kernel", "uses": "3"}},
        {"grant": {"scope": "kernel", "until": "soon"}},
        {"grant": {"scope": "kernel", "until": 1}},
        {"grant": {"scope": "kernel", "until": "2999-01-01T00:00:00"}},
        {"grant": {"scope": "kernel", "until": "2001-01-01T00:00:00Z"}},
        {"grant": {"scope": "user"}},
        {"grant": {"scope": "thread"}},
        {"grant": {"scope": "server-read-only"}},
        {"grant": {"scope": "kernel"}, "decision": "allow_once"},
        {"grant": {"scope": "kernel"}, "decision": "reject_once"},
    ],
)
async def test_terms_that_say_nothing_clear_are_422_and_change_nothing(
    services: Services, fetch: Any, change: dict[str, Any]
) -> None:
    request = await asked(services)
    body = {"decision": "allow_always", "digest": request.call.digest, **change}
    code, answer = await fetch("approvals", request.id, "decision", body=body)
    assert (code, answer["reason"]) == (422, "invalid_decision")
    assert (await fetch("approvals", request.id))[1]["status"] == "pending"
    assert (await fetch("grants"))[1] == {"grants": []}


@pytest.mark.parametrize("jp_server_config", [{"decide_with": "person"}], indirect=True)
async def test_where_only_a_person_decides_no_token_revokes(services: Services, fetch: Any) -> None:
    code, answer = await fetch("grants", "g1", method="DELETE")
    assert (code, answer["reason"]) == (403, "needs_person")


async def test_nobody_lists_or_revokes_without_logging_in(services: Services, jp_fetch: Any) -> None:
    del services
    for parts, method in ((("grants",), "GET"), (("grants", "g1"), "DELETE")):
        with pytest.raises(HTTPClientError) as caught:
            await jp_fetch("jupyter-agentbox", *parts, method=method, headers={"Authorization": ""})
        assert caught.value.code == 403


async def test_a_change_of_grants_is_announced(services: Services, jp_serverapp: Any, fetch: Any) -> None:
    seen: list[str] = []

    async def listener(logger: Any, schema_id: str, data: Any) -> None:
        del logger, data
        seen.append(schema_id)

    jp_serverapp.event_logger.add_listener(schema_id="https://events.jupyter-agentbox.org/grant/v1", listener=listener)
    request = await asked(services)
    await fetch("approvals", request.id, "decision", body={"decision": "reject_always", "digest": request.call.digest})
    await jp_serverapp.event_logger.gather_listeners()
    assert seen == ["https://events.jupyter-agentbox.org/grant/v1"]
