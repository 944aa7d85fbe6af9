"""The page of past requests: whose they are, who may see which, and its filters."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.audit_search import AuditQuery
from jupyter_agentbox.hub import history_page
from jupyter_agentbox.hub.pages import arguments_text

from .service import TIMEOUT, Service, a_policy, ask, running_service
from .test_service import call, waiting

ALLOW = {"effect": "allow", "server": "warehouse", "tool": "query"}


@asynccontextmanager
async def with_two_approvals(directory: Path) -> AsyncIterator[Service]:
    """Let ada make a call that bob and cleo approve, and one that a rule allows."""
    policy = a_policy(ask("drop", group="data-stewards", count=2), ALLOW)
    async with running_service(directory, policy) as service, service.tools_of("ada") as tools:
        running = asyncio.create_task(tools.call_tool(call("drop", sql="orders")))
        request = await waiting(service, "bob")
        for user in ("bob", "cleo"):
            assert (await service.decide(request, user))[0] == 200
        await running
        await tools.call_tool(call("query", sql="1"))
        yield service


async def listed(service: Service, user: str, query: str = "") -> list[str]:
    """Return the arguments on a page of the history."""
    answer = await service.get(f"history{query}", session=user)
    assert answer.code == 200, answer.body
    return re.findall(r'"sql": "(\w+)"', unescape(answer.body.decode()))


async def test_everybody_sees_their_own_requests_and_those_that_they_answered(tmp_path: Path) -> None:
    async with with_two_approvals(tmp_path) as service:
        assert await listed(service, "ada", "?whose=asked") == ["1", "orders"]
        for approver in ("bob", "cleo"):  # the first of two approvals is an answer, too
            assert await listed(service, approver) == ["orders"]
            assert await listed(service, approver, "?whose=asked") == []
        assert await listed(service, "eve") == []
        assert await listed(service, "dan") == ["1", "orders"]  # an auditor
        page = (await service.get("history", session="bob")).body.decode()
    assert ">bob and cleo</bdi>" in page
    assert "All</a>" not in page


@pytest.mark.parametrize(
    ("user", "query", "code"),
    [
        ("bob", "whose=all", 403),
        ("dan", "whose=others", 400),
        ("dan", "since=yesterday", 400),
        ("dan", "status=maybe", 400),
        ("dan", "cursor=x", 400),
        ("dan", f"q={'x' * 201}", 400),
    ],
)
async def test_what_cannot_be_listed_says_why(tmp_path: Path, user: str, query: str, code: int) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        answer = await service.get(f"history?{query}", session=user)
        by_token = await service.get("history", token=user)
    assert (answer.code, b"That did not work" in answer.body) == (code, True)
    assert by_token.code == 302  # to the Hub's login page: a token opens no page


async def test_an_auditor_filters_by_user_tool_words_status_and_day(tmp_path: Path) -> None:
    async with with_two_approvals(tmp_path) as service:
        at = (await service.box.audit.search(AuditQuery())).records[0].created_at
        today = f"{at:%Y-%m-%d}"
        wanted = {
            "?user=ada&tool=drop": ["orders"],
            "?user=eve": [],
            "?q=ORDERS": ["orders"],
            "?answered_by=bob": ["orders"],
            "?answered_by=bo": [],
            "?status=approved": ["1", "orders"],
            "?status=rejected": [],
            f"?since={today}&until={today}": ["1", "orders"],
            "?until=2020-01-01": [],
            "?until=9999-12-31": ["1", "orders"],
        }
        assert {query: await listed(service, "dan", query) for query in wanted} == wanted
        page = (await service.get("history?tool=drop&q=%3Cb%3E", session="dan")).body.decode()
    assert 'value="&lt;b&gt;"' in page
    assert "No request matches the filter." in page
    assert "api/audit?tool=drop&amp;q=%3Cb%3E&amp;format=csv" in page


async def test_long_texts_are_cut_off_before_what_cannot_be_seen_in_them_is_spelled_out(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(ALLOW)) as service, service.tools_of("ada") as tools:
        await tools.call_tool(call("query", sql="\u202e" * 3000))
        page = unescape((await service.get("history?whose=asked", session="ada")).body.decode())
    assert page.count("<U+202E>") == 300 - len('{"sql": "')
    assert "<U+202E>…</bdi>" in page


async def test_long_arguments_can_be_read_whole_and_the_longest_on_the_page_of_their_request(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(ALLOW)) as service, service.tools_of("ada") as tools:
        for sql in (f"<script>{'a' * 400}<b>", "b" * 12_000, "\u202e" * 3000, "c" * 20_000):
            await tools.call_tool(call("query", sql=sql))
        page = (await service.get("history?whose=asked", session="ada")).body.decode()
        ids = re.findall(r'<br><a href="[^"]*requests/([^"]+)" aria-label="All arguments of', page)
        whole = [(await service.get(f"requests/{id}", session="ada")).body.decode() for id in ids]
    assert "<script" not in page
    shown = re.findall(r"<summary>All arguments</summary><pre[^>]*><bdi>(.*?)</bdi></pre></details>", page, re.S)
    assert [json.loads(unescape(one))["sql"] for one in shown] == ["b" * 12_000, f"<script>{'a' * 400}<b>"]
    assert [("c" * 20_000 in one, "&lt;U+202E&gt;" * 3000 in one) for one in whole] == [(True, False), (False, True)]
    assert len(page) < 50_000


async def test_who_has_answered_nothing_is_led_to_the_requests_of_their_code(tmp_path: Path) -> None:
    async with with_two_approvals(tmp_path) as service:
        page = (await service.get("history", session="eve")).body.decode()
        filtered = (await service.get("history?tool=drop", session="eve")).body.decode()
    assert 'You have not answered any requests. <a href="/services/agentbox/history?whose=asked">' in page
    assert "No request matches the filter." in filtered


async def test_long_arguments_on_the_page_delay_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_begun, others_went_on = threading.Event(), threading.Event()

    def slow(request: ApprovalRequest, *, indent: int | None = 2) -> str:
        has_begun.set()
        assert others_went_on.wait(TIMEOUT)
        return arguments_text(request, indent=indent)

    async with running_service(tmp_path, a_policy(ALLOW)) as service, service.tools_of("ada") as tools:
        await tools.call_tool(call("query", sql="x" * 1_000))
        monkeypatch.setattr(history_page, "arguments_text", slow)
        page = asyncio.create_task(service.get("history?whose=asked", session="ada"))
        await asyncio.to_thread(has_begun.wait, TIMEOUT)
        assert (await service.get("health/live")).code == 200
        others_went_on.set()
        assert (await page).code == 200


async def test_no_filter_writes_a_line_of_its_own_to_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_service(tmp_path, a_policy()) as service:
        answer = await service.get("history?status=a%0Aforged", session="eve")
    assert answer.code == 400
    assert not [line for line in caplog.text.splitlines() if line.startswith("forged")]
    assert "not a forged" in caplog.text


async def test_a_download_of_what_is_listed_includes_the_last_day(tmp_path: Path) -> None:
    async with with_two_approvals(tmp_path) as service:
        at = (await service.box.audit.search(AuditQuery())).records[0].created_at
        page = unescape((await service.get(f"history?until={at:%Y-%m-%d}", session="dan")).body.decode())
        link = re.search(r'href="[^"]*(api/audit\?[^"]*)"', page)
        assert link is not None
        rows = (await service.get(link[1], session="dan")).body.decode().splitlines()
    assert len(rows) == 3  # with the names of the columns


async def test_older_requests_are_on_further_pages_and_none_is_left_out(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(ALLOW)) as service:
        async with service.tools_of("ada") as tools:
            for number in range(120):
                await tools.call_tool(call("query", sql=f"n{number}"))
        found: list[str] = []
        query, pages = "?whose=asked", 0
        while query:
            page = unescape((await service.get(f"history{query}", session="ada")).body.decode())
            found += re.findall(r'"sql": "(\w+)"', page)
            older = re.search(r'href="[^"]*history(\?[^"]*)">Older requests', page)
            query, pages = older[1] if older is not None else "", pages + 1
            assert older is None or parse_qs(urlsplit(query).query)["whose"] == ["asked"]
    assert (found, pages) == ([f"n{number}" for number in reversed(range(120))], 3)
