"""If `audit_when_down` is `deny`, nothing is decided and no call starts before the audit sinks have the record."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.audit_trail import AuditSettings, WhenDown
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.hub.app import main
from tests.collectors import Collector, collecting

from .service import TIMEOUT, Service, a_policy, ask, running_service
from .test_audit_sinks import ask_and_allow, call_once, metrics, own_chain
from .test_reports import database_url, lines_of, report
from .test_restart import begun_and_broken_off
from .test_service import ALLOW, call, waiting

__all__ = ["database_url"]

REASON = "an audit sink of the Hub service does not accept records now"
REFUSED = "an audit sink of the Hub service did not accept the record of this call"


def deny(*addresses: str, **more: Any) -> AuditSettings:
    settings = {"pause": 0.01, "last_patience": TIMEOUT, "patience": TIMEOUT, **more}
    return AuditSettings(sinks=addresses, when_down=WhenDown.DENY, **settings)


class Slow(Collector):
    """A sink that accepts the records of an event only when it may."""

    def __init__(self, event: str = "decided") -> None:
        super().__init__()
        self._event = f'"event":"{event}"'.encode()
        self.has_record = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def take(self, body: bytes, headers: Any) -> None:
        if self._event in body:
            self.has_record.set()
            await self.may_answer.wait()
        await super().take(body, headers)


async def health(service: Service) -> tuple[list[int], bool]:
    found = await service.json("health/ready")
    assert found["status"] == "ok"
    return found["audit_sinks_down"], found["audit_stops_calls"]


def decisions(sink: Collector) -> list[Any]:
    """Return what happened to the decisions of which the sink has a record and that were not revoked."""
    revoked = {one["revoked"] for one in sink.records if one["event"] == "revoked"}
    return [one for one in sink.records if one["event"] == "decided" and one["sequence"] not in revoked]


async def test_calls_and_decisions_wait_for_their_record_and_stop_while_the_sink_is_down(
    tmp_path: Path, database_url: str
) -> None:
    policy = a_policy(ask("query", group="data-stewards"), {**ALLOW, "tool": "drop"})
    async with (
        asyncio.timeout(TIMEOUT),
        collecting() as sink,
        running_service(tmp_path, policy, database_url=database_url, audit=deny(sink.url, patience=1.5)) as service,
        service.tools_of("ada") as tools,
    ):
        assert not (await tools.call_tool(call("drop"))).is_error
        await sink.has("ended")
        assert await health(service) == ([], False)

        sink.status = 503
        calling = asyncio.create_task(tools.call_tool(call("query", sql="select 1")))
        request = await waiting(service, "bob")  # asking decides nothing
        for _ in range(3):
            refused = await tools.call_tool(call("drop"))
            assert refused.is_error
            assert REASON in refused.text
            assert sink.url not in refused.text
        assert await health(service) == ([1], True)
        for answer in ("allow_once", "reject_once"):
            status, told = await service.decide(request, "bob", answer)
            assert (status, REASON in told["message"]) == (503, True)
        assert [one["status"] for one in await service.pending("bob")] == ["pending"]
        assert (await metrics(service))['lag_records{sink="1"}'] < 6  # what is refused leaves no records behind
        own = (await service.json("api/requests", token="ada"))["own"]
        assert [one["call"]["tool"] for one in own if one["status"] == "approved"] == ["drop"]

        sink.status = 200
        while (await health(service))[1]:
            pass
        assert (await service.decide(request, "bob"))[0] == 200
        assert not (await calling).is_error
        assert not (await tools.call_tool(call("drop"))).is_error
        await sink.has("ended", 3)
    states = [((one.get("outcome") or {}).get("state"), one["tool"]) for one in decisions(sink)]
    assert states == [("running", "drop"), (None, "query"), ("running", "query"), ("running", "drop")]
    chain = own_chain(sink.lines)
    assert chain.is_ended


async def test_a_call_starts_only_after_the_sink_has_accepted_its_record(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(TIMEOUT),
        collecting(slow := Slow()) as sink,
        running_service(tmp_path, a_policy(ALLOW), audit=deny(sink.url)) as service,
    ):
        calling = asyncio.create_task(call_once(service))
        await slow.has_record.wait()
        assert (await service.json("api/requests", token="ada"))["own"] == []
        assert not calling.done()
        slow.may_answer.set()
        await calling
        await sink.has("ended")
    assert sink.events == ["started", "decided", "ended", "stopped"]


async def test_a_sink_that_is_too_slow_stops_calls_until_it_has_caught_up(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(TIMEOUT),
        collecting(slow := Slow()) as sink,
        running_service(tmp_path, a_policy(ALLOW), audit=deny(sink.url, patience=0.5)) as service,
        service.tools_of("eve") as eves,
        service.tools_of("ada") as adas,
    ):
        assert REASON in (await eves.call_tool(call())).text
        assert await health(service) == ([], True)
        assert REASON in (await adas.call_tool(call())).text
        assert sink.events == ["started"]
        slow.may_answer.set()
        await sink.has("revoked")
        while (await health(service))[1]:
            pass
        assert not (await adas.call_tool(call())).is_error
        await sink.has("ended")
    assert sink.events == ["started", "decided", "revoked", "decided", "ended", "stopped"]


async def test_each_of_several_approvals_is_announced_and_recorded_once(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(TIMEOUT),
        collecting() as sink,
        running_service(tmp_path, a_policy(ask(group="data-stewards")), audit=deny(sink.url)) as service,
    ):
        await ask_and_allow(service)
        await sink.has("ended")
    assert sink.events == ["started", "asked", "decided", "decided", "ended", "stopped"]
    assert own_chain(sink.lines).records == 6


async def test_a_record_that_the_sink_refuses_for_good_stops_only_its_own_call(tmp_path: Path) -> None:
    class Picky(Collector):
        async def take(self, body: bytes, headers: Any) -> None:
            self.status = 400 if b'"decided"' in body and b"select 13" in body else 200
            await super().take(body, headers)

    async with (
        asyncio.timeout(TIMEOUT),
        collecting(Picky()) as sink,
        running_service(tmp_path, a_policy(ALLOW), audit=deny(sink.url)) as service,
        service.tools_of("ada") as tools,
    ):
        refused = await tools.call_tool(call(sql="select 13"))
        assert REFUSED in refused.text
        assert "again later" not in refused.text
        await sink.has("revoked")
        await call_once(service)
        await sink.has("ended")
    assert sink.events == ["started", "revoked", "decided", "ended", "stopped"]


class Firewall(Collector):
    """A sink behind a firewall that refuses some contents."""

    async def take(self, body: bytes, headers: Any) -> None:
        self.status = 403 if b"<script>" in body else 200
        await super().take(body, headers)


async def test_what_a_sink_refuses_of_one_user_stops_no_call_of_another(tmp_path: Path) -> None:
    lines = lines_of("eve", 20, tool="<script>")
    async with (
        asyncio.timeout(TIMEOUT),
        collecting(Firewall()) as sink,
        # With the default delays, each second attempt would take half a second.
        running_service(
            tmp_path, a_policy(ALLOW), audit=AuditSettings(sinks=(sink.url,), when_down=WhenDown.DENY)
        ) as service,
        service.tools_of("eve") as eves,
        service.tools_of("ada") as adas,
    ):
        assert (await report(service, "eve", lines))[0] == 200
        calls = [tools.call_tool(call(sql=sql)) for _ in range(5) for tools, sql in ((eves, "<script>"), (adas, "1"))]
        results = await asyncio.gather(*calls)
        assert [result.is_error for result in results] == [True, False] * 5
        assert all(REFUSED in result.text for result in results if result.is_error)
        assert not (await health(service))[1]


async def test_what_one_user_reports_delays_a_call_of_another_by_one_batch_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_agentbox.services.audit.senders.BATCH", 1000)
    async with (
        asyncio.timeout(TIMEOUT),
        collecting(slow := Slow("ended")) as sink,
        running_service(tmp_path, a_policy(ALLOW), audit=deny(sink.url)) as service,
    ):
        assert (await report(service, "eve", lines_of("eve", 60)))[0] == 200
        await slow.has_record.wait()
        calling = asyncio.create_task(call_once(service))
        assert service.box.forwarder is not None
        while not service.box.forwarder._routes[0].urgent:  # noqa: ASYNC110
            await asyncio.sleep(0)
        slow.may_answer.set()
        await calling
        await sink.has("ended", 61)
    assert sink.events.index("decided") < 12
    assert len(sink.events) == len(set(sink.lines))
    assert own_chain(sink.lines).is_ended


async def test_no_user_can_use_up_the_room_for_what_a_sink_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("jupyter_agentbox.storage.outbox_reader.MOST_REFUSED", 4)
    monkeypatch.setattr("jupyter_agentbox.hub.forwarding.MOST_REFUSED_OF_USER", 2)
    async with (
        asyncio.timeout(TIMEOUT),
        collecting(Firewall()) as sink,
        running_service(tmp_path, a_policy(ALLOW), audit=deny(sink.url)) as service,
    ):
        lines = lines_of("eve", 6, tool="<script>")
        assert (await report(service, "eve", lines))[0] == 200
        async with service.tools_of("bob") as tools:
            assert REFUSED in (await tools.call_tool(call(sql="<script>"))).text
        await call_once(service)
        while (found := await metrics(service))['lag_records{sink="1"}']:
            pass
        assert found['records_total{result="rejected",sink="1"}'] == 7
    with closing(sqlite3.connect(service.database)) as database:
        kept = [json.loads(line) for (line,) in database.execute("SELECT record FROM agentbox_outbox_refused")]
    assert sorted(one["user"] for one in kept) == ["bob", "eve", "eve"]
    assert all(json.loads(line)["hash"] in caplog.text for line in lines[2:])


async def test_refused_records_of_many_users_stop_all_calls_until_an_administrator_does_what_the_documentation_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_agentbox.storage.outbox_reader.MOST_REFUSED", 2)
    monkeypatch.setattr("jupyter_agentbox.hub.forwarding.MOST_REFUSED_OF_USER", 1)
    text = Path(__file__).parents[2].joinpath("docs/reference/hub-service.md").read_text()
    section = text.partition("\n#### When a sink has refused too many records\n")[2]
    look, remove = re.findall(r"```sql\n(.+?)```", section, re.DOTALL)[:2]
    async with (
        asyncio.timeout(TIMEOUT),
        collecting(Firewall()) as sink,
        running_service(tmp_path, a_policy(ALLOW), audit=deny(sink.url, patience=1.5)) as service,
    ):
        for user in ("eve", "bob", "dan"):
            assert (await report(service, user, lines_of(user, 1, chain=user, tool="<script>")))[0] == 200
        while not (await health(service))[1]:
            pass
        async with service.tools_of("ada") as tools:
            assert REASON in (await tools.call_tool(call())).text
        with closing(sqlite3.connect(service.database)) as database, database:
            rows = database.execute(look).fetchall()
            database.execute(remove)
        assert sorted((user, count) for _, user, count in rows) == [("bob", 1), ("eve", 1)]
        while (await health(service))[1]:
            pass
        await call_once(service)


async def test_what_the_store_does_not_take_is_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        asyncio.timeout(TIMEOUT),
        collecting() as sink,
        running_service(tmp_path, a_policy(ask(group="data-stewards")), audit=deny(sink.url)) as service,
        service.tools_of("ada") as tools,
    ):
        calling = asyncio.create_task(tools.call_tool(call()))
        request = await waiting(service, "bob")

        async def fail(*_: Any, **__: Any) -> bool:
            raise StorageError("database or disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(service.box.store, "replace_if", fail)
            assert (await service.decide(request, "bob"))[0] == 503
        await sink.has("revoked")
        assert decisions(sink) == []
        assert (await service.decide(request, "bob"))[0] == 200
        await calling
    revoked = next(one for one in sink.records if one["event"] == "revoked")
    assert (revoked["request_id"], revoked["reason"]) == (request["id"], "the store did not take it")


async def test_a_call_that_is_withdrawn_while_it_waits_for_the_sink_does_not_run(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(TIMEOUT),
        collecting(slow := Slow()) as sink,
        running_service(tmp_path, a_policy(ALLOW), audit=deny(sink.url)) as service,
        service.tools_of("ada") as tools,
    ):
        calling = asyncio.create_task(tools.call_tool(call()))
        await slow.has_record.wait()
        calling.cancel()
        await asyncio.wait([calling])
        while service.box.calls._running:  # noqa: ASYNC110
            await asyncio.sleep(0)
        slow.may_answer.set()
        await sink.has("revoked")
        assert (await service.json("api/requests", token="ada"))["own"] == []
    assert decisions(sink) == []


@pytest.mark.parametrize("is_taken", [True, False])
async def test_a_call_that_is_withdrawn_while_it_is_stored_is_recorded_as_not_run_or_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    async with (
        asyncio.timeout(TIMEOUT),
        collecting() as sink,
        running_service(tmp_path, a_policy(ALLOW), audit=deny(sink.url)) as service,
        service.tools_of("ada") as tools,
    ):
        add, is_storing, is_withdrawn = service.box.store.add, asyncio.Event(), asyncio.Event()

        async def add_slowly(request: ApprovalRequest) -> bool:
            is_storing.set()
            await is_withdrawn.wait()
            if not is_taken:
                raise StorageError("database or disk is full")
            return await add(request)

        monkeypatch.setattr(service.box.store, "add", add_slowly)
        calling = asyncio.create_task(tools.call_tool(call()))
        await is_storing.wait()
        (running,) = service.box.calls._running["ada"]
        running.cancel()
        is_withdrawn.set()
        await calling
        await sink.has("ended" if is_taken else "revoked")
        own = (await service.json("api/requests", token="ada"))["own"]
    assert [(one["outcome"] or {}).get("state") for one in own] == (["cancelled"] if is_taken else [])


async def test_what_is_revoked_as_the_service_ends_is_recorded_once_and_before_its_end(tmp_path: Path) -> None:
    async with asyncio.timeout(TIMEOUT), collecting() as sink:
        async with running_service(tmp_path, a_policy(ALLOW), audit=deny(sink.url)) as service:
            await call_once(service)
            await sink.has("ended")
            assert service.box.forwarder is not None
            for sequence in (2, 3):
                service.box.forwarder.revoke(sequence, "r1", "the service ends")
        await sink.has("stopped")
    assert sink.events[-3:] == ["revoked", "revoked", "stopped"]
    assert own_chain(sink.lines).is_ended


@pytest.mark.parametrize(("count", "event"), [(1, "decided"), (2, "changed")])
async def test_a_decision_that_waits_for_the_sink_as_the_service_ends_is_revoked_and_its_request_left(
    tmp_path: Path, count: int, event: str
) -> None:
    policy = a_policy(ask(group="data-stewards", count=count))
    async with asyncio.timeout(TIMEOUT), collecting(slow := Slow(event)) as sink:
        settings = AuditSettings(sinks=(sink.url,), when_down=WhenDown.DENY)
        async with running_service(tmp_path, policy, audit=settings) as service:
            await begun_and_broken_off(service)
            request = await waiting(service, "bob")
            deciding = asyncio.create_task(service.decide(request, "bob"))
            await slow.has_record.wait()
            deciding.add_done_callback(lambda _: slow.may_answer.set())
        status, told = await deciding
        assert (status, "is being stopped" in told["message"]) == (503, True)
        await sink.has("stopped")
        assert sink.events == ["started", "asked", event, "revoked", "stopped"]
        assert sink.records[3]["revoked"] == sink.records[2]["sequence"]
        async with running_service(tmp_path, policy, audit=settings) as service:
            assert [(one["status"], one["votes"]) for one in await service.pending("cleo")] == [("pending", [])]


async def test_if_the_sink_fails_after_the_approval_the_caller_hears_that_the_call_did_not_run(tmp_path: Path) -> None:
    class Failing(Collector):
        async def take(self, body: bytes, headers: Any) -> None:
            self.status = 503 if b'"state":"running"' in body else 200
            await super().take(body, headers)

    async with (
        asyncio.timeout(TIMEOUT),
        collecting(Failing()) as sink,
        running_service(
            tmp_path, a_policy(ask(group="data-stewards")), audit=deny(sink.url, patience=1.0, last_patience=0.1)
        ) as service,
        service.tools_of("ada") as tools,
    ):
        calling = asyncio.create_task(tools.call_tool(call()))
        assert (await service.decide(await waiting(service, "bob"), "bob"))[0] == 200
        told = (await calling).text
        assert f"the approval is recorded, but the call did not run, because {REASON}" in told
        assert "nothing was done" not in told


def test_the_command_notes_what_makes_no_sense_and_says_what_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, config = tmp_path / "policy.json", tmp_path / "hub_config.py"
    policy.write_text(json.dumps({"rules": []}))

    def check(*sinks: str, when_down: str = "deny") -> tuple[int, str, str]:
        config.write_text(f"c.HubService.audit_sinks = {list(sinks)}\nc.HubService.audit_when_down = {when_down!r}\n")
        code = main([f"--policy={policy}", f"--config={config}", "--check-config"])
        told = capsys.readouterr()
        return code, told.err, told.out

    assert check("stdout:")[2].endswith(", 1 audit sink without which no call runs; nothing is wrong\n")
    assert check("stdout:", when_down="spool")[2].endswith(", 1 audit sink; nothing is wrong\n")
    assert "there is no audit sink: it has no effect" in check()[1]
    assert "entry 1 of `HubService.audit_sinks` confirms nothing (UDP)" in check("syslog://127.0.0.1")[1]
