"""``python -m bench.retention``: how long requests wait while a hundred thousand old ones are removed.

A store gets that many requests that ended a year ago. Then another one, which keeps a month, adds and reads a request
at a time, as a server does, until the old ones are gone. ``--prune`` removes them with the function behind
``jupyter agentbox db prune``, in another thread and by connections of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import create_engine, func, select

from jupyter_agentbox.core.approvals import ApprovalRequest, Lapse
from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.pruning import prune
from jupyter_agentbox.storage.retention import RetentionLimits
from jupyter_agentbox.storage.schema import approvals
from jupyter_agentbox.testing import FakeClock
from tests.postgresql import PostgreSQL
from tests.samples import NOON, a_request

DAYS = 30.0
LATER = NOON + timedelta(days=365)
KEEP_ALL = RetentionLimits(bytes=None, long_arguments=None)
#: A store looks at what it keeps once a twentieth of the least size was written, which is soon.
KEEP_A_MONTH = RetentionLimits(days=DAYS, bytes=None, long_arguments=1_000_000)
#: Seconds between two requests.
PAUSE = 0.005
#: How many requests are added at once, before the measurement.
AT_ONCE = 1000
#: How many are measured first, while nothing is removed.
COMPARED = 400
#: Old requests are counted each time that this many more were measured.
COUNT_EVERY = 20


def a_store(url: str, now: datetime, limits: RetentionLimits) -> SqlApprovalStore:
    return SqlApprovalStore(url, clock=FakeClock(now), limits=limits)


async def fill(url: str, count: int) -> None:
    async def add(request: ApprovalRequest) -> None:
        await store.add(request)
        await store.replace_if(request.lapse(Lapse.WITHDRAWN), status=request.status, outcome=None)

    async with a_store(url, NOON, KEEP_ALL) as store:
        for begin in range(0, count, AT_ONCE):
            numbers = range(begin, min(begin + AT_ONCE, count))
            await asyncio.gather(*(add(a_request(f"old{number}")) for number in numbers))


class Waits:
    """How many milliseconds adding and reading each request took."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._added: list[float] = []
        self._read: list[float] = []

    async def one_more(self, store: SqlApprovalStore) -> None:
        id = f"{self._name} {len(self._added)}"
        request = a_request(id, created_at=LATER, expires_at=LATER + timedelta(minutes=10))
        begun = time.perf_counter()
        await store.add(request)
        added = time.perf_counter()
        await store.get(id)
        self._added.append((added - begun) * 1000)
        self._read.append((time.perf_counter() - added) * 1000)
        await asyncio.sleep(PAUSE)

    def print(self) -> None:
        for name, times in (("add", sorted(self._added)), ("read", sorted(self._read))):
            print(
                f"{self._name}: {name:4} {len(times):6} times, median {times[len(times) // 2]:6.2f} ms,"
                f" 99 % {times[len(times) * 99 // 100]:7.2f} ms, longest {times[-1]:7.2f} ms",
                flush=True,
            )


class OldRequests:
    """The requests of a year ago, counted by a connection of its own."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(url)

    def count(self) -> int:
        is_old = approvals.c.created_at < microseconds(LATER)
        with self._engine.connect() as connection:
            return int(connection.scalar(select(func.count()).select_from(approvals).where(is_old)) or 0)


async def measure(url: str, *, by_prune: bool) -> None:
    compared, waits = Waits("nothing is removed"), Waits("old ones are removed")
    async with a_store(url, LATER, KEEP_ALL) as store:
        for _ in range(COMPARED):
            await compared.one_more(store)
    compared.print()

    old = OldRequests(url)
    total, begun = await asyncio.to_thread(old.count), time.monotonic()
    async with a_store(url, LATER, KEEP_ALL if by_prune else KEEP_A_MONTH) as store:
        pruning = asyncio.to_thread(prune, url, days=DAYS, now=LATER) if by_prune else asyncio.sleep(0)
        pruned = asyncio.ensure_future(pruning)
        while await asyncio.to_thread(old.count) or not pruned.done():
            for _ in range(COUNT_EVERY):
                await waits.one_more(store)
        seconds = time.monotonic() - begun
        await pruned
    waits.print()
    print(f"{total} requests were removed in {seconds:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.retention", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000, help="how many old ones there are")
    parser.add_argument("--postgresql", action="store_true", help="not SQLite")
    parser.add_argument("--prune", action="store_true", help="with the function behind `jupyter agentbox db prune`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        url = sqlite_url(str(Path(place) / "approvals.db"))
        if options.postgresql:
            server = PostgreSQL()
            server.start()
            stack.callback(server.remove)
            stack.callback(server.stop)
            url = server.make_database()
        begun = time.monotonic()
        asyncio.run(fill(url, options.requests))
        print(f"{options.requests} requests were stored in {time.monotonic() - begun:.1f} s", flush=True)
        asyncio.run(measure(url, by_prune=options.prune))


if __name__ == "__main__":
    main()
