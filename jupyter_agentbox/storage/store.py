"""The base of every store in an SQL database: a connection in its own thread, and a lease on what is open."""

from __future__ import annotations

import asyncio
import time
from typing import Final
from uuid import uuid4

from sqlalchemy import Column, Connection

from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.exceptions import StorageError

from .database import Database, JournalMode, is_remote
from .group_commit import GroupCommitter, Timer, untimed
from .leases import owners_for
from .schema import schema
from .service_claim import ServiceClaim

#: Seconds for which the answer of `SqlStore.check_writable` holds: whoever asks often costs no commit each time.
_KNOWN: Final = 2.0


class SqlStore:
    """The base of stores that several server processes share. Each process owns what it is working on.

    Parameters
    ----------
    url : str
        A SQLAlchemy URL; `sqlite_url` makes one from a path. SQLite's directory and file are created if necessary, for
        this user only.
    clock : Clock
        Used where no file lock can tell which processes are alive.
    owned : Column
        The column with the process that owns a row of this store. While it owns one, its silence means its death.
    journal_mode : {"wal", "delete"}
        SQLite's journal. WAL does not work on network file systems, which do not always refuse it: choose "delete".
    busy_timeout : float
        How long a method waits for another process's lock, in seconds, before it raises `StorageError`.
    tenant : str or None
        The JupyterHub user to whom the database must belong; any other user's cannot be used.
    service_claim : ServiceClaim or None
        A Hub service's claim, without which nothing is written; under it no other process uses the database.
    timer : function, optional
        As for `GroupCommitter`.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        owned: Column[str | None],
        journal_mode: JournalMode = "wal",
        busy_timeout: float = 5.0,
        tenant: str | None = None,
        service_claim: ServiceClaim | None = None,
        timer: Timer = untimed,
    ) -> None:
        self._service_claim = service_claim
        self._clock = clock
        self._owner = uuid4().hex
        self._check: asyncio.Future[None] | None = None
        self._checked_at = 0.0
        self._database = Database(
            url,
            journal_mode=journal_mode,
            busy_timeout=busy_timeout,
            on_connect=self._claim,
            tenant=tenant,
            guard=service_claim,
        )
        self._owners = owners_for(
            self._database.path, owner=self._owner, clock=clock, is_remote=is_remote(url), owned=owned
        )
        self._committer = GroupCommitter(
            self._database,
            on_interval=self._owners.beat,
            interval=lambda: self._owners.interval,
            on_close=self._owners.release,
            timer=timer,
        )

    async def check_writable(self) -> None:
        """Read, and write something that changes nothing; the result of the latter is reused for two seconds.

        Raises
        ------
        StorageError
            The database is unreachable, full or read-only.
        """
        await self._committer.run(_look, write=False)
        if self._check is None or (self._check.done() and time.monotonic() - self._checked_at >= _KNOWN):
            self._checked_at = time.monotonic()
            self._check = asyncio.ensure_future(self._committer.run(_touch, write=True, durable=False))
            self._check.add_done_callback(_look_at)
        await asyncio.shield(self._check)

    async def leave(self) -> None:
        """Record that this process ends, so that the next can adopt at once what is open. Only `aclose` may follow.

        Raises
        ------
        StorageError
        """
        await self._committer.run(self._owners.leave, write=True)

    async def aclose(self) -> None:
        """Finish outstanding work and close the database."""
        await self._committer.aclose()

    def _claim(self, connection: Connection) -> None:
        """Record, on a new connection, that this process is alive."""
        self._owners.connect(connection)

    def _is_gone(self, connection: Connection, owner: str) -> bool:
        """Whether a process is gone; if only one process at a time uses the database, all others are."""
        return self._is_alone(owner) or self._owners.is_gone(connection, owner)

    def _is_forgotten(self, connection: Connection, owner: str) -> bool:
        """Whether a process is gone that may have had nothing open, and so no reason to write a heartbeat."""
        return self._is_alone(owner) or self._owners.is_forgotten(connection, owner)

    def _is_alone(self, owner: str) -> bool:
        is_alone = self._service_claim is not None and self._service_claim.follows
        return is_alone and owner != self._owner


def _look(connection: Connection) -> None:
    connection.execute(schema.select()).one()


def _touch(connection: Connection) -> None:
    """Write the version of the tables again: the commit fails if any other would."""
    if connection.execute(schema.update().values(version=schema.c.version)).rowcount != 1:
        raise StorageError("the approval store has lost the version of its tables")


def _look_at(check: asyncio.Future[None]) -> None:
    """Retrieve the error, in case nobody waits any more."""
    if not check.cancelled():
        check.exception()
