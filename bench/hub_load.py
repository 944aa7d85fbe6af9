"""``python -m bench.hub load``: the Hub service with many users at once.

What it costs is told in time of a processor, which does not grow with what else the machine does; how long something
takes is told in seconds of the clock, which do.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil
from sqlalchemy import create_engine, text

from .hub_clients import Approver, Told, call
from .hub_flood import MOST
from .hub_service import WAIT, Service

#: Seconds from the beginning of a flood until calls are measured: those that come at once are in line by then.
ARRIVAL = 1.0


@dataclass
class Measured:
    """Calls that were measured, in seconds."""

    whole: list[float] = field(default_factory=list)
    added: list[float] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)

    async def call(self, service: Service, user: str, id: str, *, server: str = "bench") -> Told:
        """Call a tool that nobody is asked about."""
        began = time.perf_counter()
        told = await call(service, user, "allowed", id, server=server)
        took = time.perf_counter() - began
        self.states[told.state] += 1
        if told.state == "succeeded":
            self.whole.append(took)
            self.added.append(took - float(told.text))
        return told


class Processors:
    """The time of processors that the service has used since then, and its database."""

    def __init__(self, service: Service, database_pid: int | None) -> None:
        assert service.process is not None
        self._service = psutil.Process(service.process.pid)
        self._database = None if database_pid is None else psutil.Process(database_pid)
        self._before = self._now()

    def _now(self) -> tuple[float, float]:
        times = self._service.cpu_times()
        return times.user + times.system, 0.0 if self._database is None else _of_all(self._database)

    def used(self) -> tuple[float, float]:
        """Return the seconds of the service, and of its database."""
        now = self._now()
        return now[0] - self._before[0], now[1] - self._before[1]


def _of_all(process: psutil.Process) -> float:
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times) + times[0].children_user + times[0].children_system


class Table:
    """What was found beside what is wanted."""

    def __init__(self) -> None:
        self.is_well = True

    def row(self, what: str, found: float, unit: str, wanted: float | None = None) -> None:
        """Print a line."""
        told = f"{found:8.1f} {unit}" if found >= 10 else f"{found:8.2f} {unit}"
        if wanted is None:
            verdict = ""
        else:
            is_well = found < wanted
            self.is_well &= is_well
            verdict = f"wanted: under {wanted:g} {unit}: {'yes' if is_well else 'NO'}"
        print(f"  {what:62} {told:16} {verdict}", flush=True)


def p95(seconds: Sequence[float]) -> float:
    """Return the 95th percentile in milliseconds."""
    return 1000 * statistics.quantiles(seconds, n=20)[-1]


def median(seconds: Sequence[float]) -> float:
    """Return the median in milliseconds."""
    return 1000 * statistics.median(seconds)


async def at_rate(service: Service, users: Sequence[str], *, rate: float, seconds: float, server: str) -> Measured:
    """Let users call in turn, at a rate, however long the answers take."""
    measured, calls = Measured(), []
    began = time.monotonic()
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        user = users[number % len(users)]
        calls.append(asyncio.create_task(measured.call(service, user, f"{user}-{number}-{began}", server=server)))
    await asyncio.gather(*calls)
    return measured


async def load(service: Service, arguments: argparse.Namespace, database_pid: int | None) -> int:
    """Let users call at a rate, one user flood the service, and then many requests wait; print the table."""
    users = [f"user{number}" for number in range(arguments.users)]
    table = Table()
    wanted = f"{os.getloadavg()[0]:.1f} of {os.cpu_count()} processors"
    print(f"{len(users)} users; {wanted} are wanted by what runs on this machine")
    await _connected(service, users, table)
    await _steady(service, users, arguments, database_pid, table)
    for server in ("bench", "slow") if arguments.spans else ():
        await _flood(service, arguments, server, table)
    await _waiting(service, users, arguments, database_pid, table)
    print(f"  {os.getloadavg()[0]:.1f} processors were wanted at the end")
    return 0 if table.is_well else 1


async def _steady(
    service: Service, users: Sequence[str], arguments: argparse.Namespace, database_pid: int | None, table: Table
) -> None:
    processors, size = Processors(service, database_pid), _size(service)
    measured = await at_rate(service, users, rate=arguments.rate, seconds=arguments.seconds, server="bench")
    of_service, of_database = processors.used()
    count = sum(measured.states.values())
    print(f"{count} calls, {arguments.rate:g} a second: {dict(measured.states)}")
    table.row("a call beyond its tool's own time, median", median(measured.added), "ms")
    table.row("a call beyond its tool's own time, 95 of 100", p95(measured.added), "ms", 30)
    table.row("processor time of the service for a call", 1000 * of_service / count, "ms")
    if database_pid is not None:
        table.row("processor time of the database for a call", 1000 * of_database / count, "ms")
        table.row("growth of the database for a call", (_size(service) - size) / 1000 / count, "kB")


def _size(service: Service) -> float:
    """Return the bytes of a database of PostgreSQL; 0 of any other."""
    if not service.database_url.startswith("postgresql"):
        return 0.0
    engine = create_engine(service.database_url)
    with engine.connect() as connection:
        size = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
    engine.dispose()
    return float(size)


class Flooder:
    """A user who floods the service, in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, service: Service, server: str) -> Flooder:
        """Start the process, which does nothing yet."""
        command = [sys.executable, "-m", "bench.hub_flood", service.url, server]
        started = cls(await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE))
        await started._line()
        return started

    def begin(self) -> None:
        """Let it call as often as it can."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"flood\n")

    async def rest(self) -> None:
        """Let it stop, and wait until nothing of the flood is left."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"rest\n")
        await self._line()

    async def end(self) -> str:
        """End it; return what became of its calls."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        told = await self._line()
        await self._process.wait()
        return told

    async def _line(self) -> str:
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode().strip()


async def _flood(service: Service, arguments: argparse.Namespace, server: str, table: Table) -> None:
    """Let one user call as fast as they can in every second span of time, and another one calmly in all of them."""
    calm, flooded = Measured(), Measured()
    await call(service, "calm", "allowed", "first", server=server)
    flooder = await Flooder.start(service, server)
    for turn in range(2 * arguments.spans):
        if turn % 2:
            flooder.begin()
            await asyncio.sleep(ARRIVAL)
        found = await at_rate(service, ["calm"], rate=5, seconds=arguments.span, server=server)
        if turn % 2:
            await flooder.rest()
        into = flooded if turn % 2 else calm
        into.whole += found.whole
        into.states += found.states
    print(f"one user floods the service with {MOST} calls at once ({server} tool): {await flooder.end()}")
    for name, found in (("without it", calm), ("with it", flooded)):
        table.row(f"another user's call, median, {name}", median(found.whole), "ms")
        table.row(f"another user's call, 95 of 100, {name}", p95(found.whole), "ms")
    table.row("how much longer 95 of 100 take", 100 * (p95(flooded.whole) / p95(calm.whole) - 1), "%", 20)


async def _ask(service: Service, users: Sequence[str], count: int) -> list[asyncio.Task[Told]]:
    """Let users in turn call a tool that an approver is asked about, until all of these calls wait."""
    asked: list[asyncio.Task[Told]] = []
    while len(asked) < count:
        numbers = range(len(asked), min(count, len(asked) + len(users)))
        events = [asyncio.Event() for _ in numbers]
        asked += [
            asyncio.create_task(call(service, users[number % len(users)], "asked", f"{count}-{number}", event))
            for number, event in zip(numbers, events, strict=True)
        ]
        async with asyncio.timeout(WAIT):
            await asyncio.gather(*(event.wait() for event in events))
    return asked


async def _connected(service: Service, users: Sequence[str], table: Table) -> None:
    """Let each server be connected, with a call that waits; before that one of them has done all that once."""
    approver = Approver(service)
    for some in (users[:1], users):
        before = service.memory
        asked = await _ask(service, some, len(some))
        used = service.memory - before
        while await approver.allow_all():
            pass
        await asyncio.gather(*asked)
    print(f"each of the {len(users)} servers is connected, with a call that waits")
    table.row("memory of the service for each", used / len(users), "MB", 1)


async def _waiting(
    service: Service, users: Sequence[str], arguments: argparse.Namespace, database_pid: int | None, table: Table
) -> None:
    asked = await _ask(service, users, arguments.waiting)
    processors, times = Processors(service, database_pid), []
    for _ in range(20):
        began = time.perf_counter()
        await service.ask("api/requests", Authorization="Bearer approver")
        times.append(time.perf_counter() - began)
    print(f"{len(asked)} requests wait")
    table.row("a list of them, median", median(times), "ms", 200)
    table.row("a list of them, 95 of 100", p95(times), "ms")
    table.row("processor time of the service for a list", 1000 * processors.used()[0] / len(times), "ms")
    approver = Approver(service)
    processors, began = Processors(service, database_pid), time.perf_counter()
    while await approver.allow_all():
        pass
    states = Counter([told.state for told in await asyncio.gather(*asked)])
    print(f"all are allowed, and have run, after {time.perf_counter() - began:.1f} s: {dict(states)}")
    table.row("processor time of the service for one of them", 1000 * processors.used()[0] / len(asked), "ms")
