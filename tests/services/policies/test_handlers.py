"""The REST API of rules, over HTTP against a real Jupyter server."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import jupyter_core.paths
import pytest
from jupyter_server.auth import Authorizer
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.site_policy import SitePolicy
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.services.handlers import SETTINGS_KEY

ALLOW = {"effect": "allow", "server": "shop", "tool": "list_*", "arguments": {"limit": {"max": 100}}}
DENY = {"effect": "deny", "server": "shop", "tool": "drop_*", "reason": "never"}


class RulesOnly(Authorizer):
    """Lets everybody write rules, and decide nothing."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:  # noqa: ARG002
        return action == "read" or resource == "jupyter_agentbox:policy"


@pytest.fixture
def app_config() -> dict[str, Any]:
    return {}


@pytest.fixture
def jp_server_config(jp_server_config: Any, app_config: dict[str, Any]) -> Any:
    return {**jp_server_config, "AgentBoxApp": {**jp_server_config["AgentBoxApp"], **app_config}}


@pytest.fixture
def rules_file() -> Path:
    return Path(jupyter_core.paths.jupyter_config_dir()) / "agentbox_rules.json"


@pytest.fixture
def site_file(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("jupyter_agentbox.storage.rule_files.why_unprotected", lambda _path: "")
    directory = Path(jupyter_core.paths.SYSTEM_CONFIG_PATH[0])
    directory.mkdir(parents=True, exist_ok=True)
    return directory / "agentbox_rules.json"


@pytest.fixture
def fetch(jp_fetch: Any, jp_serverapp: Any) -> Any:
    async def fetch(method: str, *parts: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        if body is not None:
            more["body"] = body if isinstance(body, str | bytes) else json.dumps(body)
        try:
            response = await jp_fetch("jupyter-agentbox", "policy", *parts, method=method, **more)
        except HTTPClientError as error:
            return error.code, json.loads(error.response.body if error.response else "null")
        return response.code, json.loads(response.body)

    return fetch


async def test_without_rules_there_are_none(fetch: Any, rules_file: Path) -> None:
    assert await fetch("GET") == (
        200,
        {
            "rules": [],
            "$schema": None,
            "file": str(rules_file),
            "revision": "",
            "writable": True,
            "effective": [],
            "problems": [],
            "features": SitePolicy().to_json(),
            "hub_policy": None,
        },
    )


async def test_of_what_the_site_turned_off_it_says_whose_word_it_is(fetch: Any, site_file: Path) -> None:
    site_file.write_text(json.dumps({"rules": [], "features": {"edit": "force-off"}}))
    features = (await fetch("GET"))[1]["features"]
    assert features["edit"] == {
        "lock": "force-off",
        "message": "arguments cannot be edited: set by your administrator",
        "layer": "site",
        "files": [str(site_file)],
    }
    assert features["grants"] == {"lock": "user-choice", "message": None, "layer": None, "files": []}


async def test_what_is_put_is_what_is_got_and_what_the_file_says(fetch: Any, rules_file: Path) -> None:
    code, put = await fetch("PUT", body={"rules": [ALLOW, DENY]})
    assert (code, put["rules"]) == (200, [ALLOW, DENY])
    assert (await fetch("GET"))[1] == put
    assert json.loads(rules_file.read_text()) == {"rules": [ALLOW, DENY]}
    assert stat.S_IMODE(rules_file.stat().st_mode) == 0o600
    assert put["effective"] == [
        {**ALLOW, "layer": "user", "file": str(rules_file), "line": 3},
        {**DENY, "layer": "user", "file": str(rules_file), "line": 13},
    ]


async def test_of_two_browsers_the_second_learns_that_the_rules_have_changed(fetch: Any) -> None:
    seen = (await fetch("GET"))[1]["revision"]
    first = await fetch("PUT", body={"rules": [ALLOW], "revision": seen})
    second = await fetch("PUT", body={"rules": [DENY], "revision": seen})
    assert (first[0], second[0], second[1]["reason"]) == (200, 409, "policy_conflict")
    assert second[1]["revision"] == first[1]["revision"]
    assert (await fetch("GET"))[1]["rules"] == [ALLOW]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"rules": [{**ALLOW, "efect": 1}]}, "did you mean `effect`"),
        ({"rules": [3]}, "must be an object"),
        ({"rules": {}}, "must be a list"),
        ({"rules": [], "x": 1}, "unknown field `x`"),
        ({"rules": [], "revision": 1}, "must be strings"),
        ([], "must be a JSON object"),
        ("{", "line 1, column 2"),
        ('{"rules": [], "rules": []}', "twice"),
        ('{"rules": [{"timeout": 1e999}]}', "out of range"),
        (b'{"rules": ["\xff"]}', "UTF-8"),
        ("[" * 100_000, "levels deep"),
    ],
)
async def test_what_is_no_policy_is_refused_and_nothing_is_written(
    fetch: Any, rules_file: Path, body: Any, said: str
) -> None:
    code, answer = await fetch("PUT", body=body)
    assert (code, answer["reason"]) == (422, "invalid_rules")
    assert said in answer["message"]
    assert not rules_file.exists()


async def test_what_is_wrong_with_a_rule_has_a_place(fetch: Any, rules_file: Path) -> None:
    _, answer = await fetch("PUT", body={"rules": [ALLOW, {**DENY, "effect": "block"}]})
    (problem,) = answer["problems"]
    assert (problem["path"], problem["line"], problem["column"]) == (str(rules_file), 14, 17)
    assert problem["rule"] == 2
    assert answer["message"] == (
        "these rules cannot be saved: rule 2: `effect` must be `allow`, `ask` or `deny`, not `block`"
    )


async def test_a_broken_file_is_shown_with_its_place_and_can_be_replaced(fetch: Any, rules_file: Path) -> None:
    rules_file.parent.mkdir(exist_ok=True)
    rules_file.write_text('{"rules": [\n  {"effect": "allow",}]}')
    _, answer = await fetch("GET")
    (problem,) = answer["problems"]
    assert (problem["path"], problem["line"], problem["column"]) == (str(rules_file), 2, 22)
    assert [(rule["effect"], rule["server"], rule["tool"]) for rule in answer["effective"]] == [("ask", "*", "*")]

    code, _ = await fetch("PUT", body={"rules": [ALLOW], "revision": answer["revision"]})
    assert (code, (await fetch("GET"))[1]["problems"]) == (200, [])


@pytest.mark.parametrize(
    ("call", "effect", "line"),
    [
        ({"server": "shop", "tool": "list_orders", "arguments": {"limit": 10}}, "allow", 3),
        ({"server": "shop", "tool": "list_orders", "arguments": {"limit": 1000}}, "ask", None),
        ({"server": "shop", "tool": "drop_all"}, "deny", 13),
    ],
)
async def test_a_call_can_be_evaluated_without_being_made(
    fetch: Any, rules_file: Path, call: Any, effect: str, line: int | None
) -> None:
    await fetch("PUT", body={"rules": [ALLOW, DENY]})
    code, answer = await fetch("POST", "evaluate", body=call)
    assert (code, answer["effect"], answer["line"]) == (200, effect, line)
    assert answer["file"] == (str(rules_file) if line else None)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"server": 1, "tool": "x"},
        {"server": "a", "tool": "b", "arguments": []},
        {"server": "a", "tool": "b", "x": 1},
        {"server": "a", "tool": "b", "isolation": "x"},
        {"server": "a", "tool": "b", "notebook": 1},
        [],
    ],
)
async def test_what_is_no_call_cannot_be_evaluated(fetch: Any, body: Any) -> None:
    assert (await fetch("POST", "evaluate", body=body))[0] == 422


@pytest.mark.parametrize(("method", "path"), [("PUT", ""), ("POST", "evaluate"), ("POST", "dry-run")])
async def test_a_body_longer_than_a_rules_file_may_be_is_refused_unread(fetch: Any, method: str, path: str) -> None:
    code, answer = await fetch(method, *([path] if path else []), body={"x": [1] * 400_000})
    assert (code, answer["message"]) == (422, "the body has more than 1,000,000 bytes")


async def test_a_rule_of_the_site_stands_above_the_users(fetch: Any, site_file: Path) -> None:
    site_file.write_text(json.dumps({"rules": [{"effect": "ask", "server": "shop", "tool": "*"}]}))
    await fetch("PUT", body={"rules": [{"effect": "allow", "server": "*", "tool": "*"}]})
    _, answer = await fetch("POST", "evaluate", body={"server": "shop", "tool": "list"})
    assert (answer["effect"], answer["layer"], answer["file"], answer["line"]) == ("ask", "site", str(site_file), 1)


async def test_a_dry_run_says_what_a_rule_would_have_made_of_the_history(
    fetch: Any, jp_serverapp: Any, site_file: Path
) -> None:
    site_file.write_text(json.dumps({"rules": [{"effect": "ask", "server": "shop", "tool": "drop"}]}))
    approvals = jp_serverapp.web_app.settings[SETTINGS_KEY].approvals
    calls = [("list", 5), ("list", 500), ("drop", 1), ("other", 1)]
    for tool, limit in calls:
        call = ToolCall(server="shop", tool=tool, arguments={"limit": limit}, origin=Origin(kernel_id="k1"))
        await approvals.open(call, ToolDescription(name=tool), Evaluation(effect=Effect.ASK))

    rule = {"effect": "allow", "server": "shop", "tool": "[ld]*", "arguments": {"limit": {"max": 100}}}
    code, answer = await fetch("POST", "dry-run", body={"rule": rule})

    assert code == 200
    assert answer == {"looked_at": 4, "matched": 2, "allow": 1, "ask": 1, "deny": 0, "unknown": 0}
    assert (await fetch("POST", "dry-run", body={"rule": {"effect": "x"}}))[0] == 422
    assert (await fetch("POST", "dry-run", body={"rules": []}))[0] == 422


@pytest.mark.parametrize("app_config", [{"decide_with": "person"}])
async def test_a_token_that_may_not_decide_writes_no_rule(fetch: Any, rules_file: Path) -> None:
    code, answer = await fetch("PUT", body={"rules": [ALLOW]})
    assert (code, answer["reason"]) == (403, "needs_person")
    assert not rules_file.exists()
    assert (await fetch("GET"))[0] == 200


@pytest.mark.parametrize(
    ("method", "parts"), [("GET", ()), ("PUT", ()), ("POST", ("evaluate",)), ("POST", ("dry-run",))]
)
async def test_nobody_reads_or_writes_rules_without_a_login(
    jp_serverapp: Any, http_server_client: Any, jp_base_url: str, method: str, parts: tuple[str, ...]
) -> None:
    path = "/".join((jp_base_url.rstrip("/"), "jupyter-agentbox", "policy", *parts))
    with pytest.raises(HTTPClientError) as caught:
        await http_server_client.fetch(path, method=method, body=None if method == "GET" else "{}")
    assert caught.value.code == 403


@pytest.fixture
def ask(jp_serverapp: Any) -> Any:
    async def ask(tool: str) -> str:
        approvals = jp_serverapp.web_app.settings[SETTINGS_KEY].approvals
        call = ToolCall(server="shop", tool=tool, arguments={"limit": 5}, origin=Origin(kernel_id="k1"))
        request = await approvals.open(call, ToolDescription(name=tool), Evaluation(effect=Effect.ASK))
        return str(request.id)

    return ask


async def test_a_rule_decides_what_waits_and_the_record_names_its_place_and_its_author(
    fetch: Any, ask: Any, jp_fetch: Any, rules_file: Path
) -> None:
    listed, dropped, other = await ask("list_all"), await ask("drop_all"), await ask("other")

    _, written = await fetch("PUT", body={"rules": [ALLOW, DENY]})

    answer = await jp_fetch("jupyter-agentbox", "approvals")
    found = {one["id"]: one for one in json.loads(answer.body)["approvals"]}
    assert {id: found[id]["status"] for id in (listed, dropped, other)} == {
        listed: "approved",
        dropped: "rejected",
        other: "pending",
    }
    assert [found[id]["decision"]["rule"] for id in (listed, dropped)] == [
        {
            "rule": f"user: {rule['effect']} shop.{rule['tool']}",
            "layer": "user",
            "reason": rule.get("reason", ""),
            "file": str(rules_file),
            "line": rule["line"],
        }
        for rule in written["effective"]
    ]
    assert [found[id]["decision"]["via"] for id in (listed, dropped)] == ["api_token", "api_token"]


async def test_a_rule_that_stood_in_the_file_before_decides_nothing_that_waits(
    fetch: Any, ask: Any, jp_serverapp: Any, rules_file: Path
) -> None:
    request = await ask("list_all")
    rules_file.write_text(json.dumps({"rules": [ALLOW]}))  # whoever can write the file
    await fetch("PUT", body={"rules": [DENY, ALLOW]})
    approvals = jp_serverapp.web_app.settings[SETTINGS_KEY].approvals
    assert (await approvals.get(request)).status is Status.PENDING


async def test_who_may_write_rules_and_not_decide_decides_nothing_that_waits(
    fetch: Any, ask: Any, jp_serverapp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await ask("list_all")
    monkeypatch.setitem(jp_serverapp.web_app.settings, "authorizer", RulesOnly(parent=jp_serverapp))
    assert (await fetch("PUT", body={"rules": [ALLOW]}))[0] == 200
    approvals = jp_serverapp.web_app.settings[SETTINGS_KEY].approvals
    assert (await approvals.get(request)).status is Status.PENDING
