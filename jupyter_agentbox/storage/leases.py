"""Which server processes that share a database are alive, so that another can take over what a dead one left.

Each process holds a lock on a file of its own beside the database; the system lets go of it however the process ends,
so a lock that can be taken is a process that is gone. Where there is no file to lock (PostgreSQL, a database in memory,
no ``flock``), each process writes now and then that it was there, and one that has not for `SILENCE` seconds is gone.

A database that others reach over a network can be away from all of them. When it is back, nobody was there for a while,
and whoever is first must not take the others for gone: after each new connection, nobody counts as gone for `GRACE`
seconds. The same holds after a process could not say for a while that it was there itself, because a pooler between
(PgBouncer) keeps the connections of its clients while the database is away. The time is that of the database, because
the clocks of its servers may differ.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol

from sqlalchemy import Connection, select, text

from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.core.ports import Clock

from .schema import owners

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # the name says that there is none

#: Seconds between two signs of life.
HEARTBEAT: Final = 15.0
#: Seconds without a sign of life after which a process counts as gone.
SILENCE: Final = 90.0
#: Seconds after a new connection to a remote database in which nobody counts as gone.
GRACE: Final = 2 * SILENCE


#: Seconds after which the silence of a process itself shows that others may have been silenced, too.
_SILENCED: Final = SILENCE / 2
#: Stands for the last sign of life of a process that said that it goes.
_LEFT: Final = 0


class Leases(Protocol):
    """Knows who is alive."""

    @property
    def interval(self) -> float | None:
        """Seconds between two calls of `claim`; ``None`` if one is enough."""

    def connect(self, connection: Connection) -> None:
        """Say on a new connection that this process is alive."""

    def claim(self, connection: Connection) -> None:
        """Say that this process is alive."""

    def is_gone(self, connection: Connection, owner: str) -> bool:
        """Whether that process is gone. What is not known counts as alive."""

    def sweep(self, connection: Connection) -> None:
        """Remove the traces of all processes that are gone."""

    def leave(self, connection: Connection) -> None:
        """Say that this process is about to go, so that nobody has to wait for its silence."""

    def release(self) -> None:
        """Say that this process is gone."""


#: Microseconds since 1970 by the database's clock, also within a long transaction.
DATABASE_TIME: Final = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")


def owners_for(path: Path | None, *, owner: str, clock: Clock, is_remote: bool = False) -> Leases:
    """Return what can tell who is alive for a database at this path."""
    if path is None or fcntl is None:
        return HeartbeatLeases(owner=owner, clock=clock, grace=GRACE if is_remote else 0.0)
    return FileLockLeases(path.parent / "owners", owner=owner)


class FileLockLeases:
    """Owners by file locks.

    Parameters
    ----------
    directory : Path
        Where the lock files are.
    owner : str
        This process's id.
    """

    def __init__(self, directory: Path, *, owner: str) -> None:
        self._directory = directory
        self._path = directory / f"{owner}.lock"
        self._descriptor: int | None = None

    @property
    def interval(self) -> float | None:
        """One claim is enough."""
        return None

    def connect(self, connection: Connection) -> None:
        """Lock this process's file."""
        self.claim(connection)

    def claim(self, _connection: Connection) -> None:
        """Lock this process's file."""
        while not self._holds():
            self.release()
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)  # waits for a `sweep` at most

    def is_gone(self, _connection: Connection, owner: str) -> bool:
        """Whether nobody holds the lock of that process's file."""
        return _is_free(self._directory / f"{owner}.lock")

    def sweep(self, _connection: Connection) -> None:
        """Remove the files that nobody holds."""
        for path in self._directory.glob("*.lock"):
            if path != self._path and _is_free(path):
                path.unlink(missing_ok=True)

    def leave(self, _connection: Connection) -> None:
        """Do nothing: letting go of the lock says it."""

    def release(self) -> None:
        """Let go of the lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _holds(self) -> bool:
        """Whether the locked file is still the one at the path: a `sweep` may have come between open and lock."""
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return False


def _is_free(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


class HeartbeatLeases:
    """Owners by signs of life in a table.

    Parameters
    ----------
    owner : str
        This process's id.
    clock : Clock
        The time, where the database has no clock of its own.
    grace : float
        Seconds after a new connection in which nobody counts as gone.
    """

    def __init__(self, *, owner: str, clock: Clock, grace: float = 0.0) -> None:
        self._owner = owner
        self._clock = clock
        self._grace = int(grace * 1_000_000)
        self._connected_at = 0
        self._claimed_at = 0
        self._has_left = False

    @property
    def interval(self) -> float | None:
        """A sign of life every `HEARTBEAT` seconds."""
        return HEARTBEAT

    def connect(self, connection: Connection) -> None:
        """Write down that this process is here, and since when."""
        self._connected_at = self._claimed_at = self._now(connection)
        self.claim(connection)

    def claim(self, connection: Connection) -> None:
        """Write down that this process was here."""
        now = self._now(connection)
        self._notice_silence(now)
        self._claimed_at = now
        if not self._has_left:
            self._write(connection, now)

    def leave(self, connection: Connection) -> None:
        """Write down that this process is gone."""
        self._has_left = True
        self._write(connection, _LEFT)

    def _write(self, connection: Connection, now: int) -> None:
        seen = owners.update().where(owners.c.id == self._owner).values(seen_at=now)
        if connection.execute(seen).rowcount == 0:
            connection.execute(owners.insert().values(id=self._owner, seen_at=now))

    def is_gone(self, connection: Connection, owner: str) -> bool:
        """Whether that process was silent for too long, or never said anything."""
        now = self._now(connection)
        seen_at = connection.scalar(select(owners.c.seen_at).where(owners.c.id == owner))
        if seen_at == _LEFT:
            return True
        return not self._may_be_away(now) and (seen_at is None or seen_at < _limit(now))

    def sweep(self, connection: Connection) -> None:
        """Remove the rows of those who were silent for too long."""
        now = self._now(connection)
        if not self._may_be_away(now):
            connection.execute(owners.delete().where(owners.c.seen_at < _limit(now), owners.c.id != self._owner))

    def release(self) -> None:
        """Do nothing: silence says it."""

    def _notice_silence(self, now: int) -> None:
        if now - self._claimed_at > int(_SILENCED * 1_000_000):
            self._connected_at = now

    def _may_be_away(self, now: int) -> bool:
        """Whether others may have had no chance yet to say that they are there."""
        self._notice_silence(now)
        return now - self._connected_at < self._grace

    def _now(self, connection: Connection) -> int:
        if connection.dialect.name == "postgresql":
            return int(connection.execute(DATABASE_TIME).scalar_one())
        return microseconds(self._clock.now())


def _limit(now: int) -> int:
    return now - int(SILENCE * 1_000_000)
