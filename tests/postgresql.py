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

from .certificates import Certificate


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
    tls : Certificate or None
        With which it also listens on a port of 127.0.0.1, and lets nobody in there without TLS and a password.
    port : int
        That port.

    Raises
    ------
    FileNotFoundError
        Its programs are not installed.
    """

    def __init__(self, connections: int = 100, *, tls: Certificate | None = None, port: int = 0) -> None:
        self._connections = connections
        self._listening, self._port = "-h ''", ""
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
        if tls is not None:
            self._listen(tls, port)

    @property
    def pid(self) -> int:
        """The process that all others of the server descend from."""
        return int((self._place / "data" / "postmaster.pid").read_text().split("\n", 1)[0])

    def start(self) -> None:
        """Start it, and wait until it can be used."""
        log = str(self._place / "log")
        options = f"-k {self._place} {self._listening} -c max_connections={self._connections}"
        self._run("pg_ctl", "-D", str(self._place / "data"), "-w", "-l", log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """End it: ``fast`` in order, ``immediate`` as a crash does."""
        self._run("pg_ctl", "-D", str(self._place / "data"), "-w", "-m", mode, "stop")

    def make_database(self) -> str:
        """Make an empty database and return its URL."""
        import psycopg

        name, query = f"store{next(self._numbers)}", f"host={self._place}{self._port}"
        with psycopg.connect(f"postgresql://agentbox@/postgres?{query}", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://agentbox@/{name}?{query}"

    def _listen(self, tls: Certificate, port: int) -> None:
        files = {"ssl_cert_file": tls.certificate, "ssl_key_file": tls.key}
        for name, content in files.items():
            path = self._place / name
            path.write_bytes(content)
            path.chmod(0o600)
            if self._user is not None:
                shutil.chown(path, self._user)
        settings = " ".join(f"-c {name}={self._place / name}" for name in files)
        self._port = f"&port={port}"  # which its socket has in its name, too
        self._listening = f"-h 127.0.0.1 -p {port} -c ssl=on {settings}"
        rules = "local all all trust", "hostssl all all 127.0.0.1/32 scram-sha-256", ""
        (self._place / "data" / "pg_hba.conf").write_text("\n".join(rules))

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
