"""``python -m bench.idle``: what servers with nothing to do cost the PostgreSQL that they share.

Each server is all parts that a Jupyter server builds, in this one process, with the list of threads read once; with
``--pgbouncer``, by way of a PgBouncer. A look for what others left comes every quarter of an hour to three quarters, so
a watch of an hour (``--seconds 3600``) sees one of each server; in a shorter one each is made to look once at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from jupyter_events import EventLogger
from sqlalchemy import create_engine, make_url, text

from jupyter_agentbox.composition import AgentBox, Settings, build
from jupyter_agentbox.core.ports import ThreadQuery
from jupyter_agentbox.events import EventAnnouncer
from jupyter_agentbox.storage.abandoned_requests import LOOK_SELDOM
from jupyter_agentbox.storage.group_commit import IDLE
from jupyter_agentbox.storage.threads import SqlThreadStore
from jupyter_agentbox.system import SystemClock
from tests.pgbouncer import clients_of, running_pgbouncer
from tests.postgresql import PostgreSQL

#: Seconds between two looks at the database.
PAUSE = 0.2
#: Seconds after which the last connections are closed, and told of.
SETTLED = IDLE + 15
#: Seconds after which PostgreSQL has told what an idle connection of PgBouncer's committed.
COUNTED = 15


class Database:
    """What PostgreSQL says of a database, asked from another one."""

    def __init__(self, other: str, url: str) -> None:
        self._engine = create_engine(other, isolation_level="AUTOCOMMIT")
        self._name = make_url(url).database

    def _ask(self, query: str) -> int:
        with self._engine.connect() as connection:
            return int(connection.execute(text(query), {"name": self._name}).scalar_one())

    def connections(self) -> int:
        return self._ask(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = :name AND backend_type = 'client backend'"
        )

    def commits(self) -> int:
        return self._ask("SELECT xact_commit FROM pg_stat_database WHERE datname = :name")


async def start(url: str, count: int, stack: AsyncExitStack) -> list[AgentBox]:
    boxes = []
    for _ in range(count):
        box = build(Settings(mcp_config_path=(), database_url=url), announcer=EventAnnouncer(EventLogger()))
        await box.start()
        stack.push_async_callback(box.aclose)
        threads = SqlThreadStore(url, clock=SystemClock())
        stack.push_async_callback(threads.aclose)
        await threads.list(ThreadQuery())
        boxes.append(box)
    return boxes


async def watch(database: Database, pooled_url: str | None, seconds: float) -> str:
    """Return how many connections there were, and how many commits a second."""
    begun, before, counts, clients = time.monotonic(), database.commits(), [], []
    while time.monotonic() - begun < seconds:
        await asyncio.sleep(PAUSE)
        counts.append(await asyncio.to_thread(database.connections))
        if pooled_url is not None:
            clients.append(await asyncio.to_thread(clients_of, pooled_url))
    commits = database.commits() - before
    told = f"connections {sum(counts) / len(counts):6.2f} in the mean, {max(counts):3} at most"
    if clients:
        told += f"; to PgBouncer {sum(clients) / len(clients):6.2f}, {max(clients):3}"
    return f"{told}; commits a second {commits / seconds:7.3f}"


async def measure(options: argparse.Namespace, database: Database, url: str) -> None:
    pooled_url = url if options.pgbouncer else None
    async with AsyncExitStack() as stack:
        begun = time.monotonic()
        boxes = await start(url, options.servers, stack)
        print(f"{options.servers} servers started in {time.monotonic() - begun:.1f} s", flush=True)
        print(f"the first {SETTLED:.0f} s:   {await watch(database, pooled_url, SETTLED)}", flush=True)
        print(f"idle, {options.seconds:.0f} s:   {await watch(database, pooled_url, options.seconds)}", flush=True)
        before, used = database.commits(), time.process_time()
        for box in boxes:
            await box.store.adopt_abandoned()
        used = (time.process_time() - used) / len(boxes)
        if options.pgbouncer:
            await asyncio.sleep(COUNTED)
        while not options.pgbouncer and await asyncio.to_thread(database.connections):
            await asyncio.sleep(PAUSE)
        each = (database.commits() - before) / len(boxes)
        rate = each * len(boxes) / LOOK_SELDOM
        print(
            f"a look: {each:.1f} commits, {used * 1000:.1f} ms of a processor here;"
            f" one per server and {LOOK_SELDOM:.0f} s: {rate:.3f} commits a second in sum"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.idle", description=__doc__)
    parser.add_argument("--servers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long they are watched")
    parser.add_argument("--pgbouncer", action="store_true", help="put one between")
    options = parser.parse_args()
    server = PostgreSQL(connections=3 * options.servers + 20)  # all start at once here
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        for name in ("CONFIG", "DATA", "RUNTIME"):
            os.environ[f"JUPYTER_{name}_DIR"] = str(Path(place) / name.lower())
        server.start()
        stack.callback(server.remove)
        stack.callback(server.stop)
        direct, other = server.make_database(), server.make_database()
        url = direct
        if options.pgbouncer:
            url = stack.enter_context(running_pgbouncer(direct))(direct)
        asyncio.run(measure(options, Database(other, direct), url))


if __name__ == "__main__":
    main()
