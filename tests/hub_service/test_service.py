"""The way of a central call: a user's code asks, persons answer, the service runs the tool and keeps the record."""

from __future__ import annotations

import asyncio
import csv
import json
import logging
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tornado import web

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.tools import ToolResult
from jupyter_agentbox.exceptions import ToolServerError
from jupyter_agentbox.hub import web_application
from jupyter_agentbox.mcp_client.servers import McpServers
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.audit_log import SqlAuditLog

from .service import TIMEOUT, USERS, Service, a_policy, ask, running_service

ALLOW = {"effect": "allow", "server": "warehouse", "tool": "query"}
DENY = {"effect": "deny", "server": "warehouse", "tool": "drop", "reason": "nobody drops tables"}


def call(tool: str = "query", sql: str = "select 1", server: str = "warehouse") -> ToolCall:
    return ToolCall(server=server, tool=tool, arguments={"sql": sql})


def text(result: ToolResult) -> Any:
    return json.loads(result.text)


async def waiting(service: Service, user: str, is_it: Callable[[Any], bool] = lambda _: True) -> Any:
    """Wait until a request waits that a user may see, and that is the wanted one."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            found = [one for one in await service.pending(user) if is_it(one)]
            if found:
                return found[0]


@dataclass
class Asking:
    """A call of a user that waits, and the request for it."""

    service: Service
    tools: McpServers
    calling: asyncio.Task[ToolResult]
    request: Any

    async def result(self) -> ToolResult:
        async with asyncio.timeout(TIMEOUT):
            return await self.calling


@asynccontextmanager
async def asking(
    directory: Path, *rules: Any, user: str = "ada", seen_by: str = "bob", sql: str = "select 1", **settings: Any
) -> AsyncIterator[Asking]:
    """Let a user's code call a tool, and wait until somebody sees the request."""
    async with running_service(directory, a_policy(*rules), **settings) as service, service.tools_of(user) as tools:
        calling = asyncio.create_task(tools.call_tool(call(sql=sql)))
        try:
            yield Asking(service, tools, calling, await waiting(service, seen_by))
        finally:
            calling.cancel()
            await asyncio.wait([calling])


async def test_a_rule_that_allows_runs_the_tool_with_the_credential_of_the_service(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(ALLOW)) as service, service.tools_of("ada") as tools:
        (query, drop) = await tools.list_tools("warehouse")
        result = await tools.call_tool(call())

    assert (query.name, query.description, drop.name) == ("query", "Runs SQL.", "drop")
    assert text(result) == {"sql": "select 1", "user": "", "has_key": True}
    assert result.structured == {"rows": 3}


async def test_a_rule_that_denies_says_why_and_runs_nothing(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(DENY)) as service, service.tools_of("ada") as tools:
        result = await tools.call_tool(call("drop"))

        assert result.is_error
        assert "nobody drops tables" in result.text
        assert result.review is not None
        told = (result.review.status, result.review.rejected_by, result.review.reason)
        assert told == ("rejected", "", "nobody drops tables")
        (own,) = (await service.json("api/requests", token="ada"))["own"]
        assert (own["status"], own["outcome"]) == ("rejected", None)


async def test_a_call_waits_for_a_member_of_the_group_and_runs_when_they_allow_it(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards")) as asked:
        service, request = asked.service, asked.request
        assert (request["asked_by"], request["approvers"]["group"]) == ("ada", "data-stewards")
        assert request["call"]["arguments"] == {"sql": "select 1"}

        code, decided = await service.decide(request, "bob")

        assert (code, decided["status"]) == (200, "approved")
        assert text(await asked.result())["has_key"]
        (own,) = (await service.json("api/requests", token="ada"))["own"]
        decision = own["decision"]
        assert (decision["reviewer"], decision["via"]) == ("bob", "browser")


async def test_who_asks_sees_the_request_and_cannot_decide_it_which_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jupyter_agentbox")
    async with asking(tmp_path, ask(group="data-stewards"), user="bob") as asked:
        service, request = asked.service, asked.request
        assert request["may_decide"] is False

        code, refused = await service.decide(request, "bob")

        assert (code, refused["reason"]) == (403, "not_an_approver")
        assert (await service.decide(request, "cleo"))[0] == 200
        assert not (await asked.result()).is_error
    assert f"/api/requests/{request['id']}/decision by bob: not_an_approver" in caplog.text


async def test_a_rule_can_let_the_answer_of_who_asks_count(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards", self=True), user="bob") as asked:
        service, request = asked.service, asked.request

        assert (await service.decide(request, "bob"))[0] == 200
        assert not (await asked.result()).is_error


async def test_without_approvers_who_asks_decides_and_nobody_else(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy()) as service, service.tools_of("ada") as tools:
        calling = asyncio.create_task(tools.call_tool(call()))
        request = await waiting(service, "ada")

        assert (await service.decide(request, "bob"))[0] == 404  # it is nothing to them
        assert (await service.decide(request, "dan"))[0] == 403  # an auditor sees it
        assert (await service.decide(request, "ada"))[0] == 200
        async with asyncio.timeout(TIMEOUT):
            assert not (await calling).is_error


async def test_two_different_persons_have_to_approve_where_the_rule_wants_two(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards", count=2)) as asked:
        service, request = asked.service, asked.request

        code, endorsed = await service.decide(request, "bob", reason="seen")
        assert (code, endorsed["status"]) == (200, "pending")
        assert [vote["reviewer"] for vote in endorsed["votes"]] == ["bob"]
        assert (await service.decide(request, "bob"))[0] == 403  # the same person twice is one person
        assert not asked.calling.done()
        page = (await service.get(f"requests/{request['id']}", session="ada")).body.decode()
        assert "bob has approved: seen" in page
        assert "waits for 1 approval by data-stewards" in page

        assert (await service.decide(request, "cleo"))[1]["status"] == "approved"
        assert not (await asked.result()).is_error


async def test_of_two_persons_one_who_rejects_is_enough(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards", count=2)) as asked:
        service, request = asked.service, asked.request
        await service.decide(request, "bob")

        assert (await service.decide(request, "cleo", "reject_once", reason="not today"))[0] == 200

        result = await asked.result()
        assert result.is_error
        assert "not today" in result.text


async def test_who_has_approved_can_still_reject(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards", count=2)) as asked:
        service, request = asked.service, asked.request
        code, endorsed = await service.decide(request, "bob")
        page = (await service.get(f"requests/{request['id']}", session="bob")).body.decode()

        refused = await service.decide(request, "bob")
        rejected = await service.press(request, "bob", "reject", "on second thoughts")

        assert (code, endorsed["may_decide"], endorsed["may_reject"]) == (200, False, True)
        assert ('value="allow"' in page, 'value="reject"' in page) == (False, True)
        assert (refused[0], rejected.code) == (403, 303)
        result = await asked.result()
        assert result.is_error
        assert "on second thoughts" in result.text


async def test_who_leaves_the_group_has_approved_and_answers_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asking(tmp_path, ask(group="data-stewards", count=2)) as asked:
        service, request = asked.service, asked.request
        await service.decide(request, "bob")
        monkeypatch.setitem(USERS, "bob", [])
        monkeypatch.setitem(USERS, "dan", [])

        answers = [await service.decide(request, name, "reject_once") for name in ("bob", "dan")]

        assert [code for code, _ in answers] == [403, 404]  # who has approved still sees the request
        assert (await service.decide(request, "cleo"))[1]["status"] == "approved"
        assert not (await asked.result()).is_error


async def test_who_is_an_auditor_no_more_reads_the_record_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        before = (await service.get("api/audit", token="dan")).code
        monkeypatch.setitem(USERS, "dan", [])
        assert (before, (await service.get("api/audit", token="dan")).code) == (200, 403)


async def test_a_number_that_json_does_not_have_hides_no_result(tmp_path: Path) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "query", "arguments": {"sql": "NaN"}}}
    async with running_service(tmp_path, a_policy(ALLOW)) as service:
        _, events = await service.post("mcp/warehouse", body, {"Authorization": "Bearer ada"})

    assert '"structuredContent": {"rows": null}' in events


async def test_delegates_decide_in_place_of_the_approvers(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="managers", delegates=["data-stewards"])) as asked:
        assert (await asked.service.decide(asked.request, "bob"))[1]["status"] == "approved"
        assert not (await asked.result()).is_error


@pytest.mark.parametrize("after", [0.001, 3600])
async def test_others_see_and_decide_what_has_waited_for_so_long(tmp_path: Path, after: float) -> None:
    rule = ask(group="analysts", self=True, escalation={"group": "data-stewards", "after": after})
    async with asking(tmp_path, rule, seen_by="ada") as asked:
        service, request = asked.service, asked.request

        seen = await service.pending("bob")
        code, _ = await service.decide(request, "bob")
        page = (await service.get(f"requests/{request['id']}", session="ada")).body.decode()

        if after < 1:
            assert ([one["id"] for one in seen], code) == ([request["id"]], 200)
        else:
            assert (seen, code) == ([], 404)
            assert "waits for 1 approval by analysts<" in page


async def test_two_approvers_at_the_same_moment_are_both_counted(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards", count=3)) as asked:
        service, request = asked.service, asked.request

        answers = await asyncio.gather(*(service.decide(request, name) for name in ("bob", "cleo", "dan")))

        assert sorted(answer["status"] for _, answer in answers) == ["approved", "pending", "pending"]
        assert not (await asked.result()).is_error


async def test_a_request_expires_as_its_rule_says(tmp_path: Path) -> None:
    rule = {**ask(group="data-stewards"), "timeout": 0.2}
    async with running_service(tmp_path, a_policy(rule)) as service, service.tools_of("ada") as tools:
        async with asyncio.timeout(TIMEOUT):
            result = await tools.call_tool(call())

        assert result.is_error
        assert "nobody decided" in result.text


async def test_a_caller_that_cancels_withdraws_its_request(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards")) as asked:
        service, request = asked.service, asked.request
        asked.calling.cancel()
        async with asyncio.timeout(TIMEOUT):
            while await service.pending("bob"):
                pass
        ended = await service.json(f"api/requests/{request['id']}", token="bob")
        assert (ended["status"], ended["outcome"]) == ("cancelled", None)
        page = (await asked.service.get(f"requests/{asked.request['id']}", session="bob")).body.decode()
        assert "This request was withdrawn: the code that made it no longer waits." in re.sub(r"</?bdi>", "", page)


async def test_a_client_that_asks_for_a_stream_is_told_that_there_is_none_and_no_administrator_is_warned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_service(tmp_path, a_policy(ALLOW)) as service:
        caplog.clear()
        answer = await service.get("mcp/warehouse", token="ada")

    assert (answer.code, answer.headers["Allow"]) == (405, "POST, DELETE")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("token", ["nobody", "narrow:ada", "session:nobody"])
async def test_a_token_that_the_hub_does_not_know_or_let_in_calls_nothing(tmp_path: Path, token: str) -> None:
    async with running_service(tmp_path, a_policy(ALLOW)) as service:
        async with service.tools_of("ada", token=token) as tools:
            with pytest.raises(ToolServerError):
                await tools.call_tool(call())
        assert (await service.get("api/requests", token=token)).code == 403


async def test_a_login_cookie_calls_no_tool(tmp_path: Path) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with running_service(tmp_path, a_policy(ALLOW)) as service:
        with_cookie = await service.post("mcp/warehouse", body, {"Cookie": service.cookie("session:ada")})
        with_token = await service.post("mcp/warehouse", body, {"Authorization": "Bearer ada"})
    assert (with_cookie[0], with_token[0]) == (403, 200)


async def test_neither_headers_nor_bodies_say_who_somebody_is(tmp_path: Path) -> None:
    forged = {"X-Forwarded-User": "bob", "Remote-User": "bob", "X-JupyterHub-User": "bob"}
    async with asking(tmp_path, ask(group="data-stewards")) as asked:
        service, request = asked.service, asked.request
        path, answer = f"api/requests/{request['id']}/decision", {"decision": "allow_once"}
        answer["digest"] = request["call"]["digest"]

        by_token = await service.post(path, answer, {"Authorization": "Bearer bob"})
        by_header = await service.post(path, answer, {**forged, "Authorization": "Bearer ada"})
        by_nobody = await service.post(path, answer, forged)
        in_body = await service.decide(request, "ada", reviewer="bob")
        no_session = await service.get("api/requests", cookie=service.cookie("bob"))  # nobody logged in with it

        assert (by_token[0], by_token[1]["reason"]) == (403, "needs_person")
        assert (by_header[0], by_header[1]["reason"]) == (403, "needs_person")
        assert (by_nobody[0], in_body[0], no_session.code) == (403, 422, 403)
        (still,) = await service.pending("bob")
        assert (still["status"], still["votes"]) == ("pending", [])


async def test_another_site_cannot_let_a_browser_decide(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards")) as asked:
        service, request = asked.service, asked.request
        form = f"answer=allow&digest={request['call']['digest']}"
        cookie = {"Cookie": service.cookie("session:bob")}

        sent = await service.post(f"requests/{request['id']}", form, cookie)

        assert sent[0] == 403
        assert (await service.press(request, "bob", "allow")).code == 303  # with what the page has it counts
        assert not (await asked.result()).is_error


async def test_a_token_that_is_not_valid_does_not_make_a_login_cookie_count_without_its_xsrf_token(
    tmp_path: Path,
) -> None:
    async with asking(tmp_path, ask(group="data-stewards")) as asked:
        service, request = asked.service, asked.request
        path, answer = f"api/requests/{request['id']}/decision", {"decision": "allow_once"}
        answer["digest"] = request["call"]["digest"]
        headers = {"Cookie": service.cookie("session:bob"), "Authorization": "Bearer nobody"}

        code, _ = await service.post(path, answer, headers)

        assert code == 403
        assert (await service.json(f"api/requests/{request['id']}", token="bob"))["status"] == "pending"


@pytest.mark.parametrize("id", ["NaN", "1.5", "[1]", "{}", "true", "null"])
async def test_the_id_of_a_message_is_a_string_or_an_integer(tmp_path: Path, id: str) -> None:
    body = f'{{"jsonrpc": "2.0", "id": {id}, "method": "ping"}}'
    async with running_service(tmp_path, a_policy()) as service:
        _, answer = await service.post("mcp/warehouse", body, {"Authorization": "Bearer ada"})
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


async def test_what_there_is_no_page_of_says_so_on_a_page_like_the_others(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        answer = await service.get("nothing")
    assert answer.code == 404
    assert "There is no such page." in answer.body.decode()
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_pages_show_untrusted_text_as_text(tmp_path: Path) -> None:
    sql = "<script>alert(1)</script>\u202eevil"
    async with asking(tmp_path, ask(group="data-stewards"), sql=sql) as asked:
        service, request = asked.service, asked.request
        answer = await service.get(f"requests/{request['id']}", session="bob")

    page = answer.body.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&lt;U+202E&gt;evil" in page
    assert "<script" not in page
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


async def test_no_script_of_this_origin_learns_the_token_that_forms_need(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        page = await service.get(session="bob")
        files = [await service.get(f"static/{name}") for name in ("pages.css", "nothing.css")]
    assert SimpleCookie(page.headers["Set-Cookie"])["_xsrf"]["httponly"]
    assert [file.code for file in files] == [200, 404]
    for answer in (page, *files):  # no other page can frame it, or keep hold of its window, and read its cookies
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"


async def test_a_stranger_sees_nothing_of_a_request(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards")) as asked:
        service, request = asked.service, asked.request

        assert await service.pending("eve") == []
        for path in (f"api/requests/{request['id']}", f"requests/{request['id']}"):
            assert (await service.get(path, token="eve", session="eve")).code == 404
        assert (await service.get("", session="nobody")).code == 302


async def test_a_server_whose_entry_names_the_user_runs_for_each_of_them(tmp_path: Path) -> None:
    policy = a_policy(ALLOW)
    policy["mcpServers"]["warehouse"]["env"]["FOR_USER"] = "${HUB_USER}/${HUB_GROUPS}"
    async with running_service(tmp_path, policy) as service:
        async with service.tools_of("ada") as tools:
            of_ada = text(await tools.call_tool(call()))
        async with service.tools_of("bob") as tools:
            of_bob = text(await tools.call_tool(call()))

    assert (of_ada["user"], of_bob["user"]) == ("ada/analysts", "bob/data-stewards")


async def test_one_users_calls_have_a_limit_that_is_no_other_users(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards"), most_calls=1) as asked:
        refused = await asked.tools.call_tool(call())

        assert refused.is_error
        assert "which is the limit" in refused.text
        async with asked.service.tools_of("eve") as others:
            other = asyncio.create_task(others.call_tool(call()))
            await waiting(asked.service, "bob", lambda one: one["asked_by"] == "eve")
            other.cancel()


async def test_the_record_names_who_asked_and_who_approved_and_the_chain_holds(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards", count=2)) as asked:
        service, request = asked.service, asked.request
        await service.decide(request, "bob")
        await service.decide(request, "cleo")
        await asked.result()
        assert (await service.get("api/audit", token="bob")).code == 403
        exported = await service.get("api/audit", token="dan")

    (line,) = exported.body.decode().splitlines()
    record = json.loads(line)
    assert (record["asked_by"], record["status"], record["outcome"]["state"]) == ("ada", "approved", "succeeded")
    assert record["decision"]["reviewer"] == "cleo"
    assert [vote["reviewer"] for vote in record["votes"]] == ["bob"]
    assert record["approvers"] == {"group": "data-stewards", "count": 2, "self": False}
    log = SqlAuditLog(sqlite_url(str(service.database)))
    assert (await log.verify()).broken is None
    with sqlite3.connect(service.database) as connection:  # another person's name on the first approval
        connection.execute(
            "UPDATE agentbox_approvals SET progress = CAST(replace(CAST(progress AS TEXT), 'bob', 'dan') AS BLOB)"
        )
    connection.close()
    assert (await log.verify()).broken is not None
    await log.aclose()


async def test_the_record_is_a_table_too_in_which_nothing_is_a_formula(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards", count=2), sql="=1+1") as asked:
        service, request = asked.service, asked.request
        await service.decide(request, "bob", reason="=HYPERLINK(0)")
        await service.decide(request, "cleo", reason="=1+1")
        await asked.result()
        exported = await service.get("api/audit?format=csv", token="dan")
        refused = [
            (await service.get(f"api/audit?format={form}", token=who)).code
            for form, who in (("csv", "bob"), ("xls", "dan"))
        ]

    (row,) = csv.DictReader(exported.body.decode().splitlines())
    assert exported.body.decode().splitlines()[0].split(",").count("asked_by") == 1
    assert (row["asked_by"], row["reviewer"], row["status"], row["outcome"]) == ("ada", "cleo", "approved", "succeeded")
    assert json.loads(row["approvers"])["count"] == 2
    assert [(vote["reviewer"], vote["reason"]) for vote in json.loads(row["votes"])] == [("bob", "=HYPERLINK(0)")]
    assert row["reason"] == "'=1+1"
    assert not [cell for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]
    assert exported.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert refused == [403, 400]


async def test_what_waited_when_the_service_ended_cannot_run_later(tmp_path: Path) -> None:
    rule = ask(group="data-stewards")
    async with asking(tmp_path, rule) as asked:
        await asked.service.box.calls.aclose()
        assert (await asked.result()).is_error
    async with running_service(tmp_path, a_policy(rule)) as service:
        assert (await service.decide(asked.request, "bob"))[0] == 409
        assert await service.pending("bob") == []


async def test_metrics_count_and_name_no_person_and_no_argument(tmp_path: Path) -> None:
    policy = a_policy(ask("drop", group="data-stewards"), ALLOW)
    async with running_service(tmp_path, policy) as service, service.tools_of("ada") as tools:
        await tools.call_tool(call(sql="select secret_column"))
        calling = asyncio.create_task(tools.call_tool(call("drop")))
        request = await waiting(service, "bob")
        during = (await service.get("metrics", token="eve")).body.decode()
        await service.decide(request, "bob", "reject_once")
        async with asyncio.timeout(TIMEOUT):
            await calling
        after = (await service.get("metrics", token="eve")).body.decode()
        unknown = await service.get("metrics")

    assert 'agentbox_hub_requests_total{effect="allow",server="warehouse"} 1.0' in during
    assert "agentbox_hub_pending 1.0" in during
    assert "agentbox_hub_pending 0.0" in after
    assert 'agentbox_hub_settled_total{status="rejected"} 1.0' in after
    assert 'agentbox_hub_calls_total{outcome="succeeded",server="warehouse"} 1.0' in after
    for operation in ("read", "write", "durable_write"):
        found = re.search(rf'^agentbox_hub_store_seconds_count{{operation="{operation}"}} (.+)$', after, re.MULTILINE)
        assert found is not None, operation
        assert float(found[1]) > 0
    assert unknown.code == 403
    assert not any(word in after for word in ("ada", "bob", "secret_column"))


async def test_answers_of_people_are_counted_by_how_they_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(USERS, "eve", ["on-call"])
    policy = a_policy(ask(group="data-stewards", count=2, break_glass="on-call"))
    given = (("bob", "allow_once", {}), ("cleo", "allow_once", {})), (("bob", "reject_once", {}),)
    alone = ("eve", "allow_once", {"break_glass": True, "reason": "the site is down"})
    async with asyncio.timeout(TIMEOUT), running_service(tmp_path, policy) as service:
        for answers in (*given, (alone,)):
            async with service.tools_of("ada") as tools:
                calling = asyncio.create_task(tools.call_tool(call()))
                request = await waiting(service, "bob")
                for who, answer, how in answers:
                    assert (await service.decide(request, who, answer, **how))[0] == 200
                await calling
        text = (await service.get("metrics", token="eve")).body.decode()
    assert set(re.findall(r"^agentbox_hub_decisions_total\{(.+)\} (.+)$", text, re.MULTILINE)) == {
        ('decision="allow_once",via="browser"', "2.0"),
        ('decision="reject_once",via="browser"', "1.0"),
        ('decision="allow_once",via="break_glass"', "1.0"),
    }


async def test_what_fails_here_and_at_the_hub_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def errors() -> dict[str, float]:
        text = (await service.get("metrics", token="eve")).body.decode()
        found = re.findall(r'^agentbox_hub_errors_total\{kind="(.+)"\} (.+)$', text, re.MULTILINE)
        return {kind: float(count) for kind, count in found}

    def user_for_token(*_: Any, **__: Any) -> Any:
        async def failing() -> None:
            raise web.HTTPError(502)

        return failing()

    monkeypatch.setattr(web_application, "READY_FOR", 0.0)
    async with running_service(tmp_path, a_policy()) as service:
        assert (await service.get("api/requests/none", token="ada")).code == 404
        assert await errors() == {"response": 0.0, "hub": 0.0}
        with monkeypatch.context() as away:
            away.setattr(service.hub, "user_for_token", user_for_token)
            codes = [(await service.get("api/requests", token="ada")).code, (await service.get(session="bob")).code]
        assert (codes, await errors()) == ([503, 503], {"response": 2.0, "hub": 2.0})
        await service.box.store.aclose()
        assert (await service.get("health/ready")).code == 503
        assert await errors() == {"response": 3.0, "hub": 2.0}


async def test_a_database_that_can_only_be_read_is_not_ready(
    tmp_path: Path, make_postgresql_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_agentbox.storage.store._KNOWN", 0.0)
    monkeypatch.setattr(web_application, "READY_FOR", 0.0)
    url = make_postgresql_database()
    name = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(
        url.replace("+psycopg", "").replace(f"/{name}", "/postgres"), autocommit=True
    ) as administrator:

        def set_read_only(how: str) -> None:
            administrator.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {how}")
            administrator.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s", [name]
            )

        async with running_service(tmp_path, a_policy(), database_url=url) as service:

            async def codes() -> list[int]:
                return [(await service.get("health/ready")).code for _ in range(3)]

            assert await codes() == [200, 200, 200]
            set_read_only("on")
            assert await codes() == [503, 503, 503]
            assert (await service.get("health/live")).code == 200
            params = {"name": "query", "arguments": {"sql": "select 1"}}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            _, said = await service.post("mcp/warehouse", call, {"Authorization": "Bearer ada"})
            assert "database cannot be used at the moment" in said
            assert "postgresql" not in said  # where it is, is none of a user's business
            set_read_only("off")
            assert (await codes())[1:] == [200, 200]  # the first finds out that its connection was ended


async def test_health_says_whether_the_process_answers_and_the_store_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_application, "READY_FOR", 0.0)
    async with running_service(tmp_path, a_policy()) as service:
        assert (await service.get("health/live")).code == 200
        assert (await service.get("health/ready")).code == 200
        await service.box.store.aclose()
        assert "sqlite" not in (await service.get("api/requests", token="ada")).body.decode()
        assert (await service.get("health/live")).code == 200
        assert (await service.get("health/ready")).code == 503


async def test_a_rule_for_a_group_is_for_calls_of_its_members(tmp_path: Path) -> None:
    rules = [{**DENY, "tool": "query", "groups": ["analysts"], "reason": "not yet"}, ALLOW]
    async with running_service(tmp_path, a_policy(*rules)) as service:
        async with service.tools_of("bob") as tools:
            assert (await tools.call_tool(call())).is_error is False
        async with service.tools_of("ada") as tools:
            refused = await tools.call_tool(call())
    assert refused.is_error
    assert "not yet (because ada is in the group `analysts`)" in refused.text


async def test_who_allowed_a_call_is_in_the_record_with_the_group_of_the_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = {**ask("query", group="data-stewards"), "groups": ["analysts"]}
    async with asking(tmp_path, rule) as one:
        # who leaves the group while their call waits is still asked about, as of then
        monkeypatch.setitem(USERS, "ada", [])
        assert one.request["evaluation"]["reason"] == "because ada is in the group `analysts`"
        assert (await one.service.decide(one.request, "bob"))[0] == 200
        assert not (await one.result()).is_error


async def test_a_script_in_a_browser_neither_reads_nor_decides_with_the_login_of_a_person(tmp_path: Path) -> None:
    async with asking(tmp_path, ask(group="data-stewards")) as asked:
        service, request = asked.service, asked.request
        page = f"requests/{request['id']}"
        form = f"answer=allow&digest={request['call']['digest']}"
        cookie = SimpleCookie((await service.get(session="bob")).headers["Set-Cookie"])["_xsrf"]
        xsrf = cookie.value
        login = {"Cookie": f"{service.cookie('session:bob')}; _xsrf={xsrf}", "X-XSRFToken": xsrf}
        refused = []
        for how in ({"Sec-Fetch-Mode": "cors"}, {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}):
            for path in ("", page, "api/requests", "api/audit"):
                refused.append((await service.fetch(path, {**login, **how})).code)
            for path in (page, f"api/{page}/decision"):
                refused.append((await service.post(path, form, {**login, **how}))[0])
        opened = await service.fetch(page, {**login, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})
        by_token = await service.fetch("api/requests", {"Authorization": "Bearer bob", "Sec-Fetch-Mode": "cors"})

        assert set(refused) == {403}
        assert cookie["httponly"], "otherwise a script could send a form, which a browser does by opening its page"
        assert (opened.code, by_token.code) == (200, 200)
        assert opened.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert (await service.pending("bob"))[0]["status"] == "pending"


async def test_a_login_that_ended_at_the_hub_is_asked_about_anew(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        login = service.cookie("session:bob")
        sessions = [
            (await service.fetch("api/requests", {"Cookie": f"{login}; jupyterhub-session-id={id}"})).code
            for id in ("s-bob", "s-bob", "another")
        ]
        assert sessions == [200, 200, 200]
        assert service.hub.asked == [("session:bob", "s-bob"), ("session:bob", "another")], (
            "one answer for each session"
        )


async def test_who_asks_for_much_waits_in_a_line_of_their_own(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(), call_rate=2.0) as service:
        ended: list[str] = []

        async def ask_as(user: str) -> int:
            code = (await service.get("metrics", token=user)).code
            ended.append(user)
            return code

        many = [asyncio.create_task(ask_as("ada")) for _ in range(9)]
        await asyncio.wait(many, return_when=asyncio.FIRST_COMPLETED)
        codes = [await ask_as("bob"), *await asyncio.gather(*many)]

        assert set(codes) == {200}
        assert ended.index("bob") < len(many) - 2, "bob does not wait for ada"


async def test_a_flood_of_questions_whether_it_is_ready_writes_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        checks = []
        check = service.box.store.check_writable

        async def counted() -> None:
            checks.append(time.monotonic())
            await check()

        monkeypatch.setattr(service.box.store, "check_writable", counted)
        began = time.monotonic()
        answers = await asyncio.gather(*(service.get("health/ready") for _ in range(50)))
        assert {answer.code for answer in answers} == {200}
        assert len(checks) <= 1 + (time.monotonic() - began)
