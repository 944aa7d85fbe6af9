"""Threads in SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from jupyter_agentbox.core.ports import ThreadQuery
from jupyter_agentbox.core.threads import (
    AgentMessage,
    ApprovalMode,
    CodeRun,
    ItemStatus,
    Thread,
    Turn,
    TurnStatus,
    TurnSummary,
    Usage,
    UserMessage,
)
from jupyter_agentbox.exceptions import StorageError, ThreadBusyError, UnknownThreadError
from jupyter_agentbox.storage import leases
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.leases import SILENCE
from jupyter_agentbox.storage.schema import owners, summaries, threads, turns
from jupyter_agentbox.storage.thread_retention import ThreadLimits
from jupyter_agentbox.storage.threads import SqlThreadStore
from jupyter_agentbox.testing import FakeClock
from tests.samples import NOON


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_url(str(tmp_path / "approvals.db"))
    made: str = request.getfixturevalue("make_postgresql_database")()
    return made


@pytest.fixture
def store(url: str, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[SqlThreadStore]:
    made = SqlThreadStore(url, clock=FakeClock())
    yield made
    jp_asyncio_loop.run_until_complete(made.aclose())


def a_thread(id: str = "th1", **options: object) -> Thread:
    return replace(Thread(id=id, created_at=NOON, updated_at=NOON, name="\ud800 October"), **options)  # type: ignore[arg-type]


def a_turn(id: str = "t1", thread_id: str = "th1") -> Turn:
    return Turn(id=id, thread_id=thread_id, started_at=NOON)


async def test_a_thread_reads_back_with_its_turns_in_order(store: SqlThreadStore) -> None:
    await store.put(a_thread())
    turns = []
    for number in range(3):
        turn = a_turn(f"t{number}")
        await store.begin(turn)
        turns.append(turn.with_item(AgentMessage(id="m", text="hello")).end(TurnStatus.COMPLETED, at=NOON))
        await store.put_turn(turns[-1], b"%d" % number)
    await store.change("th1", {"name": "November"})

    assert await store.get("th1", include_turns=True) == a_thread(name="November", turns=tuple(turns))
    assert await store.get("th1") == a_thread(name="November")
    assert await store.histories("th1") == [b"0", b"1", b"2"]


async def test_one_turn_of_a_thread_is_in_progress_at_a_time_in_all_processes(store: SqlThreadStore, url: str) -> None:
    other = SqlThreadStore(url, clock=FakeClock())
    await store.put(a_thread())
    await store.begin(a_turn())

    for one in (store, other):
        with pytest.raises(ThreadBusyError):
            await one.begin(a_turn("t2"))
        with pytest.raises(ThreadBusyError):
            await one.delete("th1")
    with pytest.raises(UnknownThreadError):
        await other.put_turn(a_turn().end(TurnStatus.COMPLETED, at=NOON), b"")
    await store.put_turn(a_turn().end(TurnStatus.COMPLETED, at=NOON), b"")
    await other.begin(a_turn("t2"))
    await other.aclose()


async def test_a_turn_is_interrupted_whose_process_is_gone(tmp_path: Path) -> None:
    url = sqlite_url(str(tmp_path / "approvals.db"))
    gone, here = SqlThreadStore(url, clock=FakeClock()), SqlThreadStore(url, clock=FakeClock())
    await gone.put(a_thread())
    await gone.begin(a_turn())
    running = a_turn().with_item(CodeRun(id="c", code="1", status=ItemStatus.IN_PROGRESS))
    await gone.put_turn(running, b"kept")
    await gone.aclose()  # as at its end, its lock is free

    thread = await here.get("th1", include_turns=True)

    assert thread.turns == (running.end(TurnStatus.INTERRUPTED, at=FakeClock().now()),)
    assert await here.histories("th1") == [b"kept"]
    await here.begin(a_turn("t2"))
    await here.aclose()


async def test_threads_are_listed_page_by_page_the_last_changed_first(store: SqlThreadStore) -> None:
    for thread in [a_thread(f"th{n}", updated_at=NOON + timedelta(seconds=n)) for n in range(5)]:
        await store.put(thread)
    await store.put(a_thread("away", is_archived=True))
    await store.put(a_thread("book", notebook_path="a.ipynb"))

    first = await store.list(ThreadQuery(limit=4))
    second = await store.list(ThreadQuery(limit=4, cursor=first.next))

    assert [thread.id for thread in (*first.threads, *second.threads)] == ["th4", "th3", "th2", "th1", "th0", "book"]
    assert second.next is None
    assert [one.id for one in (await store.list(ThreadQuery(is_archived=True))).threads] == ["away"]
    assert [one.id for one in (await store.list(ThreadQuery(notebook_path="a.ipynb"))).threads] == ["book"]


async def test_a_copy_has_the_turns_that_are_named_and_lives_by_itself(store: SqlThreadStore) -> None:
    await store.put(a_thread())
    for number in range(2):
        await store.begin(a_turn(f"t{number}"))
        await store.put_turn(a_turn(f"t{number}").end(TurnStatus.COMPLETED, at=NOON), b"%d" % number)

    await store.copy("th1", a_thread("th2", forked_from="th1"), {"t0": "c0"})
    await store.delete("th1")

    copied = await store.get("th2", include_turns=True)
    assert [(turn.id, turn.thread_id) for turn in copied.turns] == [("c0", "th2")]
    assert await store.histories("th2") == [b"0"]
    await store.begin(a_turn("t9", "th2"))


async def test_what_is_not_there_is_unknown(store: SqlThreadStore) -> None:
    for call in (store.get("th1"), store.delete("th1"), store.begin(a_turn())):
        with pytest.raises(UnknownThreadError):
            await call


async def test_a_damaged_thread_is_a_storage_error(store: SqlThreadStore) -> None:
    await store.put(a_thread())
    await store._committer.run(lambda connection: connection.execute(threads.update().values(thread=b"{}")), write=True)

    with pytest.raises(StorageError, match="damaged"):
        await store.get("th1")


async def test_changes_at_once_by_several_processes_all_hold(url: str) -> None:
    first, second = (SqlThreadStore(url, clock=FakeClock()) for _ in range(2))
    try:
        await first.put(a_thread())
        await asyncio.gather(
            *(first.change("th1", {"name": f"n{number}"}) for number in range(20)),
            second.change("th1", {"approval_mode": ApprovalMode.DENY_ALL}),
        )
        kept = await first.get("th1")
    finally:
        await asyncio.gather(first.aclose(), second.aclose())

    assert (kept.name, kept.approval_mode) == ("n19", ApprovalMode.DENY_ALL)


async def test_of_two_processes_one_begins_a_turn(url: str) -> None:
    stores = [SqlThreadStore(url, clock=FakeClock()) for _ in range(2)]
    try:
        await stores[0].put(a_thread())
        begun = await asyncio.gather(
            *(store.begin(a_turn(f"t{number}")) for number, store in enumerate(stores)), return_exceptions=True
        )
    finally:
        await asyncio.gather(*(store.aclose() for store in stores))

    assert [type(one) for one in begun if one is not None] == [ThreadBusyError]


async def test_a_change_brings_no_thread_back_that_was_deleted(store: SqlThreadStore) -> None:
    await store.put(a_thread())
    await store.delete("th1")

    with pytest.raises(UnknownThreadError):
        await store.change("th1", {"name": "back"})
    assert (await store.list(ThreadQuery())).threads == ()


async def test_lists_are_told_of_turns_what_they_show(store: SqlThreadStore) -> None:
    for id in ("th1", "th2\ud800"):
        await store.put(a_thread(id))
    first = replace(a_turn("t1"), usage=Usage(requests=2)).with_item(UserMessage(id="u", text="\ud800 sold?"))
    await store.begin(a_turn("t1"))
    await store.put_turn(first.end(TurnStatus.FAILED, at=NOON), b"")
    await store.copy("th1", a_thread("th3"), {"t1": "c1"})
    await store.begin(a_turn("t2"))

    told = await store.summaries(["th1", "th2\ud800", "th3"])

    ended = TurnSummary(id="t1", status=TurnStatus.FAILED, prompt="\ud800 sold?", usage=Usage(requests=2))
    assert told == {
        "th1": [ended, TurnSummary(id="t2", status=TurnStatus.IN_PROGRESS)],
        "th2\ud800": [],
        "th3": [replace(ended, id="c1")],
    }


async def test_nothing_is_left_of_a_deleted_threads_turns(store: SqlThreadStore) -> None:
    await store.put(a_thread())
    await store.begin(a_turn())
    await store.put_turn(a_turn().end(TurnStatus.COMPLETED, at=NOON), b"")
    await store.delete("th1")

    with pytest.raises(UnknownThreadError):
        await store.get_turn("t1")
    left = await store._committer.run(lambda connection: connection.execute(summaries.select()).all(), write=False)
    assert left == []


async def test_to_begin_a_turn_and_to_delete_a_thread_nothing_of_ended_turns_is_read(store: SqlThreadStore) -> None:
    await store.put(a_thread())
    await store.begin(a_turn())
    await store.put_turn(a_turn().end(TurnStatus.COMPLETED, at=NOON), b"")
    unreadable = turns.update().values(turn=b"no turn")
    await store._committer.run(lambda connection: connection.execute(unreadable), write=True)

    await store.begin(a_turn("t2"))
    with pytest.raises(ThreadBusyError):
        await store.begin(a_turn("t3"))
    with pytest.raises(ThreadBusyError):
        await store.delete("th1")
    await store.put_turn(a_turn("t2").end(TurnStatus.COMPLETED, at=NOON), b"")
    await store.delete("th1")

    with pytest.raises(UnknownThreadError):
        await store.begin(a_turn("t4"))


async def test_threads_are_kept_by_age_and_number_and_while_a_turn_is_in_progress(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    ages = {"new": 0, "old": 3, "older": 4, "working": 5, "its server is gone": 6}
    gone = SqlThreadStore(url, clock=clock)
    for id, days in ages.items():
        await gone.put(a_thread(id, updated_at=clock.now() - timedelta(days=days), is_archived=days == 3))
    await gone.begin(a_turn("t1", "its server is gone"))
    await gone.aclose()
    clock.advance(3 * SILENCE)  # where no file lock says that it is gone
    if url.startswith("postgresql"):  # it has a clock of its own, and spares everybody for a while
        monkeypatch.setattr(leases, "GRACE", 0.0)
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(owners.update().values(seen_at=owners.c.seen_at - int(3 * SILENCE * 1_000_000)))
        engine.dispose()
    here = SqlThreadStore(url, clock=clock)
    await here.begin(a_turn("t2", "working"))
    for limits, left in (
        (ThreadLimits(), [*ages]),
        (ThreadLimits(days=3.5), ["new", "old", "working"]),
        (ThreadLimits(count=3), ["new", "working"]),
        (ThreadLimits(days=0.001), ["working"]),
    ):
        sweeping = SqlThreadStore(url, clock=clock, limits=limits)
        await sweeping.put(a_thread("other", updated_at=clock.now()))
        await sweeping.begin(a_turn("t3", "other"))
        await sweeping.put_turn(a_turn("t3", "other").end(TurnStatus.COMPLETED, at=NOON), b"")
        await sweeping.aclose()
        lists = [await here.list(ThreadQuery(is_archived=archived)) for archived in (False, True)]
        await here.delete("other")
        assert sorted(one.id for page in lists for one in page.threads) == sorted([*left, "other"])

    rows = await here._committer.run(lambda connection: connection.execute(summaries.select()).all(), write=False)
    await here.aclose()
    assert [row.id for row in rows] == ["t2"]


async def test_a_turn_is_found_by_its_id_and_interrupted_where_its_process_is_gone(tmp_path: Path) -> None:
    url = sqlite_url(str(tmp_path / "approvals.db"))
    gone, here = SqlThreadStore(url, clock=FakeClock()), SqlThreadStore(url, clock=FakeClock())
    await gone.put(a_thread())
    await gone.begin(a_turn())
    alive = (await here.get_turn("t1"), await here.summaries(["th1"]))
    await gone.aclose()  # as at its end, its lock is free

    told = await here.summaries(["th1"])  # before anybody reads the turn
    found = await here.get_turn("t1")
    after = await here.summaries(["th1"])
    await here.aclose()

    assert alive == (a_turn(), {"th1": [TurnSummary(id="t1", status=TurnStatus.IN_PROGRESS)]})
    assert found == a_turn().end(TurnStatus.INTERRUPTED, at=FakeClock().now())
    assert told == after == {"th1": [TurnSummary(id="t1", status=TurnStatus.INTERRUPTED)]}


async def test_threads_go_with_their_notebook_and_with_the_directory_above_it(store: SqlThreadStore) -> None:
    paths = {"th1": "old_/a.ipynb", "th2": "old_/deep/b.ipynb", "th3": "oldx/c.ipynb", "th4": "old_.ipynb", "th5": ""}
    for id, path in paths.items():
        await store.put(a_thread(id, notebook_path=path))

    moved = [await store.move("old_", "new/one"), await store.move("old_.ipynb", "d.ipynb"), await store.move("x", "y")]

    assert [sorted(ids) for ids in moved] == [["th1", "th2"], ["th4"], []]
    assert {id: (await store.get(id)).notebook_path for id in paths} == {
        "th1": "new/one/a.ipynb",
        "th2": "new/one/deep/b.ipynb",
        "th3": "oldx/c.ipynb",
        "th4": "d.ipynb",
        "th5": "",
    }
    assert [one.id for one in (await store.list(ThreadQuery(notebook_path="d.ipynb"))).threads] == ["th4"]
