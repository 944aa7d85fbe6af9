"""Stores on PostgreSQL with nothing to do: they keep the database as quiet as if they were not there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import create_engine, make_url, text

from jupyter_agentbox.core.approvals import Lapse, Status
from jupyter_agentbox.core.audit_search import AuditQuery
from jupyter_agentbox.core.ports import ApprovalQuery, ThreadQuery
from jupyter_agentbox.core.threads import Thread, Turn, TurnStatus
from jupyter_agentbox.storage import abandoned_requests, group_commit, leases
from jupyter_agentbox.storage.approvals import SqlApprovalStore
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.storage.leases import FORGOTTEN, SILENCE
from jupyter_agentbox.storage.schema import approvals, owners
from jupyter_agentbox.storage.threads import SqlThreadStore
from jupyter_agentbox.testing import TIMEOUT, FakeClock
from tests.pgbouncer import Pooled, clients_of
from tests.samples import NOON, a_request

STORES = 20
#: Signs of life of a store with an open request while the others are idle.
BEATS = 20

MakeDatabase = Callable[[], str]


def count_back(url: str, seconds: float) -> None:
    """Let all signs of life in a database be older."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(owners.update().values(seen_at=owners.c.seen_at - int(seconds * 1_000_000)))
    engine.dispose()


class Onlooker:
    """Looks at databases from another one of the same server."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(url, isolation_level="AUTOCOMMIT")

    async def ask(self, query: str, **values: object) -> int:
        """Return the number that a query gives."""

        def ask() -> int:
            with self._engine.connect() as connection:
                return int(connection.execute(text(query), values).scalar_one())

        return await asyncio.to_thread(ask)

    async def connections(self, url: str) -> int:
        """Return how many connections a database has."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = :name AND backend_type = 'client backend'"
        return await self.ask(query, name=make_url(url).database)

    async def see_nobody(self, url: str) -> None:
        """Wait until a database has no connection."""
        async with asyncio.timeout(TIMEOUT):
            while await self.connections(url):
                pass  # a connection ends a moment after its client closed it

    async def commits(self, url: str) -> int:
        """Return how many transactions of a database were committed, once nobody is connected to it."""
        await self.see_nobody(url)  # what ends tells its counts before it is gone
        query = "SELECT xact_commit FROM pg_stat_database WHERE datname = :name"
        return await self.ask(query, name=make_url(url).database)

    async def see_beats(self, count: int) -> None:
        """Wait until a store with an open request, in the database that this looks from, has given signs of life."""
        query = "SELECT max(seen_at) FROM agentbox_owners"
        last, seen = 0, 0
        async with asyncio.timeout(TIMEOUT):
            while seen < count:
                now = await self.ask(query)
                last, seen = now, seen + (now != last)

    def close(self) -> None:
        """Close the connection."""
        self._engine.dispose()


async def idle_commits(url: str, onlooker: Onlooker, beats: int) -> int:
    """Return how many transactions idle stores commit until another has given so many signs of life."""
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(SqlApprovalStore(url, clock=FakeClock())) for _ in range(STORES)]
        for store in stores:
            await store.adopt_abandoned()
        for _ in range(beats):
            await onlooker.see_beats(2)
            for store in stores:
                if store.is_look_due():
                    await store.adopt_abandoned()
    return await onlooker.commits(url)


async def test_idle_stores_commit_nothing_while_another_gives_signs_of_life(
    make_postgresql_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "HEARTBEAT", 0.01)
    busy = make_postgresql_database()
    onlooker = Onlooker(busy)
    async with SqlApprovalStore(busy, clock=FakeClock()) as store:
        await store.add(a_request())
        at_once = await idle_commits(make_postgresql_database(), onlooker, 0)
        later = await idle_commits(make_postgresql_database(), onlooker, BEATS)
    onlooker.close()

    assert later - at_once < STORES / 2  # PostgreSQL itself may look after a database meanwhile


async def test_a_store_is_quiet_again_when_nothing_is_open_any_more(
    make_postgresql_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "HEARTBEAT", 0.01)
    async with SqlApprovalStore(make_postgresql_database(), clock=FakeClock()) as store:
        await store.adopt_abandoned()
        assert not store.is_look_due()
        await store.add(a_request())
        assert store.is_look_due()
        lapsed = a_request().lapse(Lapse.TIMED_OUT, at=NOON)
        assert await store.replace_if(lapsed, status=Status.PENDING, outcome=None)
        async with asyncio.timeout(TIMEOUT):
            while store.is_look_due():
                await store.get("r1")


async def test_the_silence_of_a_store_with_nothing_open_is_no_death(
    make_postgresql_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it opens after a long silence is not taken from it in the moment before its next sign of life."""
    monkeypatch.setattr(leases, "GRACE", 0.0)
    url = make_postgresql_database()
    for silence in (SILENCE + 1, FORGOTTEN + 1):
        async with SqlApprovalStore(url, clock=FakeClock()) as idle, SqlApprovalStore(url, clock=FakeClock()) as other:
            count_back(url, silence)
            await other.adopt_abandoned()

            request = a_request(f"after {silence}")
            await idle.add(request)
            assert not await other.adopt_abandoned()
            lapsed = request.lapse(Lapse.TIMED_OUT, at=NOON)
            assert await idle.replace_if(lapsed, status=Status.PENDING, outcome=None)


async def test_a_store_that_owns_nothing_looks_seldom_and_not_together_with_others(
    make_postgresql_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_postgresql_database()
    async with SqlApprovalStore(url, clock=FakeClock()) as store:
        await store.adopt_abandoned()
        assert not store.is_look_due()
        monkeypatch.setattr(abandoned_requests, "LOOK_SELDOM", 0.0)
        assert store.is_look_due()
        monkeypatch.undo()
        others = [SqlApprovalStore(url, clock=FakeClock()) for _ in range(STORES)]
        assert len({other._abandoned.share for other in others}) > STORES / 2


async def test_a_store_looks_again_until_it_is_sure_what_became_of_the_owner_of_an_open_request(
    make_postgresql_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "HEARTBEAT", 0.01)
    monkeypatch.setattr(leases, "GRACE", 1.0)
    url = make_postgresql_database()
    async with SqlApprovalStore(url, clock=FakeClock()) as gone:
        await gone.add(a_request())  # it says nothing of its end
    count_back(url, SILENCE + 1)

    async with SqlApprovalStore(url, clock=FakeClock()) as store:
        adopted = list(await store.adopt_abandoned())
        assert adopted == []
        async with asyncio.timeout(TIMEOUT):
            while not adopted:
                assert store.is_look_due()
                adopted = list(await store.adopt_abandoned())

    assert [one.id for one in adopted] == ["r1"]


async def test_a_store_is_idle_where_all_that_was_left_cannot_be_read(
    make_postgresql_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "HEARTBEAT", 0.01)
    monkeypatch.setattr(leases, "GRACE", 0.0)
    url = make_postgresql_database()
    async with SqlApprovalStore(url, clock=FakeClock()) as gone:
        await gone.add(a_request())
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(approvals.update().values(request=b"{"))
    engine.dispose()
    count_back(url, SILENCE + 1)

    async with SqlApprovalStore(url, clock=FakeClock()) as store:
        for _ in range(2):
            assert not await store.adopt_abandoned()
            assert not store.is_look_due()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stores count as idle at once, and give signs of life all the time."""
    monkeypatch.setattr(group_commit, "IDLE", 0.0)
    monkeypatch.setattr(leases, "HEARTBEAT", 0.01)


@pytest.mark.usefixtures("impatient")
async def test_idle_stores_hold_no_connection_and_one_that_has_something_open_does(
    make_postgresql_database: MakeDatabase,
) -> None:
    url = make_postgresql_database()
    onlooker = Onlooker(make_postgresql_database())
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(SqlApprovalStore(url, clock=FakeClock())) for _ in range(STORES)]
        for store in stores:
            await store.adopt_abandoned()
        threads, log = SqlThreadStore(url, clock=FakeClock()), SqlAuditLog(url)
        stack.push_async_callback(threads.aclose)
        stack.push_async_callback(log.aclose)
        await threads.list(ThreadQuery())
        await log.search(AuditQuery())
        await onlooker.see_nobody(url)

        await stores[0].add(a_request())
        assert await onlooker.connections(url) == 1
        lapsed = a_request().lapse(Lapse.TIMED_OUT, at=NOON)
        assert await stores[0].replace_if(lapsed, status=Status.PENDING, outcome=None)
        await onlooker.see_nobody(url)
        assert await stores[1].get("r1") == lapsed
    onlooker.close()


@pytest.mark.usefixtures("impatient")
async def test_they_hold_none_to_a_pooler_either(make_postgresql_database: MakeDatabase, pooled: Pooled) -> None:
    url = pooled(make_postgresql_database())
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(SqlApprovalStore(url, clock=FakeClock())) for _ in range(STORES)]
        async with asyncio.timeout(TIMEOUT):
            while await asyncio.to_thread(clients_of, url):
                pass
        await asyncio.gather(*(store.add(a_request(f"r{n}")) for n, store in enumerate(stores)))
        assert await asyncio.to_thread(clients_of, url) == STORES


@pytest.mark.usefixtures("impatient")
async def test_a_page_that_asks_all_the_time_what_waits_asks_the_database_only_while_something_is_open(
    make_postgresql_database: MakeDatabase,
) -> None:
    url = make_postgresql_database()
    onlooker = Onlooker(make_postgresql_database())
    waiting = ApprovalQuery(statuses=(Status.PENDING,))
    async with SqlApprovalStore(url, clock=FakeClock()) as store:
        await store.adopt_abandoned()
        before = await onlooker.commits(url)
        for _ in range(STORES):
            assert not (await store.list(waiting)).approvals
        assert await onlooker.commits(url) - before < STORES / 2

        request = a_request()
        await store.add(request)
        assert [one.id for one in (await store.list(waiting)).approvals] == ["r1"]
        assert await store.replace_if(request.lapse(Lapse.TIMED_OUT, at=NOON), status=Status.PENDING, outcome=None)
        assert not (await store.list(waiting)).approvals
        await onlooker.see_nobody(url)
        assert not (await store.list(waiting)).approvals
        assert [one.id for one in (await store.list(ApprovalQuery())).approvals] == ["r1"]
    onlooker.close()


async def test_a_connection_is_kept_for_who_uses_it_and_not_for_a_look(
    make_postgresql_database: MakeDatabase,
) -> None:
    url = make_postgresql_database()
    onlooker = Onlooker(make_postgresql_database())
    looking, used = SqlApprovalStore(url, clock=FakeClock()), SqlApprovalStore(url, clock=FakeClock())
    await looking.adopt_abandoned()
    await onlooker.see_nobody(url)
    await used.open()
    await used.adopt_abandoned()
    await looking.adopt_abandoned()
    async with asyncio.timeout(TIMEOUT):
        while await onlooker.connections(url) != 1:
            pass
    await looking.aclose()
    await used.aclose()
    onlooker.close()


@pytest.mark.usefixtures("impatient")
async def test_who_was_cut_off_like_everybody_keeps_its_requests_though_nobody_else_was_connected(
    make_postgresql_database: MakeDatabase,
) -> None:
    url = make_postgresql_database()
    async with SqlApprovalStore(url, clock=FakeClock()) as one, SqlApprovalStore(url, clock=FakeClock()) as idle:
        await one.add(a_request())
        count_back(url, 600)  # the database was away
        async with asyncio.timeout(TIMEOUT):
            assert not await idle.adopt_abandoned()
            while idle.is_look_due():
                assert not await idle.adopt_abandoned()

        lapsed = a_request().lapse(Lapse.TIMED_OUT, at=NOON)
        assert await one.replace_if(lapsed, status=Status.PENDING, outcome=None)


@pytest.mark.usefixtures("impatient")
async def test_a_turn_is_interrupted_though_each_look_at_it_has_a_connection_of_its_own(
    make_postgresql_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a new connection nobody counts as gone, and who looks now and then has no other."""
    monkeypatch.setattr(leases, "GRACE", 1.0)
    url, onlooker = make_postgresql_database(), Onlooker(make_postgresql_database())
    gone, here = SqlThreadStore(url, clock=FakeClock()), SqlThreadStore(url, clock=FakeClock())
    await gone.put(Thread(id="th1", created_at=NOON, updated_at=NOON, name="October"))
    await gone.begin(Turn(id="t1", thread_id="th1", started_at=NOON))
    await gone.aclose()  # it says nothing of its end
    count_back(url, SILENCE + 1)

    first = await here.get_turn("t1")
    await onlooker.see_nobody(url)
    second = await here.get_turn("t1")
    await here.aclose()
    onlooker.close()

    assert (first.status, second.status) == (TurnStatus.IN_PROGRESS, TurnStatus.INTERRUPTED)
