"""One database connection for one thread: how it is opened, that it is durable, and what its errors mean."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from jupyter_agentbox.exceptions import StorageError

from .backfill import bring_up_to_date
from .file_systems import shared_file_system
from .tenants import check_tenant

log = logging.getLogger(__name__)

#: How SQLite keeps a transaction safe: a write-ahead log, or a rollback journal where that cannot work (NFS).
JournalMode = Literal["wal", "delete"]

#: With a rollback journal, only EXTRA also syncs the directory, so that a power cut cannot undo a commit.
_SYNCHRONOUS: Final = {"wal": "FULL", "delete": "EXTRA"}
#: Leaves a commit in the write-ahead log, where it outlives this process; the disk has it after the next sync.
_UNSYNCED: Final = "NORMAL"

#: Bytes that the write-ahead log keeps of the disk after a large transaction.
_LOG_SIZE: Final = 16_000_000

#: What file systems without shared memory or locks say to WAL.
_WAL_REFUSALS: Final = (sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)

_DAMAGED = "is damaged: move it and the files beside it that share its name away and restart; a new one is made"
_UNWRITABLE = "cannot be opened or written: check the permissions of the file and of its directory"
#: What PostgreSQL says to a role that lacks a right.
_NO_RIGHT: Final = "42501"
_NOT_ALLOWED = "does not let this role do that: an administrator has to run `jupyter agentbox db upgrade --role ROLE`"
#: What a pooler says to `options` in the URL, unless it ignores them.
_UNSUPPORTED: Final = "unsupported startup parameter"
_POOLER: Final = (
    "PgBouncer does not pass on the `options` of the URL. Leave them out, and let the role have its schema:"
    " `ALTER ROLE name SET search_path = name`"
)
_LOCKED = "is locked by another process: close other programs that have it open and try again"

_SEARCH_PATH: Final = re.compile(r"(?:-c\s*|--)search_path=((?:\\.|[^\s\\])*)")

#: SQLite's primary result code -> what to tell people.
_CAUSES: Final = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: "cannot grow because the disk or the quota is full: free some space and try again",
    sqlite3.SQLITE_IOERR: "had a disk error: check the disk and its free space",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_READONLY: _UNWRITABLE,
    sqlite3.SQLITE_CANTOPEN: _UNWRITABLE,
    sqlite3.SQLITE_PERM: _UNWRITABLE,
    sqlite3.SQLITE_AUTH: _UNWRITABLE,
}


class Guard(Protocol):
    """Knows whether this process may write. What it raises keeps the transaction from being committed."""

    def check(self, connection: Connection) -> None:
        """Look, at the beginning of a transaction that writes."""

    def check_connection(self, connection: Connection) -> None:
        """Look on a new connection, which may lead to another database by now."""


class Database:
    """A connection that opens itself when it is needed. Used from one thread only.

    Parameters
    ----------
    url : str
        A SQLAlchemy URL of SQLite or PostgreSQL.
    journal_mode : {"wal", "delete"} or None
        SQLite's; where the file system refuses ``wal``, or machines share it, ``delete`` is taken. ``None`` leaves what
        the file has.
    busy_timeout : float
        How long to wait for another process's lock, in seconds.
    on_connect : function
        Called with each new connection, in a transaction, after the tables are up to date.
    tenant : str or None
        The user of a JupyterHub to whom the database has to belong; ``None`` if it may belong to anybody.
    brings_up_to_date : bool
        Whether a new connection brings the tables up to date; if not, that is left to others.
    guard : Guard or None
        Says at the beginning of each transaction that writes whether this process may.

    Raises
    ------
    StorageError
        If the URL is not valid, or is of another kind of database.

    Attributes
    ----------
    path : Path or None
        SQLite's file; ``None`` if there is none.
    is_remote : bool
        Whether a database server keeps it: there, each open connection takes up memory.
    """

    def __init__(
        self,
        url: str,
        *,
        journal_mode: JournalMode | None,
        busy_timeout: float,
        on_connect: Callable[[Connection], None],
        tenant: str | None = None,
        brings_up_to_date: bool = True,
        guard: Guard | None = None,
    ) -> None:
        self._brings_up_to_date = brings_up_to_date
        self._guard = guard
        self._url = _checked_url(url)
        self.path = _path_of(self._url)
        self.is_remote = is_remote(url)
        self._journal_mode = journal_mode
        self._busy_timeout = busy_timeout
        self._on_connect = on_connect
        self._tenant = tenant
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        self._file: tuple[int, int] | None = None
        self._begin_statement = "BEGIN"
        self._synchronous = ""

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    @contextmanager
    def transaction(self, *, write: bool, durable: bool = True) -> Iterator[Connection]:
        """Give the connection inside a transaction; what was written outlives this process when the block is left.

        Parameters
        ----------
        write : bool
            Whether the block writes.
        durable : bool
            Whether what was written is on the disk, too, so that it outlives the machine. If not, `sync` sees to that,
            or the next transaction that is durable. SQLite's write-ahead log alone makes the difference.

        Raises
        ------
        StorageError
            Nothing of the block was written, unless the file was taken away meanwhile.
        """
        try:
            connection = self._open()
            if write and self._synchronous:
                self._synchronize(connection, "FULL" if durable else _UNSYNCED)
            with self._transaction(connection, write=write):
                if write and self._guard is not None:
                    self._guard.check(connection)
                yield connection
            if write and self._identity() != self._file:
                raise StorageError(f"{self} was deleted or replaced while it was being written")
        except (IntegrityError, sqlite3.IntegrityError) as error:
            raise self._storage_error(error) from error
        except (SQLAlchemyError, sqlite3.Error, OSError, ImportError) as error:
            if self.path is not None or (isinstance(error, DBAPIError) and error.connection_invalidated):
                self.close()  # whatever state it is in, the next transaction starts with a new one
            raise self._storage_error(error) from error

    def sync(self) -> None:
        """Write to the disk what transactions wrote that were not durable.

        Raises
        ------
        StorageError
        """
        if self.path is None:
            return
        try:
            # SQLite has no call for it. Its locks are on the other files, so opening and closing this one loses none.
            log_file = os.open(f"{self.path}-wal", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except FileNotFoundError:
            return  # it was taken over into the database, which syncs
        except OSError as error:
            raise self._storage_error(error) from error
        try:
            os.fsync(log_file)
        except OSError as error:
            raise self._storage_error(error) from error
        finally:
            os.close(log_file)

    def close(self) -> None:
        """Close the connection; the next transaction opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except (SQLAlchemyError, sqlite3.Error) as error:
                log.warning("closing %s: %s", self, error)

    def __str__(self) -> str:
        place = self.path or self._url.render_as_string(hide_password=True)
        return f"the approval store `{place}`"

    def _open(self) -> Connection:
        if self._connection is not None and self._identity() != self._file:
            log.warning("%s was deleted or replaced; opening it again", self)
            self.close()
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection:
        engine = self._engine = self._engine or self._make_engine()  # the next connection knows what this one learned
        if self.path is not None:
            _make_private(self.path)
        connection = engine.connect()
        try:
            self._file = self._identity()
            with self._transaction(connection, write=True):
                self._check_schema(connection)
                if self._brings_up_to_date:
                    bring_up_to_date(connection)
                if self._tenant is not None:
                    check_tenant(connection, self._tenant)
                if self._guard is not None:
                    self._guard.check_connection(connection)
                self._on_connect(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_schema(self, connection: Connection) -> None:
        """Refuse another schema than the URL names: a pooler may ignore that, and the tables would be everybody's."""
        wanted = _schema_of(self._url)
        if wanted:
            found = str(connection.exec_driver_sql("SHOW search_path").scalar_one())
            if _bare(found) != _bare(wanted):
                raise StorageError(f"{self} is used with the schema `{found}` and not `{wanted}`: {_POOLER}")

    @contextmanager
    def _transaction(self, connection: Connection, *, write: bool) -> Iterator[None]:
        self._begin_statement = "BEGIN IMMEDIATE" if write else "BEGIN"
        if self._url.get_backend_name() != "sqlite":
            with connection.begin():
                yield
            return
        # Begun and committed with the driver, because each call waits for it. SQLAlchemy begins its own within, if one
        # of its statements is run.
        driver: Any = connection.connection.driver_connection
        driver.execute(self._begin_statement)
        try:
            yield
            (connection if connection.in_transaction() else driver).commit()
        except BaseException:
            (connection if connection.in_transaction() else driver).rollback()
            raise

    def _make_engine(self) -> Engine:
        # An error's text goes to the log: without `hide_parameters` it would hold pieces of arguments.
        if self._url.get_backend_name() != "sqlite":
            # Behind PgBouncer, the next transaction may be at a connection that does not know what was prepared.
            options = {"prepare_threshold": None} if self._url.get_driver_name() == "psycopg" else {}
            return create_engine(self._url, poolclass=NullPool, hide_parameters=True, connect_args=options)
        engine = create_engine(
            self._url, poolclass=NullPool, hide_parameters=True, connect_args={"timeout": self._busy_timeout}
        )
        event.listen(engine, "connect", self._configure)
        event.listen(engine, "begin", self._begin)
        return engine

    def _begin(self, connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        if not driver.in_transaction:
            driver.execute(self._begin_statement)

    def _configure(self, connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself: `_begin` does
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # holds if the database is new: pages can be given back
        mode = self._set_journal_mode(connection)
        connection.execute(f"PRAGMA journal_size_limit={_LOG_SIZE}")
        level = _SYNCHRONOUS.get(mode, "EXTRA")
        connection.execute(f"PRAGMA synchronous={level}")
        self._synchronous = level if mode == "wal" else ""  # without the log, a commit that is not synced may do harm

    def _synchronize(self, connection: Connection, level: str) -> None:
        if level != self._synchronous:
            driver: Any = connection.connection.driver_connection
            driver.execute(f"PRAGMA synchronous={level}")
            self._synchronous = level

    def _set_journal_mode(self, connection: sqlite3.Connection) -> str:
        if self._journal_mode is None:
            return str(connection.execute("PRAGMA journal_mode").fetchone()[0])
        wanted = self._safe_journal_mode(self._journal_mode)
        try:
            mode = self._ask_for_journal_mode(connection, wanted)
        except sqlite3.OperationalError as error:
            if wanted == "delete" or error.sqlite_errorcode & 0xFF not in _WAL_REFUSALS:
                raise
            mode = self._ask_for_journal_mode(connection, "delete")
        if mode != wanted:
            log.info("%s: SQLite refused journal mode `%s` and uses `%s`", self, wanted, mode)
        return mode

    def _safe_journal_mode(self, wanted: JournalMode) -> JournalMode:
        """Return the mode that does no harm where the file is: SQLite does not always refuse the other."""
        shared = shared_file_system(self.path) if wanted == "wal" and self.path is not None else ""
        if not shared:
            return wanted
        log.warning(
            "%s is on a file system of type `%s`: journal mode `delete` is used in place of `wal`", self, shared
        )
        return "delete"

    def _ask_for_journal_mode(self, connection: sqlite3.Connection, wanted: JournalMode) -> str:
        deadline = time.monotonic() + self._busy_timeout
        while True:
            try:
                (mode,) = connection.execute(f"PRAGMA journal_mode={wanted}").fetchone()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
                # For this lock SQLite does not wait while another process writes; to begin a transaction it does.
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
            else:
                return str(mode)

    def _identity(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return (0, 0)
        return status.st_dev, status.st_ino

    def _storage_error(self, error: Exception) -> StorageError:
        if isinstance(error, ImportError):
            return StorageError(f"{self} needs a database driver that is not installed: {error}")
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        if isinstance(cause, OSError):
            return StorageError(f"{self} {_UNWRITABLE} ({cause.strerror or cause})")
        if getattr(cause, "sqlstate", None) == _NO_RIGHT:
            return StorageError(f"{self} {_NOT_ALLOWED} ({cause})")
        if _UNSUPPORTED in str(cause):
            return StorageError(f"{self} cannot be used: {_POOLER} ({cause})")
        code = getattr(cause, "sqlite_errorcode", None)
        text = _CAUSES.get(code & 0xFF) if isinstance(code, int) else None
        return StorageError(f"{self} {text} ({cause})" if text else f"{self} cannot be used: {cause}")


def is_remote(url: str) -> bool:
    """Whether the URL is of a database that can be out of reach while those who use it go on."""
    return _checked_url(url).get_backend_name() != "sqlite"


def _checked_url(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except ArgumentError:
        raise StorageError("the approval store's URL is invalid: it must look like `sqlite:////path/to/file`") from None
    if backend not in ("sqlite", "postgresql"):
        raise StorageError(f"the approval store cannot be a `{backend}` database: choose SQLite or PostgreSQL")
    return parsed


def _schema_of(url: URL) -> str:
    """Return the `search_path` that the options in a PostgreSQL URL set; empty for none."""
    options = url.query.get("options", "") if url.get_backend_name() != "sqlite" else ""
    found = _SEARCH_PATH.findall(options if isinstance(options, str) else " ".join(options))
    return re.sub(r"\\(.)", r"\1", found[-1]) if found else ""


def _bare(search_path: str) -> str:
    return search_path.replace(" ", "").replace('"', "")


def _path_of(url: URL) -> Path | None:
    name = url.database or ":memory:"
    if url.get_backend_name() != "sqlite" or ":memory:" in name or url.query.get("mode") == "memory":
        return None
    return Path(name.removeprefix("file:"))


def _make_private(path: Path) -> None:
    """Make the directory (0700) and the file (0600) before SQLite would, with the permissions of the umask."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
