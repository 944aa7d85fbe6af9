"""One Hub service for each database: who takes it, who is refused, and that nobody writes who has lost it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Row, create_engine

from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.service_claims import Process
from jupyter_agentbox.exceptions import DatabaseHeldError, StorageError
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.reports import SqlReportLog
from jupyter_agentbox.storage.service_claim import ServiceClaim, service
from jupyter_agentbox.testing import FakeClock
from tests.samples import a_request

Make = Callable[..., ServiceClaim]
TIMEOUT = 60
#: A holder that shows within some seconds that it is alive, and has more than enough of them on a busy machine.
ALIVE = 12.0
only_postgresql = pytest.mark.parametrize("url", ["postgresql"], indirect=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        made: str = request.getfixturevalue("make_postgresql_database")()
        return made
    return sqlite_url(str(tmp_path / "hub.sqlite"))


@pytest.fixture
def make(url: str) -> Iterator[Make]:
    made: list[ServiceClaim] = []

    def make(id: str, *, machine: str = "", timeout: float = 20.0, ended: bool = False) -> ServiceClaim:
        process = Process(id=id, host=f"host-of-{id}", pid=41, machine=machine, started="9")
        made.append(ServiceClaim(url, process=process, has_ended=lambda *_: ended, timeout=timeout))
        return made[-1]

    yield make
    for claim in made:
        asyncio.run(claim.aclose())


def change(url: str, **values: object) -> None:
    """Write into the row behind the back of the claim."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(service.update().values(**values))
    engine.dispose()


def rename(url: str, name: str, new: str) -> None:
    """Rename a table."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {name} RENAME TO {new}")
    engine.dispose()


def held(url: str) -> Row[Any]:
    """Read the row as somebody else does."""
    engine = create_engine(url)
    with engine.connect() as connection:
        row = connection.execute(service.select()).one()
    engine.dispose()
    return row


async def lost(claim: ServiceClaim) -> None:
    async with asyncio.timeout(TIMEOUT):
        await claim.lost.wait()


async def test_a_second_service_is_refused_and_told_who_holds_the_database(make: Make, url: str) -> None:
    one = make("one", timeout=ALIVE)
    await one.take()
    with pytest.raises(DatabaseHeldError, match=r"process 41 on host-of-one, since 2.*End that process first"):
        await make("two").take()
    assert held(url).holder == "one"
    assert not one.lost.is_set()


async def test_of_services_that_start_in_the_same_moment_one_takes_the_database(make: Make) -> None:
    results = await asyncio.gather(
        *(make(f"s{number}", timeout=ALIVE).take() for number in range(5)), return_exceptions=True
    )
    assert sorted(type(result).__name__ for result in results) == [*["DatabaseHeldError"] * 4, "NoneType"]


async def test_who_gave_it_up_is_followed_at_once(make: Make) -> None:
    one, two = make("one", timeout=1e6), make("two")
    await one.take()
    assert not one.follows
    await one.aclose()
    async with asyncio.timeout(TIMEOUT):
        await two.take()
    assert two.follows


async def test_who_ended_on_the_same_machine_is_followed_at_once(make: Make) -> None:
    await make("one", machine="m", timeout=1e6).take()
    async with asyncio.timeout(TIMEOUT):
        await make("two", machine="m", ended=True).take()


@pytest.mark.parametrize("machine", ["", "other"])
async def test_a_number_of_another_machine_says_nothing(make: Make, machine: str) -> None:
    """Who would be gone by its number, on a machine that is not this one, is watched and found alive."""
    await make("one", machine="m", timeout=ALIVE).take()
    with pytest.raises(DatabaseHeldError):
        await make("two", machine=machine, ended=True).take()


async def test_who_lost_the_database_hears_of_it_and_writes_nothing(make: Make, url: str) -> None:
    one = make("one", timeout=1e6)  # gives no sign of life: the next write finds out
    await one.take()
    store = SqlApprovalStore(url, clock=FakeClock(), service_claim=one)
    reports = SqlReportLog(url, clock=FakeClock(), service_claim=one)
    await store.add(a_request())
    request = await store.get("r1")
    change(url, holder="two")

    for write in (
        lambda: store.replace_if(request, status=Status.PENDING, outcome=None),
        lambda: store.add(a_request(id="r2")),
        lambda: reports.append("ada", []),
        store.adopt_abandoned,
        store.leave,
    ):
        with pytest.raises(DatabaseHeldError, match="ends"):
            await write()
    await lost(one)
    change(url, holder="one")  # never again, whatever the row says
    with pytest.raises(DatabaseHeldError):
        await store.adopt_abandoned()
    assert (await store.get("r1")).status is Status.PENDING
    await store.aclose()
    await reports.aclose()


async def test_a_sign_of_life_finds_out_that_the_database_was_lost(make: Make, url: str) -> None:
    one = make("one", timeout=1.0)
    await one.take()
    change(url, holder="two")
    await lost(one)


async def test_a_clock_that_jumps_takes_the_database_from_nobody(make: Make, url: str) -> None:
    one = make("one", timeout=ALIVE)
    await one.take()
    for since in (0, 4_000_000_000_000_000):
        change(url, since=since)
        with pytest.raises(DatabaseHeldError):
            await make(f"after {since}").take()


async def waits(claim: ServiceClaim) -> None:
    async with asyncio.timeout(TIMEOUT):
        while claim.other_since is None:  # noqa: ASYNC110  # nothing says when
            await asyncio.sleep(0)


async def test_who_stands_by_waits_for_a_holder_that_lives_and_follows_it_at_once(make: Make, url: str) -> None:
    """The holder gives signs of life meanwhile, each of which would refuse who does not stand by."""
    one, two = make("one", timeout=ALIVE), make("two", timeout=ALIVE)
    await one.take()
    taking = asyncio.create_task(two.take_in_turn(asyncio.Event()))
    await waits(two)
    assert (two.other_since, two.since) == (one.since, None)
    before = held(url).beat
    async with asyncio.timeout(TIMEOUT):
        while (await asyncio.to_thread(held, url)).beat < before + 2:
            pass
    assert not taking.done()
    await one.aclose()
    async with asyncio.timeout(TIMEOUT):
        assert await taking
    assert held(url).holder == "two"
    assert (two.other_since, two.follows) == (None, True)


async def test_who_stands_by_follows_a_holder_that_falls_silent(make: Make, url: str) -> None:
    two = make("two")
    await make("one", timeout=1e6).take()  # gives no sign of life
    change(url, timeout=1.0)
    async with asyncio.timeout(TIMEOUT):
        assert await two.take_in_turn(asyncio.Event())
    assert held(url).holder == "two"


async def test_of_two_that_stand_by_one_follows(make: Make) -> None:
    one = make("one", timeout=ALIVE)
    await one.take()
    stopped = asyncio.Event()
    standing = [make("two", timeout=ALIVE), make("three", timeout=ALIVE)]
    tasks = [asyncio.create_task(claim.take_in_turn(stopped)) for claim in standing]
    for claim in standing:
        await waits(claim)
    await one.aclose()
    await asyncio.wait(tasks, timeout=TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
    stopped.set()
    assert sorted(await asyncio.gather(*tasks)) == [False, True]


async def test_who_stands_by_and_is_stopped_has_taken_nothing(make: Make, url: str) -> None:
    one, two, stopped = make("one", timeout=1e6), make("two"), asyncio.Event()
    await one.take()
    taking = asyncio.create_task(two.take_in_turn(stopped))
    await waits(two)
    stopped.set()
    assert not await taking
    await two.aclose()
    assert held(url).holder == "one"


async def test_who_stands_by_for_a_database_that_cannot_be_opened_is_told(make: Make, tmp_path: Path) -> None:
    claim = ServiceClaim(
        sqlite_url(str(tmp_path)), process=make("one")._process, has_ended=lambda *_: False, timeout=20.0
    )
    with pytest.raises(StorageError):
        await claim.take_in_turn(asyncio.Event())
    await claim.aclose()


@only_postgresql  # SQLite has no connection that another can cut
async def test_who_stands_by_waits_for_a_database_that_is_away(make: Make, url: str) -> None:
    """The time for which the holder was silent is counted anew: it could give no sign of life."""
    one, two = make("one", timeout=1e6), make("two")
    await one.take()
    taking = asyncio.create_task(two.take_in_turn(asyncio.Event()))
    await waits(two)
    rename(url, "agentbox_hub_service", "elsewhere")  # a statement on it fails, as where no server is
    async with asyncio.timeout(TIMEOUT):
        while two.other_since is not None:  # noqa: ASYNC110  # nothing says when
            await asyncio.sleep(0)
    rename(url, "elsewhere", "agentbox_hub_service")
    await waits(two)
    assert not taking.done()
    await one.aclose()
    async with asyncio.timeout(TIMEOUT):
        assert await taking


@only_postgresql  # SQLite has no connection that another can cut
async def test_a_holder_whose_connection_is_cut_keeps_the_database(make: Make, url: str) -> None:
    """The database started anew: each connection broke."""
    one = make("one", timeout=2.0)
    await one.take()
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
    engine.dispose()
    store = SqlApprovalStore(url, clock=FakeClock(), service_claim=one)
    assert await store.add(a_request())
    await store.aclose()
    before = held(url).beat
    async with asyncio.timeout(TIMEOUT):
        while (await asyncio.to_thread(held, url)).beat <= before:
            pass
    assert held(url).holder == "one"
    assert not one.lost.is_set()


@only_postgresql  # SQLite has one writer at a time
async def test_nobody_takes_the_database_while_a_transaction_writes(make: Make, url: str) -> None:
    """Who looked whether the claim holds may rely on it until the commit."""
    one = make("one", machine="m", timeout=1e6)
    await one.take()
    engine = create_engine(url)
    with engine.begin() as connection:
        one.check(connection)
        taking = asyncio.create_task(make("two", machine="m", ended=True).take())
        other = create_engine(url)
        with other.connect() as looking:
            waits = (
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            async with asyncio.timeout(TIMEOUT):
                while not looking.exec_driver_sql(waits).scalar():
                    looking.rollback()
                    await asyncio.sleep(0)
        other.dispose()
        assert not taking.done()
        one.check(connection)
    engine.dispose()
    async with asyncio.timeout(TIMEOUT):
        await taking


async def test_what_was_open_is_adopted_at_once_by_who_follows(make: Make, url: str) -> None:
    one, two = make("one", machine="m", timeout=1e6), make("two", machine="m", ended=True)
    await one.take()
    first = SqlApprovalStore(url, clock=FakeClock(), service_claim=one)
    await first.add(a_request())
    await two.take()  # the first still has its lock, and gave signs of life: it is frozen
    second = SqlApprovalStore(url, clock=FakeClock(), service_claim=two)
    assert [request.id for request in await second.adopt_abandoned()] == ["r1"]
    with pytest.raises(DatabaseHeldError):
        await first.adopt_abandoned()
    await first.aclose()
    await second.aclose()
