"""The way of records to a place that has its troubles."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from jupyter_agentbox.audit_sinks.spool import Spool
from jupyter_agentbox.exceptions import RecordsRejectedError
from jupyter_agentbox.services.audit.deliveries import Delivery
from jupyter_agentbox.services.audit.senders import DeliveryResult


class Place:
    """Takes so many records at a time, after so many failures."""

    name = "the place"

    def __init__(self, *, most: int = 1000, failures: Sequence[Exception] = ()) -> None:
        self.lines: list[bytes] = []
        self._most = most
        self._failures = list(failures)

    async def send(self, lines: Sequence[bytes]) -> None:
        if self._failures:
            raise self._failures.pop()
        if len(lines) > self._most:
            raise OSError("that is too much")
        self.lines += lines


class LastingSpool(Spool):
    """Its file cannot be shortened, as one of a file server that another machine has removed."""

    def sent(self, lines: Sequence[bytes]) -> None:
        raise OSError(f"stale file handle: {len(lines)} records")


class Picky(Place):
    """Refuses records that have a letter, and those that come with one."""

    def __init__(self) -> None:
        super().__init__()
        self._refusals = asyncio.Semaphore(0)

    async def has_refused(self, count: int) -> None:
        """Wait until it has refused so often."""
        for _ in range(count):
            await self._refusals.acquire()

    async def send(self, lines: Sequence[bytes]) -> None:
        if any(line.isalpha() for line in lines):
            self._refusals.release()
            raise RecordsRejectedError("it answered 400")
        await super().send(lines)


async def delivered(place: Place, directory: Path, kind: type[Spool] = Spool) -> list[bytes]:
    """Hand over ten records, and return what the place has then."""
    spool = kind.of(directory, address="x", chain="c1", most_bytes=1000)
    delivery = Delivery(place, spool, pause=0)
    delivery.start()
    receipts = [delivery.put(b"%d" % number) for number in range(10)]
    async with asyncio.timeout(60):
        await asyncio.gather(*(receipt.delivered for receipt in receipts))
        await delivery.aclose(0)
    return place.lines


async def test_a_place_that_takes_few_records_at_once_gets_all_of_them(tmp_path: Path) -> None:
    assert await delivered(Place(most=3), tmp_path) == [b"%d" % number for number in range(10)]


@pytest.mark.parametrize("failure", [OSError("down"), ValueError("no such host"), KeyError("time")])
async def test_whatever_goes_wrong_at_a_place_does_not_end_the_trail(tmp_path: Path, failure: Exception) -> None:
    assert len(await delivered(Place(failures=[failure, failure]), tmp_path)) == 10


async def test_records_that_cannot_be_removed_from_the_disk_do_not_end_the_trail(tmp_path: Path) -> None:
    assert len(await delivered(Place(most=3), tmp_path, LastingSpool)) == 10


async def test_a_record_that_a_place_refuses_for_ever_is_set_aside_and_those_behind_it_arrive(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place, counted = Picky(), dict.fromkeys(DeliveryResult, 0)

    def count(result: DeliveryResult, records: int) -> None:
        counted[result] += records

    spool = Spool.of(tmp_path, address="x", chain="c1", most_bytes=1000)
    delivery = Delivery(place, spool, pause=0, count=count)
    delivery.start()
    receipts = [delivery.put(line) for line in (b"1", b"a", b"2", b"3", b"b", b"4")]
    async with asyncio.timeout(60):
        results = await asyncio.gather(*(receipt.delivered for receipt in receipts), return_exceptions=True)
        await delivery.aclose(0)

    assert place.lines == [b"1", b"2", b"3", b"4"]
    assert [isinstance(result, OSError) for result in results] == [False, True, False, False, True, False]
    assert all(receipt.kept.done() and receipt.kept.exception() is None for receipt in receipts)
    (rejected,) = tmp_path.glob("*.rejected")
    assert rejected.read_bytes() == b"a\nb\n"
    assert rejected.stat().st_mode & 0o777 == 0o600
    assert counted == {DeliveryResult.DELIVERED: 4, DeliveryResult.REJECTED: 2, DeliveryResult.LOST: 0}
    errors = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    assert [str(rejected) in error for error in errors] == [True, True]


async def test_a_record_that_cannot_be_set_aside_is_handed_over_again_and_not_let_go_of(tmp_path: Path) -> None:
    place = Picky()
    spool = Spool.of(tmp_path, address="x", chain="c1", most_bytes=20)
    full = tmp_path / f"{spool.path.name[:16]}.rejected"
    full.write_bytes(b"x" * 19)
    delivery = Delivery(place, spool, pause=0)
    delivery.start()
    receipt = delivery.put(b"a")
    async with asyncio.timeout(60):
        await receipt.kept
        await place.has_refused(20)
        await delivery.aclose(0)
    assert not receipt.delivered.done()
    (left,) = Spool.left_behind(tmp_path, address="x", most_bytes=20)
    assert left.read(100) == [b"a"]
    left.close()


async def test_what_many_servers_left_is_opened_one_after_the_other(tmp_path: Path) -> None:
    for number in range(300):
        spool = Spool.of(tmp_path, address="x", chain=f"c{number:03}", most_bytes=1000)
        spool.append([b"%d" % number])
        spool.close()
    most = 0

    class Watching(Place):
        async def send(self, lines: Sequence[bytes]) -> None:
            nonlocal most
            most = max(most, sum(str(tmp_path) in str(one.resolve()) for one in Path("/proc/self/fd").iterdir()))
            await super().send(lines)

    place = Watching()
    spool = Spool.of(tmp_path, address="x", chain="new", most_bytes=1000)
    delivery = Delivery(
        place, spool, left_behind=lambda: Spool.left_behind(tmp_path, address="x", most_bytes=1000), pause=0
    )
    delivery.start()
    async with asyncio.timeout(60):
        await delivery.put(b"new").delivered
        await delivery.aclose(60)
    assert sorted(place.lines) == sorted([b"new", *(b"%d" % number for number in range(300))])
    assert most <= 2
    assert not list(tmp_path.iterdir())
