"""The REST API of MCP servers."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.reviewers import DecideWith
from jupyter_agentbox.exceptions import ToolServerError
from jupyter_agentbox.services.handlers import SETTINGS_KEY
from tests.headless.executor.conftest import MINI


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


async def test_servers_tools_and_a_restart_come_from_the_catalog(fetch: Any) -> None:
    code, body = await fetch("servers")
    assert code == 200
    assert {"mini": "stopped"}.items() <= {each["name"]: each["state"] for each in body["servers"]}.items()

    code, body = await fetch("servers", "mini", "tools", body={})
    assert code == 200
    assert "add" in {tool["name"] for tool in body["tools"]}

    code, body = await fetch("servers", "mini", "restart", body={})
    assert (code, body["name"], body["state"]) == (200, "mini", "running")


async def test_tools_that_were_listed_are_read_in_brief_and_one_as_a_whole_and_none_starts_the_server(
    fetch: Any,
) -> None:
    assert await fetch("servers", "mini", "tools") == (200, {"tools": None})
    assert (await fetch("servers"))[1]["servers"][0]["state"] == "stopped"
    _, body = await fetch("servers", "mini", "tools", body={})
    listed = {tool["name"]: tool for tool in body["tools"]}

    _, body = await fetch("servers", "mini", "tools")
    brief = {tool["name"]: tool for tool in body["tools"]}
    _, body = await fetch("servers", "mini", "tools", params={"tool": "add"})

    assert brief.keys() == listed.keys()
    assert "input_schema" not in brief["add"]
    assert body["tools"] == [{**listed["add"], "digest": brief["add"]["digest"]}]
    assert (await fetch("servers", "mini", "tools", params={"tool": "sub"}))[0] == 404


async def test_a_server_says_how_often_it_was_called_and_what_went_wrong_last(fetch: Any, jp_serverapp: Any) -> None:
    catalog = jp_serverapp.web_app.settings[SETTINGS_KEY].catalog
    await catalog.call_tool(ToolCall(server="mini", tool="add", arguments={"a": 1, "b": 2}))
    with pytest.raises(ToolServerError):
        await catalog.call_tool(ToolCall(server="mini", tool="sub", arguments={}))

    _, body = await fetch("servers")

    (mini,) = (each for each in body["servers"] if each["name"] == "mini")
    assert mini["calls"] == 2
    assert "`sub`" in mini["last_error"]


async def test_a_name_that_is_nearly_right_is_answered_with_what_is_meant(fetch: Any) -> None:
    code, body = await fetch("servers", "mimi", "tools", body={})
    assert (code, "Did you mean `mini`?" in body["message"]) == (404, True)


async def test_a_server_is_started_and_stopped_and_starts_again_when_it_is_used(fetch: Any) -> None:
    for action, state in [("start", "running"), ("start", "running"), ("stop", "stopped"), ("stop", "stopped")]:
        code, body = await fetch("servers", "mini", action, body={})
        assert (code, body["name"], body["state"]) == (200, "mini", state)
    assert (await fetch("servers", "mini", "tools", body={}))[0] == 200
    assert (await fetch("servers"))[1]["servers"][0]["state"] == "running"


async def test_a_server_that_cannot_start_says_why(fetch: Any) -> None:
    code, body = await fetch("servers", "broken", "start", body={})
    assert (code, body["state"]) == (200, "needs_configuration")
    assert body["error"]


async def test_a_servers_log_can_be_read_and_no_get_starts_one(fetch: Any) -> None:
    assert await fetch("servers", "mini", "log") == (200, {"name": "mini", "log": []})
    assert (await fetch("servers", "other", "log"))[0] == 404
    for action in ("start", "stop", "restart"):
        assert (await fetch("servers", "mini", action))[0] == 405
    assert (await fetch("servers"))[1]["servers"][0]["state"] == "stopped"


@pytest.mark.parametrize("action", ["tools", "start", "stop", "restart", "log"])
async def test_without_a_token_no_server_is_touched(jp_fetch: Any, action: str) -> None:
    more: Any = {} if action == "log" else {"method": "POST", "body": "{}"}
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch("jupyter-agentbox", "servers", "mini", action, headers={"Authorization": "token wrong"}, **more)
    assert caught.value.code == 403


@pytest.mark.parametrize("action", ["tools", "start", "stop", "restart"])
async def test_a_server_that_is_not_configured_is_404(fetch: Any, action: str) -> None:
    code, body = await fetch("servers", "other", action, body={})
    assert code == 404
    assert "`other`" in body["message"]


async def test_no_call_of_a_server_that_is_not_configured_is_known(fetch: Any) -> None:
    assert (await fetch("servers", "mini", "calls", "r1"))[1]["known"] is False
    code, body = await fetch("servers", "other", "calls", "r1")
    assert (code, "`other`" in body["message"]) == (404, True)


async def test_a_tool_that_changed_is_marked_until_a_person_looked(fetch: Any, jp_serverapp: Any) -> None:
    await fetch("servers", "mini", "tools", body={})
    _, body = await fetch("servers", "mini", "tools")
    digests = {tool["name"]: tool["digest"] for tool in body["tools"]}
    assert {tool["mark"] for tool in body["tools"]} == {None}
    before = {**digests, "add": "another"}
    assert (await fetch("servers", "mini", "tools", "seen", body=before))[0] == 204

    _, body = await fetch("servers", "mini", "tools")
    assert [tool["name"] for tool in body["tools"] if tool["mark"] == "changed"] == ["add"]
    assert (await fetch("servers"))[1]["changed_tools"] == {"mini": 1}
    services = jp_serverapp.web_app.settings[SETTINGS_KEY]
    services.decisions.decide_with = DecideWith.PERSON  # a token is no person
    assert (await fetch("servers", "mini", "tools", "seen", body=digests))[0] == 403
    services.decisions.decide_with = DecideWith.ANY

    assert (await fetch("servers", "mini", "tools", "seen", body={"add": digests["add"]}))[0] == 204
    assert (await fetch("servers"))[1]["changed_tools"] == {}
    for body in ({"sub": "x"}, {"add": 7}):
        assert (await fetch("servers", "mini", "tools", "seen", body=body))[0] == 422


async def ended_call(fetch: Any, request_id: str) -> Any:
    """Return what became of a call that was made in the panel."""
    async with asyncio.timeout(60):
        while True:
            _, end = await fetch("servers", "mini", "calls", request_id)
            if not end["known"] or end["result"] or end["error"]:
                return end
            await asyncio.sleep(0.01)


async def test_a_tool_is_called_from_the_panel_once_a_person_allowed_it(fetch: Any) -> None:
    code, request = await fetch("servers", "mini", "calls", body={"tool": "add", "arguments": {"a": 1, "b": 2}})
    assert (code, request["status"], request["call"]["kernel_id"]) == (202, "pending", None)
    assert request["call"]["person"]
    path = ("servers", "mini", "calls", request["id"])
    assert await fetch(*path) == (200, {"id": request["id"], "known": True, "result": None, "error": None})

    answer = {"decision": "allow_once", "digest": request["call"]["digest"]}
    await fetch("approvals", request["id"], "decision", body=answer)

    assert (await ended_call(fetch, request["id"]))["result"]["content"] == [{"type": "text", "text": "3"}]
    _, page = await fetch("audit")
    assert [record["call"]["person"] for record in page["records"]] == [request["call"]["person"]]
    assert (await fetch(*path, method="DELETE"))[0] == 404, "it has ended"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"tool": "add", "arguments": {"a": "one", "b": 2}}, 422),
        ({"tool": "add", "arguments": [1]}, 422),
        ({"tool": "add", "kernel_id": "k1"}, 422),
        ({"arguments": {}}, 422),
        ({"tool": "sub"}, 404),
        ("[", 422),
    ],
)
async def test_a_call_that_cannot_be_made_asks_nobody(fetch: Any, body: Any, code: int) -> None:
    assert (await fetch("servers", "mini", "calls", body=body))[0] == code
    assert (await fetch("approvals"))[1]["approvals"] == []


async def test_a_call_from_the_panel_is_taken_back(fetch: Any) -> None:
    _, request = await fetch("servers", "mini", "calls", body={"tool": "add", "arguments": {"a": 1, "b": 2}})
    path = ("servers", "mini", "calls", request["id"])
    assert (await fetch(*path, method="DELETE"))[0] == 204
    assert (await fetch("approvals", request["id"]))[1]["status"] == "cancelled"


async def put(jp_fetch: Any, name: str, body: Any) -> tuple[int, Any]:
    try:
        response = await jp_fetch("jupyter-agentbox", "servers", name, method="PUT", body=json.dumps(body))
    except HTTPClientError as error:
        return error.code, json.loads(error.response.body if error.response else "null")
    return response.code, json.loads(response.body)


async def test_a_server_is_shown_then_added_and_not_started(fetch: Any, jp_fetch: Any, tmp_path: Path) -> None:
    code, shown = await fetch("servers", "second", "preview", body={"configuration": MINI})
    assert (code, shown["file"], shown["starts"]) == (
        200,
        str(tmp_path / "mcp.json"),
        " ".join([MINI["command"], *MINI["args"]]),
    )
    assert len((await fetch("servers"))[1]["servers"]) == 2, "nothing is written"

    code, body = await put(jp_fetch, "second", {"configuration": MINI, "revision": shown["revision"]})

    assert (code, body) == (201, {"name": "second", "file": str(tmp_path / "mcp.json")})
    _, listed = await fetch("servers")
    assert [(each["name"], each["state"]) for each in listed["servers"]][2:] == [("second", "stopped")]
    assert (await put(jp_fetch, "third", {"configuration": MINI, "revision": shown["revision"]}))[0] == 409
    assert (await fetch("servers"))[1]["file"] == {"path": str(tmp_path / "mcp.json"), "document": None}


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("second", {"configuration": {"command": "x"}}, 422),
        ("second", {"configuration": [], "revision": ""}, 422),
        ("second", {"configuration": {"command": "x"}, "revision": "", "start": True}, 422),
        ("second", {"configuration": {"comand": "x"}, "revision": ""}, 409),
        ("mini", {"configuration": {"command": "x"}, "revision": ""}, 409),
        ("a b", {"configuration": {"command": "x"}, "revision": ""}, 409),
    ],
)
async def test_a_server_that_cannot_be_added_changes_nothing(
    jp_fetch: Any, tmp_path: Path, name: str, body: Any, code: int
) -> None:
    before = (tmp_path / "mcp.json").read_bytes()
    assert (await put(jp_fetch, name, body))[0] == code
    assert (tmp_path / "mcp.json").read_bytes() == before


@pytest.mark.parametrize("is_shown", [True, False])
async def test_a_server_is_shown_and_added_just_after_a_running_one_was_taken_out_of_the_file(
    fetch: Any, jp_fetch: Any, tmp_path: Path, is_shown: bool
) -> None:
    await fetch("servers", "mini", "start", body={})
    (tmp_path / "mcp.json").write_text("{}")
    if is_shown:
        code, _ = await fetch("servers", "second", "preview", body={"configuration": MINI})
        assert code == 200
    else:
        revision = hashlib.sha256(b"{}").hexdigest()
        code, _ = await put(jp_fetch, "second", {"configuration": MINI, "revision": revision})
        assert code == 201


async def test_who_may_not_decide_adds_no_server(jp_fetch: Any, jp_serverapp: Any, tmp_path: Path) -> None:
    decisions = jp_serverapp.web_app.settings[SETTINGS_KEY].decisions
    before = (tmp_path / "mcp.json").read_bytes()
    decisions.decide_with = DecideWith.PERSON  # a token is no person

    code, body = await put(jp_fetch, "second", {"configuration": MINI, "revision": hashlib.sha256(before).hexdigest()})

    assert (code, body["reason"]) == (403, "needs_person")
    assert (tmp_path / "mcp.json").read_bytes() == before


async def test_servers_of_other_programs_are_listed(
    fetch: Any, jp_root_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (jp_root_dir / ".vscode").mkdir()
    servers = {"mini": {"command": "x"}, "new": {"command": "x"}}
    (jp_root_dir / ".vscode" / "mcp.json").write_text(json.dumps({"servers": servers}))

    _, body = await fetch("other-servers")

    assert [(each["name"], each["is_known"]) for each in body["servers"]] == [("mini", True), ("new", False)]


async def ended(fetch: Any, request_id: str) -> Any:
    """Return a request that has ended."""
    while True:
        _, request = await fetch("approvals", request_id)
        if request["status"] != "pending" and (request["outcome"] or {}).get("state") != "running":
            return request
        await asyncio.sleep(0.01)


class TestProject:
    """A server that the project's `.mcp.json` names."""

    @pytest.fixture
    def jp_server_config(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        (tmp_path / "config").mkdir()
        monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
        return {
            "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
            "AgentBoxApp": {"database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}"},
        }

    @pytest.fixture
    def project(self, jp_root_dir: Path) -> Path:
        path = jp_root_dir / ".mcp.json"
        path.write_text(json.dumps({"mcpServers": {"mini": {**MINI, "env": {"A_TOKEN": "s3cret"}}}}))
        return path

    async def test_its_server_starts_once_a_person_allowed_what_was_shown(self, fetch: Any, project: Path) -> None:
        _, body = await fetch("servers")
        assert [(each["name"], each["state"]) for each in body["servers"]] == [("mini", "needs_trust")]
        code, body = await fetch("servers", "mini", "tools", body={})
        assert (code, "is not trusted yet" in body["message"]) == (409, True)

        code, request = await fetch("servers", "mini", "trust", body={})
        assert (code, request["status"], request["call"]["tool"]) == (202, "pending", "register_mcp_server")
        shown = {**MINI, "env": {"A_TOKEN": "*** (hidden, 6 characters)"}}
        assert request["call"]["arguments"] == {"name": "mini", "configuration": shown, "file": str(project)}
        assert (await fetch("servers", "mini", "trust", body={}))[1]["id"] == request["id"], "it is asked once"

        answer = {"decision": "allow_once", "digest": request["call"]["digest"]}
        await fetch("approvals", request["id"], "decision", body=answer)
        assert (await ended(fetch, request["id"]))["outcome"]["state"] == "succeeded"
        _, body = await fetch("servers")
        assert [(each["state"], each["is_of_project"]) for each in body["servers"]] == [("running", True)]

        code, _ = await fetch("servers", "mini", "trust", method="DELETE")
        assert code == 204
        _, body = await fetch("servers")
        assert [(each["state"], each["is_of_project"]) for each in body["servers"]] == [("needs_trust", True)]
        assert body["servers"][0]["is_trusted"] is False

    async def test_what_changed_while_the_person_read_is_not_trusted(self, fetch: Any, project: Path) -> None:
        _, request = await fetch("servers", "mini", "trust", body={})
        project.write_text(json.dumps({"mcpServers": {"mini": {"command": "evil"}}}))
        answer = {"decision": "allow_once", "digest": request["call"]["digest"]}
        await fetch("approvals", request["id"], "decision", body=answer)

        failed = await ended(fetch, request["id"])

        assert (failed["outcome"]["state"], "something else" in failed["outcome"]["error"]) == ("failed", True)
        _, body = await fetch("servers")
        assert [each["state"] for each in body["servers"]] == ["needs_trust"]

    async def test_edited_arguments_trust_nothing(self, fetch: Any, project: Path) -> None:
        _, request = await fetch("servers", "mini", "trust", body={})
        edited = {**request["call"]["arguments"], "configuration": {"command": "other"}}
        answer = {"decision": "allow_once", "digest": request["call"]["digest"], "arguments": edited}
        await fetch("approvals", request["id"], "decision", body=answer)

        failed = await ended(fetch, request["id"])

        assert (failed["outcome"]["state"], str(project) in failed["outcome"]["error"]) == ("failed", True)

    async def test_server_that_the_project_does_not_name_is_refused(self, fetch: Any) -> None:
        code, body = await fetch("servers", "other", "trust", body={})
        assert (code, "names no MCP server `other`" in body["message"]) == (409, True)
        code, body = await fetch("servers", "other", "trust", method="DELETE")
        assert (code, "names no MCP server `other`" in body["message"]) == (404, True)


class TestChangedServersOfTheUser:
    """Those whose entries were written into the file, at a server where such entries are reviewed."""

    @pytest.fixture
    def jp_server_config(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        (tmp_path / "config").mkdir()
        monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
        return {
            "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
            "AgentBoxApp": {
                "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
                "review_changed_servers": True,
            },
        }

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / "config" / "mcp.json"

    @staticmethod
    async def states(fetch: Any) -> dict[str, str]:
        _, body = await fetch("servers")
        return {each["name"]: each["state"] for each in body["servers"]}

    async def test_one_that_was_written_into_the_file_starts_once_a_person_allowed_it(
        self, fetch: Any, file: Path
    ) -> None:
        assert await self.states(fetch) == {}
        file.write_text(json.dumps({"mcpServers": {"mini": MINI}}))
        assert await self.states(fetch) == {"mini": "needs_trust"}
        code, body = await fetch("servers", "mini", "tools", body={})
        assert (code, "is new or has changed" in body["message"]) == (409, True)

        _, request = await fetch("servers", "mini", "trust", body={})
        answer = {"decision": "allow_once", "digest": request["call"]["digest"]}
        await fetch("approvals", request["id"], "decision", body=answer)

        assert (await ended(fetch, request["id"]))["outcome"]["state"] == "succeeded"
        assert await self.states(fetch) == {"mini": "running"}
        _, body = await fetch("servers")
        assert body["servers"][0]["is_trusted"] is True, "so that the panel offers to stop trusting it"
        file.write_text(json.dumps({"mcpServers": {"mini": {**MINI, "env": {"MORE": "1"}}}}))
        assert await self.states(fetch) == {"mini": "needs_trust"}

    async def test_those_that_a_person_adds_or_lets_a_program_add_are_trusted(self, fetch: Any, jp_fetch: Any) -> None:
        _, preview = await fetch("servers", "mini", "preview", body={"configuration": MINI})
        body = {"configuration": MINI, "revision": preview["revision"]}
        assert (await put(jp_fetch, "mini", body))[0] == 201
        _, request = await fetch("registrations", body={"name": "other", "configuration": MINI})
        answer = {"decision": "allow_once", "digest": request["call"]["digest"]}
        await fetch("approvals", request["id"], "decision", body=answer)

        assert (await ended(fetch, request["id"]))["outcome"]["state"] == "succeeded"
        assert await self.states(fetch) == {"mini": "stopped", "other": "stopped"}


class TestFileWithARelativePath:
    """One whose trust must not depend on the directory in which the server was started."""

    @pytest.fixture
    def jp_server_config(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        monkeypatch.chdir(tmp_path)
        return {
            "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}},
            "AgentBoxApp": {
                "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
                "mcp_config_path": "mcp.json",
                "review_changed_servers": True,
            },
        }

    async def test_requests_name_its_absolute_path(self, fetch: Any, tmp_path: Path) -> None:
        await fetch("servers")
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"mini": MINI}}))
        _, request = await fetch("servers", "mini", "trust", body={})
        assert request["call"]["arguments"]["file"] == str(tmp_path / "mcp.json")
