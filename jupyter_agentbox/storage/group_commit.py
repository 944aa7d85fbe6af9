"""Group commit: one thread that puts everything which arrived during a commit into the next one.

A commit waits for the disk; a statement does not. Under load the number of waits is therefore the number of commits
and not the number of statements, and a lone write is committed at once. ::

    event loop     a ──┐   b c d ──┐
    thread             └ commit a ─┴ commit b c d ─ …

A patient write is one that nobody waits for. It waits a moment for others of its kind, and runs after the jobs that
somebody waits for; a read is preceded by all patient writes.

Most writes only have to survive this process. A batch in which no write has to survive the machine is not synced to
disk at once, but within `SYNC_DELAY`, together with others.

Within a batch the writes run first, in order, in one transaction; the reads follow. If one job of a batch fails, the
transaction is rolled back and every job gets its own transaction, so that none suffers for another.

A connection to a database server is closed when nobody has used it for `IDLE` seconds and nothing is due, because there
may be thousands of idle processes. The next job opens it again.

If anything ends the thread, even `aclose`, all waiting and later jobs fail: nobody waits for a thread that is gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

from sqlalchemy import Connection

from jupyter_agentbox.exceptions import StorageError

from .database import Database

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds after which what was written is on the disk, whatever happens.
SYNC_DELAY: Final = 0.05
#: Seconds that a patient job waits for others.
PATIENCE: Final = 0.005
#: Commits after each of which the write-ahead log gets the size that it will have, if it is smaller.
MANY_COMMITS: Final = 10
#: Called with the time that an operation took, in seconds, as whoever waited for it saw it.
Timer = Callable[["Operation", float], None]
#: Seconds without use after which the connection to a database server is closed.
IDLE: Final = 60.0


class Operation(str, Enum):
    """What a job does with the database."""

    READ = "read"
    """It writes nothing."""

    WRITE = "write"
    """What it writes survives this process, and is on disk a moment later."""

    DURABLE_WRITE = "durable_write"
    """What it writes is on disk when it ends."""


def untimed(_operation: Operation, _seconds: float) -> None:
    """Ignore how long an operation took."""


@dataclass(slots=True)
class _Ticket:
    job: Callable[[Connection], Any]
    write: bool
    durable: bool
    brief: bool
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


@dataclass(slots=True)
class _Gathered:
    """The jobs that one event loop has not yet handed over."""

    urgent: list[_Ticket] = field(default_factory=list)
    patient: list[_Ticket] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None


class GroupCommitter:
    """Runs jobs on a database in a separate thread.

    Parameters
    ----------
    database : Database
        Used, and closed, by that thread alone.
    on_interval : function, optional
        A write that is run every `interval` seconds.
    interval : function, optional
        Returns that interval in seconds; ``None`` while nothing is to be done.
    on_close : function, optional
        Called by the thread at its end.
    timer : function, optional
        Called after each job, also one that failed.
    """

    def __init__(
        self,
        database: Database,
        *,
        on_interval: Callable[[Connection], None] = lambda _: None,
        interval: Callable[[], float | None] = lambda: None,
        on_close: Callable[[], None] = lambda: None,
        timer: Timer = untimed,
    ) -> None:
        self._timer = timer
        self._database = database
        self._on_interval = on_interval
        self._interval = interval
        self._on_close = on_close
        self._sync_at: float | None = None
        self._beat_at = 0.0
        self._used_at = -inf
        self._commits = 0
        self._at_work: list[_Ticket] = []
        self._queue: SimpleQueue[list[_Ticket] | None] = SimpleQueue()
        self._gathered: dict[asyncio.AbstractEventLoop, _Gathered] = {}
        self._closed = False
        self._has_failed = False
        self._has_ended = False
        # A daemon: whoever waits for a commit is gone too when the interpreter ends without `aclose`.
        self._thread = Thread(target=self._run, name="agentbox-storage", daemon=True)
        self._started = False

    async def run(
        self,
        job: Callable[[Connection], T],
        *,
        write: bool,
        durable: bool = True,
        patient: bool = False,
        brief: bool = False,
    ) -> T:
        """Run the job in a transaction and return its result once that is committed.

        The job may run twice, the first time without effect. It runs even if the task that waits for it is cancelled.

        Parameters
        ----------
        job : callable
            The function to call.
        write : bool
            Whether it writes.
        durable : bool
            Whether its changes are on disk before this returns; otherwise they are within `SYNC_DELAY`.
        patient : bool
            Whether it waits for up to `PATIENCE`, so that all jobs that arrive meanwhile cost one commit.
        brief : bool
            Whether others are unlikely to follow, so that the connection need not be kept for them.

        Raises
        ------
        StorageError
        """
        if self._closed:
            raise StorageError(f"{self._database} is closed")
        if self._has_failed:
            raise self._failure()
        if not self._started:
            self._started = True
            self._thread.start()
        loop, began = asyncio.get_running_loop(), time.monotonic()
        future: asyncio.Future[T] = loop.create_future()
        # What is asked for in the same turn of the loop goes together: the thread is woken once, and commits once.
        gathered = self._gathered.get(loop)
        if gathered is None:
            gathered = self._gathered[loop] = _Gathered()
        ticket = _Ticket(job, write, durable, brief, future, loop)
        if patient:
            gathered.patient.append(ticket)
            if gathered.timer is None:
                gathered.timer = loop.call_later(PATIENCE, self._hand_over, loop)
        else:
            gathered.urgent.append(ticket)
            if len(gathered.urgent) == 1:
                loop.call_soon(self._hand_over_urgent, loop)
        try:
            return await future
        finally:
            if not future.cancelled():  # nobody waited until it ended
                self._timer(_operation(write=write, durable=durable), time.monotonic() - began)

    async def aclose(self) -> None:
        """Finish outstanding jobs, close the database and end the thread."""
        if not self._closed:
            self._closed = True
            for loop in list(self._gathered):
                self._hand_over(loop)
            self._queue.put(None)
        if self._started:
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _hand_over_urgent(self, loop: asyncio.AbstractEventLoop) -> None:
        gathered = self._gathered.get(loop)
        if gathered is None or not gathered.patient or not all(ticket.write for ticket in gathered.urgent):
            self._hand_over(loop)
            return
        urgent, gathered.urgent = gathered.urgent, []
        self._put(urgent)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        gathered = self._gathered.pop(loop, None)
        if gathered is None:
            return
        if gathered.timer is not None:
            gathered.timer.cancel()
        self._put([*gathered.patient, *gathered.urgent])

    def _put(self, tickets: list[_Ticket]) -> None:
        self._queue.put(tickets)
        if self._has_ended:  # since `run` looked
            self._fail_queued()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException:
            # The root of the thread. Who waits must hear of it, also if a job ended it with a SystemExit.
            log.exception("%s: its thread ended", self._database)
            self._has_failed = True
            _deliver([(ticket, self._failure()) for ticket in self._at_work])
        finally:
            self._has_ended = True  # first: whoever queues a job from now on, from another thread, looks at it
            self._fail_queued()

    def _failure(self) -> StorageError:
        if not self._has_failed:
            return StorageError(f"{self._database} is closed")
        return StorageError(f"{self._database} cannot be used until the server is restarted: see its log")

    def _fail_queued(self) -> None:
        """Fail the queued jobs, from any thread: they were queued while the store's thread ended."""
        with suppress(Empty):
            while True:
                _deliver([(ticket, self._failure()) for ticket in self._queue.get_nowait() or ()])

    def _work(self) -> None:
        self._beat_at = time.monotonic()
        try:
            while (tickets := self._next_batch()) is not None:
                self._at_work = tickets
                for write in (True, False):
                    batch = [ticket for ticket in tickets if ticket.write is write]
                    if batch:
                        _deliver(self._together(batch, write=write))
                self._at_work = []
                self._reserve_if_due()
                if not all(ticket.brief for ticket in tickets):
                    self._used_at = time.monotonic()
                self._sync_if_due()
                self._beat_if_due()
                self._close_if_idle()
        finally:
            if self._sync_at is not None:
                self._sync()
            self._database.close()
            self._on_close()

    def _next_batch(self) -> list[_Ticket] | None:
        """Wait for a job, until something else is due, and return all queued jobs; ``None`` at the end."""
        batch: list[_Ticket] = []
        try:
            tickets = self._queue.get(timeout=self._longest_wait())
            while tickets is not None:
                batch += tickets
                tickets = self._queue.get_nowait()
        except Empty:
            return batch
        self._queue.put(None)
        return batch or None

    def _longest_wait(self) -> float | None:
        interval = self._interval()
        times = [self._sync_at, self._idle_at, None if interval is None else self._beat_at + interval]
        return min((max(0.0, at - time.monotonic()) for at in times if at is not None), default=None)

    @property
    def _idle_at(self) -> float | None:
        """When the connection should be closed; ``None`` if it should stay open."""
        is_kept = not self._database.is_remote or not self._database.is_open or self._interval() is not None
        return None if is_kept else self._used_at + IDLE

    def _close_if_idle(self) -> None:
        idle_at = self._idle_at
        if idle_at is not None and time.monotonic() >= idle_at:
            self._database.close()

    def _reserve_if_due(self) -> None:
        """Enlarge the log of a process that writes often, once those who waited have their results."""
        if self._commits < MANY_COMMITS:
            return
        self._commits = 0
        if self._database.reserve_log() and self._sync_at is None:
            self._sync_at = time.monotonic() + SYNC_DELAY  # or the next decision would wait for all that was written

    def _sync_if_due(self) -> None:
        if self._sync_at is not None and time.monotonic() >= self._sync_at:
            self._sync()

    def _sync(self) -> None:
        self._sync_at = None
        try:
            self._database.sync()
        except StorageError as error:
            log.warning("%s", error)

    def _together(self, batch: Sequence[_Ticket], *, write: bool) -> list[tuple[_Ticket, Any]]:
        results: list[Any] = []
        begun = False
        durable = any(ticket.durable for ticket in batch)
        try:
            with self._database.transaction(write=write, durable=durable) as connection:
                begun = True
                for ticket in batch:
                    results.append(ticket.job(connection))  # noqa: PERF401 - how far it came counts
        except Exception as error:  # noqa: BLE001 - the boundary of the thread: who waits gets it
            if begun and len(results) < len(batch) > 1:
                return [pair for ticket in batch for pair in self._together([ticket], write=write)]
            return [(ticket, error) for ticket in batch]
        if write:
            self._wrote(durable=durable)
        return list(zip(batch, results, strict=True))

    def _wrote(self, *, durable: bool) -> None:
        self._commits += 1
        if durable:
            self._sync_at = None  # with it, all that was written before
        elif self._sync_at is None:
            self._sync_at = time.monotonic() + SYNC_DELAY

    def _beat_if_due(self) -> None:
        interval, now = self._interval(), time.monotonic()
        if interval is None:
            self._beat_at = now  # the first is due an interval after it is needed
        elif now - self._beat_at >= interval:
            self._beat_at = now
            self._beat()

    def _beat(self) -> None:
        try:
            with self._database.transaction(write=True) as connection:
                self._on_interval(connection)
        except StorageError as error:
            log.warning("%s", error)
        except Exception:
            # A boundary: what only has to be done from time to time does not end what everybody needs.
            log.exception("%s: what is done every %s s failed", self._database, self._interval())


def _operation(*, write: bool, durable: bool) -> Operation:
    if not write:
        return Operation.READ
    return Operation.DURABLE_WRITE if durable else Operation.WRITE


def _deliver(pairs: Sequence[tuple[_Ticket, Any]]) -> None:
    """Deliver the results, waking up each event loop once."""
    loops = {ticket.loop: None for ticket, _ in pairs}
    for loop in loops:
        mine = [pair for pair in pairs if pair[0].loop is loop]
        try:
            loop.call_soon_threadsafe(_resolve, mine)
        except RuntimeError:
            log.debug("the event loop was closed before %d results came", len(mine))


def _resolve(pairs: Sequence[tuple[_Ticket, Any]]) -> None:
    for ticket, result in pairs:
        if ticket.future.done():
            continue
        if isinstance(result, BaseException):
            ticket.future.set_exception(result)
        else:
            ticket.future.set_result(result)
