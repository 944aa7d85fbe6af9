"""What can be wrong with a database, made real: each is a `StorageError`, and nothing is half written."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from jupyter_agentbox.core.approvals import Outcome, OutcomeState, Status
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.exceptions import StorageError, UnknownApprovalError
from jupyter_agentbox.storage import group_commit as committer
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.storage.database import Database, JournalMode
from jupyter_agentbox.storage.rows import new_row
from jupyter_agentbox.storage.schema import approvals
from jupyter_agentbox.testing import TIMEOUT, FakeClock
from tests.samples import a_call, a_decision, a_request


def a_store(path: Path, *, journal_mode: JournalMode = "wal", busy_timeout: float = 0.05) -> SqlApprovalStore:
    return SqlApprovalStore(
        sqlite_url(str(path)), clock=FakeClock(), journal_mode=journal_mode, busy_timeout=busy_timeout
    )


def a_database(path: Path, *, busy_timeout: float = 0.05) -> Database:
    url = sqlite_url(str(path))
    return Database(url, journal_mode="wal", busy_timeout=busy_timeout, on_connect=lambda _connection: None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agentbox" / "approvals.db"


@pytest.mark.parametrize(
    "url", ["", "no url", "mysql://host/db", "sqlite+nosuch:////nowhere/x.db", "postgresql+nosuch://h/d"]
)
async def test_a_url_that_cannot_be_used_is_a_storage_error(url: str) -> None:
    with pytest.raises(StorageError):
        async with SqlApprovalStore(url, clock=FakeClock()):
            pass


@pytest.mark.parametrize("name", ["a b.db", "a%20b.db", "a?b#c.db", "día.db", "a'b\".db"])
async def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    async with a_store(tmp_path / name) as store:
        await store.add(a_request())

    assert (tmp_path / name).is_file()


async def test_directory_and_files_are_for_this_user_only(path: Path) -> None:
    before = os.umask(0)
    try:
        async with a_store(path) as store:
            await store.add(a_request())
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in [path.parent, *path.parent.iterdir()]}
    finally:
        os.umask(before)

    assert modes == {
        "agentbox": 0o700,
        "owners": 0o700,
        "approvals.db": 0o600,
        "approvals.db-wal": 0o600,
        "approvals.db-shm": 0o600,
    }


async def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    path.parent.mkdir()
    path.touch(0o644)

    async with a_store(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("mode", "levels"),
    [
        ("wal", {"open": "FULL", "request": "NORMAL", "vote": "FULL", "decision": "FULL", "outcome": "NORMAL"}),
        ("delete", {"open": "EXTRA", "request": "EXTRA", "vote": "EXTRA", "decision": "EXTRA", "outcome": "EXTRA"}),
    ],
)
@pytest.mark.parametrize("via", list(Via))
async def test_a_persons_decision_is_synced_to_the_disk_before_it_counts(
    path: Path, mode: JournalMode, levels: dict[str, str], via: Via
) -> None:
    if mode == "wal" and via in (Via.PROGRAM, Via.MODEL, Via.NOBODY):  # as what a rule decides
        levels = {**levels, "vote": "NORMAL", "decision": "NORMAL"}
    reviewer = Reviewer(name="ada", via=via)
    settings: dict[str, str] = {}
    seen: dict[str, tuple[str, str]] = {}
    step = "open"

    def trace(statement: str) -> None:
        if statement.startswith("PRAGMA") and "=" in statement:
            name, _, value = statement.removeprefix("PRAGMA ").partition("=")
            settings[name] = value
        elif statement.startswith("BEGIN"):
            seen[step] = (settings["journal_mode"], settings["synchronous"])

    def listen(driver: sqlite3.Connection, _record: object) -> None:
        driver.set_trace_callback(trace)

    event.listen(Engine, "connect", listen)
    try:
        async with a_store(path, journal_mode=mode) as store:
            request = a_request()
            step = "request"
            await store.add(request)
            step = "vote"
            request = request.endorse(a_decision(request, reviewer=replace(reviewer, name="bob")))
            await store.replace_if(request, status=Status.PENDING, outcome=None)
            step = "decision"
            decision = a_decision(request, reviewer=reviewer)
            decided = request.decide(decision).with_outcome(Outcome(state=OutcomeState.RUNNING))
            await store.replace_if(decided, status=Status.PENDING, outcome=None)
            step = "outcome"
            ended = decided.with_outcome(Outcome(state=OutcomeState.SUCCEEDED))
            await store.replace_if(ended, status=Status.APPROVED, outcome=OutcomeState.RUNNING)
    finally:
        event.remove(Engine, "connect", listen)

    assert seen == {name: (mode, level) for name, level in levels.items()}


async def test_what_is_not_synced_at_once_is_a_moment_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = asyncio.Event()
    loop = asyncio.get_running_loop()
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == Path(f"{path}-wal").stat().st_ino:
            loop.call_soon_threadsafe(synced.set)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    async with a_store(path) as store:
        await store.add(a_request())
        async with asyncio.timeout(TIMEOUT):
            await synced.wait()


async def test_what_is_not_synced_yet_is_when_the_store_closes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(committer, "SYNC_DELAY", 1000.0)
    monkeypatch.setattr(os, "fsync", sync)
    async with a_store(path) as store:
        await store.add(a_request())
        log_file = Path(f"{path}-wal").stat().st_ino
        assert synced == []
    assert synced == [log_file]


async def test_where_wal_is_refused_a_rollback_journal_is_used(path: Path) -> None:
    path.parent.mkdir()
    url = f"sqlite:///file:{path}?vfs=unix-dotfile&uri=true"  # locks by files, as if there were no shared memory
    async with SqlApprovalStore(url, clock=FakeClock(), journal_mode="wal") as store:
        await store.add(a_request())

        assert await store.get("r1") == a_request()
        assert not list(path.parent.glob("*-wal"))


async def test_a_database_that_another_server_makes_at_this_moment_is_waited_for(path: Path) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE other (x)")
    other.execute("BEGIN IMMEDIATE")
    made = threading.Timer(0.5, other.commit)
    made.start()
    async with a_store(path, busy_timeout=TIMEOUT) as store:
        await store.add(a_request())

        assert await store.get("r1") == a_request()
    made.join()
    other.close()


@pytest.mark.parametrize("mode", ["wal", "delete"])
async def test_a_locked_database_is_an_error_after_the_timeout_and_works_when_it_is_free(
    path: Path, mode: JournalMode
) -> None:
    async with a_store(path, journal_mode=mode) as store:
        await store.add(a_request("r0"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")

        with pytest.raises(StorageError, match="locked"):
            await store.add(a_request())
        with pytest.raises(StorageError, match="locked"):
            await store.replace_if(
                a_request("r0").decide(a_decision(a_request("r0"))), status=Status.PENDING, outcome=None
            )

        other.execute("ROLLBACK")
        other.close()
        await store.add(a_request())
        assert (await store.list(ApprovalQuery())).approvals == (a_request("r1"), a_request("r0"))


async def test_many_that_wait_for_a_locked_database_wait_once_together(path: Path) -> None:
    async with a_store(path, busy_timeout=0.2) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")

        async with asyncio.timeout(60):  # one after the other would take 200 seconds
            added = (store.add(a_request(f"r{n}")) for n in range(1000))
            results = await asyncio.gather(*added, return_exceptions=True)
        other.close()

        assert {type(result) for result in results} == {StorageError}


async def test_a_database_that_is_locked_at_the_start_can_be_opened_later(path: Path) -> None:
    async with a_store(path):
        pass
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    store = a_store(path)

    with pytest.raises(StorageError, match="locked"):
        await store.open()
    other.close()
    await store.add(a_request())

    assert await store.get("r1") == a_request()
    await store.aclose()


@pytest.fixture
def full_disk(path: Path) -> Iterator[None]:
    """SQLite with room for a few pages: what it does on a full disk."""

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA max_page_count=40").fetchone()

    event.listen(Engine, "connect", limit)
    yield
    event.remove(Engine, "connect", limit)


@pytest.mark.usefixtures("full_disk")
async def test_a_full_database_takes_nothing_and_keeps_what_it_has(path: Path) -> None:
    async with a_store(path) as store:
        await store.add(a_request("small"))
        large = a_request("large", call=a_call(arguments={"x": "x" * 200_000}))

        results = await asyncio.gather(
            store.add(a_request("before")), store.add(large), store.add(a_request("after")), return_exceptions=True
        )

        assert [type(result) for result in results] == [bool, StorageError, bool]
        assert "full" in str(results[1])
        with pytest.raises(UnknownApprovalError):
            await store.get("large")
        assert len((await store.list(ApprovalQuery())).approvals) == 3


async def test_an_error_that_is_logged_holds_nothing_of_the_request(path: Path) -> None:
    database = Database(sqlite_url(str(path)), journal_mode="wal", busy_timeout=0.05, on_connect=lambda _: None)
    row = {**new_row(a_request(), tool_digest="d", owner="me"), "status": None}

    with pytest.raises(StorageError) as caught, database.transaction(write=True) as connection:
        connection.execute(approvals.insert(), row)
    database.close()

    text = "".join(traceback.format_exception(caught.value))
    assert "NOT NULL" in text
    assert "orders.ipynb" not in text  # PostgreSQL's driver shows the arguments, SQLite's only what is text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("mode", ["wal", "delete"])
async def test_on_a_full_disk_nothing_is_written_until_there_is_room(tmp_path: Path, mode: JournalMode) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=False)
    if mounted.returncode:
        pytest.skip("this system lets nobody mount")
    try:
        async with a_store(disk / "approvals.db", journal_mode=mode) as store:
            await store.add(a_request("first"))
            ballast = disk / "ballast"
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(4096))
            request = a_request("second", call=a_call(arguments={"x": "x" * 50_000}))

            with pytest.raises(StorageError):
                await store.add(request)
            ballast.unlink()
            await store.add(request)

            assert [one.id for one in (await store.list(ApprovalQuery())).approvals] == ["second", "first"]
            assert await store.get("second") == request
    finally:
        subprocess.run(["umount", disk], check=True)


async def test_a_file_that_is_no_database_is_left_as_it_is(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"my diary " * 1000)

    with pytest.raises(StorageError, match="damaged"):
        async with a_store(path):
            pass

    assert path.read_bytes() == b"my diary " * 1000


async def test_a_damaged_database_is_a_storage_error(path: Path) -> None:
    async with a_store(path, journal_mode="delete") as store:
        await asyncio.gather(*(store.add(a_request(f"r{n}")) for n in range(50)))
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))

    async def use() -> None:
        async with a_store(path, journal_mode="delete") as store:
            await store.get("r1")

    with pytest.raises(StorageError, match="damaged"):
        await use()


async def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "approvals.db", tmp_path, Path("/proc/approvals.db")):
        with pytest.raises(StorageError):
            async with a_store(place):
                pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_read_only_file_is_a_storage_error(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    path.parent.chmod(0o500)
    try:
        with pytest.raises(StorageError):
            async with a_store(path):
                pass
    finally:
        path.parent.chmod(0o700)


async def test_a_closed_store_is_a_storage_error(path: Path) -> None:
    store = a_store(path)
    async with store:
        await store.add(a_request())

    for use in (store.get("r1"), store.add(a_request("r2")), store.list(ApprovalQuery()), store.open()):
        with pytest.raises(StorageError, match="closed"):
            await use
    await store.aclose()


async def test_a_store_that_was_never_used_can_be_closed(path: Path) -> None:
    await a_store(path).aclose()

    assert not path.parent.exists()


async def test_a_database_that_was_deleted_is_made_anew_and_not_written_into_the_void(path: Path) -> None:
    async with a_store(path) as store:
        await store.add(a_request("lost"))
        for file in path.parent.glob("approvals.db*"):
            file.unlink()

        await store.add(a_request("kept"))
        with pytest.raises(UnknownApprovalError):
            await store.get("lost")

    async with a_store(path) as again:
        assert (await again.get("kept")) == a_request("kept")


async def test_the_error_names_the_file_and_never_a_password(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database" * 100)
    with pytest.raises(StorageError) as caught:
        async with a_store(path):
            pass
    assert str(path) in str(caught.value)

    with pytest.raises(StorageError) as caught:
        async with SqlApprovalStore("postgresql+nosuch://me:secret@host/db", clock=FakeClock()):
            pass
    assert "secret" not in str(caught.value)


async def test_who_reads_the_store_beside_a_server_does_not_take_its_log_away(path: Path) -> None:
    statement = "SELECT id FROM agentbox_approvals"
    program = f"import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('{statement}').fetchall())"

    async def seen_by_another() -> str:
        read = [sys.executable, "-c", program, str(path)]
        done = await asyncio.to_thread(
            subprocess.run, read, capture_output=True, check=True, text=True, timeout=TIMEOUT
        )
        return done.stdout

    async with a_store(path) as store:
        await store.add(a_request("r1"))
        log = SqlAuditLog(sqlite_url(str(path)))  # another connection of the server: opening it must leave all locks
        await log.verify()
        assert await seen_by_another() == "[('r1',)]\n"  # the last to close SQLite's files removes the log
        await store.add(a_request("r2"))
        assert await seen_by_another() == "[('r1',), ('r2',)]\n"
        await log.aclose()


async def test_an_enlarged_log_leaves_the_data_as_it_was(path: Path) -> None:
    with closing(a_database(path)) as database:
        with database.transaction(write=True) as connection:
            connection.exec_driver_sql("CREATE TABLE mine (number INTEGER)")
        assert database.reserve_log()
        assert not database.reserve_log()
        with database.transaction(write=True) as connection:
            connection.exec_driver_sql("INSERT INTO mine VALUES (1)")
        assert path.with_name("approvals.db-wal").stat().st_size > 4_000_000
        # What another process finds after a crash: the log as it is on disk, which ends at the last commit.
        for name in ("approvals.db", "approvals.db-wal"):
            shutil.copy(path.with_name(name), path.with_name(f"copy-{name}"))

    with closing(sqlite3.connect(path.with_name("copy-approvals.db"))) as copy:
        assert copy.execute("SELECT * FROM mine").fetchall() == [(1,)]
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert copy.execute("SELECT name FROM sqlite_master WHERE name LIKE '%log_space%'").fetchall() == []
    assert path.stat().st_size < 1_000_000


async def test_nobody_waits_for_another_writer_to_enlarge_the_log(path: Path) -> None:
    with closing(a_database(path, busy_timeout=10 * TIMEOUT)) as database:
        with database.transaction(write=True):
            pass
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert not database.reserve_log()  # a test that waits for the lock runs into the time limit of all tests
        with database.transaction(write=False) as connection:
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 10 * TIMEOUT * 1000
