"""The way of records to a place that has its troubles."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from jupyter_agentbox.audit_sinks.spool import Spool
from jupyter_agentbox.services.audit.deliveries import Delivery


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
