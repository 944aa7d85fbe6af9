"""A database connection for one thread: opening, durability and errors."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from jupyter_agentbox.exceptions import StorageError

from .backfill import bring_up_to_date
from .file_systems import shared_file_system
from .schema import has_tables
from .tenants import check_tenant

log = logging.getLogger(__name__)

#: SQLite's journal: a write-ahead log, or a rollback journal where that does not work (NFS).
JournalMode = Literal["wal", "delete"]

#: With a rollback journal, only EXTRA also syncs the directory, so that a power cut cannot undo a commit.
_SYNCHRONOUS: Final = {"wal": "FULL", "delete": "EXTRA"}
#: Leaves commits in the write-ahead log, which survive this process and are on disk after the next sync.
_UNSYNCED: Final = "NORMAL"

#: Size to which the write-ahead log shrinks after a large transaction, in bytes.
_LOG_SIZE: Final = 16_000_000

#: Size to which the log grows until SQLite copies it into the database and begins at its start again, in bytes.
_LOG_IN_USE: Final = 1_000 * (4_096 + 24)
#: Free space of a disk, in bytes, below which the log is left as it is.
_ROOM: Final = 20 * _LOG_IN_USE
#: How many pages SQLite keeps in memory while the log is made that large: what does not fit goes into the log.
_FEW_PAGES: Final = 10

#: WAL errors on file systems without shared memory or locks.
_WAL_REFUSALS: Final = (sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)

_DAMAGED = "is damaged: move it and the files beside it that share its name away and restart; a new one is made"
_UNWRITABLE = "cannot be opened or written: check the permissions of the file and of its directory"
#: PostgreSQL's error code for a missing privilege.
_NO_RIGHT: Final = "42501"
_NOT_ALLOWED = "does not let this role do that: an administrator has to run `jupyter agentbox db upgrade --role ROLE`"
#: A pooler's error message for `options` in the URL, unless it ignores them.
#: What libpq says of a certificate that it does not accept: of its authority, or of its names.
_UNTRUSTED: Final = ("certificate verify failed", "does not match host name")
_CERTIFICATE: Final = (
    "cannot be used, because its server's certificate was not accepted: `sslrootcert` in the URL must name a file with"
    " the authority that issued it, and the host in the URL must be a name in the certificate"
)
_UNSUPPORTED: Final = "unsupported startup parameter"
_POOLER: Final = (
    "PgBouncer does not pass on the `options` of the URL. Leave them out, and let the role have its schema:"
    " `ALTER ROLE name SET search_path = name`"
)
_LOCKED = "is locked by another process: close other programs that have it open and try again"

_SEARCH_PATH: Final = re.compile(r"(?:-c\s*|--)search_path=((?:\\.|[^\s\\])*)")

#: SQLite's primary result code -> explanation for people.
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
    """Checks whether this process may write. An exception prevents the transaction's commit."""

    def check(self, connection: Connection) -> None:
        """Check at the start of a write transaction."""

    def check_connection(self, connection: Connection) -> None:
        """Check a new connection, which may lead to a different database."""


class Database:
    """A connection opened on demand. For use in one thread only.

    Parameters
    ----------
    url : str
        A SQLAlchemy URL of SQLite or PostgreSQL.
    journal_mode : {"wal", "delete"} or None
        SQLite's; on file systems that refuse ``wal`` or are shared between machines, ``delete`` is used. ``None`` keeps
        the file's.
    busy_timeout : float
        How long to wait for another process's lock, in seconds.
    on_connect : function
        Called with each new connection, in a transaction, after the tables are up to date.
    tenant : str or None
        The JupyterHub user to whom the database must belong; ``None`` for anybody.
    brings_up_to_date : bool
        Whether new connections upgrade the tables; otherwise, that is left to others.
    guard : Guard or None
        Checks at the start of each write transaction whether this process may write.
    must_exist : bool
        Whether to refuse a database that is not an approval store yet, instead of making it one.

    Raises
    ------
    StorageError
        If the URL is not valid, or is of another kind of database.

    Attributes
    ----------
    path : Path or None
        SQLite's file; ``None`` if there is none.
    is_remote : bool
        Whether a database server hosts it, on which each open connection uses memory.
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
        must_exist: bool = False,
    ) -> None:
        self._brings_up_to_date = brings_up_to_date
        self._guard = guard
        self._must_exist = must_exist
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
        """Yield the connection within a transaction; on exit, the changes survive this process.

        Parameters
        ----------
        write : bool
            Whether the block writes.
        durable : bool
            Whether the changes are also on disk, and so survive the machine. If not, `sync` or the next durable
            transaction writes them. It makes a difference only for SQLite's write-ahead log.

        Raises
        ------
        StorageError
            Nothing was written, unless the file was removed meanwhile.
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
            is_broken = isinstance(error, DBAPIError) and error.connection_invalidated
            # SQLite opens nothing on a full disk, but goes on reading through a connection that it has.
            if is_broken or (self.path is not None and not _is_full(error)):
                self.close()  # whatever its state, the next transaction opens a new one
            raise self._storage_error(error) from error

    def sync(self) -> None:
        """Write the changes of transactions that were not durable to disk.

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
            return  # it was merged into the database, which syncs
        except OSError as error:
            raise self._storage_error(error) from error
        try:
            os.fsync(log_file)
        except OSError as error:
            raise self._storage_error(error) from error
        finally:
            os.close(log_file)

    def reserve_log(self) -> bool:
        """Give the write-ahead log the size that it will have, because the sync of a file that grows is slow.

        Return whether it was smaller.

        A large row is written and withdrawn, which leaves the file as long as it was. If that is impossible, or the
        disk is almost full, the log grows with each commit.
        """
        if self.path is None or not self._synchronous or self._connection is None:
            return False
        driver: Any = self._connection.connection.driver_connection
        try:
            disk = os.statvfs(self.path)
            has_room = disk.f_bavail * disk.f_frsize > _ROOM
            if not has_room or Path(f"{self.path}-wal").stat().st_size >= _LOG_IN_USE:
                return False
            _spill(driver, _LOG_IN_USE)
        except Exception as error:  # noqa: BLE001 - whatever it is, everything works without
            log.debug("%s: its log was not enlarged: %s", self, error)
            return False
        return True

    def close(self) -> None:
        """Close the connection; the next transaction reopens it."""
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
        engine = self._engine = self._engine or self._make_engine()  # the next connection uses what this one found out
        if self.path is not None and self._must_exist:
            if not self.path.is_file() or not self.path.stat().st_size:
                raise StorageError(f"there is no approval store at `{self.path}`")
        elif self.path is not None:
            _make_private(self.path)
        connection = engine.connect()
        try:
            self._file = self._identity()
            with self._transaction(connection, write=True):
                self._check_schema(connection)
                if self._must_exist and not has_tables(connection):
                    raise StorageError(f"{self} has no tables of jupyter-agentbox")
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
        """Reject a schema other than the URL's: a pooler may ignore that, and the tables would be shared."""
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
        # Begun and committed through the driver, for speed. SQLAlchemy begins its own transaction within, if one of its
        # statements is run.
        driver: Any = connection.connection.driver_connection
        driver.execute(self._begin_statement)
        try:
            yield
            (connection if connection.in_transaction() else driver).commit()
        except BaseException:
            (connection if connection.in_transaction() else driver).rollback()
            raise

    def _make_engine(self) -> Engine:
        # Error messages are logged: without `hide_parameters` they would contain arguments.
        if self._url.get_backend_name() != "sqlite":
            # With PgBouncer, the next transaction may use a connection without the prepared statements.
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
        connection.isolation_level = None  # the driver begins no transactions: `_begin` does
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # takes effect in a new database: pages can be released
        mode = self._set_journal_mode(connection)
        connection.execute(f"PRAGMA journal_size_limit={_LOG_SIZE}")
        level = _SYNCHRONOUS.get(mode, "EXTRA")
        connection.execute(f"PRAGMA synchronous={level}")
        self._synchronous = level if mode == "wal" else ""  # without the log, a commit without sync may corrupt it

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
        """Return a journal mode that is safe for the file's location: SQLite does not always refuse unsafe ones."""
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
                # SQLite does not wait for this lock while another process writes, but does wait to begin a transaction.
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
        if any(sign in str(cause) for sign in _UNTRUSTED):
            return StorageError(f"{self} {_CERTIFICATE} ({cause})")
        if _UNSUPPORTED in str(cause):
            return StorageError(f"{self} cannot be used: {_POOLER} ({cause})")
        code = getattr(cause, "sqlite_errorcode", None)
        text = _CAUSES.get(code & 0xFF) if isinstance(code, int) else None
        return StorageError(f"{self} {text} ({cause})" if text else f"{self} cannot be used: {cause}")


def _spill(driver: sqlite3.Connection, size: int) -> None:
    """Write some bytes into the write-ahead log, in a transaction that is rolled back."""
    present = {name: driver.execute(f"PRAGMA {name}").fetchone()[0] for name in ("busy_timeout", "cache_size")}
    driver.execute("PRAGMA busy_timeout=0")  # whoever writes at this moment makes the log grow, too
    try:
        driver.execute(f"PRAGMA cache_size={_FEW_PAGES}")
        driver.execute("BEGIN IMMEDIATE")
        try:
            driver.execute("CREATE TABLE agentbox_log_space (space BLOB)")
            driver.execute("INSERT INTO agentbox_log_space VALUES (zeroblob(?))", (size,))
        finally:
            driver.execute("ROLLBACK")
    finally:
        for name, value in present.items():
            driver.execute(f"PRAGMA {name}={value}")


def is_remote(url: str) -> bool:
    """Whether the URL's database can become unreachable while its clients continue."""
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
    """Create the directory (0700) and the file (0600) before SQLite does, with the umask's permissions.

    A file that exists is not opened: closing it would drop all locks that this process has on it, those of other
    connections included, and the next process to close the database would take away the log in use here (see "How To
    Corrupt An SQLite Database File", 2.2).
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _is_full(error: BaseException) -> bool:
    """Whether SQLite has undone a transaction because the disk or the quota is full."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
