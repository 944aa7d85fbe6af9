"""What only the SQL store does: group commit, and several server processes on one database."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from jupyter_agentbox.core.approvals import Outcome, OutcomeState, Status
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.testing import FakeClock
from tests.samples import a_call, a_decision, a_request

#: A server process that leaves requests of every kind, says so, and hangs.
CHILD = """
import asyncio, sys
from jupyter_agentbox.core.approvals import Outcome, OutcomeState
from jupyter_agentbox.storage.approvals import SqlApprovalStore
from jupyter_agentbox.testing import FakeClock
from tests.samples import a_decision, a_request

async def main():
    store = SqlApprovalStore(sys.argv[1], clock=FakeClock())
    approved = a_request("approved").decide(a_decision(a_request()))
    running = a_request("running").decide(a_decision(a_request())).with_outcome(Outcome(state=OutcomeState.RUNNING))
    for request in [
        a_request("pending"), approved, running,
        a_request("ended").decide(a_decision(a_request())).with_outcome(Outcome(state=OutcomeState.CANCELLED)),
    ]:
        await store.add(request)
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return sqlite_url(str(tmp_path / "approvals.db"))


def a_store(url: str) -> SqlApprovalStore:
    return SqlApprovalStore(url, clock=FakeClock())


def commits(path: Path) -> int:
    """Count the commits in SQLite's write-ahead log: each ends in a frame that has the size of the database."""
    content = path.with_name(f"{path.name}-wal").read_bytes()
    page_size, salt = struct.unpack(">I", content[8:12])[0], content[16:24]
    frames = [content[start : start + 24] for start in range(32, len(content), 24 + page_size)]
    return sum(frame[8:16] == salt and struct.unpack(">I", frame[4:8])[0] != 0 for frame in frames)


async def test_writes_that_arrive_together_are_committed_together(url: str, tmp_path: Path) -> None:
    async with a_store(url) as store:
        before = commits(tmp_path / "approvals.db")
        await asyncio.gather(*(store.add(a_request(f"r{n}")) for n in range(100)))

        assert commits(tmp_path / "approvals.db") - before <= 5
        assert len((await store.list(ApprovalQuery())).approvals) == 100


async def test_a_write_that_returned_is_in_the_file(url: str) -> None:
    async with a_store(url) as store, a_store(url) as other:
        await store.add(a_request())

        assert await other.get("r1") == a_request()


async def test_a_write_whose_waiter_is_cancelled_is_whole_or_not_there(url: str) -> None:
    async with a_store(url) as store:
        task = asyncio.create_task(store.add(a_request()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert (await store.list(ApprovalQuery())).approvals in ((), (a_request(),))


async def test_the_event_loop_goes_on_while_the_database_waits(url: str, tmp_path: Path) -> None:
    async with a_store(url) as store:
        turns = 0

        async def spin(task: asyncio.Task[object]) -> None:
            nonlocal turns
            while not task.done():
                turns += 1
                await asyncio.sleep(0)

        adding = asyncio.create_task(store.add(a_request()))
        await spin(adding)

        assert turns > 1


async def test_closing_finishes_what_was_asked_for(url: str) -> None:
    store = a_store(url)
    adding = [asyncio.create_task(store.add(a_request(f"r{n}"))) for n in range(20)]
    await asyncio.sleep(0)
    await store.aclose()
    await asyncio.gather(*adding)

    async with a_store(url) as again:
        assert len((await again.list(ApprovalQuery())).approvals) == 0  # its own are none yet
        assert len(await again.adopt_abandoned()) == 20


async def test_a_tool_description_is_kept_once(url: str, tmp_path: Path) -> None:
    schema = {"type": "object", "description": "x" * 100_000}
    tool = a_request().tool
    large = type(tool)(name="t", input_schema=schema)  # type: ignore[arg-type]  # JSON
    async with a_store(url) as store:
        for n in range(100):
            await store.add(a_request(f"r{n}", tool=large))
        assert (await store.get("r50")).tool == large

    assert (tmp_path / "approvals.db").stat().st_size < 1_000_000


async def test_another_living_servers_open_requests_are_neither_listed_nor_changed(url: str) -> None:
    async with a_store(url) as mine, a_store(url) as other:
        await mine.add(a_request())

        assert list(await other.adopt_abandoned()) == []
        assert (await other.list(ApprovalQuery())).approvals == ()
        assert (await other.get("r1")) == a_request()
        decided = a_request().decide(a_decision(a_request()))
        assert not await other.replace_if(decided, status=Status.PENDING, outcome=None)
        assert await mine.replace_if(decided, status=Status.PENDING, outcome=None)


async def test_what_is_closed_is_listed_by_every_server(url: str) -> None:
    closed = a_request().decide(a_decision(a_request())).with_outcome(Outcome(state=OutcomeState.CANCELLED))
    async with a_store(url) as mine, a_store(url) as other:
        await mine.add(closed)

        assert (await other.list(ApprovalQuery())).approvals == (closed,)


async def test_a_server_that_ended_leaves_its_open_requests_to_one_other(url: str) -> None:
    async with a_store(url) as gone:
        await gone.add(a_request())
    async with a_store(url) as one, a_store(url) as other:
        adopted = await asyncio.gather(one.adopt_abandoned(), other.adopt_abandoned())

        assert sorted(len(requests) for requests in adopted) == [0, 1]
        heir = (one, other)[len(adopted[1])]
        assert (await heir.list(ApprovalQuery())).approvals == (a_request(),)
        assert list(await heir.adopt_abandoned()) == []


async def test_a_killed_server_leaves_what_was_pending_or_running(url: str, tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - it starts at once
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        async with a_store(url) as store:
            assert list(await store.adopt_abandoned()) == []

            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            adopted = await store.adopt_abandoned()

            assert sorted(request.id for request in adopted) == ["approved", "pending", "running"]
            assert len(list((tmp_path / "owners").iterdir())) == 1
    finally:
        child.kill()
        child.communicate()


async def test_servers_that_start_at_once_share_a_new_database(url: str) -> None:
    stores = [a_store(url) for _ in range(8)]
    await asyncio.gather(*(store.add(a_request(f"r{n}")) for n, store in enumerate(stores)))

    assert await stores[0].get("r7") == a_request("r7")
    await asyncio.gather(*(store.aclose() for store in stores))


async def test_a_thousand_pending_requests_are_adopted_and_listed(url: str) -> None:
    async with a_store(url) as gone:
        await asyncio.gather(*(gone.add(a_request(f"r{n:04}")) for n in range(1000)))
    async with a_store(url) as store:
        assert len(await store.adopt_abandoned()) == 1000
        page = await store.list(ApprovalQuery(statuses=(Status.PENDING,), limit=500))

        assert len(page.approvals) == 500
        assert page.next is not None


async def test_a_request_that_is_not_json_is_refused_and_the_store_goes_on(url: str) -> None:
    async with a_store(url) as store:
        with pytest.raises(StorageError):
            await store.add(a_request(call=a_call(arguments={"x": float("nan")})))
        await store.add(a_request())

        assert await store.get("r1") == a_request()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE agentbox_approvals SET request = '{' WHERE id = 'damaged'",
        "UPDATE agentbox_approvals SET status = 'lost' WHERE id = 'damaged'",
        "UPDATE agentbox_tools SET description = '[' WHERE CAST(description AS TEXT) LIKE '%other%'",
    ],
)
async def test_a_damaged_request_hides_no_other(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    async with a_store(url) as store:
        await store.add(a_request("sound"))
        await store.add(a_request("damaged", tool=ToolDescription(name="other")))
    with closing(sqlite3.connect(tmp_path / "approvals.db")) as database, database:
        database.execute(damage)

    async with a_store(url) as store:
        assert [request.id for request in await store.adopt_abandoned()] == ["sound"]
        assert [request.id for request in (await store.list(ApprovalQuery())).approvals] == ["sound"]
        assert "request damaged is left out" in caplog.text
        with pytest.raises(StorageError):
            await store.get("damaged")
