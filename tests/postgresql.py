"""A PostgreSQL server of the tests' own, where its programs are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest


def programs() -> Path | None:
    found = shutil.which("pg_ctl")
    places = [Path(found)] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return places[-1].parent if places else None


class PostgreSQL:
    """A server on a socket of its own: a port could be taken before it listens there.

    Parameters
    ----------
    connections : int
        How many it lets in.

    Raises
    ------
    FileNotFoundError
        Its programs are not installed.
    """

    def __init__(self, connections: int = 100) -> None:
        self._connections = connections
        found = programs()
        if found is None:
            raise FileNotFoundError("PostgreSQL's server is not installed")
        self._programs = found
        self._user = "nobody" if os.geteuid() == 0 else None  # it refuses to run as root
        self._numbers = count()
        self._place = Path(tempfile.mkdtemp(prefix="agentbox-pg-", dir="/tmp"))
        if self._user is not None:
            shutil.chown(self._place, self._user)
        data = str(self._place / "data")
        self._run("initdb", "-D", data, "-A", "trust", "-U", "agentbox", "-E", "UTF8", "--no-sync")

    @property
    def pid(self) -> int:
        """The process that all others of the server descend from."""
        return int((self._place / "data" / "postmaster.pid").read_text().split("\n", 1)[0])

    def start(self) -> None:
        """Start it, and wait until it can be used."""
        log = str(self._place / "log")
        options = f"-k {self._place} -h '' -c max_connections={self._connections}"
        self._run("pg_ctl", "-D", str(self._place / "data"), "-w", "-l", log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """End it: ``fast`` in order, ``immediate`` as a crash does."""
        self._run("pg_ctl", "-D", str(self._place / "data"), "-w", "-m", mode, "stop")

    def make_database(self) -> str:
        """Make an empty database and return its URL."""
        import psycopg

        name, query = f"store{next(self._numbers)}", f"host={self._place}"
        with psycopg.connect(f"postgresql://agentbox@/postgres?{query}", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://agentbox@/{name}?{query}"

    def remove(self) -> None:
        """Remove all that it kept."""
        shutil.rmtree(self._place)

    def _run(self, program: str, *arguments: str) -> None:
        command = [self._programs / program, *arguments]
        subprocess.run(command, user=self._user, cwd=self._place, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def make_postgresql_database() -> Iterator[Callable[[], str]]:
    """Return a function that makes an empty database and returns its URL."""
    pytest.importorskip("psycopg")
    try:
        server = PostgreSQL()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    server.start()
    try:
        yield server.make_database
    finally:
        server.stop()
        server.remove()
