"""What waits outlives its connection and the service, and its caller comes back for the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from jupyter_agentbox.hub.calls import LOOK_EVERY, CentralCalls
from jupyter_agentbox.services.approvals.kept_requests import KeptRequests
from jupyter_agentbox.services.calls.manager import CallManager
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.audit_log import SqlAuditLog

from .service import TIMEOUT, Service, a_policy, ask, listening, running_service

TWO = ask(group="data-stewards", count=2)
CALL = {"name": "query", "arguments": {"sql": "select 1"}}


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database of either kind."""
    if request.param == "sqlite":
        return sqlite_url(str(tmp_path / "hub.sqlite"))
    make: Callable[[], str] = request.getfixturevalue("make_postgresql_database")
    return make()


class Stream:
    """An answer as a stream of events, of a call or of what is left of one."""

    def __init__(
        self,
        service: Service,
        *,
        token: str = "ada",
        last: str = "",
        call: Any = CALL,
        server: str = "warehouse",
        session: str = "",
    ) -> None:
        self.events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._rest = b""
        headers = {"Authorization": f"Bearer {token}", **({"Last-Event-ID": last} if last else {})}
        headers |= {"Mcp-Session-Id": session} if session else {}
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
        self._answer = AsyncHTTPClient(force_instance=True).fetch(
            HTTPRequest(
                f"{service.url}mcp/{server}",
                method="GET" if last else "POST",
                body=None if last else json.dumps(message),
                headers=headers,
                streaming_callback=self._take,
                connect_timeout=TIMEOUT,
                request_timeout=TIMEOUT,
            ),
            raise_error=False,
        )
        self._answer.add_done_callback(asyncio.Future.exception)  # many are broken off, and nobody looks

    async def event(self) -> dict[str, str]:
        async with asyncio.timeout(TIMEOUT):
            return await self.events.get()

    async def result(self) -> dict[str, Any]:
        """Wait for the answer itself."""
        while not (data := (await self.event())["data"]):
            pass
        message: dict[str, Any] = json.loads(data)
        assert message["id"] == 7
        result: dict[str, Any] = message["result"]
        return result

    async def code(self) -> int:
        """Return the status; 599 if the connection broke."""
        async with asyncio.timeout(TIMEOUT):
            try:
                return (await self._answer).code
            except HTTPClientError as error:
                return error.code

    def _take(self, data: bytes) -> None:
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            if not event.startswith(b":"):
                lines = event.decode().split("\n")
                self.events.put_nowait({name: value for name, _, value in (one.partition(":") for one in lines)})


def id_of(event: dict[str, str]) -> str:
    return event["id"].strip()


async def begun_and_broken_off(service: Service) -> str:
    """Call a tool, hang up when it waits, and return what one comes back with."""
    place = urlsplit(service.url)
    message = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": CALL})
    head = f"POST {place.path}mcp/warehouse HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer ada\r\n"
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write(f"{head}Content-Length: {len(message)}\r\n\r\n{message}".encode())
        async with asyncio.timeout(TIMEOUT):
            event = await reader.readuntil(b"\nretry:")
    finally:
        writer.close()
        await writer.wait_closed()
    return event.decode().split("id: ")[1].split("\n")[0]


@asynccontextmanager
async def restarting(directory: Path, *policies: Any, **settings: Any) -> AsyncIterator[Callable[[], Any]]:
    """Give a function that ends the service and starts the next at the same place, by the next policy.

    Who connects meanwhile waits for the next, however long its start takes, and nobody else gets the port.
    """
    running: list[Any] = []
    left = list(policies)

    with listening() as place:

        async def next_service() -> Service:
            if running:
                await running.pop().__aexit__(None, None, None)
            policy = left.pop(0) if len(left) > 1 else left[0]
            context = running_service(directory, policy, at=place.dup(), **settings)
            service = await context.__aenter__()
            running.append(context)
            return service

        try:
            yield next_service
        finally:
            for one in running:
                await one.__aexit__(None, None, None)


async def test_votes_and_waiting_outlive_the_service_and_the_caller_gets_the_answer(
    tmp_path: Path, database_url: str
) -> None:
    async with restarting(tmp_path, a_policy(TWO), database_url=database_url) as start:
        service = await start()
        stream = Stream(service)
        last = id_of(await stream.event())
        (request,) = await service.pending("bob")
        await service.decide(request, "bob", reason="seen")

        service = await start()
        assert (await stream.code(), stream.events.empty()) == (200, True)  # it has ended, without an answer
        (kept,) = await service.pending("cleo")
        assert (kept["id"], [vote["reviewer"] for vote in kept["votes"]]) == (request["id"], ["bob"])
        again = Stream(service, last=last)
        assert id_of(await again.event()) == last
        assert (await service.decide(kept, "cleo"))[1]["status"] == "approved"

        assert "has_key" in (await again.result())["content"][0]["text"]
        (record,) = (await service.json("api/requests", token="ada"))["own"]
        assert (record["id"], record["outcome"]["state"]) == (request["id"], "succeeded")
    log = SqlAuditLog(database_url)
    assert (await log.verify()).broken is None
    await log.aclose()


async def test_metrics_count_a_request_once_that_goes_on_waiting_after_a_restart(tmp_path: Path) -> None:
    async with restarting(tmp_path, a_policy(TWO)) as start:
        service = await start()
        id_of(await Stream(service).event())
        (request,) = await service.pending("bob")
        assert (await service.decide(request, "bob"))[0] == 200

        service = await start()
        kept = (await service.get("metrics", token="eve")).body.decode()
        await service.decide(request, "cleo", "reject_once")
        after = (await service.get("metrics", token="eve")).body.decode()

    assert "agentbox_hub_requests_total{" not in kept
    assert "agentbox_hub_votes_total 0.0" in kept
    assert "agentbox_hub_pending 1.0" in kept
    assert 'agentbox_hub_settled_total{status="rejected"} 1.0' in after


async def test_a_call_that_was_allowed_while_its_caller_was_away_runs_when_they_are_back_and_once(
    tmp_path: Path,
) -> None:
    async with restarting(tmp_path, a_policy(ask(group="data-stewards"))) as start:
        service = await start()
        last = id_of(await Stream(service).event())
        service = await start()
        (request,) = await service.pending("bob")
        await service.decide(request, "bob")
        (own,) = (await service.json("api/requests", token="ada"))["own"]
        assert (own["status"], own["outcome"]) == ("approved", None)
        page = (await service.get(session="ada")).body.decode()
        assert "approved, not run yet" in page

        service = await start()  # and once more
        (own,) = (await service.json("api/requests", token="ada"))["own"]
        assert (own["status"], own["outcome"]) == ("approved", None)
        first = Stream(service, last=last)
        result = await first.result()
        second = Stream(service, last=last)

        assert not result["isError"]
        (own,) = (await service.json("api/requests", token="ada"))["own"]
        assert own["decision"]["decided_at"] < own["outcome"]["started_at"] <= own["outcome"]["finished_at"]
        told = await second.result()
        assert told["isError"]
        assert "its answer is not kept" in told["content"][0]["text"]


async def test_what_was_allowed_before_a_restart_does_not_run_on_a_server_that_was_exchanged_with_it(
    tmp_path: Path,
) -> None:
    before = a_policy(ask(group="data-stewards"))
    entry = before["mcpServers"]["warehouse"]
    other = {**before, "mcpServers": {"warehouse": {**entry, "args": [*entry["args"], "another"]}}}
    async with restarting(tmp_path, before, before, other) as start:
        service = await start()
        last = id_of(await Stream(service).event())
        service = await start()
        (request,) = await service.pending("bob")
        await service.decide(request, "bob")

        service = await start()
        told = await Stream(service, last=last).result()
        assert told["isError"]
        assert "Run the code again to ask again" in told["content"][0]["text"]


async def test_the_sdk_comes_back_by_itself(tmp_path: Path) -> None:
    from .test_service import call, waiting

    async with restarting(tmp_path, a_policy(ask(group="data-stewards")), resume_timeout=1.2) as start:
        service = await start()
        async with service.tools_of("ada") as tools:
            calling = asyncio.create_task(tools.call_tool(call()))
            await waiting(service, "bob")
            service = await start()
            await service.decide(await waiting(service, "bob"), "bob")
            async with asyncio.timeout(TIMEOUT):
                result = await calling
    assert not result.is_error


async def test_another_user_cannot_come_back_for_a_call(tmp_path: Path) -> None:
    async with restarting(tmp_path, a_policy(ask(group="data-stewards"))) as start:
        service = await start()
        last = id_of(await Stream(service).event())
        while_it_runs = [await Stream(service, token=user, last=last).code() for user in ("eve", "bob", "dan")]
        service = await start()
        after = [await Stream(service, token=user, last=last).code() for user in ("eve", "bob", "dan")]
        assert while_it_runs == after == [410, 410, 410]
        for nonsense in ("x", "x:", "x:{}", "x:true", ":1"):
            assert await Stream(service, last=nonsense).code() == 410
        again = Stream(service, last=last)  # whose call it is still can
        assert id_of(await again.event()) == last


async def test_a_caller_whose_connection_breaks_has_a_time_to_come_back(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(ask(group="data-stewards"))) as service:
        last = await begun_and_broken_off(service)

        again = Stream(service, last=last)
        assert id_of(await again.event()) == last
        (request,) = await service.pending("bob")
        await service.decide(request, "bob")

        assert not (await again.result())["isError"]


async def test_who_does_not_come_back_in_time_withdraws_the_call(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(ask(group="data-stewards")), resume_timeout=0.05) as service:
        last = await begun_and_broken_off(service)
        async with asyncio.timeout(TIMEOUT):
            while await service.pending("bob"):
                pass
        told = await Stream(service, last=last).result()
        assert told["isError"]
        (own,) = (await service.json("api/requests", token="ada"))["own"]
        assert (own["status"], own["outcome"]) == ("cancelled", None)


async def test_what_nobody_comes_back_for_after_a_restart_is_closed(tmp_path: Path) -> None:
    async with restarting(tmp_path, a_policy(ask(group="data-stewards")), resume_timeout=0.001) as start:
        first = await start()
        streams = [Stream(first) for _ in range(2)]
        lasts = [id_of(await stream.event()) for stream in streams]
        service = await start()
        allowed, _ = await service.pending("bob")
        await service.decide(allowed, "bob")

        await service.box.withdraw_lost()

        own = (await service.json("api/requests", token="ada"))["own"]
        ended = {(one["status"], (one["outcome"] or {}).get("state")) for one in own}
        assert ended == {("approved", "cancelled"), ("orphaned", None)}
        (given_up,) = [one["outcome"] for one in own if one["outcome"] is not None]
        results = [await Stream(service, last=last).result() for last in lasts]
        statuses = {result["_meta"]["jupyter-agentbox/review"]["status"] for result in results}
        assert ([one["isError"] for one in results], statuses) == ([True, True], {"cancelled", "orphaned"})
        assert (given_up["started_at"], given_up["finished_at"] is None) == (None, False)
        page = (await service.get(session="ada")).body.decode()
        assert "approved, but did not run" in page
        assert "agentbox_hub_calls_total{" not in (await service.get("metrics", token="eve")).body.decode()


async def test_a_request_that_was_kept_over_a_restart_is_not_closed_just_after_a_freeze(tmp_path: Path) -> None:
    times = iter([0.0, LOOK_EVERY, 3600.0, 3600.0 + LOOK_EVERY])  # it was stopped for an hour in between
    async with restarting(tmp_path, a_policy(ask(group="data-stewards"))) as start:
        await Stream(await start()).event()
        service = await start()
        calls = CentralCalls(
            calls=cast(CallManager, None),  # nothing is called
            servers=service.box.servers,
            most_calls=1,
            kept=KeptRequests(service.box.approvals),
            patience=120.0,
            clock=lambda: next(times),
        )
        waiting = []
        for _ in range(4):
            await calls.withdraw_lost()
            waiting.append(len(await service.pending("bob")))
        assert waiting == [1, 1, 1, 0]


@pytest.mark.parametrize(
    "today",
    [
        a_policy(ask(group="data-stewards", count=2)),
        a_policy({"effect": "allow", "server": "warehouse", "tool": "*"}),
        a_policy({"effect": "deny", "server": "warehouse", "tool": "*"}),
        {"rules": [ask(group="data-stewards")]},
    ],
    ids=["more persons", "allowed", "denied", "no such server"],
)
async def test_a_request_is_not_kept_if_the_policy_of_the_next_service_asks_otherwise(
    tmp_path: Path, today: Any
) -> None:
    async with restarting(tmp_path, a_policy(ask(group="data-stewards")), today) as start:
        await Stream(await start()).event()
        service = await start()
        assert await service.pending("bob") == []
        (own,) = (await service.json("api/requests", token="ada"))["own"]
        assert own["status"] == "orphaned"


async def test_a_request_with_a_secret_is_not_kept_because_the_record_does_not_have_it(tmp_path: Path) -> None:
    secret = {"name": "drop", "arguments": {"password": "correct horse battery staple"}}
    async with restarting(tmp_path, a_policy(ask(group="data-stewards"))) as start:
        stream = Stream(await start(), call=secret)
        last = id_of(await stream.event())
        service = await start()
        assert await service.pending("bob") == []
        told = await Stream(service, last=last).result()
        assert told["isError"]
