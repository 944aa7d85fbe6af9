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

_NUMBERS = count()


def _programs() -> Path | None:
    found = shutil.which("pg_ctl")
    places = [Path(found)] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return places[-1].parent if places else None


@pytest.fixture(scope="session")
def make_postgresql_database() -> Iterator[Callable[[], str]]:
    """Return a function that makes an empty database and returns its URL."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed")
    psycopg = pytest.importorskip("psycopg")
    user = "nobody" if os.geteuid() == 0 else None  # it refuses to run as root
    place = Path(tempfile.mkdtemp(prefix="agentbox-pg-", dir="/tmp"))
    if user is not None:
        shutil.chown(place, user)

    def run(program: str, *arguments: str) -> None:
        subprocess.run([programs / program, *arguments], user=user, cwd=place, check=True, stdout=subprocess.DEVNULL)

    data, log = str(place / "data"), str(place / "log")
    run("initdb", "-D", data, "-A", "trust", "-U", "agentbox", "-E", "UTF8", "--no-sync")
    run("pg_ctl", "-D", data, "-w", "-l", log, "-o", f"-k {place} -h ''", "start")
    query = f"host={place}"  # of its socket: a port could be taken before the server listens there

    def make() -> str:
        name = f"store{next(_NUMBERS)}"
        with psycopg.connect(f"postgresql://agentbox@/postgres?{query}", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://agentbox@/{name}?{query}"

    try:
        yield make
    finally:
        run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(place)
