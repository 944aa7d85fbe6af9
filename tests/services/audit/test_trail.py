"""Records outside the server, of calls that are made, decided and run, whether the receiver is there or not."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.composition import AgentBox, Settings, build
from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Status
from jupyter_agentbox.core.audit_trail import ArgumentsKept, AuditSettings, WhenDown, check_trail
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.grants import GrantTerms
from jupyter_agentbox.core.policy import Effect, Evaluation, Policy, Rule
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.exceptions import AuditError, StorageError, ToolCallRejectedError
from jupyter_agentbox.services.approvals.verdicts import Verdict
from jupyter_agentbox.services.audit.recorded_store import RecordedStore
from jupyter_agentbox.services.audit.trail import AuditTrail
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import FakeAnnouncer, FakeTools, MemoryApprovalStore
from tests.collectors import Collector, collecting
from tests.queue_sink import install_queue_sink
from tests.samples import NOON, a_decision, a_request

ADA = Reviewer(name="ada", via=Via.BROWSER)
SECRET = "hunter2hunter2"
POLICY = Policy(
    (
        Rule(server="shop", tool="find", effect=Effect.ALLOW),
        Rule(server="shop", tool="drop", effect=Effect.DENY),
    )
)


async def find(call: ToolCall, report: Any) -> Any:
    return {"found": dict(call.arguments)}


async def fail(call: ToolCall, report: Any) -> Any:
    raise RuntimeError(f"cannot log in with {call.arguments.get('password')}")


class Server:
    """A box with its tools, whose records go to a collector."""

    def __init__(self, directory: Path, collector: Collector, **audit: Any) -> None:
        audit = {"sinks": (collector.url,), "pause": 0.01, **audit}
        self.announcer = FakeAnnouncer()
        self.tools = FakeTools(
            {f"shop.{name}": tool for name, tool in (("find", find), ("fail", fail), ("drop", find))}
        )
        self.tools.tools["shop.delete"] = find
        settings = Settings(
            mcp_config_path=(),
            database_url=sqlite_url(str(directory / "approvals.sqlite")),
            audit=AuditSettings(spool=str(directory / "spool"), **audit),
        )
        self.box: AgentBox = build(settings, announcer=self.announcer, own_tools={"shop": self.tools}, policy=POLICY)
        trail = self.box.trail.current()
        assert trail is not None
        self.trail: AuditTrail = trail

    async def call(self, tool: str, on_waiting: Any = lambda _: None, **arguments: Any) -> Any:
        call = ToolCall(server="shop", tool=tool, arguments=arguments, origin=Origin(kernel_id="k1"))
        try:
            return await self.box.calls.run(call, on_waiting=on_waiting, on_running=lambda _: None)
        finally:
            await self.box.approvals.recorded()

    async def ask(self, tool: str, **arguments: Any) -> tuple[asyncio.Task[Any], ApprovalRequest]:
        waiting: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
        running = asyncio.create_task(self.call(tool, waiting.put_nowait, **arguments))
        return running, await waiting.get()

    async def decide(self, request: ApprovalRequest, answer: Answer, **more: Any) -> None:
        verdict = Verdict(answer=answer, digest=request.call.digest, **more)
        await self.box.decisions.decide(request.id, verdict, reviewer=ADA)


class SlowCollector(Collector):
    """A collector that takes nothing before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()

    async def take(self, body: bytes, headers: Any) -> None:
        await self.may_answer.wait()
        await super().take(body, headers)


def with_collector(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Give a test a collector that listens in its event loop."""

    @wraps(test)
    async def run(**fixtures: Any) -> None:
        async with collecting() as collector:
            await test(collector=collector, **fixtures)

    parameters = inspect.signature(test).parameters
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter for name, parameter in parameters.items() if name != "collector"]
    )
    return run


@asynccontextmanager
async def running(directory: Path, collector: Collector, **audit: Any) -> AsyncIterator[Server]:
    server = Server(directory, collector, **audit)
    async with asyncio.timeout(60):
        await server.box.start()
        try:
            yield server
        finally:
            await server.box.aclose()


@with_collector
async def test_whatever_happens_is_recorded_in_one_whole_chain_without_secrets(
    tmp_path: Path, collector: Collector
) -> None:
    async with running(tmp_path, collector) as server:
        await server.call("find", password=SECRET)
        with pytest.raises(ToolCallRejectedError):
            await server.call("drop")
        asking, request = await server.ask("fail", password=SECRET)
        await server.decide(request, Answer.ALLOW_ONCE, reason=f"password={SECRET}")
        await asyncio.gather(asking, return_exceptions=True)
        asking, request = await server.ask("delete", id=1)
        await server.decide(request, Answer.REJECT_ONCE)
        await asyncio.gather(asking, return_exceptions=True)
        asking, request = await server.ask("delete", id=2)
        await server.box.approvals.orphan("k1")
        await asyncio.gather(asking, return_exceptions=True)

    told = [(record["event"], record.get("tool"), record.get("status")) for record in collector.records]
    assert told == [
        ("started", None, None),
        ("decided", "find", "approved"),
        ("ended", "find", "approved"),
        ("decided", "drop", "rejected"),
        ("asked", "fail", "pending"),
        ("decided", "fail", "approved"),
        ("ended", "fail", "approved"),
        ("asked", "delete", "pending"),
        ("decided", "delete", "rejected"),
        ("asked", "delete", "pending"),
        ("ended", "delete", "orphaned"),
        ("stopped", None, None),
    ]
    (chain,), strange = check_trail(collector.lines)
    assert (chain.is_whole, chain.is_ended, chain.records, strange) == (True, True, len(told), 0)
    assert SECRET not in "\n".join(collector.lines)
    decided = collector.records[5]
    assert (decided["decision"]["reviewer"], decided["decision"]["via"]) == ("ada", "browser")
    assert decided["outcome"]["state"] == "running"


@with_collector
async def test_a_call_is_recorded_before_it_runs(tmp_path: Path, collector: Collector) -> None:
    known: list[list[str]] = []

    async def look(call: ToolCall, report: Any) -> Any:
        known.append(list(collector.events))

    async with running(tmp_path, collector, when_down=WhenDown.DENY) as server:
        server.tools.tools["shop.find"] = look
        await server.call("find")
    assert known == [["started", "decided"]]


@with_collector
async def test_without_a_receiver_nothing_runs_where_that_is_wanted(tmp_path: Path, collector: Collector) -> None:
    collector.status = 503
    async with running(tmp_path, collector, when_down=WhenDown.DENY, patience=0.05) as server:
        with pytest.raises(AuditError, match="nothing ran"):
            await server.call("find")
        asking, request = await server.ask("delete", id=1)
        with pytest.raises(AuditError):
            await server.decide(request, Answer.ALLOW_ONCE)
        assert (server.tools.calls, (await server.box.approvals.get(request.id)).status) == ([], Status.PENDING)
        assert server.box.trail.problem() == "`127.0.0.1` over HTTP accepts no records"

        collector.status = 200
        await collector.has("revoked", 2)
        is_decided = False
        while not is_decided:  # on a busy machine the record may be late again
            with suppress(AuditError):
                await server.decide(request, Answer.ALLOW_ONCE)
                is_decided = True
        await asking
    assert (server.box.trail.waiting, server.box.trail.problem()) == ([0], "")
    assert [call.tool for call in server.tools.calls] == ["delete"]
    (chain,), _ = check_trail(collector.lines)
    assert chain.is_whole
    revoked = [record["revoked"] for record in collector.records if record["event"] == "revoked"]
    decided = [record["sequence"] for record in collector.records if record["event"] == "decided"]
    assert decided[:2] == revoked[:2]
    assert decided[-1] not in revoked


async def test_a_receiver_that_is_too_slow_is_a_problem_until_it_has_caught_up(tmp_path: Path) -> None:
    async with (
        collecting(slow := SlowCollector()) as collector,
        running(tmp_path, collector, when_down=WhenDown.DENY, patience=0.05) as server,
    ):
        with pytest.raises(AuditError):
            await server.call("find")
        assert server.box.trail.problem() == "an audit sink accepts records too late"
        slow.may_answer.set()
    assert (server.box.trail.waiting, server.box.trail.problem()) == ([0], "")


@with_collector
async def test_nothing_is_lost_while_the_receiver_is_away(tmp_path: Path, collector: Collector) -> None:
    async with running(tmp_path, collector) as server:
        await collector.has("started")
        collector.status = 503
        for number in range(30):
            await server.call("find", number=number)
        await collector.has_bodies(2)
        assert (server.box.trail.waiting, server.box.trail.problem()) == ([60], "")
        collector.status = 200
        await collector.has("ended", 30)
    (chain,), _ = check_trail(collector.lines)
    assert (chain.is_whole, chain.is_ended, chain.records) == (True, True, 62)
    numbers = [record["arguments"]["number"] for record in collector.records if record["event"] == "decided"]
    assert numbers == [*range(30)]
    assert list((tmp_path / "spool").iterdir()) == []


def chain_left_in(directory: Path) -> str:
    """Return the chain of the records that a server left."""
    (spool,) = (directory / "spool").iterdir()
    return str(json.loads(spool.read_bytes().splitlines()[0])["chain"])


@with_collector
async def test_the_next_server_hands_over_what_one_left(tmp_path: Path, collector: Collector) -> None:
    collector.status = 503
    async with running(tmp_path, collector, last_patience=0.01) as server:
        await server.call("find")
    gone = chain_left_in(tmp_path)
    tried = len(collector.bodies)
    async with running(tmp_path, collector) as server:
        while not any(gone.encode() in body for body in collector.bodies[tried:]):
            await collector.has_bodies(len(collector.bodies) + 1)
        assert server.box.trail.waiting == [5]  # with the start of this one
        collector.status = 200
        await collector.has("started", 2)
    assert server.box.trail.waiting == [0]
    first, second = sorted(check_trail(collector.lines)[0], key=lambda chain: chain.id != gone)
    assert (first.records, first.is_whole, first.is_ended) == (4, True, True)
    assert second.is_whole
    assert list((tmp_path / "spool").iterdir()) == []


@with_collector
async def test_where_the_disk_takes_no_record_nothing_runs(tmp_path: Path, collector: Collector) -> None:
    async with running(tmp_path, collector, spool_bytes=3000) as server:
        await collector.has("started")
        with pytest.raises(AuditError):
            await server.call("find", text="x" * 3000)
        assert server.tools.calls == []
        assert "cannot be stored on this server's disk" in server.box.trail.problem()
        await server.call("find")
        assert server.box.trail.problem() == ""
    (chain,), _ = check_trail(collector.lines)
    assert (chain.missing, chain.is_ended) == ((2,), True)


@with_collector
async def test_records_that_somebody_removes_from_the_disk_are_missed(tmp_path: Path, collector: Collector) -> None:
    collector.status = 503
    async with running(tmp_path, collector, last_patience=0.01) as server:
        await server.call("find")
    (spool,) = (tmp_path / "spool").iterdir()
    kept = spool.read_bytes().splitlines(keepends=True)
    spool.write_bytes(b"".join([kept[0], *kept[2:]]))
    collector.status, gone = 200, chain_left_in(tmp_path)
    async with running(tmp_path, collector):
        await collector.has("started", 2)
    first, second = sorted(check_trail(collector.lines)[0], key=lambda chain: chain.id != gone)
    assert (first.missing, first.is_ended, second.is_whole) == ((2,), True, True)


@with_collector
async def test_what_somebody_writes_over_on_the_disk_of_a_server_that_runs_arrives_as_it_was_made(
    tmp_path: Path, collector: Collector
) -> None:
    async with running(tmp_path, collector) as server:
        await collector.has("started")
        collector.status = 503
        await server.call("find", number=1)
        await collector.has_bodies(2)
        (spool,) = (tmp_path / "spool").iterdir()
        spool.write_bytes(b"".join(b'{"forged":%d}\n' % number for number in range(50)))
        collector.status = 200
        await collector.has("ended")
    (chain,), strange = check_trail(collector.lines)
    assert (chain.is_whole, chain.is_ended, strange) == (True, True, 0)


@with_collector
async def test_what_somebody_puts_beside_the_records_that_were_left_holds_none_up(
    tmp_path: Path, collector: Collector
) -> None:
    collector.status = 503
    async with running(tmp_path, collector, last_patience=0.01) as server:
        await server.call("find")
    (spool,) = (tmp_path / "spool").iterdir()
    pipe, directory, long = (spool.with_name(f"{spool.name[:16]}-{name}.jsonl") for name in "abc")
    os.mkfifo(pipe)
    directory.mkdir()
    long.write_bytes(b"x" * 2_000_000)
    collector.status = 200
    async with running(tmp_path, collector) as server:
        await collector.has("started", 2)
        await server.call("find")
    assert [chain.is_whole for chain in check_trail(collector.lines)[0]] == [True, True]
    assert not long.exists()


def a_trail(store: MemoryApprovalStore, collector: Collector, directory: Path) -> tuple[AuditTrail, RecordedStore]:
    server = Server(directory, collector, arguments=ArgumentsKept.DIGEST)
    return server.trail, RecordedStore(store, lambda: server.trail)


@with_collector
async def test_what_the_store_does_not_take_is_revoked(tmp_path: Path, collector: Collector) -> None:
    store = MemoryApprovalStore()
    trail, recorded = a_trail(store, collector, tmp_path)
    trail.start()
    waiting = a_request()
    decided = waiting.decide(a_decision(waiting))
    assert not await recorded.replace_if(decided, status=Status.PENDING, outcome=None)
    started = decided.running_if_approved(at=NOON)
    assert not await recorded.replace_if(started, status=Status.APPROVED, outcome=None)
    store.failure = StorageError("the disk is full")
    with pytest.raises(StorageError):
        await recorded.replace_if(decided, status=Status.PENDING, outcome=None)
    await trail.aclose()
    assert collector.events == ["started", *["decided", "revoked"] * 3, "stopped"]
    assert [record["revoked"] for record in collector.records if record["event"] == "revoked"] == [2, 4, 6]


class SlowStore(MemoryApprovalStore):
    """A store that writes a new request only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = asyncio.Event()

    async def add(self, request: ApprovalRequest) -> bool:
        await self.may_write.wait()
        return await super().add(request)


@pytest.mark.parametrize("is_full", [False, True])
@with_collector
async def test_a_call_withdrawn_while_it_is_stored_is_revoked_unless_it_is_stored(
    tmp_path: Path, collector: Collector, is_full: bool
) -> None:
    store = SlowStore()
    trail, recorded = a_trail(store, collector, tmp_path)
    trail.start()
    adding = asyncio.create_task(recorded.add(a_request(evaluation=Evaluation(effect=Effect.ALLOW))))
    await collector.has("decided")
    store.failure = StorageError("the disk is full") if is_full else None
    adding.cancel()
    store.may_write.set()
    await asyncio.gather(adding, return_exceptions=True)
    await trail.aclose()
    assert ("revoked" in collector.events) == is_full == (not store.writes)


@with_collector
async def test_lasting_answers_that_end_are_recorded(tmp_path: Path, collector: Collector) -> None:
    async with running(tmp_path, collector) as server:
        asking, request = await server.ask("delete", id=1)
        await server.decide(request, Answer.ALLOW_ALWAYS, grant=GrantTerms())
        await asking
        (grant,) = await server.box.grants.list()
        await server.box.grants.revoke(grant.id, reviewer=ADA)
    (ended,) = [record for record in collector.records if record["event"] == "grant_ended"]
    decided = next(record for record in collector.records if record["event"] == "decided")
    assert ended["grants"] == [grant.id] == [decided["decision"]["grant"]]


async def test_the_sink_of_an_installed_package_gets_the_whole_record_also_what_was_made_while_it_was_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_queue_sink(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    directory = tmp_path / "queue"
    async with running(tmp_path, Collector(), sinks=(f"queue://{directory}/{{user}}",)) as server:
        await server.call("find")
        directory.mkdir()
        await server.call("find")
    (path,) = directory.iterdir()
    assert path.name != "{user}"
    lines = path.read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["started", *2 * ["decided", "ended"], "stopped"]
    (chain,), strange = check_trail(lines)
    assert (chain.is_whole, chain.is_ended, strange) == (True, True, 0)
