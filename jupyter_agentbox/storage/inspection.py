"""Inspects an approval store without changing it, even while servers use it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from .file_systems import shared_file_system
from .schema import VERSION
from .schema import schema as schema_table


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """The state of an approval store in a file.

    Parameters
    ----------
    exists : bool
        Whether there is a file.
    is_writable : bool
        Whether this user can write or create it.
    version : int
        The version of its tables; 0 if there are none.
    latest : int
        The version that this release knows.
    journal_mode : str
        SQLite's journal mode; empty if there is no file.
    shared : str
        The type of the file system if several machines share it; else empty.
    problem : str
        Why it cannot be read; empty if it can.
    """

    exists: bool
    is_writable: bool
    version: int = 0
    latest: int = VERSION
    journal_mode: str = ""
    shared: str = ""
    problem: str = ""


def inspect_store(path: Path) -> StoreState:
    """Return the state of the approval store in a file."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    # SQLite writes a journal beside the file.
    is_writable = os.access(place, os.W_OK) and (place.is_dir() or os.access(place.parent, os.W_OK))
    shared = shared_file_system(path)
    if not path.exists():
        return StoreState(exists=False, is_writable=is_writable, shared=shared)
    version, mode, problem = 0, "", ""
    try:
        # Without its log nobody uses it, and SQLite would make that, as a file of whoever looks.
        is_still = _has_log(path) and not Path(f"{path.resolve()}-wal").exists()
        how = "mode=ro&immutable=1" if is_still else "mode=ro"
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True)) as connection:
            (mode,) = ("wal",) if is_still else connection.execute("PRAGMA journal_mode").fetchone()
            tables = connection.execute("SELECT name FROM sqlite_master WHERE name = ?", (schema_table.name,))
            if tables.fetchone() is not None:
                (version,) = connection.execute(f"SELECT version FROM {schema_table.name}").fetchone()  # noqa: S608
    except (sqlite3.Error, OSError, TypeError) as error:
        problem = str(error)
    return StoreState(
        exists=True, is_writable=is_writable, version=version, journal_mode=mode, shared=shared, problem=problem
    )


def _has_log(path: Path) -> bool:
    """Whether a database is in journal mode ``wal``, as the 19th byte of its header says."""
    with path.open("rb") as file:
        return file.read(19)[18:] == b"\2"
