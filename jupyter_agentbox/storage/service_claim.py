"""The claim of the single process that runs the Hub service on a database.

Each write transaction first checks that the claim is still this process's, and keeps others from taking it until the
transaction ends. So a process that was frozen, and whose claim another took in the meantime, writes nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import BigInteger, Column, Connection, Float, Integer, MetaData, Row, Table, Text, inspect, select, text
from sqlalchemy.dialects import postgresql, sqlite

from jupyter_agentbox.core.pagination import from_microseconds
from jupyter_agentbox.core.service_claims import BEATS, Claim, NextStep, Process, Sighting, judge, refusal
from jupyter_agentbox.exceptions import DatabaseHeldError, StorageError

from .database import Database
from .group_commit import GroupCommitter
from .leases import DATABASE_TIME

log = logging.getLogger(__name__)

#: Seconds between two looks at a holder that may be gone.
_LOOK: Final = 0.5
#: Seconds after which PostgreSQL ends a transaction in which a frozen process does nothing, so that its lock goes.
_IDLE: Final = 10.0
_DATABASE_TIME: Final = {
    "postgresql": DATABASE_TIME,
    "sqlite": text("SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"),
}

#: One row: who holds the database; no `holder` if nobody does. It is the service's, and no part of `MIGRATIONS`.
service: Final = Table(
    "agentbox_hub_service",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("machine", Text, nullable=False),
    Column("started", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("beat", BigInteger, nullable=False),
    Column("timeout", Float, nullable=False),
)
_NOBODY: Final = {
    "id": 1,
    "holder": "",
    "host": "",
    "pid": 0,
    "machine": "",
    "started": "",
    "since": 0,
    "beat": 0,
    "timeout": 0.0,
}
_MAKE_ROW: Final = {
    "sqlite": sqlite.insert(service).values(_NOBODY).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(service).values(_NOBODY).on_conflict_do_nothing(),
}
_ROW: Final = select(service).where(service.c.id == 1)
#: Does not keep the holder from counting up, and keeps others from taking the row.
_CHECK: Final = {
    "sqlite": text("SELECT holder FROM agentbox_hub_service WHERE id = 1"),
    "postgresql": text(
        "SELECT holder, set_config('idle_in_transaction_session_timeout', :idle, true)"
        " FROM agentbox_hub_service WHERE id = 1 FOR KEY SHARE"
    ).bindparams(idle=str(int(_IDLE * 1000))),
}


def make_claim_table(connection: Connection) -> None:
    """Create the table and its row, in the caller's transaction, if they are missing."""
    if not inspect(connection).has_table(service.name):
        if connection.dialect.name == "postgresql":  # two services may start at once
            connection.execute(text("SELECT pg_advisory_xact_lock(72057594037930)"))
        service.create(connection, checkfirst=True)
    connection.execute(_MAKE_ROW[connection.dialect.name])


class ServiceClaim:
    """The claim of this process on a database.

    Parameters
    ----------
    url : str
        The SQLAlchemy URL of the service's database.
    process : Process
        This process.
    has_ended : callable
        Returns whether a process of this machine has ended, given its id and its start time.
    timeout : float
        Seconds without a heartbeat after which another process may take over.
    busy_timeout : float
        How long to wait for another process's lock, in seconds.

    Attributes
    ----------
    lost : asyncio.Event
        Set when another has taken the database: this process has to end.
    follows : bool
        Whether another process held the database before, so that everyone who ever used it had a claim.
    since : str or None
        Since when this process holds the database, in ISO 8601; ``None`` before `take`.
    other_since : str or None
        While `take` waits: since when another process holds it; ``None`` if nobody does, or that is unknown.
    """

    def __init__(
        self,
        url: str,
        *,
        process: Process,
        has_ended: Callable[[int, str], bool],
        timeout: float,
        busy_timeout: float = 10.0,
    ) -> None:
        self.lost = asyncio.Event()
        self.follows = False
        self.since: str | None = None
        self.other_since: str | None = None
        self._process = process
        self._has_ended = has_ended
        self._timeout = timeout
        self._is_lost = False
        self._is_held = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._database = Database(
            url, journal_mode=None, busy_timeout=busy_timeout, on_connect=make_claim_table, brings_up_to_date=False
        )
        self._committer = GroupCommitter(self._database, on_interval=self._beat, interval=lambda: timeout / BEATS)

    async def take(self) -> None:
        """Take the database once it is certain that no other process uses it.

        If another process held it and did not record its end, this takes as long as that process's own timeout.

        Raises
        ------
        DatabaseHeldError
            Another process uses it; the error says which one, and what to do.
        StorageError
        """
        self._loop = asyncio.get_running_loop()
        first: Sighting | None = None
        while True:
            step, claim = await self._look(first)
            if claim is None:
                return
            if step is NextStep.REFUSE:
                raise DatabaseHeldError(refusal(claim, since_of(claim)))
            if first is None:
                first = Sighting(claim=claim, at=time.monotonic())
                log.warning(
                    "process %d on %s has not given up this database: watching for up to %g s whether it is alive",
                    *(claim.process.pid, claim.process.host, claim.timeout),
                )
            await asyncio.sleep(_LOOK)

    async def take_in_turn(self, stopped: asyncio.Event) -> bool:
        """Take the database as soon as no other process uses it; wait as long as it takes, and while it is unreachable.

        Parameters
        ----------
        stopped : asyncio.Event
            Ends the wait.

        Returns
        -------
        bool
            Whether it was taken; if not, `stopped` was set.

        Raises
        ------
        StorageError
            The first attempt failed; most likely the database's URL is wrong.
        """
        self._loop = asyncio.get_running_loop()
        first: Sighting | None = None
        has_looked = is_away = False
        while not stopped.is_set():
            try:
                step, claim = await self._look(first)
            except StorageError as error:
                if not has_looked:
                    raise
                if not is_away:
                    log.warning("waiting for the database: %s", error)
                # Its holder cannot give signs of life either: how long it has been silent is counted anew.
                is_away, first, self.other_since = True, None, None
            else:
                if claim is None:
                    self.other_since = None
                    return True
                if first is None or step is NextStep.REFUSE:
                    first = Sighting(claim=claim, at=time.monotonic())
                if not has_looked or self.other_since != since_of(claim):
                    self.other_since = since_of(claim)
                    log.info(
                        "process %d on %s has held this database since %s: this one takes over when it has ended",
                        *(claim.process.pid, claim.process.host, self.other_since),
                    )
                has_looked, is_away = True, False
            await _wait(stopped, _LOOK)
        return False

    async def _look(self, first: Sighting | None) -> tuple[NextStep, Claim | None]:
        """Take the database if possible, and return ``None`` as the claim; else the step, and its holder's claim."""
        step, claim = await self._committer.run(lambda connection: self._attempt(connection, first), write=True)
        if step is not NextStep.TAKE:
            return step, claim
        self.since = None if claim is None else since_of(claim)
        self._is_held = True
        return step, None

    def check(self, connection: Connection) -> None:
        """Check the claim at the beginning of a write transaction; nobody takes it until the transaction ends.

        Raises
        ------
        DatabaseHeldError
            The claim is lost for good.
        """
        row = connection.execute(_CHECK[connection.dialect.name]).first()
        if row is None or row.holder != self._process.id or self._is_lost:
            self._lose()
            raise DatabaseHeldError(
                "another Hub service has taken this database: this one writes nothing more and ends"
            )

    def check_connection(self, connection: Connection) -> None:
        """Check the claim on a new connection, which may lead to another database."""
        make_claim_table(connection)
        self.check(connection)

    async def aclose(self) -> None:
        """Release the database if this process holds it, so that the next process need not wait."""
        if self._is_held and not self._is_lost:
            mine = service.update().where(service.c.id == 1, service.c.holder == self._process.id)
            try:
                await self._committer.run(lambda connection: connection.execute(mine.values(holder="")), write=True)
            except StorageError:
                log.exception(
                    "this service could not release its database: the next one has to wait until the claim times out"
                )
        self._is_held = False
        await self._committer.aclose()

    def _attempt(self, connection: Connection, first: Sighting | None) -> tuple[NextStep, Claim | None]:
        now = time.monotonic()
        claim = _claim_of(connection.execute(_ROW).one())
        step = self._judge(claim, first, now)
        if step is not NextStep.TAKE:
            return step, claim
        if connection.dialect.name == "postgresql":  # longer than a frozen holder can keep its lock
            connection.execute(text(f"SET LOCAL lock_timeout = '{int(2 * _IDLE)}s'"))
        row = connection.execute(_ROW.with_for_update()).one()
        claim = _claim_of(row)
        step = self._judge(claim, first, now)
        if step is NextStep.TAKE:
            self.follows = row.beat > 0
            claim = self._write(connection, row.beat + 1)
        return step, claim

    def _judge(self, claim: Claim | None, first: Sighting | None, now: float) -> NextStep:
        if claim is not None and claim.process.id == self._process.id:
            return NextStep.TAKE  # the answer to the first attempt was lost on its way
        return judge(claim, is_gone=self._is_gone(claim), first=first, now=now)

    def _is_gone(self, claim: Claim | None) -> bool:
        if claim is None or not claim.process.machine or claim.process.machine != self._process.machine:
            return False
        return self._has_ended(claim.process.pid, claim.process.started)

    def _write(self, connection: Connection, beat: int) -> Claim:
        mine = self._process
        now = connection.execute(_DATABASE_TIME[connection.dialect.name]).scalar_one()
        claim = Claim(process=mine, since=int(now), beat=beat, timeout=self._timeout)
        values = {
            "holder": mine.id,
            "host": mine.host,
            "pid": mine.pid,
            "machine": mine.machine,
            "started": mine.started,
            "since": claim.since,
            "beat": beat,
            "timeout": self._timeout,
        }
        connection.execute(service.update().where(service.c.id == 1).values(values))
        return claim

    def _beat(self, connection: Connection) -> None:
        """Write heartbeats, in the claim's own thread, which a busy event loop does not delay."""
        if not self._is_held:
            return
        mine = service.update().where(service.c.id == 1, service.c.holder == self._process.id)
        if connection.execute(mine.values(beat=service.c.beat + 1)).rowcount != 1:
            self._lose()

    def _lose(self) -> None:
        if self._is_held and not self._is_lost and self._loop is not None:
            self._is_lost = True
            self._loop.call_soon_threadsafe(self.lost.set)


async def _wait(stopped: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stopped.wait()


def since_of(claim: Claim) -> str:
    """Return since when a database has been held, for people and for JSON."""
    return from_microseconds(claim.since).isoformat(timespec="seconds").replace("+00:00", "Z")


def _claim_of(row: Row[Any]) -> Claim | None:
    if not row.holder:
        return None
    process = Process(id=row.holder, host=row.host, pid=row.pid, machine=row.machine, started=row.started)
    return Claim(process=process, since=row.since, beat=row.beat, timeout=row.timeout)
