"""A PgBouncer of the tests' own, which pools transactions, beside their PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}{os.pathsep}/usr/sbin")
#: Connections to a database for all its clients: few, so that each transaction may come to another one.
POOL = 4
#: Seconds that it may take to start on a busy machine.
_PATIENCE = 60

CONFIGURATION = """
[databases]
* = host={database}
[pgbouncer]
listen_addr =
unix_socket_dir = {place}
auth_type = trust
auth_file = {place}/users
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = 300
stats_users = agentbox
{more}
"""

Pooled = Callable[[str], str]


@contextmanager
def running_pgbouncer(database_url: str, more: str = "") -> Iterator[Pooled]:
    """Give what returns the URL of a database of the same server by way of a PgBouncer with these settings."""
    if PROGRAM is None:
        pytest.skip("PgBouncer is not installed: `apt-get install pgbouncer`")
    psycopg = pytest.importorskip("psycopg")
    user = "nobody" if os.geteuid() == 0 else None  # it refuses to run as root
    place = Path(tempfile.mkdtemp(prefix="agentbox-pgb-", dir="/tmp"))
    _, _, database = database_url.partition("?host=")
    (place / "users").write_text('"agentbox" ""\n"ada" ""\n')
    configuration = CONFIGURATION.format(database=database, place=place, pool=POOL, more=more)
    (place / "pgbouncer.ini").write_text(configuration)
    if user is not None:
        shutil.chown(place, user)

    def pooled(url: str) -> str:
        return f"{url.partition('?')[0]}?host={place}&port=6432"

    command = [PROGRAM, str(place / "pgbouncer.ini")]
    with (place / "log").open("wb") as log, subprocess.Popen(command, user=user, stderr=log) as process:
        try:
            end = time.monotonic() + _PATIENCE
            while True:
                try:
                    psycopg.connect(pooled("postgresql://agentbox@/postgres")).close()
                    break
                except psycopg.OperationalError:
                    assert process.poll() is None, (place / "log").read_text()
                    assert time.monotonic() < end
                    time.sleep(0.1)  # it tells nobody that it listens
            yield pooled
        finally:
            process.kill()  # it is a pool for nobody any more
    shutil.rmtree(place)


def clients_of(pooled_url: str) -> int:
    """Return how many connections clients have to a database by way of PgBouncer."""
    import psycopg

    url = pooled_url.replace("postgresql+psycopg", "postgresql")
    place, _, query = url.partition("?")
    server, _, name = place.rpartition("/")
    with psycopg.connect(f"{server}/pgbouncer?{query}", autocommit=True) as connection:
        cursor = connection.execute("SHOW CLIENTS")
        assert cursor.description is not None
        column = [each.name for each in cursor.description].index("database")
        return sum(row[column] == name for row in cursor)


@pytest.fixture(scope="session")
def pooled(make_postgresql_database: Callable[[], str]) -> Iterator[Pooled]:
    """Return a function that returns the URL of a database by way of PgBouncer, for the roles `agentbox` and `ada`."""
    with running_pgbouncer(make_postgresql_database()) as pooled:
        yield pooled
