"""Two replicas of the service on one database, as processes: one answers, and the other takes over when it is gone."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from bench.hub_clients import Approver, call
from bench.hub_service import Address, Service
from jupyter_agentbox.core.audit_trail import check_trail
from tests.collectors import collecting
from tests.syslog_receivers import SyslogReceiver, tcp_place

from .test_audit_when_down import Slow, decisions
from .test_one_service import FOR_EVER, exit_code, held_since

#: Seconds for three starts of the service on a busy machine.
PATIENCE = 240


@asynccontextmanager
async def two_replicas(directory: Path, database_url: str) -> AsyncIterator[tuple[Address, Service, Service]]:
    """Give an address, and two replicas behind it that do not run yet."""
    replicas = []
    for name in ("one", "two"):
        (directory / name).mkdir()
        replicas.append(Service(directory / name, database_url, runs=directory / "runs"))
    address = Address(replicas)
    await address.open()
    try:
        async with asyncio.timeout(PATIENCE):
            yield address, replicas[0], replicas[1]
    finally:
        await address.aclose()
        for replica in replicas:
            replica.end()


async def test_who_stands_by_takes_over_with_what_waits_and_the_call_runs_once(
    tmp_path: Path, make_postgresql_database: Callable[[], str]
) -> None:
    """One is killed while a caller waits, comes back to stand by, and takes over from two, which ends in order."""
    async with two_replicas(tmp_path, make_postgresql_database()) as (address, one, two):
        await one.start("--standby", FOR_EVER)
        since = await held_since(one)
        two.launch("--standby", FOR_EVER)
        while (told := await two.until(503))["database_held_since"] is None:
            pass
        assert told == {
            "status": f"another replica has held the database since {since}",
            "database_held_since": since,
        }
        works = asyncio.Event()
        waiting = asyncio.create_task(call(address, "ada", "asked", "c1", works))
        await works.wait()
        one.kill()

        assert (await two.until(200))["database_held_since"] > since
        approver = Approver(address)
        while not await approver.allow_all():  # the address may still lead to the one that was killed
            pass
        assert (await waiting).state == "succeeded"

        one.launch("--standby", FOR_EVER)
        await one.until(503)
        waiting = asyncio.create_task(call(address, "ada", "asked", "c2"))
        while not await approver.pending():
            pass
        assert two.process is not None
        two.process.terminate()
        await one.until(200)
        while not await approver.allow_all():
            pass
        assert (await waiting).state == "succeeded"
        assert await exit_code(two) == 0
        assert Counter((tmp_path / "runs").read_text().split()) == {"c1": 1, "c2": 1}


async def test_who_stands_by_lives_does_nothing_for_anybody_and_ends_in_order(
    tmp_path: Path, make_postgresql_database: Callable[[], str]
) -> None:
    async with two_replicas(tmp_path, make_postgresql_database()) as (_, one, two):
        await one.start()
        since = await held_since(one)
        two.launch("--standby")
        await two.until(503)
        assert (await two.ask("health/live")).code == 200
        for path, body in (("mcp/bench", {}), ("api/requests", None), ("api/decisions", {}), ("elsewhere", None)):
            answer = await two.ask(path, body, Authorization="Bearer ada")
            assert (answer.code, answer.headers["Retry-After"], json.loads(answer.body)["reason"]) == (
                *(503, "5"),
                "standby",
            )
        page = await two.ask("", Accept="text/html,*/*")
        assert (page.code, page.headers["Retry-After"]) == (503, "5")
        assert "on standby" in page.body.decode()
        assert two.process is not None
        two.process.terminate()
        assert await exit_code(two) == 0
        assert await held_since(one) == since


async def test_who_takes_over_sends_what_the_killed_one_had_not_sent_in_the_same_chain(
    tmp_path: Path, make_postgresql_database: Callable[[], str]
) -> None:
    """The first is killed in the middle of a batch, whose records then arrive from the second, none of them missing."""
    place, sink = tcp_place()
    receiver = SyslogReceiver(place)
    options = ("--standby", FOR_EVER, f"--HubService.audit_sinks={sink}")
    with place:
        async with (
            receiver.listening(),
            two_replicas(tmp_path, make_postgresql_database()) as (address, one, two),
        ):
            await one.start(*options)
            two.launch(*options)
            await two.until(503)
            await receiver.has("started")
            receiver.may_read.clear()
            for number in range(5):
                assert (await call(address, "ada", "allowed", f"a{number}")).state == "succeeded"
            await receiver.has_stalled.wait()
            one.kill()
            await two.until(200)
            receiver.may_read.set()
            while (await call(address, "ada", "allowed", "last")).state != "succeeded":
                pass  # the address may still lead to the one that was killed
            await receiver.has("ended", 6)
    events = Counter(json.loads(line)["event"] for line in set(receiver.lines))
    assert events == {"started": 2, "decided": 6, "ended": 6}
    (chain,), strange = check_trail(receiver.lines)
    assert (chain.records, chain.is_whole, strange) == (14, True, 0)


async def test_a_call_of_a_replica_that_is_killed_before_the_sink_has_its_record_never_runs(
    tmp_path: Path, make_postgresql_database: Callable[[], str]
) -> None:
    """With ``deny``, the first is killed while the sink takes the record of a call; the second goes on without it."""
    runs = tmp_path / "runs"
    async with (
        collecting(Slow()) as sink,
        two_replicas(tmp_path, make_postgresql_database()) as (address, one, two),
    ):
        assert isinstance(sink, Slow)
        options = ("--standby", FOR_EVER, f"--HubService.audit_sinks={sink.url}", "--HubService.audit_when_down=deny")
        await one.start(*options)
        two.launch(*options)
        await two.until(503)
        calling = asyncio.create_task(call(address, "ada", "allowed", "first"))
        await sink.has_record.wait()
        assert not runs.read_text()
        one.kill()
        await two.until(200)
        assert not runs.read_text()
        sink.may_answer.set()
        calling.cancel()  # its caller would find out in half a minute
        while (await call(address, "ada", "allowed", "last")).state != "succeeded":
            pass  # the address may still lead to the one that was killed
        await sink.has("ended")

    ran = Counter(runs.read_text().split())
    assert ran == {"last": 1}
    # The sink may have more than happened, and never less.
    assert len({one["request_id"] for one in decisions(sink)}) >= sum(ran.values())
    (chain,), strange = check_trail(sink.lines)
    assert (chain.is_whole, strange) == (True, 0)
