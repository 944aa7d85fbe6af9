"""What the servers of approvers are told of what waits for them, with the token that a kernel of theirs may read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

from jupyter_agentbox.services.hub_requests.manager import HOLDS, HubRequestManager

from .service import ask, listening
from .test_inbox import several_asking
from .test_service import asking


def asker(url: str, user: str, clock: Any = None) -> HubRequestManager:
    """Return what a user's server asks with."""
    return HubRequestManager(url, token=lambda: user, **({"clock": clock} if clock else {}))


async def test_a_server_is_told_in_short_what_waits_for_its_user_and_its_token_decides_nothing(tmp_path: Path) -> None:
    asked = (("ada", "query", "select 'a secret'"), ("bob", "drop", "x"), ("eve", "query", "y"))
    async with several_asking(tmp_path, *asked) as service:
        servers = {user: asker(service.url.rstrip("/"), user) for user in ("ada", "bob", "cleo", "dan")}
        lists = {user: await server.list() for user, server in servers.items()}
        raw = (await service.get("api/waiting", token="bob")).body.decode()
        (first, *_) = lists["bob"].requests
        request = await service.json(f"api/requests/{first.id}", token="bob")
        code, refused = await service.post(
            f"api/requests/{first.id}/decision",
            {"decision": "allow_once", "digest": request["call"]["digest"]},
            {"Authorization": "Bearer bob"},
        )
        for server in servers.values():
            server.close()

    assert {user: [one.asked_by for one in known.requests] for user, known in lists.items()} == {
        "ada": [],  # who asks does not decide here
        "bob": ["ada", "eve"],
        "cleo": ["ada", "bob", "eve"],
        "dan": ["ada", "bob", "eve"],
    }
    assert (first.server, first.tool, first.url) == ("warehouse", "query", f"{service.url}requests/{first.id}")
    assert (lists["cleo"].total, lists["cleo"].url, lists["cleo"].problem) == (3, service.url, "")
    assert set(json.loads(raw)["requests"][0]) == {"id", "asked_by", "server", "tool", "created_at", "expires_at"}
    assert "secret" not in raw
    assert (code, refused["reason"]) == (403, "needs_person")


async def test_who_has_approved_and_whom_a_rule_without_approvers_asks(tmp_path: Path) -> None:
    (tmp_path / "votes").mkdir()
    (tmp_path / "own").mkdir()
    async with asking(tmp_path / "votes", ask(group="data-stewards", count=2)) as one:
        bob = asker(one.service.url, "bob", iter((0.0, HOLDS, 2 * HOLDS, 3 * HOLDS)).__next__)
        assert (await bob.list()).total == 1
        assert (await one.service.decide(one.request, "bob"))[0] == 200
        assert (await bob.list()).total == 0
        bob.close()
        await one.service.decide(one.request, "cleo", "reject_once")
    async with asking(tmp_path / "own", ask(), seen_by="ada") as one:
        ada = asker(one.service.url, "ada")
        assert [each.id for each in (await ada.list()).requests] == [one.request["id"]]
        ada.close()


class Answers(RequestHandler):
    """A service that is as the test wants it."""

    code = 200
    body: Any = None
    asked = 0

    def get(self) -> None:
        """Answer."""
        type(self).asked += 1
        self.set_status(self.code)
        self.finish(self.body if isinstance(self.body, str) else json.dumps(self.body))


@asynccontextmanager
async def answering(code: int, body: Any) -> AsyncIterator[tuple[str, type[Answers]]]:
    handler = type("Answering", (Answers,), {"code": code, "body": body})
    at = listening()
    server = HTTPServer(Application([("/s/api/waiting", handler)]))
    server.add_sockets([at])
    try:
        yield f"http://127.0.0.1:{at.getsockname()[1]}/s/", handler
    finally:
        server.stop()
        await server.close_all_connections()


ONE = {
    "id": "a1",
    "asked_by": "ada",
    "server": "s",
    "tool": "t",
    "created_at": "2026-01-01T00:00:00.000Z",
    "expires_at": None,
}


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (503, ""),
        (404, ""),
        (302, ""),
        (200, "<html>"),
        (200, []),
        (200, {"url": "javascript:alert(1)", "total": 1, "requests": [ONE]}),
        (200, {"url": "/s/", "total": 1, "requests": [{**ONE, "id": "../../hub/logout"}]}),
        (200, {"url": "/s/", "total": 1, "requests": [{**ONE, "asked_by": 7}]}),
        (200, {"url": "/s/", "total": 1, "requests": [{**ONE, "expires_at": 7}]}),
    ],
)
async def test_what_is_no_list_is_said_to_be_unknown_and_asked_for_again(code: int, body: Any) -> None:
    seconds = iter((0.0, HOLDS / 2, HOLDS, HOLDS, HOLDS, HOLDS))
    async with answering(code, body) as (url, handler):
        manager = asker(url, "ada", seconds.__next__)
        first, again = await manager.list(), await manager.list()
        assert (first.requests, first.total, again) == ((), 0, first)
        assert first.problem.startswith("the Hub service answers")
        assert handler.asked == 1  # two pages at once are one question
        handler.code, handler.body = 200, {"url": "/s/", "total": 7, "requests": [ONE]}
        found = await manager.list()
        manager.close()
    assert (found.problem, found.total, found.url) == ("", 7, url)
    assert [one.url for one in found.requests] == [f"{url}requests/a1"]


async def test_a_service_that_is_away_is_a_problem_and_no_error() -> None:
    at = listening()
    url = f"http://127.0.0.1:{at.getsockname()[1]}/"
    at.close()
    manager = asker(url, "ada")
    assert (await manager.list()).problem.startswith("the Hub service does not answer")
    manager.close()


async def test_without_a_service_or_a_token_nobody_is_asked() -> None:
    async with answering(200, {"url": "/s/", "total": 1, "requests": [ONE]}) as (url, handler):
        for manager in (asker("", "ada"), asker(url, "")):
            assert not manager.has_service
            assert (await manager.list()).total == 0
    assert handler.asked == 0
