"""Which server processes that share a database are alive, so that another can take over what a dead one left.

Each process holds a lock on its own file beside the database. The system releases the lock however the process ends, so
if the lock can be taken, the process is gone. Where there is no file to lock (PostgreSQL, a database in memory, no
``flock``), each process writes a heartbeat now and then, and a process without one for `SILENCE` seconds is gone.

It writes heartbeats only while it owns something that somebody would have to close after its death; the first is part
of the transaction that makes something its own. The silence of a process that owns nothing means nothing.

A database on a network can become unreachable for all processes. When it is back, all have been silent for a while, and
the first one must not consider the others gone: after each new connection, nobody counts as gone for `GRACE` seconds.
The same holds after a time in which a process could not write its own heartbeat, because a pooler (PgBouncer) keeps its
clients' connections while the database is unreachable. The time is the database's, because the servers' clocks may
differ.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from sqlalchemy import Column, Connection, RootTransaction, literal_column, select, text
from sqlalchemy.dialects import postgresql, sqlite

from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.core.ports import Clock

from .liveness import Liveness, SeenAt
from .schema import approvals, owners

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
#: Seconds of silence after which even a process is gone that may have had no reason to give a sign of life.
FORGOTTEN: Final = 86_400.0

#: Seconds after which the silence of a process itself shows that others may have been silenced, too.
_SILENCED: Final = SILENCE / 2
#: Stands for the last sign of life of a process that said that it goes.
_LEFT: Final = 0


class Leases(Protocol):
    """Determines which processes are alive."""

    @property
    def interval(self) -> float | None:
        """Seconds between two calls of `beat`; ``None`` while none is needed."""

    @property
    def is_watching(self) -> bool:
        """Whether there is a process that may be gone, which is not yet certain."""

    @property
    def owns_nothing(self) -> bool:
        """Whether it is certain, without reading the database, that this process owns nothing."""

    def connect(self, connection: Connection) -> None:
        """Record, on a new connection, that this process is alive."""

    def claim(self, connection: Connection) -> None:
        """Record that this process is alive."""

    def hold(self, connection: Connection) -> None:
        """Record it in a transaction that makes something this process's, and go on while it owns anything."""

    def beat(self, connection: Connection) -> None:
        """Record it if this process owns anything, and check the processes that may be gone."""

    def is_gone(self, connection: Connection, owner: str) -> bool:
        """Whether that process is gone. If it is not known, it counts as alive."""

    def is_forgotten(self, connection: Connection, owner: str) -> bool:
        """Whether that process is gone, even if it owned nothing and so had no reason to record that it is alive."""

    def sweep(self, connection: Connection) -> None:
        """Remove the traces of all processes that are gone."""

    def leave(self, connection: Connection) -> None:
        """Record that this process is about to end, so that nobody has to wait out its silence."""

    def release(self) -> None:
        """Record that this process has ended."""


_NOW: Final = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
#: Microseconds since 1970 by the database's clock, also within a long transaction.
DATABASE_TIME: Final = text(f"SELECT {_NOW}")
_ADD_POSTGRESQL: Final = postgresql.insert(owners).values(seen_at=literal_column(_NOW))
#: Writes down a sign of life, and returns when it was, in one step.
_SIGN_POSTGRESQL: Final = _ADD_POSTGRESQL.on_conflict_do_update(
    index_elements=[owners.c.id], set_={"seen_at": _ADD_POSTGRESQL.excluded.seen_at}
).returning(owners.c.seen_at)
_ADD_SQLITE: Final = sqlite.insert(owners)
_SIGN_SQLITE: Final = _ADD_SQLITE.on_conflict_do_update(
    index_elements=[owners.c.id], set_={"seen_at": _ADD_SQLITE.excluded.seen_at}
)


def owners_for(
    path: Path | None,
    *,
    owner: str,
    clock: Clock,
    is_remote: bool = False,
    owned: Column[str | None] = approvals.c.owner,
) -> Leases:
    """Return the kind of leases for a database at this path."""
    if path is None or fcntl is None:
        return HeartbeatLeases(owner=owner, clock=clock, grace=GRACE if is_remote else 0.0, owned=owned)
    return FileLockLeases(path.parent / "owners", owner=owner)


class FileLockLeases:
    """Leases by file locks.

    Parameters
    ----------
    directory : Path
        The directory of the lock files.
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

    @property
    def is_watching(self) -> bool:
        """Whether somebody is gone can be told at once."""
        return False

    @property
    def owns_nothing(self) -> bool:
        """What this process owns is not known here."""
        return False

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

    def hold(self, _connection: Connection) -> None:
        """Do nothing: this process holds its lock."""

    def beat(self, _connection: Connection) -> None:
        """Do nothing: this process holds its lock."""

    def is_gone(self, _connection: Connection, owner: str) -> bool:
        """Whether nobody holds the lock of that process's file."""
        return _is_free(self._directory / f"{owner}.lock")

    def is_forgotten(self, connection: Connection, owner: str) -> bool:
        """Whether that process is gone: its lock tells, whatever it owned."""
        return self.is_gone(connection, owner)

    def sweep(self, _connection: Connection) -> None:
        """Remove the files that nobody has locked."""
        for path in self._directory.glob("*.lock"):
            if path != self._path and _is_free(path):
                path.unlink(missing_ok=True)

    def leave(self, _connection: Connection) -> None:
        """Do nothing: releasing the lock is enough."""

    def release(self) -> None:
        """Release the lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _holds(self) -> bool:
        """Whether the locked file is still the one at the path: a `sweep` may have removed it between open and lock."""
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
    """Leases by heartbeats in a table.

    Parameters
    ----------
    owner : str
        This process's id.
    clock : Clock
        The time if the database has no clock; it also measures how long ago this process's last heartbeat was.
    grace : float
        Seconds after a new connection in which nobody counts as gone.
    owned : Column
        Names the process that owns a row. While it owns one, its silence means its death.
    """

    def __init__(
        self, *, owner: str, clock: Clock, grace: float = 0.0, owned: Column[str | None] = approvals.c.owner
    ) -> None:
        self._owner = owner
        self._clock = clock
        self._grace = int(grace * 1_000_000)
        self._owned = owned
        self._connected_at = 0
        self._heard_at = 0
        self._has_left = False
        self._is_holding = False
        self._signed_in: RootTransaction | None = None
        self._beaten_at: datetime | None = None
        self._liveness = Liveness()

    @property
    def interval(self) -> float | None:
        """A heartbeat every `HEARTBEAT` seconds while this process owns anything or watches another process."""
        return HEARTBEAT if self._is_holding or self.is_watching else None

    @property
    def is_watching(self) -> bool:
        """Whether somebody asked about a process of which it is not yet certain whether it is gone."""
        return bool(self._liveness.watched)

    @property
    def owns_nothing(self) -> bool:
        """Whether this process has come to own nothing since the database said that it owns nothing."""
        return not self._is_holding

    def connect(self, connection: Connection) -> None:
        """Write a heartbeat, and since when this process runs."""
        self._connected_at = self._heard_at = self._sign(connection)

    def claim(self, connection: Connection) -> None:
        """Write a heartbeat."""
        self._hear(self._sign(connection))

    def hold(self, connection: Connection) -> None:
        """Write a heartbeat, unless `beat` or this transaction just did."""
        self._is_holding = True
        transaction = connection.get_transaction()
        is_signed = transaction is not None and transaction is self._signed_in
        if not is_signed and not self._has_beaten():
            self.claim(connection)
            self._signed_in = connection.get_transaction()

    def beat(self, connection: Connection) -> None:
        """Write a heartbeat if this process owns anything, and check the processes that it watches."""
        for owner in self._liveness.watched:
            self._watch(connection, owner)
        # The database is asked: this process may not know whether its last change was kept, or what others adopted.
        self._is_holding = self._is_holding and self._owns_something(connection)
        self._beaten_at = self._clock.now() if self._is_holding else None
        if self._is_holding:
            self.claim(connection)

    def leave(self, connection: Connection) -> None:
        """Write that this process is gone."""
        self._has_left = True
        if connection.execute(owners.update().where(owners.c.id == self._owner).values(seen_at=_LEFT)).rowcount == 0:
            connection.execute(owners.insert().values(id=self._owner, seen_at=_LEFT))

    def is_gone(self, connection: Connection, owner: str) -> bool:
        """Whether that process, which owns something, was silent for too long, or never wrote a heartbeat.

        A process that may be gone is watched until that is certain.
        """
        now, seen_at = self._now(connection), self._seen_at(connection, owner)
        if seen_at == _LEFT or self._liveness.is_found_gone(owner, seen_at) or self._is_silent(now, seen_at):
            self._liveness.forget(owner)
            return True
        self._liveness.see(owner, seen_at)
        return False

    def is_forgotten(self, connection: Connection, owner: str) -> bool:
        """Whether that process was silent for a day, or wrote that it is gone."""
        now, seen_at = self._now(connection), self._seen_at(connection, owner)
        return seen_at == _LEFT or self._is_silent(now, seen_at, FORGOTTEN)

    def sweep(self, connection: Connection) -> None:
        """Remove the rows of processes that were silent for a day."""
        now = self._now(connection)
        if not self._may_be_away(now):
            limit = _limit(now, FORGOTTEN)
            connection.execute(owners.delete().where(owners.c.seen_at < limit, owners.c.id != self._owner))

    def release(self) -> None:
        """Do nothing: silence is enough."""

    def _watch(self, connection: Connection, owner: str) -> None:
        now, seen_at = self._now(connection), self._seen_at(connection, owner)
        if seen_at == _LEFT or self._is_silent(now, seen_at):
            self._liveness.find_gone(owner, seen_at)
        else:
            self._liveness.see(owner, seen_at)

    def _has_beaten(self) -> bool:
        """Whether `beat` keeps writing heartbeats, even by a clock that goes on while the machine sleeps."""
        beaten_at = self._beaten_at
        return beaten_at is not None and abs((self._clock.now() - beaten_at).total_seconds()) <= 2 * HEARTBEAT

    def _owns_something(self, connection: Connection) -> bool:
        own = select(self._owned).where(self._owned == self._owner).limit(1)
        return connection.scalar(own) is not None

    def _seen_at(self, connection: Connection, owner: str) -> SeenAt:
        return connection.scalar(select(owners.c.seen_at).where(owners.c.id == owner))

    def _is_silent(self, now: int, seen_at: SeenAt, seconds: float = SILENCE) -> bool:
        return not self._may_be_away(now) and (seen_at is None or seen_at < _limit(now, seconds))

    def _may_be_away(self, now: int) -> bool:
        """Whether other processes may not yet have had a chance to write a heartbeat."""
        return now - self._connected_at < self._grace

    def _hear(self, now: int) -> int:
        """Note the database's time. If this process was silent for a while, others may have had to be silent, too."""
        if now - self._heard_at > int(_SILENCED * 1_000_000):
            self._connected_at = now
        self._heard_at = now
        return now

    def _sign(self, connection: Connection) -> int:
        if self._has_left:
            return self._read_clock(connection)
        if connection.dialect.name == "postgresql":
            return int(connection.execute(_SIGN_POSTGRESQL, {"id": self._owner}).scalar_one())
        now = microseconds(self._clock.now())
        connection.execute(_SIGN_SQLITE, {"id": self._owner, "seen_at": now})
        return now

    def _now(self, connection: Connection) -> int:
        return self._hear(self._read_clock(connection))

    def _read_clock(self, connection: Connection) -> int:
        if connection.dialect.name == "postgresql":
            return int(connection.execute(DATABASE_TIME).scalar_one())
        return microseconds(self._clock.now())


def _limit(now: int, seconds: float) -> int:
    return now - int(seconds * 1_000_000)
