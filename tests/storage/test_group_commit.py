from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.storage import group_commit
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.database import Database
from jupyter_agentbox.storage.group_commit import GroupCommitter, Operation
from jupyter_agentbox.testing import TIMEOUT


def ignore(_connection: Connection) -> None:
    pass


def a_committer(tmp_path: Path, *, on_interval=ignore, interval: float | None = None) -> GroupCommitter:  # type: ignore[no-untyped-def]  # a callback
    database = Database(
        sqlite_url(str(tmp_path / "x.db")), journal_mode="wal", busy_timeout=1, on_connect=lambda _connection: None
    )
    return GroupCommitter(database, on_interval=on_interval, interval=lambda: interval, on_close=lambda: None)


async def test_jobs_run_on_a_thread_of_their_own_and_one_at_a_time(tmp_path: Path) -> None:
    committer = a_committer(tmp_path)

    threads = await asyncio.gather(
        *(committer.run(lambda _connection: threading.current_thread().name, write=n % 2 == 0) for n in range(10))
    )
    await committer.aclose()

    assert set(threads) == {"agentbox-storage"}


async def test_a_job_that_fails_gives_its_error_to_who_waits_and_to_no_other(tmp_path: Path) -> None:
    committer = a_committer(tmp_path)

    def fail(_connection: Connection) -> None:
        raise KeyError("mine")

    results = await asyncio.gather(
        committer.run(lambda _connection: 1, write=True),
        committer.run(fail, write=True),
        committer.run(lambda _connection: 2, write=True),
        return_exceptions=True,
    )
    await committer.aclose()

    assert (results[0], type(results[1]), results[2]) == (1, KeyError, 2)


async def test_whoever_counts_hears_how_long_each_job_took_also_one_that_failed(tmp_path: Path) -> None:
    heard: list[Operation] = []

    def hear(operation: Operation, seconds: float) -> None:
        assert seconds > 0
        heard.append(operation)

    def fail(_connection: Connection) -> None:
        raise KeyError("mine")

    database = Database(
        sqlite_url(str(tmp_path / "x.db")), journal_mode="wal", busy_timeout=1, on_connect=lambda _connection: None
    )
    committer = GroupCommitter(database, timer=hear)
    await committer.run(ignore, write=False)
    await committer.run(ignore, write=True, durable=False)
    with pytest.raises(KeyError):
        await committer.run(fail, write=True)
    await committer.aclose()

    assert heard == [*Operation]


async def test_a_patient_write_lets_others_pass_and_no_read_misses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "PATIENCE", 3600.0)
    committer = a_committer(tmp_path)
    done: list[str] = []

    async def run(name: str, *, write: bool = True, patient: bool = False) -> None:
        await committer.run(lambda _connection: done.append(name), write=write, patient=patient)

    patient = [asyncio.create_task(run(name, patient=True)) for name in ("end 1", "end 2")]
    await asyncio.sleep(0)
    await run("call")
    assert done == ["call"]
    await run("look", write=False)
    await asyncio.gather(*patient)
    await committer.aclose()

    assert done == ["call", "end 1", "end 2", "look"]


async def test_closing_writes_what_was_patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "PATIENCE", 3600.0)
    committer = a_committer(tmp_path)
    patient = asyncio.create_task(committer.run(lambda _connection: "done", write=True, patient=True))
    await asyncio.sleep(0)
    await committer.aclose()

    assert await patient == "done"


async def test_the_interval_is_kept_without_work_and_under_load(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    beats: asyncio.Queue[None] = asyncio.Queue()
    committer = a_committer(
        tmp_path, on_interval=lambda _connection: loop.call_soon_threadsafe(beats.put_nowait, None), interval=0.01
    )
    await committer.run(ignore, write=True)

    async with asyncio.timeout(TIMEOUT):
        await beats.get()
        while beats.empty():
            await committer.run(ignore, write=False)
    await committer.aclose()


async def test_after_closing_nothing_is_taken(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    committer = a_committer(tmp_path)
    await committer.run(ignore, write=True)
    await committer.aclose()

    with pytest.raises(StorageError):
        await committer.run(ignore, write=True)
    assert not [new for new in set(threading.enumerate()) - before if new.name == "agentbox-storage"]


def test_a_job_that_another_thread_queues_while_it_closes_is_not_waited_for(tmp_path: Path) -> None:
    committer = a_committer(tmp_path)
    asyncio.run(committer.run(ignore, write=True))
    is_late, is_closed = threading.Event(), threading.Event()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        create_future = loop.create_future

        def create_late() -> asyncio.Future[Any]:
            is_late.set()
            assert is_closed.wait(TIMEOUT)
            return create_future()

        loop.create_future = create_late  # type: ignore[method-assign]
        async with asyncio.timeout(TIMEOUT):
            await committer.run(ignore, write=False)

    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(lambda: asyncio.run(run()))
        assert is_late.wait(TIMEOUT)
        asyncio.run(committer.aclose())
        is_closed.set()
        with pytest.raises(StorageError, match="is closed"):
            late.result()


def test_a_loop_that_is_gone_does_not_stop_the_thread(tmp_path: Path) -> None:
    committer = a_committer(tmp_path)
    entered, leave = threading.Event(), threading.Event()

    def wait(_connection: Connection) -> None:
        entered.set()
        leave.wait(TIMEOUT)

    async def leave_early() -> None:
        task = asyncio.create_task(committer.run(wait, write=True))
        await asyncio.to_thread(entered.wait, TIMEOUT)
        task.cancel()

    async def come_later() -> int:
        try:
            return await committer.run(lambda _connection: 7, write=True)
        finally:
            await committer.aclose()

    asyncio.run(leave_early())
    leave.set()

    assert asyncio.run(come_later()) == 7


def end_the_thread(_connection: Connection) -> None:
    raise SystemExit("a job that ends its thread")


async def test_a_thread_that_ends_fails_who_waits_and_who_comes_later(tmp_path: Path) -> None:
    committer = a_committer(tmp_path)
    async with asyncio.timeout(TIMEOUT):
        results = await asyncio.gather(
            committer.run(lambda _connection: 1, write=True),
            committer.run(end_the_thread, write=True),
            committer.run(lambda _connection: 2, write=False),
            return_exceptions=True,
        )
        with pytest.raises(StorageError):
            await committer.run(lambda _connection: 3, write=True)
        await committer.aclose()

    assert [type(result) for result in results] == [StorageError] * 3


async def test_an_interval_that_fails_with_anything_does_not_end_the_thread(tmp_path: Path) -> None:
    def fail(_connection: Connection) -> None:
        raise AttributeError("a defect")

    committer = a_committer(tmp_path, on_interval=fail, interval=0.0)
    async with asyncio.timeout(TIMEOUT):
        assert [await committer.run(lambda _connection, n=n: n, write=True) for n in range(3)] == [0, 1, 2]
        await committer.aclose()


async def test_a_process_that_writes_often_enlarges_the_log_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without it, each sync of a decision also has to store the new size of the file.
    log_file = tmp_path / "x.db-wal"
    enlarged: list[bool] = []
    reserve = Database.reserve_log

    def reserve_and_note(database: Database) -> bool:
        enlarged.append(reserve(database))
        return enlarged[-1]

    monkeypatch.setattr(Database, "reserve_log", reserve_and_note)
    committer = a_committer(tmp_path)

    for _ in range(group_commit.MANY_COMMITS - 1):
        await committer.run(ignore, write=True)
    await committer.run(ignore, write=False)
    assert (enlarged, log_file.stat().st_size < 1_000_000) == ([], True)
    for _ in range(group_commit.MANY_COMMITS + 1):
        await committer.run(ignore, write=True)
    size = log_file.stat().st_size
    await committer.aclose()

    assert enlarged == [True, False]
    assert 4_000_000 < size < 5_000_000


async def test_an_enlarged_log_is_synced_before_the_next_decision_would_have_to_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_synced = threading.Event()
    monkeypatch.setattr(Database, "sync", lambda _: is_synced.set())
    committer = a_committer(tmp_path)

    for _ in range(group_commit.MANY_COMMITS):
        await committer.run(ignore, write=True, durable=True)
    assert await asyncio.to_thread(is_synced.wait, TIMEOUT)
    await committer.aclose()
