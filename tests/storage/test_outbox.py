"""Records that wait for audit sinks in a Hub service's database: their order and chain, and how far sinks have come."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from jupyter_agentbox.core.audit_trail import check_trail
from jupyter_agentbox.core.calls import MAX_DEPTH, JsonValue
from jupyter_agentbox.storage import outbox_reader
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.outbox import Outbox, add_records
from jupyter_agentbox.storage.outbox_reader import Backlog, OutboxReader, SealedRecord, place_of, user_of
from jupyter_agentbox.testing import FakeClock, FakeIds

CLOCK = FakeClock()
OUTBOX = Outbox(clock=CLOCK, whose={"hub": "h"}, fields=lambda _: {})


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database of either kind."""
    if request.param == "sqlite":
        return sqlite_url(str(tmp_path / "hub.sqlite"))
    make: Callable[[], str] = request.getfixturevalue("make_postgresql_database")
    return make()


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[OutboxReader]:
    """Open the outbox of a database."""
    reader = OutboxReader(url, clock=CLOCK, ids=FakeIds())
    try:
        yield reader
    finally:
        await reader.aclose()


async def add(reader: OutboxReader, *events: str) -> None:
    """Add records, and seal them."""
    for event in events:
        await reader.add(OUTBOX.own(event, {}))
    assert not await reader.seal()


def events(records: object) -> list[str]:
    """Return what sealed records are about."""
    assert isinstance(records, list)
    return [json.loads(record.line)["event"] for record in records]


async def test_records_are_removed_once_all_sinks_have_them_and_the_chain_goes_on(url: str) -> None:
    async with reading(url) as reader:
        await reader.open(["a", "b"])
        await add(reader, "one", "two")
        first = await reader.next("a")
        assert events(first) == ["one", "two"]
        await reader.sent("a", 2)
        await reader.sent("b", 1)
        assert (events(await reader.next("a")), events(await reader.next("b"))) == ([], ["two"])
        await reader.sent("b", 2)
        await add(reader, "three")
        last = await reader.next("b")
        assert [record.position for record in last] == [3]
        (chain,), strange = check_trail([record.line.decode() for record in [*first, *last]])
        assert (chain.records, chain.is_whole, strange) == (3, True, 0)


async def test_lines_of_users_servers_are_sent_as_they_are_and_are_in_no_chain_of_the_service(
    url: str,
) -> None:
    async with reading(url) as reader:
        await reader.open(["a"])
        await reader.add(OUTBOX.own("one", {}))
        await reader.add(OUTBOX.line(b'{"a":\t1,\r"b":"\\r\\n\\t"}'))
        await add(reader, "two")
        one, line, two = await reader.next("a")
        assert line == SealedRecord(2, b'{"a":1,"b":"\\r\\n\\t"}')
        assert [json.loads(record.line)["sequence"] for record in (one, two)] == [1, 2]


async def test_a_new_sink_gets_what_others_have_not_accepted_and_what_only_a_former_one_lacks_is_counted(
    url: str,
) -> None:
    async with reading(url) as reader:
        assert await reader.open(["old", "up-to-date"]) == 0
        await add(reader, "one", "two", "three")
        await reader.sent("old", 1)
        await reader.sent("up-to-date", 3)
        assert await reader.open(["new", "up-to-date"]) == 0
        assert events(await reader.next("new")) == ["two", "three"]
        assert await reader.open(["up-to-date"]) == 2
        assert await reader.open(["up-to-date", "late"]) == 0
        assert await reader.next("late") == []
        assert await reader.backlogs(["up-to-date", "late"]) == [Backlog(), Backlog()]


async def test_a_backlog_is_counted_before_and_after_records_are_sealed(url: str) -> None:
    async with reading(url) as reader:
        await reader.open(["a"])
        made = CLOCK.now()
        await reader.add(OUTBOX.own("one", {}))
        CLOCK.advance(5)
        await reader.add(OUTBOX.own("two", {}))
        waits = Backlog(records=2, oldest=made)
        assert await reader.backlogs(["a"]) == [waits]
        await reader.seal()
        assert await reader.backlogs(["a"]) == [waits]
        await reader.sent("a", 1)
        assert await reader.backlogs(["a"]) == [Backlog(records=1, oldest=CLOCK.now())]


async def test_only_so_many_records_are_read_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(url) as reader:
        monkeypatch.setattr(outbox_reader, "_STEP", 2)
        await reader.open(["a"])
        for event in ("one", "two", "three"):
            await reader.add(OUTBOX.own(event, {}))
        assert await reader.seal()
        assert not await reader.seal()
        assert events(await reader.next("a")) == ["one", "two"]


async def test_only_so_many_refused_records_are_stored_each_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(url) as reader:
        monkeypatch.setattr(outbox_reader, "MOST_REFUSED", 2)
        await reader.open(["a", "b"])
        stored = [
            await reader.set_aside("a", SealedRecord(number, b"{}"), "it answered 400") for number in (1, 1, 2, 3)
        ]
        assert stored == [True, True, True, False]
        assert await reader.set_aside("b", SealedRecord(3, b"{}"), "it answered 400")


async def test_refused_records_are_counted_by_their_user_and_sink(url: str) -> None:
    async with reading(url) as reader:
        await reader.open(["a", "b"])
        for number, user in enumerate(("ada", "eve", "eve"), start=1):
            await reader.set_aside("a", SealedRecord(number, b'{"user":"%s"}' % user.encode()), "it answered 400")
            assert await reader.refused_of("a", user) == max(1, number - 1)
        await reader.set_aside("a", SealedRecord(4, b'{"event":"stopped"}'), "it answered 400")
        assert [await reader.refused_of("a", user) for user in ("ada", "eve", "bob", "")] == [1, 2, 0, 1]
        assert await reader.refused_of("b", "eve") == 0
        for number in (5, 6):
            deep = b'{"user":' + b"[" * 5000 + b"]" * 5000 + b"}"
            await reader.set_aside("b", SealedRecord(number, deep), "it answered 400")
            assert await reader.refused_of("b", user_of(deep)) == number - 4
        assert place_of(deep) == "one that cannot be read"


async def test_a_record_that_cannot_be_sealed_as_it_is_stops_no_other(url: str) -> None:
    deep: JsonValue = "x"
    for _ in range(MAX_DEPTH):
        deep = [deep]
    async with reading(url) as reader:
        await reader.open(["a"])
        await reader.add(OUTBOX.own("one", {"user": "ada", "arguments": {"deep": deep}}))
        await add(reader, "two")
        records = [json.loads(record.line) for record in await reader.next("a")]
        told = [(one["event"], one.get("user"), one.get("shortened"), one.get("arguments")) for one in records]
        assert told == [("one", "ada", True, None), ("two", None, None, None)]
        (chain,), _ = check_trail([record.line.decode() for record in await reader.next("a")])
        assert chain.is_whole


async def test_a_record_whose_transaction_commits_later_than_a_later_one_is_skipped_by_no_sink(
    make_postgresql_database: Callable[[], str],
) -> None:
    url = make_postgresql_database()
    reader = OutboxReader(url, clock=CLOCK, ids=FakeIds())
    await reader.open(["a"])
    engine = create_engine(url)
    with engine.connect() as slow:
        add_records(slow, [OUTBOX.own("slow", {})])
        await add(reader, "quick")
        (quick,) = await reader.next("a")
        await reader.sent("a", quick.position)
        slow.commit()
    await reader.seal()
    assert events(await reader.next("a")) == ["slow"]
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM agentbox_outbox")) == 1
    engine.dispose()
    await reader.aclose()
